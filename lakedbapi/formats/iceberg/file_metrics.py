"""Metrics of written files as manifests have them (spec, Data File Fields; metrics modes as in the Java library)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyiceberg import types as iceberg
from pyiceberg.schema import Schema

from lakedbapi.formats.iceberg.values import encoded, parse
from lakedbapi.formats.properties import whole_number
from lakedbapi.model.changes import FileStats, WrittenFile

_MODE = "write.metadata.metrics."
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_INFERRED = 100
"""Columns that have metrics where nothing else is said (`write.metadata.metrics.max-inferred-column-defaults`)."""

Metrics = dict[str, dict[int, Any]]


def metrics(file: WrittenFile, schema: Schema, properties: Mapping[str, str]) -> Metrics:
    """By the name of the manifest's field, the values by field id."""
    found: Metrics = {
        name: {}
        for name in (
            "column_sizes",
            "value_counts",
            "null_value_counts",
            "nan_value_counts",
            "lower_bounds",
            "upper_bounds",
        )
    }
    for name, field, default in _leaves(schema, properties):
        stats = file.stats.get(field.field_id)
        mode = properties.get(f"{_MODE}column.{name}", default).casefold()
        if stats is None or mode == "none":
            continue
        _count(found, field, stats)
        if mode != "counts":
            length = _TRUNCATE.fullmatch(mode)
            _bound(found, field, stats, None if length is None else int(length[1]))
    return {name: values for name, values in found.items() if values}


def _leaves(schema: Schema, properties: Mapping[str, str]) -> Iterator[tuple[str, iceberg.NestedField, str]]:
    """Columns and fields of structs, with their full names and default modes: those in lists and maps have none."""
    default = properties.get(f"{_MODE}default", "truncate(16)")
    limit = whole_number(properties, f"{_MODE}max-inferred-column-defaults", _INFERRED)
    named = f"{_MODE}default" in properties
    for number, (name, field) in enumerate(_below("", schema.fields)):
        yield name, field, default if named or number < limit else "none"


def _below(prefix: str, fields: tuple[iceberg.NestedField, ...]) -> Iterator[tuple[str, iceberg.NestedField]]:
    for field in fields:
        if isinstance(field.field_type, iceberg.StructType):
            yield from _below(f"{prefix}{field.name}.", field.field_type.fields)
        elif field.field_type.is_primitive:
            yield f"{prefix}{field.name}", field


def _count(found: Metrics, field: iceberg.NestedField, stats: FileStats) -> None:
    id = field.field_id
    if stats.size_bytes is not None:
        found["column_sizes"][id] = stats.size_bytes
    if stats.null_count is not None:
        found["null_value_counts"][id] = stats.null_count
        if stats.value_count is not None:
            found["value_counts"][id] = stats.value_count + stats.null_count
    if stats.has_nan is False and isinstance(field.field_type, (iceberg.FloatType, iceberg.DoubleType)):
        found["nan_value_counts"][id] = 0


def _bound(found: Metrics, field: iceberg.NestedField, stats: FileStats, length: int | None) -> None:
    type = field.field_type
    lower, upper = parse(stats.lower, type), parse(stats.upper, type)
    if isinstance(type, (iceberg.FloatType, iceberg.DoubleType)):
        # -0.0 is below 0.0, and whoever compared them may not have known.
        lower, upper = (-0.0 if lower == 0 else lower), (0.0 if upper == 0 else upper)
    if length is not None and lower is not None and upper is not None:
        lower, upper = _lower(lower, length), _upper(upper, length)
    for name, value in (("lower_bounds", lower), ("upper_bounds", upper)):
        stored = encoded(value, type)
        if stored is not None:
            found[name][field.field_id] = stored


def _lower(value: Any, length: int) -> Any:
    return value[:length] if isinstance(value, (str, bytes)) else value


def _upper(value: Any, length: int) -> Any:
    """The value, or a prefix with its last character (byte) made greater; None when there is no such one."""
    if not isinstance(value, (str, bytes)) or len(value) <= length:
        return value
    for end in range(length, 0, -1):
        if isinstance(value, str):
            following = _next_character(value[end - 1])
            if following is not None:
                return value[: end - 1] + following
        elif value[end - 1] < 0xFF:
            return value[: end - 1] + bytes([value[end - 1] + 1])
    return None


def _next_character(character: str) -> str | None:
    code = ord(character) + 1
    if 0xD800 <= code <= 0xDFFF:  # Surrogates are no characters.
        code = 0xE000
    return chr(code) if code <= 0x10FFFF else None
