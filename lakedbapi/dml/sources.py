"""The other relations of a statement: the items of USING and FROM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Union, cast

from sqlglot import exp

from lakedbapi.query.relations import present
from lakedbapi.sql.expressions import render
from lakedbapi.sql.statements import Delete, Insert, Merge, Update

Statement = Union[Insert, Update, Delete, Merge]


def with_clause(ctes: exp.With | None) -> str:
    """`WITH … ` or nothing."""
    return "" if ctes is None else f"{render(ctes)} "


def from_clause(target: str, others: Sequence[exp.Expression]) -> str:
    """FROM with the target and the statement's other relations.

    The target comes last: a subquery in FROM sees the relations before it, but none of a DML statement sees the
    target.
    """
    return " FROM " + ", ".join([*map(render, others), target])


def aliases(items: Iterable[exp.Expression]) -> tuple[str, ...]:
    """The names by which the columns of FROM items, and of what is joined to them, can be qualified."""
    return tuple(name for item in items for name in _aliases(item) if name)


def _aliases(item: exp.Expression) -> Iterator[str]:
    if isinstance(item, (exp.Table, exp.Subquery, exp.Values, exp.UDTF, exp.Lateral)):
        yield item.alias_or_name
    for join in item.args.get("joins") or ():
        yield from _aliases(join.this)


def conjunction(conditions: Sequence[exp.Expression]) -> exp.Expression:
    """All of `conditions`, of which there is at least one."""
    return cast("exp.Expression", exp.and_(*conditions))


def named(
    statement: Statement, expressions: Iterable[exp.Expression | None], sources: Sequence[exp.Expression] = ()
) -> frozenset[str]:
    """The identifiers that can mean relations or macros in these parts of a statement and in its CTEs: none at all when
    no expression has a subquery or a function that is not a built-in one, which saves looking for them."""
    trees = [e for e in (*expressions, *sources, statement.ctes) if e is not None]
    if sources or statement.ctes is not None or any(map(_names_something, trees)):
        return present(statement.identifiers, statement.specials, trees)
    return frozenset()


def _names_something(expression: exp.Expression) -> bool:
    return isinstance(expression, exp.Var) or expression.find(exp.Query, exp.Anonymous) is not None
