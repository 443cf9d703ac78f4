"""RETURNING: the statement's rows as a query result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakedbapi.dml.sources import Statement, named, with_clause
from lakedbapi.dml.target import Target
from lakedbapi.engine.base import Relation, RelationName, ScanRelation
from lakedbapi.errors import NotSupportedError
from lakedbapi.model.scan import RowGroup, Scan
from lakedbapi.model.sql_types import quote_identifier, spelled
from lakedbapi.query.hidden import HIDDEN_COLUMNS, check_known
from lakedbapi.sql.statements import Special

ROWS = RelationName.local("_lake_returned")
SOURCES = RelationName.local("_lake_sources")
ACTIONS = RelationName.local("_lake_actions")
MERGE_ACTION = "merge_action"
ROW_IDS = RelationName.local("_lake_row_ids")


@dataclass(frozen=True)
class Returning:
    """`items` are the expressions of the clause; `sources` the aliases of the other relations that they can name."""

    items: tuple[exp.Expression, ...]
    sources: tuple[str, ...] = ()
    identifiers: frozenset[str] = frozenset()
    specials: tuple[Special, ...] = ()
    ctes: str = ""
    hidden: str | None = None
    """A column of the sources that `*` does not show."""

    @classmethod
    def of(cls, statement: Statement, sources: tuple[str, ...] = (), hidden: str | None = None) -> Returning:
        identifiers = named(statement, statement.returning)
        ctes = with_clause(statement.ctes)
        return cls(statement.returning, sources, identifiers, statement.specials, ctes, hidden)

    def __bool__(self) -> bool:
        return bool(self.items)

    @property
    def may_name_row_ids(self) -> bool:
        return any(column.name.casefold() == "rowid" for item in self.items for column in item.find_all(exp.Column))

    @property
    def source_columns(self) -> list[str]:
        """Select items that keep the row of every source as a struct, for `evaluate`.

        The alias alone would do, if no relation had a column of that name.
        """
        return [
            f"struct_pack(*COLUMNS({quote_identifier(alias)}.*)) AS {quote_identifier(f'_lake_s{i}')}"
            for i, alias in enumerate(self.sources)
        ]


def evaluate(
    target: Target,
    returning: Returning,
    rows: pa.Table,
    sources: Sequence[pa.ChunkedArray] = (),
    actions: pa.Array | None = None,
    row_ids: pa.ChunkedArray | None = None,
) -> tuple[pa.Table, tuple[str, ...]]:
    """The result rows and their SQL types.

    `rows` are the target's rows, `sources` for each alias the rows that stood beside them (structs), `actions` what
    MERGE did to each, `row_ids` (int64) their ids, NULL for those that were not committed yet.
    """
    returned, names_row_ids = _told_apart(target, returning, sources, known=row_ids is not None)
    hidden: dict[RelationName, Relation] = {
        ROWS: ScanRelation(Scan(target.table.schema, rows=(RowGroup("returned", rows),)))
    }
    items = [f"{ROWS.sql} AS {quote_identifier(target.name)}"]
    if sources:
        hidden[SOURCES] = pa.table(list(sources), [f"s{i}" for i in range(len(sources))])
        items += [
            f"({_source_rows(target, i, returning.hidden)}) AS {quote_identifier(alias)}"
            for i, alias in enumerate(returning.sources)
        ]
    if actions is not None:
        hidden[ACTIONS] = pa.table([actions], [MERGE_ACTION])
        items.append(ACTIONS.sql)
    if names_row_ids:
        hidden[ROW_IDS] = pa.table([row_ids], [ROW_IDS.name])
        items.append(ROW_IDS.sql)
    selected = ", ".join(_render(target, item) for item in returned)
    sql = f"{returning.ctes}SELECT {selected} FROM {' POSITIONAL JOIN '.join(items)}"
    result = target.open(target.query(sql, hidden, returning.identifiers, returning.specials))
    types = tuple(column.type for column in result.columns)
    return result.reader().read_all(), types


def _told_apart(
    target: Target, returning: Returning, sources: Sequence[pa.ChunkedArray], *, known: bool
) -> tuple[list[exp.Expression], bool]:
    """The items with the column of `ROW_IDS` in place of the target's `rowid`, and whether there is any. What the
    sources have, too, without a name before it, is the target's.

    NotSupportedError for other hidden columns, and for row ids that are not `known`: rows that a statement makes have
    no place and no lasting row id before they are committed.
    """
    beside = {target.name.casefold(): target.table.schema.names} | {
        alias.casefold(): [field.name for field in rows.type]
        for alias, rows in zip(returning.sources, sources, strict=True)
    }
    shown = {(alias, name.casefold()) for alias, names in beside.items() for name in names}
    both = {name for alias, name in shown if alias == target.name.casefold()}
    both &= {name for alias, name in shown if alias != target.name.casefold()}
    shown |= {("", name) for _, name in shown}
    items, is_named = [], False
    for item in returning.items:
        changed: Any = item.copy()
        for column in changed.find_all(exp.Column):
            if not column.table and column.name.casefold() in both and not column.find_ancestor(exp.Query, exp.Lambda):
                column.set("table", exp.to_identifier(target.name, quoted=True))
        for column in [column for column in changed.find_all(exp.Column) if _is_own_hidden(target, column, shown)]:
            if column.name.casefold() != "rowid" or not known:
                raise _not_yet(target, column.name.casefold())
            check_known(target.catalog, target.table, ["rowid"])
            is_named = True
            id = exp.column(exp.to_identifier(ROW_IDS.name, quoted=True))
            if column is changed:
                changed = exp.alias_(id, column.name, quoted=True)
            else:
                column.replace(id)
        items.append(changed)
    return items, is_named


def _is_own_hidden(target: Target, column: exp.Column, shown: Collection[tuple[str, str]]) -> bool:
    """Whether it is a hidden column of the target, and in no subquery. `shown` are (alias, name) of columns."""
    name, alias = column.name.casefold(), column.table.casefold()
    return (
        name in HIDDEN_COLUMNS
        and alias in ("", target.name.casefold())
        and (alias, name) not in shown
        and column.find_ancestor(exp.Query) is None
    )


def _not_yet(target: Target, name: str) -> NotSupportedError:
    return NotSupportedError(
        f"RETURNING cannot show {name}: rows get it when they are committed; "
        f"SELECT {name}, … FROM {spelled(target.table.name)} before or after the statement, or return a key of your own"
    )


def _source_rows(target: Target, number: int, hidden: str | None) -> str:
    rows = f"SELECT UNNEST(s{number}) FROM {SOURCES.sql}"
    return rows if hidden is None else f"SELECT * EXCLUDE ({hidden}) FROM ({rows})"


def _render(target: Target, item: exp.Expression) -> str:
    """A bare `*` means the columns of the target alone."""
    if isinstance(item, exp.Star):
        return target.render_shown(exp.Column(this=item.copy(), table=exp.to_identifier(target.name, quoted=True)))
    return target.render_shown(item)
