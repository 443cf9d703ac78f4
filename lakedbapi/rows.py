"""Arrow columns to Python values.

| SQL type | Python value |
|---|---|
| integers, HUGEINT, UHUGEINT, BIGNUM | int |
| FLOAT, DOUBLE | float |
| DECIMAL | decimal.Decimal with the column's scale |
| VARCHAR, JSON, ENUM, BIT | str |
| BLOB, GEOMETRY | bytes |
| UUID | uuid.UUID |
| DATE, TIME, TIMESTAMP* | datetime.date, .time, .datetime (nanoseconds are cut to microseconds) |
| TIMESTAMPTZ | aware datetime in UTC; TIMETZ: aware time |
| INTERVAL | timedelta, a month counting 30 days |
| LIST, ARRAY | list; STRUCT: dict; unnamed STRUCT: tuple; MAP: dict, list of pairs when keys cannot be hashed |

`infinity` and `-infinity` become the largest and smallest value of the Python type. Other values outside of Python's
range (years before 1 or after 9999, 24:00:00) raise DataError: reading them as something else would be wrong.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Sequence
from datetime import date, time, timedelta, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.errors import DataError
from lakedbapi.typecodes import element_types, has_unnamed_fields, type_name

Row = tuple[Any, ...]
Converter = Callable[[Any], "list[Any]"]
"""From a `pa.Array` to a list of Python values as long as it."""

_INT64_MAX = np.iinfo(np.int64).max
_INT32_MAX = np.iinfo(np.int32).max
_EPOCH_MIN_US = -62135596800_000_000
"""0001-01-01 00:00:00 in microseconds since 1970."""
_EPOCH_MAX_US = 253402300799_999_999
"""9999-12-31 23:59:59.999999."""
_DAY_US = 86_400_000_000
_MAX_TIMETZ_OFFSET = 16 * 3600 - 1


def converters(types: Sequence[str], schema: pa.Schema) -> list[Converter]:
    """One converter a column; `types` are the columns' SQL types."""
    return [converter(field.type, sql_type) for field, sql_type in zip(schema, types, strict=True)]


def to_rows(batch: pa.RecordBatch, columns: Sequence[Converter]) -> list[Row]:
    """The rows of a batch as tuples."""
    return list(zip(*(convert(batch.column(i)) for i, convert in enumerate(columns)), strict=True))


def converter(arrow_type: pa.DataType, sql_type: str = "") -> Converter:
    """How arrays of `arrow_type` become Python values. The SQL type tells what Arrow does not: UUID, HUGEINT."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _of_storage(converter(arrow_type.storage_type, sql_type or _vendor_type(arrow_type)))
    if pa.types.is_dictionary(arrow_type):
        return _of_dictionary(converter(arrow_type.value_type, sql_type))
    for matches, convert in _BY_SQL_TYPE.get(type_name(sql_type), []) + _BY_ARROW_TYPE:
        if matches(arrow_type):
            return convert
    return _nested(arrow_type, sql_type) or _plain


def _vendor_type(arrow_type: Any) -> str:
    """SQL type of an extension type inside a value whose SQL type is not known."""
    if arrow_type.extension_name == "arrow.uuid":
        return "UUID"
    return str(getattr(arrow_type, "type_name", "")).upper().replace("TIME_TZ", "TIMETZ")


def _of_storage(convert: Converter) -> Converter:
    return lambda array: convert(array.storage)


def _of_dictionary(convert: Converter) -> Converter:
    return lambda array: convert(array.dictionary_decode())


def _plain(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values


def _objects(array: pa.Array) -> list[Any]:
    """Strings, binary and decimals: pyarrow makes the Python objects in C++."""
    values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    return values


def _numbers(array: pa.Array) -> list[Any]:
    return _with_nulls(_dense(array).tolist(), array)


def _dense(array: pa.Array) -> npt.NDArray[Any]:
    """Primitive values as numpy, with some value in place of NULL."""
    if array.null_count:
        array = array.fill_null(0)
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def _with_nulls(values: list[Any], array: pa.Array) -> list[Any]:
    """`values` with None wherever `array` is NULL."""
    if array.null_count:
        for i in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[i] = None
    return values


def _fixed_width(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The value buffer of an array, seen as `dtype` (one item a value); zeros where NULL."""
    item = np.dtype(dtype)
    if not len(array):
        return np.empty(0, item)
    values = np.frombuffer(array.buffers()[1], item, count=len(array), offset=array.offset * item.itemsize)
    if array.null_count:
        values = values.copy()
        values[array.is_null().to_numpy(zero_copy_only=False)] = np.zeros((), item)
    return values


def _wide_integers(high: str) -> Converter:
    """128-bit integers in two little-endian halves; `high` is the numpy type of the upper one."""

    def convert(array: pa.Array) -> list[Any]:
        halves = _fixed_width(array, [("low", "<u8"), ("high", high)])
        low, top = halves["low"], halves["high"]
        if not top.any() and not (low >> np.uint64(63)).any():
            values = low.tolist()
        else:
            values = [(h << 64) | x for h, x in zip(top.tolist(), low.tolist(), strict=True)]
        return _with_nulls(values, array)

    return convert


def _bignum(array: pa.Array) -> list[Any]:
    return [None if value is None else _bignum_value(value) for value in _objects(array)]


def _bignum_value(data: bytes) -> int:
    """Three bytes of header, whose first bit is set for values >= 0, then the magnitude; negative ones inverted."""
    if data[0] & 0x80:
        return int.from_bytes(data[3:], "big")
    return -int.from_bytes(bytes(byte ^ 0xFF for byte in data[3:]), "big")


def _bits(array: pa.Array) -> list[Any]:
    return [None if value is None else _bit_string(value) for value in _objects(array)]


def _bit_string(data: bytes) -> str:
    """One byte with the number of padding bits, then the bits, padded at the front."""
    return "".join(f"{byte:08b}" for byte in data[1:])[data[0] :]


def _uuid_bytes(array: pa.Array) -> list[Any]:
    return [None if value is None else uuid.UUID(bytes=value) for value in _objects(array)]


def _dates(array: pa.Array) -> list[Any]:
    days = _dense(array).astype("datetime64[D]").astype(np.int64)
    infinite = np.abs(days) == _INT32_MAX
    if infinite.any():
        limits = np.where(days > 0, date.max.toordinal(), date.min.toordinal()) - date(1970, 1, 1).toordinal()
        days = np.where(infinite, limits, days)
    _refuse_outside(days * _DAY_US, _EPOCH_MIN_US, _EPOCH_MAX_US, array, "date")
    return _with_nulls(days.astype("datetime64[D]").tolist(), array)


def _timestamps(array: pa.Array) -> list[Any]:
    micros = _microseconds(_fixed_width(array, np.int64), array.type.unit, array)
    naive = micros.astype("datetime64[us]").tolist()
    if array.type.tz is not None:
        naive = [value.replace(tzinfo=timezone.utc) for value in naive]
    return _with_nulls(naive, array)


def _microseconds(values: npt.NDArray[np.int64], unit: str, array: pa.Array) -> npt.NDArray[np.int64]:
    """Timestamps in microseconds since 1970, infinities clamped to what a datetime can hold."""
    infinite = np.abs(values) == _INT64_MAX
    limits = np.where(values > 0, _EPOCH_MAX_US, _EPOCH_MIN_US)
    finite = np.where(infinite, 0, values)
    factor = {"s": 1_000_000, "ms": 1_000}.get(unit, 1)
    if unit != "ns":  # 64 bits of nanoseconds end in the year 2262.
        _refuse_outside(finite, _EPOCH_MIN_US // factor, _EPOCH_MAX_US // factor, array, "timestamp")
    micros = finite // 1_000 if unit == "ns" else finite * factor
    return np.where(infinite, limits, micros)


def _times(array: pa.Array) -> list[Any]:
    values = _dense(array.view(pa.int64()))
    micros = values // 1_000 if array.type.unit == "ns" else values
    _refuse_outside(micros, 0, _DAY_US - 1, array, "time")
    return _with_nulls([_time(value, None) for value in micros.tolist()], array)


def _time(micros: int, tzinfo: timezone | None) -> time:
    seconds, microsecond = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return time(hour, minute, second, microsecond, tzinfo)


def _times_with_zone(array: pa.Array) -> list[Any]:
    """64 bits: 40 of microseconds since midnight, 24 of the offset, counted down from the largest one."""
    packed = _with_nulls(_fixed_width(array, "<u8").tolist(), array)
    return [None if value is None else _time_with_zone(value) for value in packed]


def _time_with_zone(packed: int) -> time:
    offset = timedelta(seconds=_MAX_TIMETZ_OFFSET - (packed & 0xFFFFFF))
    micros = packed >> 24
    if micros >= _DAY_US:
        raise _outside("time", "24:00:00")
    return _time(micros, timezone(offset))


def _parse_time_with_zone(text: str) -> time:
    """`01:02:03.5+02`, `…+02:30`, `…-02:30:15`."""
    cut = max(text.rfind("+"), text.rfind("-"))
    hours, minutes, seconds = ([float(part) for part in text[:cut].split(":")] + [0.0, 0.0])[:3]
    micros = round(((hours * 60 + minutes) * 60 + seconds) * 1_000_000)
    offset = [int(part) for part in text[cut + 1 :].split(":")]
    distance = sum(part * factor for part, factor in zip(offset, (3600, 60, 1), strict=False))
    if micros >= _DAY_US:
        raise _outside("time", text)
    return _time(micros, timezone(timedelta(seconds=-distance if text[cut] == "-" else distance)))


def _intervals(array: pa.Array) -> list[Any]:
    parts = _fixed_width(array, [("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
    days = parts["months"].astype(np.int64) * 30 + parts["days"]
    micros = (parts["nanos"] // 1_000).tolist()
    try:
        values: list[Any] = [timedelta(day, 0, micro) for day, micro in zip(days.tolist(), micros, strict=True)]
    except OverflowError as error:
        raise _outside("interval", "of more than 999999999 days") from error
    return _with_nulls(values, array)


def _refuse_outside(values: npt.NDArray[np.int64], low: int, high: int, array: pa.Array, kind: str) -> None:
    outside = (values < low) | (values > high)
    if outside.any():
        index = int(np.flatnonzero(outside)[0])
        stored = array.slice(index, 1).view(pa.int32() if kind == "date" else pa.int64())[0]
        raise _outside(kind, f"stored as {stored}")


def _outside(kind: str, value: str) -> DataError:
    return DataError(
        f"the result has a value of type {kind} ({value}) that is outside of what Python's datetime types can hold; "
        "cast the column to VARCHAR, or read it with fetch_arrow_table()"
    )


def _nested(arrow_type: pa.DataType, sql_type: str) -> Converter | None:
    types = pa.types
    if types.is_map(arrow_type):
        key, value = _children(sql_type, 2)
        return _maps(converter(arrow_type.key_type, key), converter(arrow_type.item_type, value))
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return _lists(converter(arrow_type.value_type, _children(sql_type, 1)[0]))
    if types.is_fixed_size_list(arrow_type):
        return _arrays(converter(arrow_type.value_type, _children(sql_type, 1)[0]), arrow_type.list_size)
    if types.is_struct(arrow_type):
        children = _children(sql_type, arrow_type.num_fields)
        fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
        inner = [converter(field.type, child) for field, child in zip(fields, children, strict=True)]
        unnamed = has_unnamed_fields(sql_type)
        return _structs(inner, None if unnamed else [field.name for field in fields])
    return None


def _children(sql_type: str, count: int) -> Sequence[str]:
    """The SQL types inside a nested one; empty texts when it does not have `count` of them."""
    found = element_types(sql_type)
    return found if len(found) == count else ("",) * count


def _lists(element: Converter) -> Converter:
    def convert(array: pa.Array) -> list[Any]:
        offsets = array.offsets.to_numpy().tolist()
        start = offsets[0]
        values = element(array.values.slice(start, offsets[-1] - start))
        lists: list[Any] = [values[a - start : b - start] for a, b in itertools.pairwise(offsets)]
        return _with_nulls(lists, array)

    return convert


def _arrays(element: Converter, size: int) -> Converter:
    def convert(array: pa.Array) -> list[Any]:
        values = element(array.values.slice(array.offset * size, len(array) * size))
        return _with_nulls([values[i * size : (i + 1) * size] for i in range(len(array))], array)

    return convert


def _maps(key: Converter, value: Converter) -> Converter:
    def convert(array: pa.Array) -> list[Any]:
        offsets = array.offsets.to_numpy().tolist()
        start, length = offsets[0], offsets[-1] - offsets[0]
        pairs = list(
            zip(key(array.keys.slice(start, length)), value(array.items.slice(start, length)), strict=True),
        )
        maps: list[Any] = [_mapping(pairs[a - start : b - start]) for a, b in itertools.pairwise(offsets)]
        return _with_nulls(maps, array)

    return convert


def _mapping(pairs: list[tuple[Any, Any]]) -> dict[Any, Any] | list[tuple[Any, Any]]:
    try:
        return dict(pairs)
    except TypeError:
        return pairs


def _structs(fields: Sequence[Converter], names: Sequence[str] | None) -> Converter:
    """Dicts by field name; tuples where the fields have no names."""

    def convert(array: pa.Array) -> list[Any]:
        columns = [field(child) for field, child in zip(fields, array.flatten(), strict=True)]
        rows: list[Any] = list(zip(*columns, strict=True))
        if names is not None:
            rows = [dict(zip(names, row, strict=True)) for row in rows]
        return _with_nulls(rows, array)

    return convert


def _text_as(parse: Callable[[str], Any]) -> Converter:
    return lambda array: [None if value is None else parse(value) for value in _objects(array)]


def _is_128_bits(arrow_type: pa.DataType) -> bool:
    wide = pa.types.is_decimal128(arrow_type) or pa.types.is_fixed_size_binary(arrow_type)
    return bool(wide and arrow_type.bit_width == 128)


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def _is_number(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type))


def _is_object(arrow_type: pa.DataType) -> bool:
    types = pa.types
    binary = types.is_binary(arrow_type) or types.is_large_binary(arrow_type) or types.is_fixed_size_binary(arrow_type)
    return bool(binary or _is_text(arrow_type) or types.is_decimal(arrow_type))


_TIMETZ = "TIME WITH TIME ZONE"

_BY_SQL_TYPE: dict[str, list[tuple[Callable[[pa.DataType], bool], Converter]]] = {
    "HUGEINT": [(_is_128_bits, _wide_integers("<i8")), (_is_text, _text_as(int))],
    "UHUGEINT": [(_is_128_bits, _wide_integers("<u8")), (_is_text, _text_as(int))],
    "BIGNUM": [(pa.types.is_binary, _bignum), (_is_text, _text_as(int))],
    "BOOLEAN": [
        (pa.types.is_int8, lambda array: [None if value is None else bool(value) for value in _numbers(array)])
    ],
    "BIT": [(pa.types.is_binary, _bits)],
    "UUID": [(_is_text, _text_as(uuid.UUID)), (pa.types.is_fixed_size_binary, _uuid_bytes)],
    _TIMETZ: [(pa.types.is_fixed_size_binary, _times_with_zone), (_is_text, _text_as(_parse_time_with_zone))],
}
"""Converters for Arrow types that need the SQL type to be understood."""

_BY_ARROW_TYPE: list[tuple[Callable[[pa.DataType], bool], Converter]] = [
    (_is_number, _numbers),
    (_is_object, _objects),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_date32, _dates),
    (pa.types.is_time64, _times),
    (lambda arrow_type: arrow_type == pa.month_day_nano_interval(), _intervals),
]
