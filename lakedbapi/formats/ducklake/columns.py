"""Columns as rows of `ducklake_column`: numbering of new fields, spelling of types and defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lakedbapi.formats.ducklake.types import LIST, MAP, STRUCT
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Schema, Struct, Type, children

NO_DEFAULT = "NULL"
"""What DuckLake writes for a column without a default: the word, not SQL NULL."""

_STRING = re.compile(r"'(?:[^']|'')*'")
_PLAIN = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|true|false", re.IGNORECASE)


@dataclass(frozen=True)
class NestedField:
    """A field of any depth; `parent` is the id of the field that it lies in, None = a column."""

    field: Field
    parent: int | None

    def row(self) -> Mapping[str, Any]:
        """The columns of its catalog row that can change."""
        value, kind = default_text(self.field)
        return {
            "column_name": self.field.name,
            "column_type": type_name(self.field.type),
            "initial_default": self.field.initial_default,
            "default_value": value,
            "nulls_allowed": self.field.nullable,
            "parent_column": self.parent,
            "default_value_type": kind,
            "default_value_dialect": "duckdb",
        }


def flatten(fields: Iterable[Field], parent: int | None = None) -> Iterator[NestedField]:
    """All fields, depth first."""
    for field in fields:
        yield NestedField(field, parent)
        yield from flatten(children(field.type), field.id)


def type_name(type: Type) -> str:
    """`int32`, `decimal(9,2)`, `struct`: what stands in the row of a column, whose children have rows of their own."""
    if isinstance(type, Scalar):
        return type.name
    if isinstance(type, Decimal):
        return f"decimal({type.precision},{type.scale})"
    if isinstance(type, Struct):
        return STRUCT
    return LIST if isinstance(type, List) else MAP


def default_text(field: Field) -> tuple[str, str]:
    """(`default_value`, `default_value_type`) of a field."""
    if children(field.type):
        return (NO_DEFAULT, "") if field.default is None else (field.default, "expression")
    default = (field.default or NO_DEFAULT).strip()
    if default.upper() == NO_DEFAULT:
        return NO_DEFAULT, "literal"
    if _STRING.fullmatch(default):
        text = default[1:-1].replace("''", "'")
        # As a literal this text would mean that there is no default.
        return (default, "expression") if text == NO_DEFAULT else (text, "literal")
    return default, "literal" if _PLAIN.fullmatch(default) else "expression"


class Numbering:
    """Gives ids to the fields that have none, depth first, and to those whose id the table's history already used."""

    def __init__(self, known: frozenset[int], used: int) -> None:
        """`known`: ids of the fields at the pinned snapshot; `used`: the greatest id that the table ever had."""
        self._known = known
        self._used = used
        self._next = used + 1
        self.renumbered: dict[int, int] = {}
        """Id in the staged schema -> final id, where they differ."""

    def schema(self, schema: Schema) -> Schema:
        staged = [nested.field.id for nested in flatten(schema.fields)]
        self._next = max([self._used, *staged]) + 1
        return Schema(tuple(self._field(field) for field in schema.fields))

    def _field(self, field: Field) -> Field:
        id = field.id
        if id not in self._known and id <= self._used:
            id, self._next = self._next, self._next + 1
            if field.id > 0:
                self.renumbered[field.id] = id
        return replace(field, id=id, type=self._type(field.type))

    def _type(self, type: Type) -> Type:
        if isinstance(type, Struct):
            return Struct(tuple(self._field(field) for field in type.fields))
        if isinstance(type, List):
            return List(self._field(type.element))
        if isinstance(type, Map):
            return Map(self._field(type.key), self._field(type.value))
        return type
