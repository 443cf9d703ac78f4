"""Hidden columns (`rowid`, `filename`, …) in DML statements: of the target, and of the tables that subqueries read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, cast

from sqlglot import exp

from lakedbapi.dml.namesakes import Rewrite, expressions, outer_tables, rewritten, sources
from lakedbapi.dml.target import Target
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.query.filters import table_name
from lakedbapi.query.hidden import HIDDEN_COLUMNS, Columns, ColumnsOf, check_known, concealed, hidden_columns, owners
from lakedbapi.query.relations import columns_of, hidden_names
from lakedbapi.sql.expressions import render
from lakedbapi.sql.statements import Delete, Insert, Merge, Update

Statement = TypeVar("Statement", bound="Update | Delete | Merge")


def revealed(target: Target, statement: Statement) -> tuple[Target, Statement]:
    """The target with the hidden columns that the statement names, its own and those of the tables in subqueries; the
    statement with no other way to see the latter.

    A name that nothing qualifies, and in no subquery, is the target's only where there are no other relations.
    NotSupportedError where it could be one of theirs, and for hidden columns of one that is no subquery, whose `*`
    would show them; ProgrammingError for a column by its number, as it would count hidden columns, and not those that
    go unread.
    """
    others, tables_of = _of_others(target, statement, [*expressions(statement), *sources(statement)])
    own = _own(target, statement, tables_of)
    _check_wrapped(statement, others, tables_of)
    target = replace(target, hidden=own, others=others)
    return target, _concealing(statement, lambda tree: concealed(tree, others, tables_of)) if others else statement


def revealed_source(target: Target, statement: Insert) -> tuple[Target, Insert]:
    """As `revealed`, of the query that gives the rows of an INSERT."""
    source = statement.source
    if source is None or source.tree is None:
        return target, statement
    others, tables_of = _of_others(target, statement, [source.tree])
    if not others:
        return target, statement
    tree = concealed(source.tree, others, tables_of)
    ctes = statement.ctes and cast("exp.With", concealed(statement.ctes, others, tables_of))
    return replace(target, others=others), replace(
        statement, source=replace(source, text=render(tree), tree=tree), ctes=ctes
    )


def _of_others(
    target: Target, statement: Insert | Update | Delete | Merge, trees: list[exp.Expression]
) -> tuple[Mapping[str, frozenset[str]], ColumnsOf]:
    """The hidden columns that queries in the statement use, by casefolded table name, and what finds the columns of
    such tables."""
    context, specials, ctes = target.context, statement.specials, statement.ctes
    common = set() if ctes is None else {cte.alias.casefold() for cte in ctes.expressions}

    def tables_of(name: str) -> Columns | None:
        return None if name in common else columns_of(context, specials, name)

    return hidden_columns([*trees, *([] if ctes is None else [ctes])], tables_of, hidden_names(context)), tables_of


def _own(target: Target, statement: Update | Delete | Merge, tables_of: ColumnsOf) -> frozenset[str]:
    """The hidden columns of the target that the statement names, but for RETURNING."""
    own: set[str] = set()
    doubtful: dict[str, str] = {}
    for expression in expressions(replace(statement, returning=())):
        _check_named(expression)
        if any(_columns(target, expression)):
            for column in _columns(target, expression.copy()):  # Nothing is around a copy.
                is_inside = column.find_ancestor(exp.Query) is not None
                if column.table:
                    is_own = column.table.casefold() == target.name.casefold()
                else:
                    is_own = not is_inside and not sources(statement)
                if is_own and owners(column, tables_of) is None:
                    own.add(column.name.casefold())
                elif not is_inside and not column.table:
                    doubtful[column.name.casefold()] = column.sql(dialect="duckdb")
    if mixed := own & doubtful.keys():
        name = mixed.pop()
        raise NotSupportedError(
            f"{doubtful[name]} stands beside the hidden column {target.name}.{name}: write which table's it is"
        )
    check_known(target.catalog, target.table, own)
    return frozenset(own)


def _check_named(expression: exp.Expression) -> None:
    for number in expression.copy().find_all(exp.PositionalColumn):  # Nothing is around a copy.
        if number.find_ancestor(exp.Query) is None:
            written = number.sql(dialect="duckdb")
            raise ProgrammingError(f"{written} numbers the columns of a query: name the column here")


def _columns(target: Target, expression: exp.Expression) -> Iterator[exp.Column]:
    """Columns with the name of a hidden one."""
    for column in expression.find_all(exp.Column):
        if column.name.casefold() in HIDDEN_COLUMNS and target.table.schema.get(column.name) is None:
            yield column


def _check_wrapped(
    statement: Update | Delete | Merge, others: Mapping[str, frozenset[str]], tables_of: ColumnsOf
) -> None:
    """NotSupportedError for hidden columns of a table that stands in USING or FROM by itself."""
    alone = {
        table.alias_or_name.casefold(): table_name(table) for item in sources(statement) for table in outer_tables(item)
    }
    trees = [*expressions(statement), *sources(statement)]
    named = {
        alone[column.table.casefold()]
        for tree in trees
        for column in tree.find_all(exp.Column)
        if column.table.casefold() in alone and _is_hidden(column, tables_of(alone[column.table.casefold()]))
    }
    for alias, name in alone.items():
        if name in others or name in named:
            raise NotSupportedError(
                f"hidden columns of {name}, which the statement reads as a whole beside its target, cannot be named: "
                f"write (SELECT *, rowid FROM {name}) AS {alias} there, and rowid is one of its columns"
            )


def _is_hidden(column: exp.Column, columns: Columns | None) -> bool:
    name = column.name.casefold()
    return columns is not None and name in columns.hidden - columns.shown


def _concealing(statement: Statement, rewrite: Rewrite) -> Statement:
    """The statement with all that it reads as `rewrite` makes it."""
    ctes = statement.ctes and cast("exp.With", rewrite(statement.ctes))
    changed = replace(rewritten(statement, rewrite), ctes=ctes)
    if isinstance(changed, Merge):
        return replace(changed, source=rewrite(changed.source))
    return replace(changed, source=tuple(map(rewrite, changed.source)))
