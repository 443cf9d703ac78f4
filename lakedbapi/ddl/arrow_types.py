"""Column types for Arrow data."""

from __future__ import annotations

import pyarrow as pa

from lakedbapi.errors import NotSupportedError
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Struct, Type

_BY_PREDICATE = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "int8"),
    (pa.types.is_int16, "int16"),
    (pa.types.is_int32, "int32"),
    (pa.types.is_int64, "int64"),
    (pa.types.is_uint8, "uint8"),
    (pa.types.is_uint16, "uint16"),
    (pa.types.is_uint32, "uint32"),
    (pa.types.is_uint64, "uint64"),
    (pa.types.is_float16, "float32"),
    (pa.types.is_float32, "float32"),
    (pa.types.is_float64, "float64"),
    (pa.types.is_string, "varchar"),
    (pa.types.is_large_string, "varchar"),
    (pa.types.is_binary, "blob"),
    (pa.types.is_large_binary, "blob"),
    (pa.types.is_fixed_size_binary, "blob"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_null, "int32"),
    (lambda type: type == pa.month_day_nano_interval(), "interval"),
)
_TIMESTAMPS = {"s": "timestamp_s", "ms": "timestamp_ms", "us": "timestamp", "ns": "timestamp_ns"}
_EXTENSIONS = {"arrow.uuid": "uuid", "arrow.json": "json"}


def column_type(name: str, type: pa.DataType) -> Type:
    """The column type that holds every value of an Arrow type. `name` is the column's, for the error."""
    if isinstance(type, pa.BaseExtensionType):
        known = _EXTENSIONS.get(type.extension_name)
        return column_type(name, type.storage_type) if known is None else Scalar(known)
    if pa.types.is_dictionary(type):
        return column_type(name, type.value_type)
    if pa.types.is_timestamp(type):
        return Scalar(_TIMESTAMPS[type.unit] if type.tz is None else "timestamptz")
    if pa.types.is_decimal(type) and type.precision <= 38 and 0 <= type.scale <= type.precision:
        return Decimal(type.precision, type.scale)
    if pa.types.is_struct(type):
        return Struct(tuple(column(field) for field in type))
    if pa.types.is_map(type):
        return Map(Field("key", column_type(name, type.key_type)), Field("value", column_type(name, type.item_type)))
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        return List(Field("element", column_type(name, type.value_type)))
    if str(type) in ("string_view", "binary_view"):
        return Scalar("varchar" if str(type) == "string_view" else "blob")
    for is_of, scalar in _BY_PREDICATE:
        if is_of(type):
            return Scalar(scalar)
    raise NotSupportedError(f"column {name!r}: the Arrow type {type} cannot be stored in a lake table; cast it first")


def column(field: pa.Field) -> Field:
    """A column for an Arrow field; nullable whatever the field says, since Arrow data rarely says it on purpose."""
    return Field(field.name, column_type(field.name, field.type))
