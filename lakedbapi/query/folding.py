"""Constants of a condition as values of the type of the column that they are compared with."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.engine.base import Query
from lakedbapi.errors import Error
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.sql_types import sql_type
from lakedbapi.model.types import Field, Scalar
from lakedbapi.query.transforms import transform_constant
from lakedbapi.sql.expressions import render
from lakedbapi.sql.nulls import parameter_name


@dataclass(frozen=True)
class Folded:
    """`value` has the Arrow type of `field`; None = not known, or the comparison is not one of values of that type."""

    field: Field
    value: pa.Scalar | None

    def parts(self, transforms: Mapping[str, object]) -> dict[str, int | None]:
        """The transformed value for each of `transforms`; None where it cannot be told."""
        return {name: transform_constant(name, self.field.type, self.value) for name in transforms}


def fold(context: Context, constants: Sequence[tuple[exp.Expression, Field]]) -> list[Folded]:
    """The constants, each for a comparison with the field; one engine query at most."""
    folded = [_plain(context, expression, field) for expression, field in constants]
    rest = [number for number, value in enumerate(folded) if value is None]
    if rest:
        for number, value in zip(rest, _by_engine(context, [constants[n] for n in rest]), strict=True):
            folded[number] = value
    return [value for value in folded if value is not None]


def _plain(context: Context, expression: exp.Expression, field: Field) -> Folded | None:
    """Literals and parameters that are exactly what the column holds need no engine."""
    value = _python_value(context, expression)
    type = field.type
    if value is _NULL:
        return Folded(field, pa.scalar(None, arrow_type(type)))
    if not isinstance(type, Scalar):
        return None
    is_same = (
        (type.name in _INTEGERS and isinstance(value, int) and not isinstance(value, bool))
        or (type.name == "varchar" and isinstance(value, str))
        or (type.name == "boolean" and isinstance(value, bool))
        or (type.name == "float64" and isinstance(value, float))
        or (type.name == "date" and isinstance(value, datetime.date) and not isinstance(value, datetime.datetime))
        or (type.name == "timestamp" and isinstance(value, datetime.datetime) and value.tzinfo is None)
        or (type.name == "timestamptz" and isinstance(value, datetime.datetime) and value.tzinfo is not None)
    )
    if not is_same:
        return None
    try:
        return Folded(field, pa.scalar(value, arrow_type(type)))
    except (pa.ArrowException, OverflowError):
        return Folded(field, None)


_NULL = object()


def _python_value(context: Context, expression: exp.Expression) -> object:
    """The value of a literal or parameter, None for anything else."""
    if isinstance(expression, exp.Null):
        return _NULL
    if isinstance(expression, exp.Literal):
        if expression.is_string:
            return expression.this
        return int(expression.this) if expression.this.isdigit() else None
    if isinstance(expression, exp.Neg) and isinstance(expression.this, exp.Literal) and expression.this.this.isdigit():
        return -int(expression.this.this)
    if isinstance(expression, exp.Boolean):
        return bool(expression.this)
    name = parameter_name(expression)
    if name is None or name not in context.parameters:
        return None
    value = context.parameters[name]
    return _NULL if value is None else value


def _by_engine(context: Context, constants: Sequence[tuple[exp.Expression, Field]]) -> list[Folded]:
    items = []
    for number, (expression, field) in enumerate(constants):
        text, type = f"({render(expression)}\n)", sql_type(field.type)
        shown = "VARCHAR" if type == "UUID" else type
        items += [
            f"CAST(TRY_CAST({text} AS {type}) AS {shown}) AS v{number}",
            f"typeof({text}) AS t{number}",
            f"coalesce(TRY_CAST({text} AS {type}) = {text}, false) AS s{number}",
        ]
    try:
        row = context.engine.fetch(Query(f"SELECT {', '.join(items)}", parameters=context.parameters))
    except Error:
        return [Folded(field, None) for _, field in constants]
    cells = [column[0] for column in row.columns]
    return [
        Folded(field, _checked(expression, field, value, found.as_py(), is_equal.as_py()))
        for (expression, field), value, found, is_equal in zip(
            constants, cells[0::3], cells[1::3], cells[2::3], strict=True
        )
    ]


def _checked(
    expression: exp.Expression, field: Field, value: pa.Scalar, found: str, is_equal: bool
) -> pa.Scalar | None:
    """The value, if comparing with it is what comparing with the constant, of the SQL type `found`, means."""
    type = arrow_type(field.type)
    if found == '"NULL"':
        return pa.scalar(None, type)
    is_text = found == "VARCHAR" != sql_type(field.type)
    if is_text and not _is_text(expression):
        return None
    if not is_text and not _comparable(sql_type(field.type), found):
        return None
    if not value.is_valid:
        return pa.scalar(None, type) if found == sql_type(field.type) else None
    if not is_text and found != sql_type(field.type) and not is_equal:
        return None
    try:
        return value.cast(type)
    except pa.ArrowException:
        return None


def _is_text(expression: exp.Expression) -> bool:
    """Whether the engine takes it as a value of the other side's type."""
    return (isinstance(expression, exp.Literal) and bool(expression.is_string)) or parameter_name(
        expression
    ) is not None


_INTEGERS = frozenset(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
_INTEGER_SPELLINGS = frozenset(
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"]
)
_SHORT_INTEGERS = frozenset(["TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"])
_TIMESTAMPS = frozenset(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])


def _comparable(column: str, constant: str) -> bool:
    """Whether the engine compares the two types in one that keeps all values of the column apart.

    Then, if the constant has an equal in the column's type, comparing with that has the same outcome for every value.
    """
    if column == constant:
        return True
    is_decimal = constant.startswith("DECIMAL")
    if column in _INTEGER_SPELLINGS:
        if is_decimal:
            return True
        return constant in _INTEGER_SPELLINGS or (constant == "DOUBLE" and column in _SHORT_INTEGERS)
    if column.startswith("DECIMAL"):
        return is_decimal or constant in _INTEGER_SPELLINGS
    if column == "DOUBLE":
        return is_decimal or constant in _INTEGER_SPELLINGS or constant == "FLOAT"
    if column == "FLOAT":
        return is_decimal or constant == "DOUBLE" or constant in _INTEGER_SPELLINGS
    if column == "DATE":
        return constant == "TIMESTAMP"
    if column in _TIMESTAMPS:
        return constant == "DATE" or constant in _TIMESTAMPS
    if column == "TIMESTAMP WITH TIME ZONE":
        return constant in ("DATE", "TIMESTAMP")
    return False
