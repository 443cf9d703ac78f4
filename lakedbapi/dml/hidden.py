"""Hidden columns of the target (`rowid`, `filename`, …) in the expressions of a DML statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from lakedbapi.dml.target import Target
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.query.hidden import HIDDEN_COLUMNS, check_known


def revealed(
    target: Target,
    expressions: Sequence[exp.Expression | None],
    sources: Sequence[exp.Expression] = (),
) -> frozenset[str]:
    """The hidden columns of the target that `expressions` name, beside the relations `sources`.

    An unqualified name is the target's only where nothing else can have it: without sources, and in no subquery.
    NotSupportedError where a name of a subquery or source would then become the target's, since scopes are nested;
    ProgrammingError for a column by its number, as it would count hidden columns, and not those that go unread.
    """
    for expression in expressions:
        _check_named(expression)
    own: set[str] = set()
    others: dict[str, str] = {}
    for expression in expressions:
        if expression is not None and any(_columns(target, expression)):
            for column in _columns(target, expression.copy()):  # Nothing is around a copy.
                if _is_own(target, column, alone=not sources):
                    own.add(column.name.casefold())
                else:
                    others[column.name.casefold()] = column.sql(dialect="duckdb")
    for source in sources:
        others |= {column.name.casefold(): column.sql(dialect="duckdb") for column in _columns(target, source)}
    mixed = own & others.keys()
    if mixed:
        raise NotSupportedError(
            f"{others[mixed.pop()]} stands beside the hidden column of {target.name} with this name; "
            "read the hidden columns of other tables in a query of its own first"
        )
    check_known(target.catalog, target.table, own)
    return frozenset(own)


def _check_named(expression: exp.Expression | None) -> None:
    if expression is None:
        return
    for number in expression.copy().find_all(exp.PositionalColumn):  # Nothing is around a copy.
        if number.find_ancestor(exp.Query) is None:
            written = number.sql(dialect="duckdb")
            raise ProgrammingError(f"{written} numbers the columns of a query: name the column here")


def _columns(target: Target, expression: exp.Expression) -> Iterator[exp.Column]:
    """Columns with the name of a hidden one."""
    for column in expression.find_all(exp.Column):
        if column.name.casefold() in HIDDEN_COLUMNS and target.table.schema.get(column.name) is None:
            yield column


def _is_own(target: Target, column: exp.Column, *, alone: bool) -> bool:
    if column.table:
        return bool(column.table.casefold() == target.name.casefold())
    return alone and column.find_ancestor(exp.Query) is None
