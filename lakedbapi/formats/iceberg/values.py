"""Values of columns, as text in the engine's spelling, as Iceberg stores them in manifests."""

from __future__ import annotations

import decimal
import math
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import types as iceberg
from pyiceberg.conversions import to_bytes

_ARROW: dict[type[iceberg.IcebergType], tuple[pa.DataType, pa.DataType]] = {
    iceberg.DateType: (pa.date32(), pa.int32()),
    iceberg.TimeType: (pa.timestamp("us"), pa.int64()),
    iceberg.TimestampType: (pa.timestamp("us"), pa.int64()),
    iceberg.TimestamptzType: (pa.timestamp("us"), pa.int64()),
    iceberg.TimestampNanoType: (pa.timestamp("ns"), pa.int64()),
    iceberg.TimestamptzNanoType: (pa.timestamp("ns"), pa.int64()),
}
"""The type that text is cast to, and the number that its values are stored as."""


def parse(text: str | None, type: iceberg.IcebergType) -> Any:
    """The value in memory as pyiceberg has it: dates and times as numbers. None where the text is none of a value."""
    if text is None:
        return None
    try:
        return _parse(text, type)
    except (ValueError, ArithmeticError, pa.ArrowException):
        return None


def _parse(text: str, type: iceberg.IcebergType) -> Any:
    if isinstance(type, iceberg.BooleanType):
        return {"true": True, "1": True, "false": False, "0": False}.get(text.casefold())
    if isinstance(type, (iceberg.IntegerType, iceberg.LongType)):
        return int(text)
    if isinstance(type, (iceberg.FloatType, iceberg.DoubleType)):
        return float(text)
    if isinstance(type, iceberg.DecimalType):
        return decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-type.scale), context=decimal.Context(prec=40))
    if isinstance(type, iceberg.StringType):
        return text
    if isinstance(type, iceberg.UUIDType):
        return uuid.UUID(text)
    if isinstance(type, (iceberg.BinaryType, iceberg.FixedType)):
        return _bytes(text)
    for kind, (arrow, number) in _ARROW.items():
        if isinstance(type, kind):
            if kind is iceberg.TimeType:
                text = f"1970-01-01 {text}"
            return pc.cast(pa.scalar(text.removesuffix("+00")), arrow).cast(number).as_py()
    return None


def _bytes(text: str) -> bytes:
    r"""Of a BLOB's text, in which bytes that are no plain characters stand as `\xAB`."""
    pieces = text.split("\\x")
    return pieces[0].encode("ascii") + b"".join(
        bytes.fromhex(piece[:2]) + piece[2:].encode("ascii") for piece in pieces[1:]
    )


def encoded(value: Any, type: iceberg.IcebergType) -> bytes | None:
    """The single-value serialization (spec, Appendix D); None for what has none, such as NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(type, iceberg.FloatType) and abs(value) != math.inf and abs(value) > 3.4028235e38:
        return None
    return to_bytes(type, value)  # type: ignore[arg-type]
