"""Values as the text that DuckDB casts them to: what statistics and rows in the catalog are written in."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as PyDecimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.formats.ducklake.values import TIMESTAMP_UNITS
from lakedbapi.model.types import Decimal, List, Map, Scalar, Struct, Type

_UNITS = {"date": "D", **TIMESTAMP_UNITS}
_BARE = frozenset(
    {
        *("boolean", "int8", "int16", "int32", "int64", "int128", "uint8", "uint16", "uint32", "uint64", "uint128"),
        *("float32", "float64"),
    }
)
"""Types whose text needs no quotes inside of nested text."""


def to_text(array: pa.Array | pa.ChunkedArray, type: Type) -> list[str | None]:
    """The text of each value; `array` has the Arrow type of `type` (`model.arrow`)."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(type, Scalar) and type.name in _UNITS:
        return _temporal(array, _UNITS[type.name], zoned=type.name.startswith("timestamptz"))
    spell = _speller(type)
    return [None if value is None else spell(value) for value in _python_values(array, type)]


def _python_values(array: pa.Array, type: Type) -> list[Any]:
    if isinstance(type, Scalar) and type.name in ("time", "time_ns"):
        # Python's time has no nanoseconds and no 24:00:00.
        return [None if value is None else int(value) for value in array.cast(pa.int64()).to_pylist()]
    if isinstance(type, Scalar) and type.name == "float32":
        # The shortest text that gives the same float32, not that of the float64 beside it.
        values = array.to_numpy(zero_copy_only=False)
        return [None if null else value for value, null in zip(values, array.is_null().to_pylist(), strict=True)]
    if isinstance(type, Struct):
        names = [field.name for field in type.fields]
        columns = [to_nested_text(array.field(i), field.type) for i, field in enumerate(type.fields)]
        rows = zip(*columns, strict=True) if columns else iter([()] * len(array))
        valid = array.is_valid().to_pylist()
        return [list(zip(names, row, strict=True)) if ok else None for ok, row in zip(valid, rows, strict=True)]
    if isinstance(type, List):
        return _slices(array, to_nested_text(array.flatten(), type.element.type))
    if isinstance(type, Map):
        keys, values = _flat_map(array)
        entries = zip(to_nested_text(keys, type.key.type), to_nested_text(values, type.value.type), strict=True)
        return _slices(array, list(entries))
    return list(array.to_pylist())


def _flat_map(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    entries = array.cast(
        pa.list_(pa.struct([pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)]))
    )
    flat = entries.flatten()
    return flat.field(0), flat.field(1)


def _slices(array: pa.Array, flat: list[Any]) -> list[list[Any] | None]:
    """The values of each list of `array`, of which `flat` has the values of all non-NULL ones."""
    offsets = array.offsets.to_numpy()
    lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), offsets[1:] - offsets[:-1], 0)
    ends = np.cumsum(lengths)
    return [
        flat[end - length : end] if ok else None
        for end, length, ok in zip(ends.tolist(), lengths.tolist(), array.is_valid().to_pylist(), strict=True)
    ]


def to_nested_text(array: pa.Array, type: Type) -> list[str]:
    """As `to_text`, for a place inside of nested text: quoted where it needs to be, NULL as the word."""
    texts = to_text(array, type)
    quoted = isinstance(type, Scalar) and type.name not in _BARE
    return ["NULL" if text is None else _quote(text) if quoted else text for text in texts]


def _quote(text: str) -> str:
    """Quoted so that DuckDB reads it right in structs, lists and maps alike."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _speller(type: Type) -> Callable[[Any], str]:
    """A function from a Python value of `type` (as `_python_values` gives it) to its text."""
    if isinstance(type, Decimal):
        return lambda value: format(value, f".{type.scale}f")
    if isinstance(type, Struct):
        return lambda entries: "{" + ", ".join(f"{_quote(name)}: {text}" for name, text in entries) + "}"
    if isinstance(type, List):
        return lambda elements: "[" + ", ".join(elements) + "]"
    if isinstance(type, Map):
        return lambda entries: "{" + ", ".join(f"{key}={text}" for key, text in entries) + "}"
    assert isinstance(type, Scalar)
    return _SPELLERS.get(type.name, str)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _integer(value: int | PyDecimal) -> str:
    return str(int(value))


def _float(value: float | np.floating[Any]) -> str:
    return str(value)


def _blob(value: bytes) -> str:
    """Printable ASCII as it is, other bytes as `\\xAA`."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b"\\'\"" else f"\\x{byte:02X}" for byte in value)


def _clock(value: int, per_second: int) -> str:
    """`12:34:56.5` from a count of 1/`per_second` seconds."""
    sign, value = ("-", -value) if value < 0 else ("", value)
    seconds, fraction = divmod(value, per_second)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text if not fraction else f"{text}.{str(fraction).zfill(len(str(per_second)) - 1).rstrip('0')}"


def _interval(value: Any) -> str:
    """From (months, days, nanoseconds): `1 year 2 months 3 days 00:00:01.5`."""
    months, days, nanos = value
    years, months = int(months / 12), months - 12 * int(months / 12)
    parts = [
        f"{count} {unit}{'' if count in (1, -1) else 's'}"
        for count, unit in ((years, "year"), (months, "month"), (days, "day"))
        if count
    ]
    if nanos or not parts:
        parts.append(_clock(int(nanos / 1000), 1_000_000))
    return " ".join(parts)


_SPELLERS: dict[str, Callable[[Any], str]] = {
    "boolean": _boolean,
    "int128": _integer,
    "float32": _float,
    "float64": _float,
    "blob": _blob,
    "time": lambda value: _clock(value, 1_000_000),
    "time_ns": lambda value: _clock(value, 1_000_000_000),
    "interval": _interval,
}


def _temporal(array: pa.Array, unit: str, *, zoned: bool) -> list[str | None]:
    """ISO text with a blank, no trailing zeros in the fraction; the extreme values are the infinities."""
    storage = pa.int32() if unit == "D" else pa.int64()
    numbers = array.cast(storage)
    valid = numbers.is_valid().to_numpy(zero_copy_only=False)
    values = pc.fill_null(numbers, 0).to_numpy()
    limit = np.iinfo(values.dtype).max
    texts = np.datetime_as_string(values.astype(np.int64).view(f"datetime64[{unit}]")).tolist()
    suffix = "+00" if zoned else ""
    spelled: list[str | None] = []
    for text, value, ok in zip(texts, values.tolist(), valid.tolist(), strict=True):
        if not ok:
            spelled.append(None)
        elif value >= limit or value <= -limit:
            spelled.append("infinity" if value > 0 else "-infinity")
        else:
            spelled.append(_trim(text.replace("T", " ")) + suffix)
    return spelled


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
