"""Many parameter sets as one Arrow table, in which every value keeps the type that it has as a parameter."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from lakedbapi.dml.row_source import item_sql
from lakedbapi.engine.base import RelationName
from lakedbapi.engine.duckdb.parameters import to_duckdb
from lakedbapi.errors import DataError
from lakedbapi.model.sql_types import quote_identifier, sql_type
from lakedbapi.model.types import Field
from lakedbapi.sql.nulls import parameter_name

PARAMETERS = RelationName.local("_lake_parameters")

_ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "interval": pa.month_day_nano_interval(),
    "uuid": pa.string(),
    "hugeint": pa.string(),
}
_MAX_DIGITS = 38
_ORDERED = frozenset(("int32", "int64", "str", "date", "timestamp", "timestamptz"))
_CAST = {"uuid": "UUID", "hugeint": "HUGEINT"}
_EXACT: dict[type, str] = {
    bool: "bool",
    float: "float",
    str: "str",
    bytes: "bytes",
    datetime.date: "date",
    datetime.timedelta: "interval",
    uuid.UUID: "uuid",
}


class NotTabularError(Exception):
    """The statements of a batch cannot be told as one over a table of their parameters: they run one by one."""


class ParameterTable:
    """`rows` has for every parameter one column for each kind of value that it takes: a common type could lose
    something."""

    def __init__(self, parameter_sets: Sequence[Mapping[str, object]]) -> None:
        """NotTabularError when a value has no plain Arrow type."""
        self._kinds: dict[str, list[str]] = {}
        columns: dict[str, pa.Array] = {}
        for name in parameter_sets[0]:
            values = [to_duckdb(parameters[name], f"${name}") for parameters in parameter_sets]
            kinds = [_kind(value) for value in values]
            kinds = _widened(kinds, values)
            found = sorted({kind for kind in kinds if kind is not None})
            self._kinds[name.casefold()] = found
            for kind in found:
                own = [value if its == kind else None for value, its in zip(values, kinds, strict=True)]
                try:
                    columns[_column(name, kind)] = _array(kind, own)
                except UnicodeEncodeError as error:
                    raise DataError(
                        f"Parameter ${name}: {error.object!r} is no Unicode text: {error.reason}"
                    ) from error
        columns["_lake_row"] = pa.nulls(len(parameter_sets), pa.bool_())  # a table without columns has no rows
        self.rows = pa.table(columns)

    def item(self, item: exp.Expression, type: str) -> str:
        """SQL of a value that is cast to `type` anyway: a bare parameter may take several kinds."""
        name = parameter_name(item)
        if name is None:
            return item_sql(self.in_place(item))
        kinds = self._kinds.get(name.casefold(), [])
        values = [f"CAST({_reference(name, kind)} AS {type})" for kind in kinds]
        return "NULL" if not values else values[0] if len(values) == 1 else f"COALESCE({', '.join(values)})"

    def check_texts(self, items: Iterable[tuple[exp.Expression | None, Field]]) -> None:
        """NotTabularError when a value is NaN that stands for a text, which is an error of its parameter set."""
        for item, field in items:
            name = None if item is None else parameter_name(item)
            if name is not None and sql_type(field.type) == "VARCHAR":
                floats = "float" in self._kinds.get(name.casefold(), [])
                if floats and pc.any(pc.is_nan(self.rows.column(_column(name, "float")))).as_py():
                    raise NotTabularError

    def in_place(self, expression: exp.Expression) -> exp.Expression:
        """`expression` with columns of the table in place of its parameters."""
        if isinstance(expression, exp.Var):
            raise NotTabularError
        return expression.transform(self._in_place)

    def range(self, name: str) -> tuple[object, object] | None:
        """The least and the greatest value of a parameter whose values have an order; None when it has none."""
        kinds = self._kinds.get(name.casefold(), [])
        if len(kinds) != 1 or kinds[0] not in _ORDERED:
            return None
        extremes = pc.min_max(self.rows.column(_column(name, kinds[0])))
        return extremes["min"].as_py(), extremes["max"].as_py()

    def _in_place(self, node: exp.Expression) -> exp.Expression:
        name = parameter_name(node)
        if name is None:
            return node
        kinds = self._kinds.get(name.casefold(), [])
        if not kinds:
            return exp.Null()
        if len(kinds) > 1:
            raise NotTabularError
        kind = kinds[0]
        column = exp.column(_column(name, kind), PARAMETERS.name, quoted=True)
        return exp.cast(column, _CAST[kind], dialect="duckdb") if kind in _CAST else column


def has_parameters(expression: exp.Expression | None) -> bool:
    return expression is not None and (
        isinstance(expression, exp.Var) or expression.find(exp.Parameter, exp.Placeholder) is not None
    )


def _column(name: str, kind: str) -> str:
    return f"{name}:{kind}".casefold()


def _reference(name: str, kind: str) -> str:
    column = f"{PARAMETERS.sql}.{quote_identifier(_column(name, kind))}"
    return f"CAST({column} AS {_CAST[kind]})" if kind in _CAST else column


def _kind(value: object) -> str | None:
    """None for NULL."""
    if value is None:
        return None
    exact = _EXACT.get(type(value))
    if exact is not None:
        return exact
    if isinstance(value, int):
        bits = value.bit_length()
        return "int32" if bits < 32 else "int64" if bits < 64 else "hugeint" if bits < 128 else _give_up()
    if isinstance(value, decimal.Decimal):
        digits, scale = decimal_size(value)
        return f"decimal:{digits + scale}:{scale}"
    if isinstance(value, datetime.datetime):
        return "timestamp" if value.tzinfo is None else "timestamptz"
    if isinstance(value, datetime.time) and value.tzinfo is None:
        return "time"
    if isinstance(value, list) and value and all(type(item) is type(value[0]) for item in value):
        inner = _kind(value[0]) if isinstance(value[0], (float, str)) else None
        return f"list:{inner}" if inner is not None else _give_up()
    return _give_up()


def _give_up() -> str:
    raise NotTabularError


def _widened(kinds: list[str | None], values: list[object]) -> list[str | None]:
    """Kinds of which one holds the values of the other exactly become one."""
    if "int32" in kinds and "int64" in kinds:
        kinds = ["int64" if kind == "int32" else kind for kind in kinds]
    sizes = [decimal_size(value) for value in values if isinstance(value, decimal.Decimal)]
    if sizes:
        digits, scale = max(digits for digits, _ in sizes), max(scale for _, scale in sizes)
        if digits + scale <= _MAX_DIGITS:
            common = f"decimal:{digits + scale}:{scale}"
            kinds = [common if kind is not None and kind.startswith("decimal:") else kind for kind in kinds]
    return kinds


def decimal_size(value: decimal.Decimal) -> tuple[int, int]:
    """Digits before and after the decimal point, together at least 1."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise NotTabularError
    scale = max(-exponent, 0)
    return max(len(digits) + exponent, 0 if scale else 1), scale


def _array(kind: str, values: list[object]) -> pa.Array:
    if kind.startswith("decimal:"):
        precision, scale = map(int, kind.split(":")[1:])
        return pa.array(values, pa.decimal128(precision, scale))
    if kind.startswith("list:"):
        return pa.array(values, pa.list_(_ARROW[kind.removeprefix("list:")]))
    if kind == "interval":
        values = [_interval(value) if isinstance(value, datetime.timedelta) else None for value in values]
    if kind in _CAST:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, _ARROW[kind])


def _interval(value: datetime.timedelta) -> pa.MonthDayNano:
    """With the days and the time that DuckDB makes of a single `timedelta`."""
    return pa.MonthDayNano([0, value.days, (value.seconds * 10**6 + value.microseconds) * 1000])
