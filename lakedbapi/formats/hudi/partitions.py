"""What a partition's path tells of the partition columns, to skip files by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.formats.hudi.properties import Properties
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.scan import PartitionColumn
from lakedbapi.model.types import Scalar, Schema

_TYPES = frozenset({"varchar", "int32", "int64", "boolean"})
"""Types whose values stand in paths as they are; dates and times have several spellings."""
_UNKNOWN = frozenset({"__HIVE_DEFAULT_PARTITION__", "default"})
"""Stand for NULL and for the empty text, or may do so."""


def partition_columns(
    properties: Properties, schema: Schema, paths: pa.Array | pa.ChunkedArray
) -> Mapping[tuple[int, str], PartitionColumn]:
    """(field id, `identity`) -> the value of the column in each of `paths`, where it can be told."""
    if not properties.has_plain_partitions:
        return {}
    encoded = pc.dictionary_encode(paths)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    distinct = [_values(properties, path) for path in encoded.dictionary.to_pylist()]
    found: dict[tuple[int, str], PartitionColumn] = {}
    for name in properties.partition_columns:
        field = schema.get(name)
        if field is None or not isinstance(field.type, Scalar) or field.type.name not in _TYPES:
            continue
        parsed = [_parsed(values.get(name), field.type.name) for values in distinct]
        values = pa.array(parsed, arrow_type(field.type)).take(encoded.indices)
        found[field.id, "identity"] = PartitionColumn(values, values.is_valid())
    return found


def _values(properties: Properties, path: str) -> Mapping[str, str]:
    """The text of each partition column; empty for a path that does not have one directory for each."""
    names, parts = properties.partition_columns, path.split("/")
    if len(parts) != len(names):
        return {}
    if properties.has_hive_style_paths:
        pairs = [part.partition("=") for part in parts]
        if any(name != key for name, (key, _, _) in zip(names, pairs, strict=True)):
            return {}
        parts = [value for _, _, value in pairs]
    return dict(zip(names, map(unquote, parts) if properties.has_encoded_paths else parts, strict=True))


def _parsed(text: str | None, type: str) -> Any:
    """None = the path does not tell the value."""
    if text is None or text in _UNKNOWN:
        return None
    if type == "varchar":
        return text
    if type == "boolean":
        return {"true": True, "false": False}.get(text)
    bits = 31 if type == "int32" else 63
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or str(int(text)) != text:
        return None
    return int(text) if -(1 << bits) <= int(text) < 1 << bits else None
