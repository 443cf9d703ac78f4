"""Values that the log has as text: partition values (protocol, "Partition Value Serialization") and statistics."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Context, InvalidOperation
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.types import Decimal, Scalar, Type

_INSTANT = re.compile(
    r"(\d{4,})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?"
    r"\s*(Z|UTC|[+-]\d\d(?::?\d\d)?(?::?\d\d)?)?",
    re.IGNORECASE,
)
EXACT = Context(prec=76)
"""For decimals of any precision, whatever the program's own context is."""
_EPOCH = date(1970, 1, 1).toordinal()


def partition_array(texts: pa.Array, type: Type, what: str) -> pa.Array:
    """Partition values of a column; `""` is NULL. DataError, which names `what`, for a text that is no value of it.

    A timestamp without a zone is UTC.
    """
    encoded = texts.dictionary_encode()
    parse = _parser(type)
    values = []
    for text in encoded.dictionary.to_pylist():
        try:
            values.append(None if text == "" else parse(text))
        except (ValueError, KeyError, InvalidOperation) as error:
            raise DataError(f"{what} has the partition value {text!r}, which is no {_name(type)}") from error
    return _array(values, type, what).take(encoded.indices)


def instant(text: str) -> int:
    """Microseconds since 1970-01-01 00:00:00 UTC; ValueError for what is no time of the years 1 to 9999."""
    match = _INSTANT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a timestamp: {text!r}")
    days = date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH
    seconds = days * 86400 + int(match[4] or 0) * 3600 + int(match[5] or 0) * 60 + int(match[6] or 0)
    return (seconds - _zone(match[8])) * 1_000_000 + int((match[7] or "").ljust(6, "0")[:6])


def day(text: str) -> int:
    """Days since 1970-01-01."""
    return instant(text) // 86_400_000_000


def _zone(zone: str | None) -> int:
    """Seconds east of UTC."""
    if zone is None or zone.upper() in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return -seconds if zone[0] == "-" else seconds


def _parser(type: Type) -> Callable[[str], Any]:
    if isinstance(type, Decimal):
        quantum = PyDecimal(1).scaleb(-type.scale, EXACT)
        return lambda text: PyDecimal(text).quantize(quantum, context=EXACT)
    assert isinstance(type, Scalar)
    return _PARSERS.get(type.name, int)


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


_PARSERS: dict[str, Callable[[str], Any]] = {
    "varchar": str,
    "blob": lambda text: text.encode("utf-8"),
    "boolean": _boolean,
    "float32": float,
    "float64": float,
    "date": day,
    "timestamp": instant,
    "timestamptz": instant,
}


def _array(values: list[Any], type: Type, what: str) -> pa.Array:
    target = arrow_type(type)
    try:
        if pa.types.is_temporal(target):
            return pa.array(values, pa.int32() if pa.types.is_date(target) else pa.int64()).cast(target)
        return pa.array(values, target)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise DataError(f"{what} has partition values that are no {_name(type)}: {error}") from error


def _name(type: Type) -> str:
    return f"decimal({type.precision},{type.scale})" if isinstance(type, Decimal) else getattr(type, "name", "value")


def map_values(maps: pa.ChunkedArray, key: str) -> pa.Array:
    """The value of `key` in each map, NULL where a map has none."""
    array = maps.combine_chunks()
    return pc.map_lookup(array, pa.scalar(key), "last")
