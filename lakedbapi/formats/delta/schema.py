"""The `schemaString` of a table and the model's schema (protocol, "Schema Serialization Format", "Column Mapping").

A schema is written back onto the text that it was read from, so that nothing of it is lost that the model does not
know: generation expressions, identity high-water marks, type changes, collations, the metadata of other writers.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.model.types import Decimal, Field, Identity, List, Map, Scalar, Schema, Struct, Type, walk

ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
COMMENT = "comment"
DEFAULT = "CURRENT_DEFAULT"
IDENTITY = "delta.identity.start"
STEP = "delta.identity.step"
EXPLICIT = "delta.identity.allowExplicitInsert"
HIGH_WATER_MARK = "delta.identity.highWaterMark"
GENERATED = "delta.generationExpression"
INVARIANTS = "delta.invariants"
VOID = "void"

_SCALARS = {
    "string": "varchar",
    "long": "int64",
    "integer": "int32",
    "short": "int16",
    "byte": "int8",
    "float": "float32",
    "double": "float64",
    "boolean": "boolean",
    "binary": "blob",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "variant": "variant",
    VOID: "varchar",
}
_NAMES = {scalar: name for name, scalar in _SCALARS.items() if name != VOID}
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_CHAR = re.compile(r"(?:var)?char\s*\(\s*\d+\s*\)")
_KEPT = 256
"""Texts of schemas whose meaning is kept at hand: each statement asks for it several times."""


@lru_cache(_KEPT)
def parse_schema(schema_string: str) -> Schema:
    """The schema of a table. Fields have their column-mapping ids, or numbers in depth-first order without these.

    DataError for a text that is no schema; NotSupportedError for a type that is not known.
    """
    tree = _tree(schema_string)
    used = [id for id in map(_mapping_id, _fields(tree)) if id is not None]
    numbers = itertools.count(max(used, default=0) + 1)
    return Schema(_struct(tree, numbers).fields)


def print_schema(schema: Schema, base: str | None = None) -> str:
    """The `schemaString` of `schema`; what `base`, from which it was parsed and then changed, has beyond the model
    stays with each field."""
    known: dict[int, dict[str, Any]] = {}
    if base is not None:
        tree = _tree(base)
        for field, raw in zip(walk(parse_schema(base).fields), nodes(tree), strict=True):
            known[field.id] = raw
    return json.dumps(_print_struct(Struct(schema.fields), known), ensure_ascii=False, separators=(",", ":"))


@lru_cache(_KEPT)
def physical_names(schema_string: str) -> Mapping[int, str]:
    """Field id -> the name that the field has in data files, statistics and partition values, where that is not its
    own."""
    schema = parse_schema(schema_string)
    names: dict[int, str] = {}
    for field, raw in zip(walk(schema.fields), nodes(_tree(schema_string)), strict=True):
        physical = (raw.get("metadata") or {}).get(PHYSICAL_NAME)
        if physical is not None:
            names[field.id] = physical
    return names


@lru_cache(_KEPT)
def metadata_of(schema_string: str) -> Mapping[int, Mapping[str, Any]]:
    """Field id -> the field's metadata as the log has it."""
    schema = parse_schema(schema_string)
    found = nodes(_tree(schema_string))
    return {field.id: raw.get("metadata") or {} for field, raw in zip(walk(schema.fields), found, strict=True)}


def void_paths(schema_string: str) -> Sequence[tuple[str, ...]]:
    """The names that lead to each field, of a table or of a struct, that can be nothing but NULL."""
    return list(_void_paths(_tree(schema_string), ()))


def _void_paths(tree: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for field in tree["fields"]:
        path, type = (*above, field["name"]), field["type"]
        if type == VOID:
            yield path
        elif isinstance(type, dict) and type.get("type") == "struct":
            yield from _void_paths(type, path)


def _tree(schema_string: str) -> dict[str, Any]:
    try:
        tree = json.loads(schema_string)
    except ValueError as error:
        raise DataError(f"the table's schemaString is no JSON: {error}") from error
    if not isinstance(tree, dict) or not isinstance(tree.get("fields"), list):
        raise DataError("the table's schemaString is no struct type")
    return tree


def _fields(tree: Any) -> Iterator[dict[str, Any]]:
    """The fields of all structs."""
    return (node for node in nodes(tree) if "name" in node)


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """For each field that `walk` gives, its JSON; for elements, keys and values an empty object."""
    if not isinstance(tree, dict):
        return
    if tree.get("type") == "struct":
        for field in tree["fields"]:
            yield field
            yield from nodes(field.get("type"))
    elif tree.get("type") == "array":
        yield {}
        yield from nodes(tree["elementType"])
    elif tree.get("type") == "map":
        for part in ("keyType", "valueType"):
            yield {}
            yield from nodes(tree[part])


def _mapping_id(field: Mapping[str, Any]) -> int | None:
    id = (field.get("metadata") or {}).get(ID)
    return None if id is None else int(id)


def _struct(tree: Mapping[str, Any], numbers: Iterator[int]) -> Struct:
    return Struct(tuple(_field(field, numbers) for field in tree["fields"]))


def _field(raw: Mapping[str, Any], numbers: Iterator[int]) -> Field:
    metadata = raw.get("metadata") or {}
    id = _mapping_id(raw)
    return Field(
        name=raw["name"],
        id=next(numbers) if id is None else id,
        type=_type(raw["type"], raw["name"], numbers),
        nullable=raw.get("nullable", True),
        default=metadata.get(DEFAULT),
        comment=metadata.get(COMMENT),
        identity=_identity(metadata),
        generated=metadata.get(GENERATED),
    )


def _identity(metadata: Mapping[str, Any]) -> Identity | None:
    if IDENTITY not in metadata:
        return None
    return Identity(int(metadata[IDENTITY]), int(metadata.get(STEP, 1)), metadata.get(EXPLICIT) is False)


def _type(raw: Any, name: str, numbers: Iterator[int]) -> Type:
    if isinstance(raw, str):
        return _scalar(raw, name)
    kind = raw.get("type")
    if kind == "struct":
        return _struct(raw, numbers)
    if kind == "array":
        id = next(numbers)
        return List(
            Field("element", _type(raw["elementType"], name, numbers), id, nullable=raw.get("containsNull", True))
        )
    if kind == "map":
        id = next(numbers)
        key = Field("key", _type(raw["keyType"], name, numbers), id, nullable=False)
        id = next(numbers)
        return Map(
            key, Field("value", _type(raw["valueType"], name, numbers), id, nullable=raw.get("valueContainsNull", True))
        )
    raise NotSupportedError(f"column {name!r} has the type {kind!r}, which is not supported")


def _scalar(text: str, name: str) -> Type:
    spelled = text.strip().lower()
    if spelled in _SCALARS:
        return Scalar(_SCALARS[spelled])
    decimal = _DECIMAL.fullmatch(spelled)
    if decimal is not None:
        return Decimal(int(decimal[1]), int(decimal[2]))
    if spelled == "decimal":
        return Decimal(10, 0)
    if _CHAR.fullmatch(spelled):
        return Scalar("varchar")
    raise NotSupportedError(f"column {name!r} has the type {text!r}, which is not supported")


def type_name(type: Type) -> str:
    """The name that a type without children has in a schema; NotSupportedError for one that Delta does not have."""
    if isinstance(type, Decimal):
        return f"decimal({type.precision},{type.scale})"
    if isinstance(type, Scalar) and type.name in _NAMES:
        return _NAMES[type.name]
    raise NotSupportedError(f"Delta tables have no type for {type}; use one of: {', '.join(sorted(_NAMES))}")


def _print_struct(struct: Struct, known: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": [_print_field(field, known) for field in struct.fields]}


def _print_field(field: Field, known: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    raw = known.get(field.id, {})
    metadata = dict(raw.get("metadata") or {})
    for name, value in ((COMMENT, field.comment), (DEFAULT, field.default)):
        if value is None:
            metadata.pop(name, None)
        else:
            metadata[name] = value
    return {
        **raw,
        "name": field.name,
        "type": _print_type(field.type, raw.get("type"), known),
        "nullable": field.nullable,
        "metadata": metadata,
    }


def _print_type(type: Type, raw: Any, known: Mapping[int, dict[str, Any]]) -> Any:
    if isinstance(type, Struct):
        return _print_struct(type, known)
    if isinstance(type, List):
        element = raw.get("elementType") if isinstance(raw, dict) else None
        return {
            "type": "array",
            "elementType": _print_type(type.element.type, element, known),
            "containsNull": type.element.nullable,
        }
    if isinstance(type, Map):
        parts = raw if isinstance(raw, dict) else {}
        return {
            "type": "map",
            "keyType": _print_type(type.key.type, parts.get("keyType"), known),
            "valueType": _print_type(type.value.type, parts.get("valueType"), known),
            "valueContainsNull": type.value.nullable,
        }
    # `void` and `varchar(5)` are strings in the model: a type that did not change keeps its spelling.
    if isinstance(raw, str) and _scalar(raw, "") == type:
        return raw
    return type_name(type)
