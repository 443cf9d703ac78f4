"""Columns that a table has without showing them: `rowid`, `snapshot_id`, `filename`, `file_row_number`.

Tables of some formats have more of them (`TableInfo.hidden`). They can be named in a query, but `*` does not include
them. As the engine knows only columns that are shown, a query that names one is written anew (`query.shown`), with
`* EXCLUDE (…)` in place of `*`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from sqlglot import exp

from lakedbapi.engine.base import FILENAME, POSITION, ROW_ID, ROW_SNAPSHOT
from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import TableInfo
from lakedbapi.query.filters import table_name
from lakedbapi.query.shown import Row, names_columns, only_shown
from lakedbapi.sql.expressions import render

HIDDEN_COLUMNS: Mapping[str, str] = {
    "rowid": ROW_ID,
    "snapshot_id": ROW_SNAPSHOT,
    "filename": FILENAME,
    "file_row_number": POSITION,
}


def check_known(catalog: Catalog, table: TableInfo, columns: Collection[str]) -> None:
    """NotSupportedError for a hidden column that `table` does not have."""
    if "rowid" in columns and not catalog.has_row_ids(table):
        raise NotSupportedError(
            f"table {table.name} of format {catalog.format!r} has no row ids that stay: name rows by a key of your "
            "own, or within one query by filename and file_row_number"
        )


class Hidden(NamedTuple):
    """`text` is the query to run; `columns` the hidden columns to define, by casefolded table name."""

    text: str
    columns: Mapping[str, frozenset[str]]


class Columns(NamedTuple):
    """The casefolded names of a table's columns."""

    shown: frozenset[str]
    hidden: frozenset[str]
    row: tuple[str, ...] | None = None
    """Those that are shown as the table calls them, in order; None where nobody knows which table is meant."""


ColumnsOf = Callable[[str], Columns | None]
"""The columns of the table with a casefolded name; None = no table."""


def reveal(
    text: str,
    tree: exp.Expression | None,
    identifiers: frozenset[str],
    columns_of: ColumnsOf,
    hidden_names: Collection[str] = HIDDEN_COLUMNS,
) -> Hidden:
    """The hidden columns that a query uses.

    A hidden column counts as used where a SELECT names it, and a table of its FROM, but none of the columns there has
    this name. Queries that only the engine can parse have no hidden columns. `hidden_names` are those that tables may
    have.
    """
    if tree is None or identifiers.isdisjoint(hidden_names):
        return Hidden(text, {})
    used = hidden_columns([tree], columns_of, hidden_names)
    if not used:
        return Hidden(text, {})
    shown = render(concealed(tree, used, columns_of))
    return Hidden(text if shown == render(tree) else shown, used)


def hidden_columns(
    trees: Iterable[exp.Expression], columns_of: ColumnsOf, hidden_names: Collection[str]
) -> Mapping[str, frozenset[str]]:
    """Those that SELECTs in `trees` use, by casefolded table name."""
    used: dict[str, frozenset[str]] = {}
    for column in (column for tree in trees for column in tree.find_all(exp.Column)):
        name = column.name.casefold()
        if name in hidden_names:
            for table in owners(column, columns_of) or ():
                used[table] = used.get(table, frozenset()) | {name}
    return used


def owners(column: Any, columns_of: ColumnsOf) -> list[str] | None:
    """The tables, of the nearest SELECT that has one, whose hidden column `column` is; None = no SELECT around it has
    a table that the name can belong to."""
    name, qualifier = column.name.casefold(), column.table.casefold()
    select = column.parent_select
    while select is not None:
        tables = _sources(select) if isinstance(select, exp.Select) else {}
        if qualifier:
            tables = {alias: table for alias, table in tables.items() if alias == qualifier}
        found = {table: columns for table in tables.values() if (columns := columns_of(table)) is not None}
        if any(name in columns.shown for columns in found.values()):
            return []
        if found:
            return [table for table, columns in found.items() if name in columns.hidden]
        select = select.parent_select
    return None


def _sources(select: Any) -> dict[str, str]:
    """Table by alias (both casefolded), of a SELECT's FROM and joins."""
    source = select.args.get("from_")
    items = [] if source is None else [source.this, *source.this.args.get("joins", [])]
    items += [join.this for join in select.args.get("joins") or []]
    tables = [item.this if isinstance(item, exp.Join) else item for item in items]
    common = _common_tables(select)
    return {
        table.alias_or_name.casefold(): table_name(table)
        for table in tables
        if isinstance(table, exp.Table) and (table.args.get("db") or table_name(table) not in common)
    }


def _common_tables(select: Any) -> set[str]:
    """Casefolded names of the common tables that a SELECT can see."""
    names: set[str] = set()
    scope = select
    while scope is not None:
        ctes = scope.args.get("with_")
        if ctes is not None:
            names |= {cte.alias.casefold() for cte in ctes.expressions}
        scope = scope.parent
    return names


def concealed(tree: exp.Expression, used: Mapping[str, frozenset[str]], columns_of: ColumnsOf) -> exp.Expression:
    """A copy of a query, or of what has queries in it, with no hidden columns but where it names them. `used` are those
    that its tables have, by casefolded table name."""
    tree = tree.copy()

    def is_column(name: str) -> bool:
        tables = (columns_of(table_name(table)) for table in tree.find_all(exp.Table))
        return names_columns([tree], name) or any(columns is not None and name in columns.shown for columns in tables)

    for select in list(tree.find_all(exp.Select)):
        sources = _sources(select)
        rows = {alias: _row(columns_of(table), used[table]) for alias, table in sources.items() if table in used}
        if not rows:
            continue
        if any(join.method == "NATURAL" for join in select.args.get("joins") or []):
            raise NotSupportedError(
                "NATURAL JOIN cannot be combined with rowid, snapshot_id, filename or file_row_number: "
                "write the join's columns as USING (…)"
            )
        only_shown(select, rows, is_column)
    return tree


def _row(columns: Columns | None, hidden: frozenset[str]) -> Row:
    return Row(None if columns is None else columns.row, tuple(sorted(hidden)))
