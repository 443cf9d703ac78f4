"""Conditions and values over one row, each both as SQL and as a Python function."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from compliance.model.tables import Table, Values
from compliance.model.values import (
    BOOLEAN,
    INTEGERS,
    VARCHAR,
    Column,
    ListOf,
    StructOf,
    Type,
    Value,
    literal,
    order_key,
    quoted,
    shown,
    text,
    values,
)

Draw = Callable[[st.SearchStrategy[Value]], Value]


@dataclass
class Binder:
    """Writes values into a statement, as literals or as parameters."""

    as_parameters: bool
    parameters: list[Value] = field(default_factory=list)

    def __call__(self, value: Value, type: Type) -> str:
        if not self.as_parameters:
            return literal(value, type)
        self.parameters.append(shown(value, type))
        return "?"


@dataclass(frozen=True)
class Condition:
    """`sql` takes a binder and the prefix of column names. `test` gives True, False or None (unknown)."""

    sql: Callable[[Binder, str], str]
    test: Callable[[Values], bool | None]


@dataclass(frozen=True)
class Expression:
    sql: Callable[[Binder, str], str]
    value: Callable[[Values], Value]


@dataclass(frozen=True)
class Path:
    """A column, or a field in a struct."""

    columns: tuple[Column, ...]

    @property
    def type(self) -> Type:
        return self.columns[-1].type

    def sql(self, prefix: str) -> str:
        first, *rest = (quoted(column.name) for column in self.columns)
        return f"({prefix}{first}).{'.'.join(rest)}" if rest else f"{prefix}{first}"

    def value(self, row: Values) -> Value:
        """As it is kept, with ids of fields."""
        value: Value = row
        for column in self.columns:
            if value is None:
                return None
            value = value.get(column.id, column.initial)
        return value

    def shown(self, row: Values) -> Value:
        return shown(self.value(row), self.type)


def paths(columns: Sequence[Column], before: tuple[Column, ...] = ()) -> list[Path]:
    found = []
    for column in columns:
        found.append(Path((*before, column)))
        if isinstance(column.type, StructOf):
            found += paths(column.type.fields, (*before, column))
    return found


_COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def condition(draw: Draw, table: Table, depth: int = 2) -> Condition:
    kinds = ["leaf", "leaf", "and", "or", "not"] if depth else ["leaf"]
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        return _leaf(draw, table)
    if kind == "not":
        inner = condition(draw, table, depth - 1)
        return Condition(lambda bind, prefix: f"NOT ({inner.sql(bind, prefix)})", lambda row: _not(inner.test(row)))
    first, second = condition(draw, table, depth - 1), condition(draw, table, depth - 1)
    combine = _and if kind == "and" else _or
    return Condition(
        lambda bind, prefix: f"(({first.sql(bind, prefix)}) {kind.upper()} ({second.sql(bind, prefix)}))",
        lambda row: combine(first.test(row), second.test(row)),
    )


def _leaf(draw: Draw, table: Table) -> Condition:
    path = draw(st.sampled_from(paths(table.columns)))
    if isinstance(path.type, ListOf):
        return draw(st.sampled_from([_length(draw, path), _is_null(draw, path)]))
    if isinstance(path.type, StructOf):
        return _is_null(draw, path)
    kinds = [_compared, _compared, _among, _between, _is_null]
    if path.type == VARCHAR:
        kinds.append(_begins)
    if path.type in INTEGERS:
        kinds.append(_remainder)
    if path.type == BOOLEAN:
        kinds.append(_itself)
    kind = draw(st.sampled_from(kinds))
    if kind in (_compared, _among, _between):
        return kind(draw, path, _interesting(table, path))
    return kind(draw, path)


def _interesting(table: Table, path: Path) -> st.SearchStrategy[Value]:
    """Values that occur in the table, and others."""
    present = [value for row in list(table.rows.values())[:20] if (value := path.value(row)) is not None]
    return st.one_of(st.sampled_from(present), values(path.type)) if present else values(path.type)


def _compared(draw: Draw, path: Path, candidates: st.SearchStrategy[Value]) -> Condition:
    symbol, value = draw(st.sampled_from(list(_COMPARISONS))), draw(candidates)
    other = shown(value, path.type)
    swapped = draw(st.booleans()) and symbol in ("=", "<>")

    def sql(bind: Binder, prefix: str) -> str:
        sides = [path.sql(prefix), bind(value, path.type)]
        return f" {symbol} ".join(reversed(sides) if swapped else sides)

    return Condition(sql, lambda row: _compare(symbol, path.shown(row), other))


def _among(draw: Draw, path: Path, candidates: st.SearchStrategy[Value]) -> Condition:
    if len(path.columns) > 1:
        # DuckDB 2.0 crashes when NULL is in a list that a field of a struct in Parquet files is looked up in.
        candidates = candidates.filter(lambda value: value is not None)
    chosen = draw(st.lists(candidates, min_size=1, max_size=4))
    negated = draw(st.booleans())

    def sql(bind: Binder, prefix: str) -> str:
        items = ", ".join(bind(value, path.type) for value in chosen)
        return f"{path.sql(prefix)} {'NOT ' if negated else ''}IN ({items})"

    def test(row: Values) -> bool | None:
        result: bool | None = False
        for value in chosen:
            result = _or(result, _compare("=", path.shown(row), shown(value, path.type)))
        return _not(result) if negated else result

    return Condition(sql, test)


def _between(draw: Draw, path: Path, candidates: st.SearchStrategy[Value]) -> Condition:
    low, high, negated = draw(candidates), draw(candidates), draw(st.booleans())

    def sql(bind: Binder, prefix: str) -> str:
        word = "NOT BETWEEN" if negated else "BETWEEN"
        return f"{path.sql(prefix)} {word} {bind(low, path.type)} AND {bind(high, path.type)}"

    def test(row: Values) -> bool | None:
        value = path.shown(row)
        inside = _and(_compare(">=", value, shown(low, path.type)), _compare("<=", value, shown(high, path.type)))
        return _not(inside) if negated else inside

    return Condition(sql, test)


def _is_null(draw: Draw, path: Path) -> Condition:
    negated = draw(st.booleans())
    word = "IS NOT NULL" if negated else "IS NULL"
    return Condition(
        lambda bind, prefix: f"{path.sql(prefix)} {word}", lambda row: (path.value(row) is None) is not negated
    )


def _length(draw: Draw, path: Path) -> Condition:
    number = draw(st.integers(0, 2))

    def test(row: Values) -> bool | None:
        value = path.value(row)
        return None if value is None else len(value) > number

    return Condition(lambda bind, prefix: f"len({path.sql(prefix)}) > {number}", test)


def _begins(draw: Draw, path: Path) -> Condition:
    start = draw(st.sampled_from(["", "a", "b", "🙂", "it"]))

    def test(row: Values) -> bool | None:
        value = path.value(row)
        return None if value is None else value.startswith(start)

    return Condition(lambda bind, prefix: f"{path.sql(prefix)} LIKE {text(start + '%')}", test)


def _remainder(draw: Draw, path: Path) -> Condition:
    divisor, rest = draw(st.integers(2, 5)), draw(st.integers(0, 2))

    def test(row: Values) -> bool | None:
        value = path.value(row)
        return None if value is None else _truncated_remainder(value, divisor) == rest

    return Condition(lambda bind, prefix: f"{path.sql(prefix)} % {divisor} = {rest}", test)


def _itself(draw: Draw, path: Path) -> Condition:
    return Condition(lambda bind, prefix: path.sql(prefix), path.value)


def expression(draw: Draw, table: Table, column: Column) -> Expression:
    """A value for the column, from the row that is there."""
    type = column.type
    kinds = ["value", "value"]
    same = [path for path in paths(table.columns) if path.type == type]
    if same:
        kinds += ["case", "column", "coalesce"]
    if same and type == VARCHAR:
        kinds.append("append")
    if same and type in INTEGERS:
        kinds.append("remainder")
    kind, value = draw(st.sampled_from(kinds)), draw(values(type))
    if kind == "value":
        return Expression(lambda bind, prefix: bind(value, type), lambda row: value)
    path = draw(st.sampled_from(same))
    if kind == "column":
        return Expression(lambda bind, prefix: path.sql(prefix), path.value)
    if kind == "coalesce":
        return Expression(
            lambda bind, prefix: f"coalesce({path.sql(prefix)}, {literal(value, type)})",
            lambda row: value if path.value(row) is None else path.value(row),
        )
    if kind == "append":
        return Expression(
            lambda bind, prefix: f"left({path.sql(prefix)}, 5) || '.'",
            lambda row: None if path.value(row) is None else path.value(row)[:5] + ".",
        )
    if kind == "remainder":
        return Expression(
            lambda bind, prefix: f"{path.sql(prefix)} % 5",
            lambda row: None if path.value(row) is None else _truncated_remainder(path.value(row), 5),
        )
    when = condition(draw, table, 1)
    return Expression(
        lambda bind, prefix: (
            f"CASE WHEN {when.sql(bind, prefix)} THEN {literal(value, type)} ELSE {path.sql(prefix)} END"
        ),
        lambda row: value if when.test(row) is True else path.value(row),
    )


def _compare(symbol: str, left: Value, right: Value) -> bool | None:
    if left is None or right is None:
        return None
    return _COMPARISONS[symbol](order_key(left), order_key(right))


def _truncated_remainder(value: int, divisor: int) -> int:
    return int(math.copysign(1, value)) * (abs(value) % divisor)


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    return _not(_and(_not(left), _not(right)))
