"""How values of each column type are held in Arrow, wherever rows are in memory."""

from __future__ import annotations

import pyarrow as pa

from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Schema, Struct, Type

_SCALARS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "int128": pa.decimal128(38, 0),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "uint128": pa.string(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "time_ns": pa.time64("ns"),
    "timetz": pa.string(),
    "timestamp": pa.timestamp("us"),
    "timestamp_s": pa.timestamp("s"),
    "timestamp_ms": pa.timestamp("ms"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
    "interval": pa.month_day_nano_interval(),
    "varchar": pa.string(),
    "json": pa.string(),
    "blob": pa.binary(),
    "uuid": pa.string(),
    "variant": pa.string(),
    "geometry": pa.binary(),
}
"""Types without a lossless Arrow type are text in the engine's spelling: `uint128`, `timetz`, `uuid`, `json`, and
`variant` as JSON.

`int128` is a decimal whose values may have 39 digits. `geometry` is WKB.
"""


def arrow_type(type: Type) -> pa.DataType:
    """The Arrow type of a column type. Lists have the child name `element`, maps have `key` and `value`."""
    if isinstance(type, Scalar):
        return _SCALARS[type.name]
    if isinstance(type, Decimal):
        return pa.decimal128(type.precision, type.scale)
    if isinstance(type, Struct):
        return pa.struct([arrow_field(f) for f in type.fields])
    if isinstance(type, List):
        return pa.list_(pa.field("element", arrow_type(type.element.type)))
    if isinstance(type, Map):
        return pa.map_(arrow_type(type.key.type), arrow_type(type.value.type))
    raise TypeError(f"not a column type: {type!r}")


def arrow_field(field: Field) -> pa.Field:
    """Always nullable: NOT NULL is checked where rows are written, not by Arrow."""
    return pa.field(field.name, arrow_type(field.type))


def arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([arrow_field(f) for f in schema.fields])
