"""SQLAlchemy types of the lake: integers of every width, and STRUCT, LIST, MAP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import types as sqltypes
from sqlalchemy.types import TypeEngine

from lakedbapi.model import types as model


class TINYINT(sqltypes.Integer):
    """8-bit signed integer."""

    __visit_name__ = "lake_plain"


class UTINYINT(sqltypes.Integer):
    """8-bit unsigned integer."""

    __visit_name__ = "lake_plain"


class USMALLINT(sqltypes.Integer):
    """16-bit unsigned integer."""

    __visit_name__ = "lake_plain"


class UINTEGER(sqltypes.Integer):
    """32-bit unsigned integer."""

    __visit_name__ = "lake_plain"


class UBIGINT(sqltypes.Integer):
    """64-bit unsigned integer."""

    __visit_name__ = "lake_plain"


class HUGEINT(sqltypes.Integer):
    """128-bit signed integer."""

    __visit_name__ = "lake_plain"


class UHUGEINT(sqltypes.Integer):
    """128-bit unsigned integer."""

    __visit_name__ = "lake_plain"


class TIMESTAMP_S(sqltypes.DateTime):  # noqa: N801 - SQL's spelling
    """Timestamp without time zone, in seconds."""

    __visit_name__ = "lake_plain"


class TIMESTAMP_MS(sqltypes.DateTime):  # noqa: N801
    """Timestamp without time zone, in milliseconds."""

    __visit_name__ = "lake_plain"


class TIMESTAMP_NS(sqltypes.DateTime):  # noqa: N801
    """Timestamp without time zone, in nanoseconds (Python values have microseconds)."""

    __visit_name__ = "lake_plain"


class INTERVAL(sqltypes.Interval):
    """A span of time; Python values are `datetime.timedelta`."""

    __visit_name__ = "INTERVAL"
    native = True

    def bind_processor(self, dialect: Any) -> None:
        return None

    def result_processor(self, dialect: Any, coltype: Any) -> None:
        return None


class VARIANT(TypeEngine[Any]):
    """A value of any type."""

    __visit_name__ = "lake_plain"


class GEOMETRY(TypeEngine[bytes]):
    """A geometry, as WKB."""

    __visit_name__ = "lake_plain"


class STRUCT(TypeEngine[dict[str, Any]]):
    """A record: `STRUCT(a=Integer, b=String)`, or from a mapping where a name is no Python identifier."""

    __visit_name__ = "STRUCT"
    hashable = False

    def __init__(self, fields: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        self.fields = {name: sqltypes.to_instance(type_) for name, type_ in {**(fields or {}), **more}.items()}

    @property
    def python_type(self) -> type[Any]:
        return dict

    def __repr__(self) -> str:
        return f"STRUCT({self.fields!r})"


class LIST(sqltypes.ARRAY[Any]):
    """A list of values of one type: `LIST(Integer)`."""

    __visit_name__ = "LIST"

    def __init__(self, item_type: Any, **kw: Any) -> None:
        kw.setdefault("dimensions", 1)
        super().__init__(item_type, **kw)

    def __repr__(self) -> str:
        return f"LIST({self.item_type!r})"


class MAP(TypeEngine[dict[Any, Any]]):
    """A mapping: `MAP(String, Integer)`."""

    __visit_name__ = "MAP"
    hashable = False

    def __init__(self, key_type: Any, value_type: Any) -> None:
        self.key_type = sqltypes.to_instance(key_type)
        self.value_type = sqltypes.to_instance(value_type)

    @property
    def python_type(self) -> type[Any]:
        return dict

    def __repr__(self) -> str:
        return f"MAP({self.key_type!r}, {self.value_type!r})"


if hasattr(sqltypes, "UUID"):
    UUID: type[TypeEngine[Any]] = sqltypes.UUID
else:

    class _UUID(TypeEngine[Any]):
        """UUID for SQLAlchemy 1.4, which has none; values are `uuid.UUID`."""

        __visit_name__ = "UUID"

    UUID = _UUID


_SCALARS: Mapping[str, TypeEngine[Any]] = {
    "boolean": sqltypes.BOOLEAN(),
    "int8": TINYINT(),
    "int16": sqltypes.SMALLINT(),
    "int32": sqltypes.INTEGER(),
    "int64": sqltypes.BIGINT(),
    "int128": HUGEINT(),
    "uint8": UTINYINT(),
    "uint16": USMALLINT(),
    "uint32": UINTEGER(),
    "uint64": UBIGINT(),
    "uint128": UHUGEINT(),
    "float32": sqltypes.REAL(),
    "float64": sqltypes.Float(53),
    "date": sqltypes.DATE(),
    "time": sqltypes.TIME(),
    "time_ns": sqltypes.TIME(),
    "timetz": sqltypes.TIME(timezone=True),
    "timestamp": sqltypes.TIMESTAMP(),
    "timestamp_s": TIMESTAMP_S(),
    "timestamp_ms": TIMESTAMP_MS(),
    "timestamp_ns": TIMESTAMP_NS(),
    "timestamptz": sqltypes.TIMESTAMP(timezone=True),
    "timestamptz_ns": sqltypes.TIMESTAMP(timezone=True),
    "interval": INTERVAL(),
    "varchar": sqltypes.VARCHAR(),
    "json": sqltypes.JSON(),
    "blob": sqltypes.BLOB(),
    "variant": VARIANT(),
    "geometry": GEOMETRY(),
}


def reflected(type_: model.Type) -> TypeEngine[Any]:
    """The SQLAlchemy type of a stored column type."""
    if isinstance(type_, model.Decimal):
        return sqltypes.NUMERIC(type_.precision, type_.scale)
    if isinstance(type_, model.List):
        return LIST(reflected(type_.element.type))
    if isinstance(type_, model.Map):
        return MAP(reflected(type_.key.type), reflected(type_.value.type))
    if isinstance(type_, model.Struct):
        return STRUCT({field.name: reflected(field.type) for field in type_.fields})
    if type_.name == "uuid":
        return UUID()
    return _SCALARS.get(type_.name, sqltypes.NullType())
