"""Keeps `*`, `COLUMNS(…)` and whole rows to the columns that a table shows, where the engine's relation has more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlglot import exp

from lakedbapi.errors import NotSupportedError


class Row(NamedTuple):
    """A relation with columns that it does not show."""

    shown: tuple[str, ...] | None
    """In order; None = not known."""
    hidden: tuple[str, ...]


def only_shown(scope: exp.Expression, rows: Mapping[str, Row], is_column: Callable[[str], bool]) -> exp.Expression:
    """`scope`, a SELECT or an expression outside of any, changed in place to show no hidden columns of `rows`, which
    are named by casefolded alias.

    `is_column` tells of such an alias whether a column has that name too, which then is what it means.
    """
    root = exp.Paren(this=scope) if scope.parent is None and not isinstance(scope, exp.Select) else None
    level = scope if isinstance(scope, exp.Select) else None
    for star in list(scope.find_all(exp.Star)):
        if star.parent_select is level and _is_expanded(star):
            _exclude(star, rows)
    for columns in list(scope.find_all(exp.Columns)):
        if columns.parent_select is level:
            _narrow(columns, rows)
    named = {alias for alias in rows if not is_column(alias)}
    for column in [column for column in whole_rows(scope, named) if _is_of(column, level)]:
        _spell_out(column, rows[column.name.casefold()])
    return scope if root is None else root.this


def whole_rows(scope: exp.Expression, aliases: Collection[str]) -> Iterator[exp.Column]:
    """Where a relation's name stands for its row."""
    for column in scope.find_all(exp.Column):
        if not column.table and column.name.casefold() in aliases and not isinstance(column.parent, exp.Star):
            yield column


def has_stars(scope: exp.Expression) -> bool:
    return scope.find(exp.Star, exp.Columns) is not None


def names_columns(trees: Sequence[exp.Expression], name: str) -> bool:
    """Whether something in `trees`, whose tables aside, gives a column the casefolded name."""
    for tree in trees:
        for alias in tree.find_all(exp.Alias):
            same = isinstance(alias.this, exp.Column) and not alias.this.table and alias.this.name == alias.alias
            if alias.alias.casefold() == name and not same:
                return True
        for table in tree.find_all(exp.TableAlias):
            if any(column.name.casefold() == name for column in table.columns):
                return True
    return False


def _is_of(column: exp.Column, level: Any) -> bool:
    """Whether no query between the column and `level` has a relation of the column's name."""
    name = column.name.casefold()
    select: Any = column.parent_select
    while select is not level and select is not None:
        source = select.args.get("from_")
        items = [] if source is None else [source.this, *(join.this for join in select.args.get("joins") or [])]
        if any(item.alias_or_name.casefold() == name for item in items):
            return False
        select = select.parent_select
    return True


def _is_expanded(star: exp.Star) -> bool:
    """Whether the star means columns, which that of `count(*)` does not."""
    return isinstance(star.find_ancestor(exp.Func, exp.Select), (exp.Columns, exp.Array, exp.Select, type(None)))


def _exclude(star: exp.Star, rows: Mapping[str, Row]) -> None:
    qualifier = star.parent.table.casefold() if isinstance(star.parent, exp.Column) else ""
    excluded = star.args.get("except_") or []
    known = {column.name.casefold() for column in excluded}
    more = [column for column in _hidden_columns(rows, qualifier) if column.name.casefold() not in known]
    if more:
        star.set("except_", [*excluded, *more])


def _hidden_columns(rows: Mapping[str, Row], qualifier: str = "") -> list[exp.Column]:
    return [_column(alias, name) for alias, row in rows.items() if qualifier in ("", alias) for name in row.hidden]


def _narrow(columns: exp.Columns, rows: Mapping[str, Row]) -> None:
    """`COLUMNS('pattern')` and `COLUMNS(lambda c: …)` as lists of names, which can be had of some columns alone."""
    inner = columns.this
    if isinstance(inner, exp.Lambda):
        (name,), condition = inner.expressions, inner.this
    elif isinstance(inner, (exp.Literal, exp.Parameter, exp.Placeholder)):
        alias = columns.find_ancestor(exp.Alias, exp.Select)
        if isinstance(alias, exp.Alias) and "\\" in alias.alias.replace("\\0", ""):
            raise NotSupportedError(
                f"COLUMNS({inner.sql(dialect='duckdb')}) with groups in its alias cannot be combined with rowid, "
                "snapshot_id, filename or file_row_number: put the query that names these into a subquery"
            )
        name = exp.to_identifier("c")
        condition = exp.Anonymous(this="regexp_matches", expressions=[exp.column("c"), inner.copy()])
    else:
        return
    star = exp.Star(except_=_hidden_columns(rows))
    chosen = exp.Comprehension(
        this=exp.column(name.name),
        expression=exp.column(name.name),
        iterator=exp.Paren(this=star),
        condition=condition.copy(),
    )
    columns.set("this", exp.Array(expressions=[chosen]))


def _spell_out(column: exp.Column, row: Row) -> None:
    """The row as a struct of its columns, under the name that it had in a result."""
    item: Any = column
    while item.parent is not None and not isinstance(item.parent, exp.Select):
        item = item.parent
    select = item.parent
    if select is not None and item.arg_key == "expressions" and not isinstance(item, exp.Alias):
        name = item.sql(dialect="duckdb", normalize_functions=False)
        items = [exp.alias_(i, name, quoted=True, copy=False) if i is item else i for i in select.expressions]
        select.set("expressions", items)
    column.replace(_struct(column.name.casefold(), row))


def _struct(alias: str, row: Row) -> exp.Expression:
    if row.shown is None:
        star = exp.Star(except_=[_column(alias, name) for name in row.hidden])
        every = exp.Column(this=star, table=exp.to_identifier(alias, quoted=True))
        return exp.Anonymous(this="struct_pack", expressions=[exp.Columns(this=every, unpack=True)])
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=_column(alias, name))
            for name in row.shown
        ]
    )


def _column(alias: str, name: str) -> exp.Column:
    return exp.column(name, table=alias, quoted=True)
