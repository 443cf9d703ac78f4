"""Identity columns: the values that they gave stand in the schema (protocol, "Identity Columns")."""

from __future__ import annotations

from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.delta.schema import HIGH_WATER_MARK, metadata_of
from lakedbapi.formats.delta.state import TableState
from lakedbapi.model.catalog import TableInfo


def next_value(state: TableState | None, table: TableInfo, column: str) -> int:
    """The next free value; `state` is None for a table that is not committed yet."""
    field = table.schema.get(column)
    if field is None or field.identity is None:
        raise ProgrammingError(f"table {table.name!r} has no identity column {column!r}")
    found = {} if state is None else metadata_of(state.metadata.schema_string).get(field.id, {})
    mark = found.get(HIGH_WATER_MARK)
    return field.identity.start if mark is None else field.identity.after(int(mark))
