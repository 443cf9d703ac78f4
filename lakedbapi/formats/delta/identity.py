"""Identity columns: the values that they gave stand in the schema (protocol, "Identity Columns")."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.delta.definition import HIGH_WATER_MARK
from lakedbapi.formats.delta.schema import IDENTITY, metadata_of
from lakedbapi.formats.delta.state import TableState
from lakedbapi.model.catalog import TableInfo


def next_value(state: TableState, table: TableInfo, column: str) -> int:
    """The next free value. NotSupportedError for a column that counts by other steps than 1, or takes no values."""
    field = table.schema.get(column)
    if field is None:
        raise ProgrammingError(f"table {table.name!r} has no column {column!r}")
    found = metadata_of(state.metadata.schema_string).get(field.id, {})
    if int(found.get("delta.identity.step", 1)) != 1:
        raise NotSupportedError(
            f"identity column {table.name}.{column} counts in steps of {found['delta.identity.step']}, which is not "
            "supported: INSERT with the writer that made the table"
        )
    if found.get("delta.identity.allowExplicitInsert") is False:
        raise NotSupportedError(
            f"identity column {table.name}.{column} is GENERATED ALWAYS, which is not supported: INSERT and UPDATE "
            "with the writer that made the table"
        )
    mark = found.get(HIGH_WATER_MARK)
    return int(found.get(IDENTITY, 1)) if mark is None else int(mark) + 1
