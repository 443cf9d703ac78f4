"""SQLAlchemy types of the lake: integers of every width, and STRUCT, LIST, MAP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlalchemy import literal, literal_column
from sqlalchemy import types as sqltypes
from sqlalchemy.sql import operators
from sqlalchemy.sql.sqltypes import _AbstractInterval
from sqlalchemy.sql.type_api import NativeForEmulated
from sqlalchemy.types import TypeEngine

from lakedbapi.model import types as model
from lakedbapi.model.sql_types import quote_literal


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


class INTERVAL(NativeForEmulated, _AbstractInterval):
    """A span of time; Python values are `datetime.timedelta`, a month counting 30 days."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, interval: sqltypes.Interval, **kw: Any) -> INTERVAL:
        return cls()

    @property
    def _type_affinity(self) -> type[sqltypes.Interval]:
        return sqltypes.Interval

    def as_generic(self, allow_nulltype: bool = False) -> sqltypes.Interval:
        return sqltypes.Interval(native=True)

    @property
    def python_type(self) -> type[timedelta]:
        return timedelta

    def literal_processor(self, dialect: Any) -> Callable[[timedelta], str]:
        return lambda value: f"to_microseconds({value // timedelta(microseconds=1)})"


class LakeNumeric(sqltypes.Numeric[Any]):
    """NUMERIC. The engine divides and averages decimals as doubles: those come back in the 15 digits they guarantee."""

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Any] | None:
        if self.asdecimal and str(coltype) in ("DOUBLE", "FLOAT"):
            return lambda value: None if value is None else Decimal(f"{value:.15g}")
        found: Callable[[Any], Any] | None = super().result_processor(dialect, coltype)
        return found


class _JSONPath:
    """A path into JSON as text: `$."key"[0]`."""

    def bind_processor(self, dialect: Any) -> Callable[[Any], str]:
        return self._path

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        return lambda value: quote_literal(self._path(value))

    @staticmethod
    def _path(value: Any) -> str:
        steps = value if isinstance(value, (tuple, list)) else (value,)
        return "$" + "".join(f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in steps)


class LakeJSONIndex(_JSONPath, sqltypes.JSON.JSONIndexType):
    """The key or position in `column[key]`."""


class LakeJSONPath(_JSONPath, sqltypes.JSON.JSONPathType):
    """The path in `column[("key", 0)]`."""


if TYPE_CHECKING:
    _Comparator = sqltypes.Indexable.Comparator[Any]
else:
    _Comparator = sqltypes.Indexable.Comparator  # not generic in SQLAlchemy 1.4

_ANY = getattr(getattr(operators, "OperatorClass", None), "ANY", None)
"""SQLAlchemy 2.1 asks each type which operators it knows."""


class VARIANT(TypeEngine[Any]):
    """A value of any type."""

    operator_classes = _ANY

    __visit_name__ = "lake_plain"


class GEOMETRY(TypeEngine[bytes]):
    """A geometry, as WKB."""

    operator_classes = _ANY

    __visit_name__ = "lake_plain"


class STRUCT(sqltypes.Indexable, TypeEngine[dict[str, Any]]):
    """A record: `STRUCT(a=Integer, b=String)`, or from a mapping where a name is no Python identifier.

    `column["a"]` is its field `a`.
    """

    __visit_name__ = "STRUCT"
    hashable = False
    operator_classes = _ANY

    def __init__(self, fields: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        self.fields = {name: sqltypes.to_instance(type_) for name, type_ in {**(fields or {}), **more}.items()}

    def adapt(self, cls: type[Any], **kw: Any) -> Any:
        """SQLAlchemy's way of copying takes constructor arguments by name, which are names of fields here."""
        return cls(self.fields) if issubclass(cls, STRUCT) else super().adapt(cls, **kw)

    @property
    def _static_cache_key(self) -> tuple[Any, ...]:
        return (STRUCT, *((name, type_._static_cache_key) for name, type_ in self.fields.items()))

    class Comparator(_Comparator):
        def _setup_getitem(self, index: str) -> tuple[Any, Any, TypeEngine[Any]]:
            if index not in self.type.fields:
                raise KeyError(f"the struct has no field {index!r}; it has: {', '.join(self.type.fields)}")
            return operators.getitem, literal_column(quote_literal(index)), self.type.fields[index]

    comparator_factory = Comparator

    @property
    def python_type(self) -> type[Any]:
        return dict

    def __repr__(self) -> str:
        return f"STRUCT({self.fields!r})"


class LIST(sqltypes.ARRAY[Any]):
    """A list of values of one type, `LIST(Integer)`, or of lists. `column[1]` is its first item."""

    __visit_name__ = "LIST"

    def __init__(self, item_type: Any, **kw: Any) -> None:
        item = sqltypes.to_instance(item_type)
        dimensions = 1
        if isinstance(item, sqltypes.ARRAY):  # SQLAlchemy counts dimensions instead of nesting
            dimensions, item = 1 + (item.dimensions or 1), item.item_type
        super().__init__(item, dimensions=kw.pop("dimensions", dimensions), **kw)

    def __repr__(self) -> str:
        depth = self.dimensions or 1
        return f"{'LIST(' * depth}{self.item_type!r}{')' * depth}"


class MAP(sqltypes.Indexable, TypeEngine[dict[Any, Any]]):
    """A mapping: `MAP(String, Integer)`. `column["key"]` is the key's value, NULL where it is missing."""

    __visit_name__ = "MAP"
    hashable = False
    operator_classes = _ANY

    def __init__(self, key_type: Any, value_type: Any) -> None:
        self.key_type = sqltypes.to_instance(key_type)
        self.value_type = sqltypes.to_instance(value_type)

    class Comparator(_Comparator):
        def _setup_getitem(self, index: Any) -> tuple[Any, Any, TypeEngine[Any]]:
            return operators.getitem, literal(index, self.type.key_type), self.type.value_type

    comparator_factory = Comparator

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


COLSPECS: Mapping[type[Any], type[Any]] = {
    sqltypes.Interval: INTERVAL,
    sqltypes.Numeric: LakeNumeric,
    sqltypes.Float: sqltypes.Float,  # until SQLAlchemy 2.1 a Float is a Numeric
    sqltypes.JSON.JSONIndexType: LakeJSONIndex,
    sqltypes.JSON.JSONPathType: LakeJSONPath,
}
"""What the dialect uses in place of SQLAlchemy's types."""


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
