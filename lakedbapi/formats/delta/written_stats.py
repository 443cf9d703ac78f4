"""Statistics of files that were written here, as the log has them (protocol, "Per-file Statistics")."""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal as PyDecimal
from typing import Any

from lakedbapi.formats.properties import whole_number
from lakedbapi.model.changes import FileStats, WrittenFile
from lakedbapi.model.types import Decimal, Field, Scalar, Schema, Struct

INDEXED_COLUMNS = 32
"""Leaf columns that have statistics, unless `delta.dataSkippingNumIndexedCols` says otherwise."""
_PREFIX = 32
"""Characters of a text that its bound keeps."""
_LONGEST_PREFIX = 64
_ASCII_TIE, _TIE = "\x7f", "\U0010ffff"
_INTEGERS = frozenset({"int8", "int16", "int32", "int64"})
_MILLIS = len("2020-01-01 00:00:00.123")

_MARK = uuid.uuid4().hex
"""Stands around numbers until they are JSON: no text has it."""
_MARKED = re.compile(f'"{_MARK}([^"]*){_MARK}"')

Tree = dict[str, Any]


def stats_text(
    file: WrittenFile,
    schema: Schema,
    in_path: frozenset[int],
    configuration: Mapping[str, str],
    always: frozenset[int] = frozenset(),
) -> str:
    """JSON. `in_path` are the ids of the partition columns, which are not in the file, `always` those of columns that
    have statistics whatever the properties say."""
    lower: Tree = {}
    upper: Tree = {}
    nulls: Tree = {}
    for path, field in _indexed(schema, in_path, always, file, configuration):
        stats = file.stats.get(field.id)
        if stats is None:
            continue
        if stats.null_count is not None:
            _put(nulls, path, stats.null_count)
        for tree, bound in zip((lower, upper), _bounds(stats, field), strict=True):
            if bound is not None:
                _put(tree, path, bound)
    counted = {"numRecords": file.record_count, "minValues": lower, "maxValues": upper, "nullCount": nulls}
    return dumps({**counted, "tightBounds": True})


def loosened(stats: str | None, record_count: int) -> str:
    """The statistics of a file of `record_count` physical rows, some of which a deletion vector takes away.

    Bounds stay valid but are no longer tight, and with them the numbers of NULLs, but for those of columns that have
    nothing else or none at all.
    """
    try:
        known = json.loads(stats or "{}", parse_float=PyDecimal)
    except ValueError:
        known = {}
    return dumps({**(known if isinstance(known, dict) else {}), "numRecords": record_count, "tightBounds": False})


def dumps(value: Any) -> str:
    """JSON in which decimals are numbers, with all their digits, and halves of surrogate pairs stay escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_decimal)
    text = text.encode("utf-8", "backslashreplace").decode()
    return _MARKED.sub(r"\1", text) if _MARK in text else text


def _decimal(value: object) -> str:
    if isinstance(value, PyDecimal):
        return f"{_MARK}{value}{_MARK}"
    raise TypeError(f"not a value of JSON: {value!r}")


def _indexed(
    schema: Schema,
    in_path: frozenset[int],
    always: frozenset[int],
    file: WrittenFile,
    configuration: Mapping[str, str],
) -> Iterator[tuple[tuple[str, ...], Field]]:
    """The leaf columns that have statistics, each with its path of names in files."""
    named = configuration.get("delta.dataSkippingStatsColumns")
    count = whole_number(configuration, "delta.dataSkippingNumIndexedCols", INDEXED_COLUMNS)
    wanted = None if named is None else {name.strip().strip("`").casefold() for name in named.split(",")}
    fields = [field for field in schema.fields if field.id not in in_path]
    for number, (logical, path, field) in enumerate(_leaves(fields, (), (), file.layout.name)):
        prefixes = {".".join(logical[: i + 1]).casefold() for i in range(len(logical))}
        chosen = not 0 <= count <= number if wanted is None else bool(wanted & prefixes)
        if chosen or field.id in always:
            yield path, field


def _leaves(
    fields: list[Field], logical: tuple[str, ...], path: tuple[str, ...], name: Callable[[Field], str]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], Field]]:
    for field in fields:
        here, there = (*logical, field.name), (*path, name(field))
        if isinstance(field.type, Struct):
            yield from _leaves(list(field.type.fields), here, there, name)
        else:
            yield here, there, field


def _put(tree: Tree, path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _bounds(stats: FileStats, field: Field) -> tuple[Any, Any]:
    type = field.type
    if stats.lower is None or stats.upper is None:
        return None, None
    if isinstance(type, Decimal):
        return PyDecimal(stats.lower), PyDecimal(stats.upper)
    if not isinstance(type, Scalar):
        return None, None
    if type.name in _INTEGERS:
        return int(stats.lower), int(stats.upper)
    if type.name in ("float32", "float64"):
        return _float_bounds(stats)
    if type.name == "date":
        return _calendar(stats.lower), _calendar(stats.upper)
    if type.name in ("timestamp", "timestamptz"):
        zone = "Z" if type.name == "timestamptz" else ""
        return _instant(stats.lower, zone), _instant(stats.upper, zone)
    return (_lower_text(stats.lower), _upper_text(stats.upper)) if type.name == "varchar" else (None, None)


def _float_bounds(stats: FileStats) -> tuple[Any, Any]:
    """None where the column has a NaN, which some readers take for the greatest value, or may have one."""
    assert stats.lower is not None
    assert stats.upper is not None
    lower, upper = float(stats.lower), float(stats.upper)
    finite = math.isfinite(lower) and math.isfinite(upper)
    return (lower, upper) if stats.has_nan is False and finite else (None, None)


def _calendar(text: str) -> str | None:
    return text if len(text) == len("2020-01-01") else None


def _instant(text: str, zone: str) -> str | None:
    """The time in milliseconds, rounded down: what readers expect of lower and upper bounds alike."""
    plain = text.removesuffix("+00")
    date, _, time = plain.partition(" ")
    if len(date) != len("2020-01-01") or not time[:1].isdigit():
        return None
    cut = plain if "." in plain else plain + "."
    return cut.ljust(_MILLIS, "0")[:_MILLIS].replace(" ", "T") + zone


def _lower_text(text: str) -> str:
    return text[:_PREFIX]


def _upper_text(text: str) -> str | None:
    """The text, or a prefix with a character behind it that makes it greater than all texts with this prefix."""
    if len(text) <= _PREFIX:
        return text
    for length in range(_PREFIX, min(_LONGEST_PREFIX, len(text)) + 1):
        if length == len(text):
            return text
        following = text[length]
        if following < _ASCII_TIE:
            return text[:length] + _ASCII_TIE
        if following < _TIE:
            return text[:length] + _TIE
    return None
