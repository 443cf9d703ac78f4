"""Table features, each with what it asks of a reader and of a writer (protocol, "Valid Feature Names in Table
Features")."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.delta.actions import Protocol

READER_VERSION, WRITER_VERSION = 3, 7
"""The newest versions of the protocol."""

READABLE = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
    }
)
"""Features of readers that are supported."""

_REASONS = {
    "catalogManaged": "its commits go through a catalog, not the directory",
    "catalogOwned-preview": "its commits go through a catalog, not the directory",
}

_LEGACY_WRITER = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}
"""Features that a writer version below 7 brings, besides those of the versions before."""


def writer_features(protocol: Protocol) -> frozenset[str]:
    """All features that a writer must respect, also those implied by an old version."""
    if protocol.min_writer >= WRITER_VERSION:
        return frozenset(protocol.writer_features or ())
    return frozenset(
        feature
        for version, features in _LEGACY_WRITER.items()
        if version <= protocol.min_writer
        for feature in features
    )


def reader_features(protocol: Protocol) -> frozenset[str]:
    """All features that a reader must respect, also those implied by an old version."""
    if protocol.min_reader >= READER_VERSION:
        return frozenset(protocol.reader_features or ())
    return frozenset({"columnMapping"} if protocol.min_reader == 2 else ())


def check_readable(protocol: Protocol, table: str) -> None:
    """NotSupportedError, which names what is missing, when the rows of the table cannot be read."""
    if protocol.min_reader > READER_VERSION or protocol.min_reader < 1:
        raise NotSupportedError(
            f"Delta table {table} needs a reader of version {protocol.min_reader}; versions 1 to {READER_VERSION} are "
            "supported"
        )
    unknown = sorted(reader_features(protocol) - READABLE)
    if unknown:
        reasons = [f"{name} ({_REASONS[name]})" if name in _REASONS else name for name in unknown]
        raise NotSupportedError(
            f"Delta table {table} has features that cannot be read: {', '.join(reasons)} "
            "(DELTA_UNSUPPORTED_FEATURES_FOR_READ)"
        )
    if protocol.min_reader < READER_VERSION and protocol.reader_features:
        raise NotSupportedError(
            f"Delta table {table} lists reader features ({', '.join(protocol.reader_features)}) but has reader version "
            f"{protocol.min_reader}, which knows none: its protocol is damaged"
        )
    only_reader = reader_features(protocol) - writer_features(protocol)
    if protocol.min_reader >= READER_VERSION and only_reader:
        raise NotSupportedError(
            f"Delta table {table} lists {', '.join(sorted(only_reader))} for readers but not for writers: its "
            "protocol is damaged"
        )
