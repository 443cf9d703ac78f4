"""From the text that DuckDB writes values in, to typed Arrow arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Context, InvalidOperation
from decimal import Decimal as PyDecimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError
from lakedbapi.formats.ducklake.literals import parse_literal
from lakedbapi.formats.ducklake.variants import variant_json
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Struct, Type

TIMESTAMP_UNITS = {
    "timestamp": "us",
    "timestamp_s": "s",
    "timestamp_ms": "ms",
    "timestamp_ns": "ns",
    "timestamptz": "us",
    "timestamptz_ns": "ns",
}
_EXACT = Context(prec=76)
"""For decimals of any precision, whatever the program's own context is."""
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_TEXT = frozenset({"varchar", "json", "uuid", "uint128", "timetz", "variant"})
"""Types that are text in Arrow too."""
_VARIANT = Scalar("variant")

_INSTANT = re.compile(
    r"(?P<year>-?\d{1,6})-(?P<month>\d\d?)-(?P<day>\d\d?)(?P<bc> \(BC\))?"
    r"(?:[ T](?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"(?P<bc2> \(BC\))?\s*(?P<zone>Z|[+-]\d\d(?::?\d\d)?(?::?\d\d)?)?"
)
_CLOCK = re.compile(r"(?P<sign>[-+]?)(?P<hour>\d+):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?")
_INTERVAL_PART = re.compile(r"(-?\d+) (year|month|mon|day|microsecond)s?\s*")
_HEX_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")


def parse_text(texts: Sequence[str | None] | pa.Array, type: Type) -> pa.Array:
    """An array of the Arrow type of `type`; text that is no value of it becomes NULL."""
    return _parse(texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string()), type)


def parse_stored(texts: Sequence[str | None], type: Type, what: str) -> pa.Array:
    """As `parse_text`, for values that must be right: DataError, which calls them `what`, for one that is not."""
    array = pa.array(texts, pa.string())
    parsed = _parse(array, type)
    bad = pc.and_(parsed.is_null(), array.is_valid())
    if pc.any(bad).as_py():
        value = array.filter(bad)[0].as_py()
        raise DataError(f"{what}: {value!r} in the catalog is no value of the column's type")
    return parsed


def default_array(field: Field, length: int) -> pa.Array:
    """The `initial_default` of `field`, `length` times."""
    text = field.initial_default
    if text is None or not length:
        return pa.nulls(length, arrow_type(field.type))
    one = parse_stored([text], field.type, f"default of column {field.name!r}")
    return one.take(pa.array(np.zeros(length, np.int64)))


def evolve(array: pa.Array, old: Field, new: Field) -> pa.Array:
    """Values of a column as it was (`old`), in its type today (`new`): widened, nested fields matched by field id."""
    if isinstance(old.type, Struct) and isinstance(new.type, Struct):
        return _evolve_struct(array, old.type, new.type)
    if isinstance(old.type, List) and isinstance(new.type, List):
        values = evolve(array.values, old.type.element, new.type.element)
        return pa.ListArray.from_arrays(_offsets(array), values, type=arrow_type(new.type))
    if isinstance(old.type, Map) and isinstance(new.type, Map):
        keys = evolve(array.keys, old.type.key, new.type.key)
        items = evolve(array.items, old.type.value, new.type.value)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=arrow_type(new.type))
    target = arrow_type(new.type)
    if array.type == target:
        return array
    try:
        return pc.cast(array, target)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"column {new.name!r} has values from a time when it was of another type, and not all fit its type now: "
            f"{error}; read up to a snapshot of that time"
        ) from error


def _offsets(array: pa.Array) -> pa.Array:
    """The offsets of a list or map array, with NULL where a value is NULL."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(array.offsets.to_numpy(), mask=np.append(~valid, False))


def _evolve_struct(array: pa.Array, old: Struct, new: Struct) -> pa.Array:
    known = {field.id: i for i, field in enumerate(old.fields)}
    children = [
        evolve(array.field(known[field.id]), old.fields[known[field.id]], field)
        if field.id in known
        else default_array(field, len(array))
        for field in new.fields
    ]
    return pa.StructArray.from_arrays(
        children, fields=[pa.field(field.name, arrow_type(field.type)) for field in new.fields], mask=array.is_null()
    )


def _parse(array: pa.Array, type: Type) -> pa.Array:
    target = arrow_type(type)
    if isinstance(type, (Struct, List, Map)):
        return typed_array(array.to_pylist(), type)
    if isinstance(type, Scalar):
        if type.name in _TEXT:
            return array
        if type.name == "int128":
            return _int128([None if text is None else _or_none(int, text) for text in array.to_pylist()])
        if type.name in _PARSERS:
            parse = _PARSERS[type.name]
            return pa.array([None if text is None else _or_none(parse, text) for text in array.to_pylist()], target)
    try:
        return pc.cast(array, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _parse_each(array, type, target)


def _parse_each(array: pa.Array, type: Type, target: pa.DataType) -> pa.Array:
    """The slow way for columns where Arrow's own cast met a text that it does not take."""
    parse = _each_parser(type)
    if pa.types.is_temporal(target):
        storage = pa.int32() if target == pa.date32() else pa.int64()
        numbers = [None if text is None else _or_none(parse, text) for text in array.to_pylist()]
        return pa.array(numbers, storage).cast(target)
    return pa.array([None if text is None else _fitting(parse, text, target) for text in array.to_pylist()], target)


def _fitting(parse: Callable[[str], Any], text: str, target: pa.DataType) -> Any:
    value = _or_none(parse, text)
    try:
        return pa.scalar(value, target).as_py()
    except (pa.ArrowInvalid, OverflowError):
        return None


def _or_none(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, KeyError, InvalidOperation, OverflowError):
        return None


def _each_parser(type: Type) -> Callable[[str], Any]:
    if isinstance(type, Decimal):
        quantum = PyDecimal(1).scaleb(-type.scale, _EXACT)
        return lambda text: PyDecimal(text).quantize(quantum, context=_EXACT)
    assert isinstance(type, Scalar)
    if type.name in TIMESTAMP_UNITS:
        unit = TIMESTAMP_UNITS[type.name]
        return lambda text: parse_instant(text, unit)
    if type.name == "date":
        return _parse_date
    if type.name == "boolean":
        return _parse_boolean
    return float if type.name.startswith("float") else int


def _parse_boolean(text: str) -> bool:
    return {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}[text.strip().lower()]


def _parse_date(text: str) -> int:
    """Days since 1970-01-01; the infinities are the extreme values, as in DuckDB."""
    return _infinity(text, 32) or parse_instant(text, "s") // 86400


def _infinity(text: str, bits: int) -> int:
    spelled = text.strip().lower()
    limit = (1 << (bits - 1)) - 1
    return limit if spelled == "infinity" else -limit if spelled == "-infinity" else 0


def parse_instant(text: str, unit: str) -> int:
    """`unit`s since 1970-01-01 00:00:00 UTC of a date or timestamp text, with any year and zone that DuckDB has."""
    infinity = _infinity(text, 64)
    if infinity:
        return infinity
    match = _INSTANT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a timestamp: {text!r}")
    year = int(match["year"])
    if match["bc"] or match["bc2"]:
        year = 1 - year
    # Python's dates end at the years 1 and 9999; the calendar repeats every 400 years (146,097 days).
    cycles, proleptic = divmod(year - 2000, 400)
    days = date(proleptic + 2000, int(match["month"]), int(match["day"])).toordinal() + cycles * 146_097 - 719_163
    seconds = days * 86400 + int(match["hour"] or 0) * 3600 + int(match["minute"] or 0) * 60 + int(match["second"] or 0)
    per_second = _PER_SECOND[unit]
    fraction = int((match["fraction"] or "").ljust(9, "0")) * per_second // 1_000_000_000
    return (seconds - _zone_seconds(match["zone"])) * per_second + fraction


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return -seconds if zone[0] == "-" else seconds


def _clock_parser(per_second: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        match = _CLOCK.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"not a time: {text!r}")
        seconds = int(match["hour"]) * 3600 + int(match["minute"]) * 60 + int(match["second"])
        value = seconds * per_second + int((match["fraction"] or "").ljust(9, "0")) * per_second // 1_000_000_000
        return -value if match["sign"] == "-" else value

    return parse


_micros = _clock_parser(1_000_000)


def _parse_interval(text: str) -> pa.MonthDayNano:
    """`1 year 2 months 3 days 04:05:06.789`; PostgreSQL shortens months to `mons`, and signs a clock behind a negative
    number of days or months.

    DuckDB's UPDATE of inlined rows leaves `0 months 3 days 5 microseconds`.
    """
    amounts = {"year": 0, "mon": 0, "month": 0, "day": 0, "microsecond": 0}
    position = 0
    while match := _INTERVAL_PART.match(text, position):
        amounts[match[2]] += int(match[1])
        position = match.end()
    clock = text[position:]
    nanos = ((_micros(clock) if clock else 0) + amounts["microsecond"]) * 1000
    return pa.MonthDayNano([amounts["year"] * 12 + amounts["mon"] + amounts["month"], amounts["day"], nanos])


def parse_blob(text: str) -> bytes:
    """DuckDB's spelling of a blob: ASCII as it is, other bytes as `\\xAA`."""
    return _HEX_ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text.encode("utf-8"))


_PARSERS: dict[str, Callable[[str], Any]] = {
    "time": _micros,
    "time_ns": _clock_parser(1_000_000_000),
    "interval": _parse_interval,
    "blob": parse_blob,
    "geometry": parse_blob,
}


def _int128(values: Sequence[int | None]) -> pa.Array:
    """By its bytes: Arrow takes no decimals of 39 digits, which the largest of these numbers have."""
    known = [value is not None and -(1 << 127) <= value < 1 << 127 for value in values]
    numbers = (int(value or 0) if is_known else 0 for value, is_known in zip(values, known, strict=True))
    data = pa.py_buffer(b"".join(number.to_bytes(16, "little", signed=True) for number in numbers))
    validity = pa.py_buffer(np.packbits(np.array(known, np.bool_), bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.decimal128(38, 0), len(known), [validity, data])


def typed_array(values: Sequence[Any], type: Type, *, in_text: bool = False) -> pa.Array:
    """An array of what a database driver gives for values of `type`; DataError for one that is none.

    Text is parsed. Else structs are dicts, lists are sequences and maps are dicts. `in_text`: the values come from the
    text of nested ones, where variants are written as blobs.
    """
    if isinstance(type, (Struct, List, Map)):
        in_text = in_text or any(isinstance(value, str) for value in values)
        values = [_opened(value) if isinstance(value, str) else value for value in values]
    if isinstance(type, Struct):
        rows = [None if value is None else dict(value) for value in values]
        children = [
            typed_array([None if row is None else row.get(field.name) for row in rows], field.type, in_text=in_text)
            for field in type.fields
        ]
        mask = pa.array([row is None for row in rows], pa.bool_())
        fields = [pa.field(field.name, arrow_type(field.type)) for field in type.fields]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if isinstance(type, List):
        flat = [element for value in values if value is not None for element in value]
        return pa.ListArray.from_arrays(
            _lengths_to_offsets(values), typed_array(flat, type.element.type, in_text=in_text), type=arrow_type(type)
        )
    if isinstance(type, Map):
        entries = [
            None if value is None else list(value.items() if isinstance(value, dict) else value) for value in values
        ]
        flat = [entry for row in entries if row is not None for entry in row]
        keys = typed_array([entry[0] for entry in flat], type.key.type, in_text=in_text)
        items = typed_array([entry[1] for entry in flat], type.value.type, in_text=in_text)
        return pa.MapArray.from_arrays(_lengths_to_offsets(entries), keys, items, type=arrow_type(type))
    if in_text and type == _VARIANT:
        values = [None if value is None else parse_blob(value) for value in values]
    return scalar_array(values, type)


def _opened(text: str) -> Any:
    try:
        return parse_literal(text)
    except ValueError as error:
        raise DataError(f"a value in the catalog cannot be read: {error}") from error


def _variant(data: bytes) -> str:
    try:
        return variant_json(data)
    except ValueError as error:
        raise DataError(f"a value in the catalog cannot be read: {error}") from error


def _lengths_to_offsets(values: Sequence[Any]) -> pa.Array:
    lengths = np.array([0 if value is None else len(value) for value in values], np.int32)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    return pa.array(offsets, mask=np.array([*(value is None for value in values), False]))


def scalar_array(values: Sequence[Any], type: Type) -> pa.Array:
    """An array of a type without children from what a database driver gives: text is parsed, the rest converted."""
    target = arrow_type(type)
    sample = next((value for value in values if value is not None), None)
    if isinstance(sample, str):
        return parse_stored(values, type, "a stored value")
    if isinstance(sample, (bytes, bytearray, memoryview)):
        raw = pa.array([None if value is None else bytes(value) for value in values], pa.binary())
        if pa.types.is_binary(target):
            return raw
        if type == _VARIANT:
            return pa.array([None if value is None else _variant(value) for value in raw.to_pylist()], target)
        return parse_stored(pc.cast(raw, pa.string()).to_pylist(), type, "a stored value")
    if pa.types.is_boolean(target):
        return pa.array([None if value is None else bool(value) for value in values], target)
    if pa.types.is_string(target):
        return parse_stored([None if value is None else str(value) for value in values], type, "a stored value")
    if type == Scalar("int128"):
        return _int128([None if value is None else int(value) for value in values])
    if pa.types.is_decimal(target):
        return pc.cast(pa.array([None if value is None else str(value) for value in values], pa.string()), target)
    return pa.array(values, target)
