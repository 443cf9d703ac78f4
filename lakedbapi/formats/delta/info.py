"""`TableInfo` from a table's metadata."""

from __future__ import annotations

import json

from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.formats import ids
from lakedbapi.formats.delta.actions import Metadata
from lakedbapi.formats.delta.clustering import sort_keys
from lakedbapi.formats.delta.features import check_readable
from lakedbapi.formats.delta.schema import INVARIANTS, metadata_of, parse_schema, void_paths
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.keys import PROPERTY, parse_keys
from lakedbapi.model.catalog import Constraint, PartitionField, PartitionSpec, TableInfo
from lakedbapi.model.types import Schema, walk

_CHECK = "delta.constraints."


def check_table(state: TableState) -> None:
    """Errors for a table whose rows cannot be read, before any of it is touched."""
    check_readable(state.protocol, state.root)
    metadata = state.metadata
    if metadata.format_provider != "parquet":
        raise NotSupportedError(
            f"Delta table {state.root} has data files of format {metadata.format_provider!r}; only parquet is supported"
        )
    if not metadata.schema_string:
        raise DataError(f"the log of Delta table {state.root} is damaged: its metaData has no schemaString")


def table_info(state: TableState, schema_id: int, name: str) -> TableInfo:
    metadata = state.metadata
    schema = parse_schema(metadata.schema_string)
    return TableInfo(
        id=ids.number_of(state.root, metadata.id),
        schema_id=schema_id,
        name=name,
        schema=schema,
        path=state.root,
        uuid=metadata.id,
        partitioning=_partitioning(metadata, schema, state.root),
        sorting=sort_keys(state, schema),
        constraints=(
            *_checks(metadata),
            *_invariants(metadata),
            *_voids(metadata),
            *parse_keys(metadata.configuration.get(PROPERTY)),
        ),
        properties={
            key: value
            for key, value in metadata.configuration.items()
            if not key.lower().startswith(_CHECK) and key != PROPERTY
        },
        comment=metadata.description,
    )


def _checks(metadata: Metadata) -> tuple[Constraint, ...]:
    return tuple(
        Constraint("check", key[len(_CHECK) :], expression=text)
        for key, text in metadata.configuration.items()
        if key.lower().startswith(_CHECK)
    )


def _invariants(metadata: Metadata) -> tuple[Constraint, ...]:
    """Conditions in the definitions of columns, as the first writers had them instead of constraints."""
    schema = parse_schema(metadata.schema_string)
    found = []
    for id, properties in metadata_of(metadata.schema_string).items():
        if INVARIANTS not in properties:
            continue
        (name,) = (field.name for field in walk(schema.fields) if field.id == id)
        try:
            expression = json.loads(properties[INVARIANTS])["expression"]["expression"]
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"column {name!r} has the invariant {properties[INVARIANTS]!r}, which is none") from error
        found.append(Constraint("invariant", f"{name} invariant", (name,), expression=expression))
    return tuple(found)


def _voids(metadata: Metadata) -> tuple[Constraint, ...]:
    """Columns of the type `void`, which the model has as text."""
    found = []
    for path in void_paths(metadata.schema_string):
        quoted = ".".join("`" + name.replace("`", "``") + "`" for name in path)
        found.append(Constraint("void", f"{'.'.join(path)} is void", path[:1], expression=f"{quoted} IS NULL"))
    return tuple(found)


def _partitioning(metadata: Metadata, schema: Schema, root: str) -> PartitionSpec | None:
    if not metadata.partition_columns:
        return None
    fields = []
    for name in metadata.partition_columns:
        field = schema.get(name)
        if field is None:
            raise DataError(f"Delta table {root} is partitioned by {name!r}, which is no column of it")
        fields.append(PartitionField(field.id, "identity"))
    return PartitionSpec(0, tuple(fields))
