"""Types that DuckDB puts into Parquet with loss are written as text, which it casts back where a table has such a type.

HUGEINT and UHUGEINT would become DOUBLE, an INTERVAL would lose its microseconds and could not be negative, a TIMETZ
would lose its offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.sql_types import quote_identifier, sql_type
from lakedbapi.model.types import Field, List, Map, Scalar, Schema, Struct, Type

_TEXT = Scalar("varchar")
_NUMBER = "_lake_number"
_LOSSY = frozenset(Scalar(name) for name in ("int128", "uint128", "interval", "timetz"))


def as_stored(rows: str, schema: Schema, sort_by: Sequence[str]) -> str:
    """`rows`, a SELECT of all columns, in order, with the values as they are to be stored."""
    columns = [(quote_identifier(field.name), field.type, _stored(field.type)) for field in schema.fields]
    casts = [f"CAST({name} AS {sql_type(stored)}) AS {name}" for name, type, stored in columns if stored != type]
    if not casts:
        return f"SELECT * FROM ({rows}) ORDER BY {', '.join(sort_by)}" if sort_by else rows
    replaced = f"REPLACE ({', '.join(casts)})"
    if not sort_by:
        return f"SELECT * {replaced} FROM ({rows})"
    # The order is that of the values. It must be the outermost clause to survive in partitions.
    numbered = f"SELECT *, row_number() OVER (ORDER BY {', '.join(sort_by)}) AS {_NUMBER} FROM ({rows})"
    return f"SELECT * EXCLUDE ({_NUMBER}) {replaced} FROM ({numbered}) ORDER BY {_NUMBER}"


def without_bounds(file: WrittenFile, schema: Schema) -> WrittenFile:
    """The bounds of columns that are stored as text are those of the text: they say nothing about the values."""
    lossy = set(_lossy_leaves(schema.fields)) & set(file.stats)
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


def _lossy_leaves(fields: tuple[Field, ...]) -> Iterator[int]:
    for field in fields:
        type = field.type
        if isinstance(type, Struct):
            yield from _lossy_leaves(type.fields)
        elif isinstance(type, List):
            yield from _lossy_leaves((type.element,))
        elif isinstance(type, Map):
            yield from _lossy_leaves((type.key, type.value))
        elif type in _LOSSY:
            yield field.id
