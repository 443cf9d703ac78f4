"""Statements that name tables with their schemas.

The target stands in engine queries under its bare name. Where the statement reads another `t` too, as in
`DELETE FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE a.t.id = b.t.id)`, that name would mean the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.errors import ProgrammingError
from lakedbapi.query.names import resolve_table
from lakedbapi.sql.qualified import table_paths, under
from lakedbapi.sql.statements import Assignment, Delete, Merge, Update

Statement = TypeVar("Statement", bound="Update | Delete | Merge")
Rewrite = Callable[[exp.Expression], exp.Expression]

SELF = "_lake_self"
SOURCE = "_lake_source"


def told_apart(context: Context, statement: Statement) -> Statement:
    """The statement with an alias for its target, where it reads another table of that name; else as it is.

    ProgrammingError where a name without schema could mean the target or a relation of USING or FROM.
    """
    name = statement.target.last.casefold()
    if statement.alias is not None or not any(table.name.casefold() == name for table in _tables(statement)):
        return statement
    path = _path(context, statement)
    if not any(_is_namesake(table, path) for table in _tables(statement)):
        return statement
    ambiguous = any(_is_namesake(table, path) for source in sources(statement) for table in outer_tables(source))
    renamed = rewritten(statement, lambda e: e.transform(_renaming, path, SELF, ambiguous))
    return replace(renamed, alias=SELF)


def with_named_source(statement: Merge) -> Merge:
    """The statement with an alias for its source, where columns of it are written `schema.table.column`."""
    source = statement.source
    if not isinstance(source, exp.Table) or source.alias or not source.db:
        return statement
    path = _parts(source)
    columns = (column for e in expressions(statement) for column in e.find_all(exp.Column))
    if not any(len(written) > 1 and _fits(written, path) for column in columns for written in table_paths(column)):
        return statement
    renamed = rewritten(statement, lambda e: e.transform(_renaming, path, SOURCE, False))
    return replace(renamed, source=cast("exp.Expression", exp.alias_(source, SOURCE, table=True)))


def _path(context: Context, statement: Update | Delete | Merge) -> tuple[str, str, str]:
    found = resolve_table(context, statement.target)
    return found.alias.casefold(), found.schema.name.casefold(), found.table.name.casefold()


def rewritten(statement: Statement, rewrite: Rewrite) -> Statement:
    """The statement with all expressions that see its target as `rewrite` makes them."""
    changed = replace(statement, returning=tuple(map(rewrite, statement.returning)))
    if isinstance(changed, Merge):
        actions = tuple(
            replace(
                action,
                condition=action.condition and rewrite(action.condition),
                error=action.error and rewrite(action.error),
                assignments=_assignments(action.assignments, rewrite),
            )
            for action in changed.actions
        )
        return replace(changed, on=changed.on and rewrite(changed.on), actions=actions)
    changed = replace(changed, where=changed.where and rewrite(changed.where))
    if isinstance(changed, Delete):
        return changed
    return replace(changed, assignments=_assignments(changed.assignments, rewrite))


def _assignments(assignments: Sequence[Assignment], rewrite: Rewrite) -> tuple[Assignment, ...]:
    return tuple(replace(a, value=a.value and rewrite(a.value)) for a in assignments)


def _renaming(node: exp.Expression, path: tuple[str, ...], alias: str, ambiguous: bool) -> exp.Expression:
    """A column of the table at `path` under `alias`; any other as it is."""
    if not isinstance(node, exp.Column):
        return node
    written = next((written for written in table_paths(node) if _fits(written, path)), ())
    if not written:
        return node
    for select in _selects_around(node):
        if any(_can_mean(node, table) for table in outer_tables(select)):
            return node
    if ambiguous and len(written) == 1:
        raise ProgrammingError(f"{node.sql(dialect='duckdb')} can mean several tables: name its schema, or use aliases")
    return under(exp.to_identifier(alias), node, len(written))


def _selects_around(node: exp.Expression) -> Iterator[exp.Expression]:
    select = node.find_ancestor(exp.Select)
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)


def _can_mean(column: exp.Column, source: exp.Table) -> bool:
    """Whether a qualified column can be one of a FROM item."""
    name = source.alias_or_name.casefold()
    return any(
        written[-1] == name and (len(written) == 1 or (not source.alias and _fits(written, _parts(source))))
        for written in table_paths(column)
    )


def outer_tables(item: exp.Expression) -> Iterator[exp.Table]:
    """The tables in a FROM item or in the FROM clause of a query, but not those of its subqueries."""
    own = item if isinstance(item, exp.Select) else item.find_ancestor(exp.Select)
    for table in item.find_all(exp.Table):
        if table.find_ancestor(exp.Select) is own:
            yield table


def _tables(statement: Statement) -> Iterator[exp.Table]:
    """All tables that the statement reads beside its target."""
    for expression in (*sources(statement), *expressions(statement)):
        yield from expression.find_all(exp.Table)


def expressions(statement: Statement) -> list[exp.Expression]:
    """All that see the target."""
    found: list[exp.Expression] = []

    def note(expression: exp.Expression) -> exp.Expression:
        found.append(expression)
        return expression

    rewritten(statement, note)
    return found


def sources(statement: Update | Delete | Merge) -> tuple[exp.Expression, ...]:
    """The items of USING or FROM."""
    return (statement.source,) if isinstance(statement, Merge) else statement.source


def _is_namesake(table: exp.Table, path: tuple[str, ...]) -> bool:
    return not table.alias and table.name.casefold() == path[-1] and not _fits(_parts(table), path)


def _parts(table: exp.Table) -> tuple[str, ...]:
    """(catalog, schema, table) as far as they are written."""
    return tuple(part.casefold() for part in (table.catalog, table.db, table.name) if part)


def _fits(written: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Whether two names agree as far as both are written."""
    length = min(len(written), len(path))
    return written[-length:] == path[-length:]
