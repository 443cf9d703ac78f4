"""What a writer must do for each table feature, and how a protocol is raised (protocol, "Table Features")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.delta.actions import Protocol
from lakedbapi.formats.delta.features import READER_VERSION, WRITER_VERSION, reader_features, writer_features
from lakedbapi.model.types import Scalar, Schema, walk

WRITABLE = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Features of writers that are respected."""

_FOR_READERS = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint"}
    | {"vacuumProtocolCheck"}
)
"""Features that readers must know as well."""

_NEEDS: Mapping[str, tuple[str, ...]] = {"clustering": ("domainMetadata",), "rowTracking": ("domainMetadata",)}

MODE = "delta.columnMapping.mode"

NEW_TABLE = Protocol(1, 2)
"""Of a table that asks for nothing."""

_BY_PROPERTY = {
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.appendOnly": "appendOnly",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.enableRowTracking": "rowTracking",
    "delta.enableTypeWidening": "typeWidening",
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.enableIcebergCompatV3": "icebergCompatV3",
    "delta.enableVariantShredding": "variantShredding",
    "delta.enableMaterializePartitionColumnsFeature": "materializePartitionColumns",
}
"""Properties that need a feature when they are true."""


def check_writable(protocol: Protocol, table: str) -> None:
    """NotSupportedError, which names what is missing, when the table cannot be written."""
    if protocol.min_writer > WRITER_VERSION:
        raise NotSupportedError(
            f"Delta table {table} needs a writer of version {protocol.min_writer}; versions up to {WRITER_VERSION} are "
            "supported"
        )
    unknown = sorted(writer_features(protocol) - WRITABLE)
    if unknown:
        raise NotSupportedError(
            f"Delta table {table} has features that cannot be written: {', '.join(unknown)}; it can still be read "
            "(DELTA_UNSUPPORTED_FEATURES_FOR_WRITE)"
        )


def with_features(protocol: Protocol, features: Iterable[str]) -> Protocol:
    """`protocol` raised so that it has `features`, with everything that it had before."""
    needed = set(features)
    for feature in tuple(needed):
        needed |= set(_NEEDS.get(feature, ()))
    missing = needed - writer_features(protocol)
    if not missing:
        return protocol
    writers = {*writer_features(protocol), *missing}
    readers = {*reader_features(protocol), *(missing & _FOR_READERS)}
    if not readers:
        return Protocol(protocol.min_reader, WRITER_VERSION, None, tuple(sorted(writers)), protocol.extra)
    return Protocol(
        READER_VERSION, WRITER_VERSION, tuple(sorted(readers)), tuple(sorted(writers | readers)), protocol.extra
    )


def required_features(schema: Schema, properties: Mapping[str, str]) -> frozenset[str]:
    """What a table with these columns and properties needs."""
    needed = {feature for name, feature in _BY_PROPERTY.items() if is_true(properties, name)}
    if mapping_mode(properties) != "none":
        needed.add("columnMapping")
    if properties.get("delta.checkpointPolicy", "").casefold() == "v2":
        needed.add("v2Checkpoint")
    for name, value in properties.items():
        folded = name.casefold()
        if folded.startswith("delta.constraints."):
            needed.add("checkConstraints")
        if folded.startswith("delta.feature.") and value.casefold() in ("supported", "enabled"):
            needed.add(name[len("delta.feature.") :])
    for field in walk(schema.fields):
        if field.type == Scalar("timestamp"):
            needed.add("timestampNtz")
        if field.default is not None:
            needed.add("allowColumnDefaults")
        if field.identity:
            needed.add("identityColumns")
        if field.generated is not None:
            needed.add("generatedColumns")
    return frozenset(needed)


def inert_properties(protocol: Protocol, properties: Mapping[str, str]) -> frozenset[str]:
    """The properties that mean nothing, since the protocol does not have the feature that they switch on."""
    known = writer_features(protocol)
    return frozenset(name for name in properties if _BY_PROPERTY.get(name, "") not in (*known, ""))


def has_deletion_vectors(protocol: Protocol, properties: Mapping[str, str]) -> bool:
    """Whether new deletion vectors may be written."""
    return is_on(protocol, properties, "delta.enableDeletionVectors")


def is_on(protocol: Protocol, properties: Mapping[str, str], name: str) -> bool:
    """Whether a property is true that the protocol has the feature of."""
    return is_true(properties, name) and _BY_PROPERTY[name] in writer_features(protocol)


def mapping_mode(properties: Mapping[str, str]) -> str:
    """`none`, `name` or `id`."""
    return properties.get(MODE, "none").casefold()


def is_true(properties: Mapping[str, str], name: str) -> bool:
    """As other programs do, which overlook a property that is spelled otherwise."""
    return properties.get(name, "false").strip().casefold() == "true"
