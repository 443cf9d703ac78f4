"""Sort keys of formats that sort by columns alone, not by expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Field, Schema, Struct

Path = tuple[Field, ...]
"""A column, or a field of a struct with those that it lies in before it."""


def sort_paths(schema: Schema) -> Mapping[str, Path]:
    """What a sort key can be, by its casefolded SQL: `a`, `"a"`, `a.b`, `"a"."b"`."""
    found: dict[str, Path] = {}
    for path in _paths(schema.fields, ()):
        found[".".join(field.name for field in path).casefold()] = path
        found[path_sql(path).casefold()] = path
    return found


def path_sql(path: Path) -> str:
    return ".".join(quote_identifier(field.name) for field in path)


def _paths(fields: tuple[Field, ...], above: Path) -> Iterator[Path]:
    for field in fields:
        yield (*above, field)
        if isinstance(field.type, Struct):
            yield from _paths(field.type.fields, (*above, field))
