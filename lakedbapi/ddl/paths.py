"""Fields inside columns: finding and replacing one by its path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lakedbapi.errors import ProgrammingError
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.types import Field, List, Map, Schema, Struct, children

Edit = Callable[[tuple[Field, ...]], tuple[Field, ...]]
"""From the fields beside each other to the new ones."""


def find(table: TableInfo, path: Sequence[str]) -> Field | None:
    """The column, or the field in it; list items are called `element`, map entries `key` and `value`."""
    fields: tuple[Field, ...] = table.schema.fields
    found = None
    for name in path:
        found = named(fields, name)
        if found is None:
            return None
        fields = children(found.type)
    return found


def get(table: TableInfo, path: Sequence[str]) -> Field:
    """Like `find`; ProgrammingError when there is none."""
    found = find(table, path)
    if found is None:
        kind = "column" if len(path) == 1 else "field"
        raise ProgrammingError(f"table {table.name!r} has no {kind} {'.'.join(path)!r}")
    return found


def edit(table: TableInfo, parent: Sequence[str], change: Edit) -> TableInfo:
    """The table with `change` applied to the columns (`parent` empty), or to the fields of the struct at `parent`."""
    return replace(table, schema=Schema(_edited(table.schema.fields, parent, change)))


def named(fields: Sequence[Field], name: str) -> Field | None:
    folded = name.casefold()
    return next((field for field in fields if field.name.casefold() == folded), None)


def with_children(field: Field, fields: tuple[Field, ...]) -> Field:
    type = field.type
    if isinstance(type, Struct):
        return replace(field, type=Struct(fields))
    if isinstance(type, List):
        return replace(field, type=List(fields[0]))
    assert isinstance(type, Map)
    return replace(field, type=Map(fields[0], fields[1]))


def _edited(fields: tuple[Field, ...], path: Sequence[str], change: Edit) -> tuple[Field, ...]:
    if not path:
        return change(fields)
    folded = path[0].casefold()
    return tuple(
        with_children(field, _edited(children(field.type), path[1:], change))
        if field.name.casefold() == folded
        else field
        for field in fields
    )
