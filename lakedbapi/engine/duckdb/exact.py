"""Types that DuckDB puts into Parquet with loss are written as text, which it casts back where a table has such a type.

HUGEINT and UHUGEINT would become DOUBLE, an INTERVAL would lose its microseconds and could not be negative, a TIMETZ
would lose its offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.layout import FileLayout
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field, List, Map, Scalar, Schema, Struct, Type, walk

_TEXT = Scalar("varchar")
_NUMBER = "_lake_number"
_LOSSY = frozenset(Scalar(name) for name in ("int128", "uint128", "interval", "timetz"))


def as_stored(
    rows: str,
    columns: Mapping[str, str],
    sort_by: Sequence[str],
    keys: Sequence[str] = (),
    *,
    several: bool = False,
    in_order: bool = False,
) -> str:
    """`rows`, a SELECT, in order, with `columns` (SQL over those of `rows`, by name) as they are to be stored.

    `keys` are those of `columns` that the files are partitioned by. `several`: there may be more than one file;
    `in_order`: rows that nothing sorts keep the order that they come in, unless the files are partitioned.
    """
    selected = ", ".join(
        name if sql == name else f"{sql} AS {name}"
        for name, sql in ((quote_identifier(name), sql) for name, sql in columns.items())
    )
    if sort_by and not several:
        # The order is that of the values, which casts may change.
        numbered = f"SELECT *, row_number() OVER (ORDER BY {', '.join(sort_by)}) AS {_NUMBER} FROM ({rows})"
        return f"SELECT {selected} FROM ({numbered}) ORDER BY {_NUMBER}"
    if sort_by:
        # DuckDB 2.0 mixes up the rows of partitions that it fills at the same time: one comes after the other.
        rows = f"SELECT * FROM ({rows}) ORDER BY {', '.join([*(columns[key] for key in keys), *sort_by])}"
    elif keys or not (several and in_order):
        return f"SELECT {selected} FROM ({rows})"
    # Threads mix up row groups where there may be several files; a count of the rows takes these one by one.
    numbered = f"SELECT *, row_number() OVER () AS {_NUMBER} FROM ({rows})"
    return f"SELECT {selected} FROM ({numbered}) WHERE {_NUMBER} > 0"


def stored(column: str, field: Field, layout: FileLayout) -> str:
    """SQL for a column's values as files hold them."""
    type = _stored(field.type)
    value = column if type == field.type else f"CAST({column} AS {sql_type(type)})"
    return _renamed(value, type, layout, 0)


def _renamed(value: str, type: Type, layout: FileLayout, depth: int) -> str:
    """`value` with the fields of structs called as in files. NULL stays NULL at every level."""
    if not _has_renamed(type, layout):
        return value
    if isinstance(type, Struct):
        members = (
            f"{quote_identifier(layout.name(f))} := "
            + _renamed(f"struct_extract({value}, {quote_literal(f.name)})", f.type, layout, depth)
            for f in type.fields
        )
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE struct_pack({', '.join(members)}) END"
    variable = f"_lake_x{depth}"
    if isinstance(type, List):
        inner = _renamed(variable, type.element.type, layout, depth + 1)
        return f"list_transform({value}, lambda {variable}: {inner})"
    assert isinstance(type, Map)
    key, item = (_renamed(variable, f.type, layout, depth + 1) for f in (type.key, type.value))
    return (
        f"CASE WHEN {value} IS NULL THEN NULL ELSE map(list_transform(map_keys({value}), lambda {variable}: {key}),"
        f" list_transform(map_values({value}), lambda {variable}: {item})) END"
    )


def _has_renamed(type: Type, layout: FileLayout) -> bool:
    if isinstance(type, Struct):
        return any(layout.name(f) != f.name or _has_renamed(f.type, layout) for f in type.fields)
    if isinstance(type, List):
        return _has_renamed(type.element.type, layout)
    return isinstance(type, Map) and any(_has_renamed(f.type, layout) for f in (type.key, type.value))


def without_bounds(file: WrittenFile, schema: Schema) -> WrittenFile:
    """The bounds of columns that are stored as text are those of the text: they say nothing about the values."""
    lossy = {field.id for field in walk(schema.fields) if field.type in _LOSSY} & set(file.stats)
    if not lossy:
        return file
    unknown = {id: replace(file.stats[id], lower=None, upper=None) for id in lossy}
    return replace(file, stats={**file.stats, **unknown})


def _stored(type: Type) -> Type:
    if isinstance(type, Struct):
        return replace(type, fields=tuple(_stored_field(field) for field in type.fields))
    if isinstance(type, List):
        return replace(type, element=_stored_field(type.element))
    if isinstance(type, Map):
        return replace(type, key=_stored_field(type.key), value=_stored_field(type.value))
    return _TEXT if type in _LOSSY else type


def _stored_field(field: Field) -> Field:
    return replace(field, type=_stored(field.type))
