"""RETURNING: the statement's rows as a query result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from lakedbapi.dml.target import Target
from lakedbapi.engine.base import Relation, RelationName, ScanRelation
from lakedbapi.errors import NotSupportedError
from lakedbapi.model.scan import RowGroup, Scan
from lakedbapi.model.sql_types import quote_identifier, spelled
from lakedbapi.query.hidden import HIDDEN_COLUMNS
from lakedbapi.sql.statements import Special

ROWS = "_lake_returned"
SOURCES = "_lake_sources"
ACTIONS = "_lake_actions"
MERGE_ACTION = "merge_action"


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

    def __bool__(self) -> bool:
        return bool(self.items)

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
) -> tuple[pa.Table, tuple[str, ...]]:
    """The result rows and their SQL types.

    `rows` are the target's rows, `sources` for each alias the rows that stood beside them (structs), `actions` what
    MERGE did to each.
    """
    _refuse_hidden(target, returning, sources)
    hidden: dict[RelationName, Relation] = {
        target.relation_name(ROWS): ScanRelation(Scan(target.table.schema, rows=(RowGroup("returned", rows),)))
    }
    items = [f"{target.path_of(ROWS)} AS {quote_identifier(target.name)}"]
    if sources:
        hidden[target.relation_name(SOURCES)] = pa.table(list(sources), [f"s{i}" for i in range(len(sources))])
        items += [
            f"({_source_rows(target, i, returning.hidden)}) AS {quote_identifier(alias)}"
            for i, alias in enumerate(returning.sources)
        ]
    if actions is not None:
        hidden[target.relation_name(ACTIONS)] = pa.table([actions], [MERGE_ACTION])
        items.append(f"{target.path_of(ACTIONS)} AS {quote_identifier(ACTIONS)}")
    selected = ", ".join(_render(target, item) for item in returning.items)
    sql = f"{returning.ctes}SELECT {selected} FROM {' POSITIONAL JOIN '.join(items)}"
    result = target.open(target.query(sql, hidden, returning.identifiers, returning.specials))
    types = tuple(column.type for column in result.columns)
    return result.reader().read_all(), types


def _refuse_hidden(target: Target, returning: Returning, sources: Sequence[pa.ChunkedArray]) -> None:
    """Rows that a statement makes have no place and no lasting row id before they are committed."""
    beside = {target.name.casefold(): target.table.schema.names} | {
        alias.casefold(): [field.name for field in rows.type]
        for alias, rows in zip(returning.sources, sources, strict=True)
    }
    known = {(alias, name.casefold()) for alias, names in beside.items() for name in names}
    known |= {("", name) for _, name in known}
    queries = [query for item in returning.items for query in item.find_all(exp.Query)]
    inner = {id(column) for query in queries for column in query.find_all(exp.Column)}
    for column in (column for item in returning.items for column in item.find_all(exp.Column)):
        name, alias = column.name.casefold(), column.table.casefold()
        is_own = alias in ("", target.name.casefold()) and id(column) not in inner
        if is_own and name in HIDDEN_COLUMNS and (alias, name) not in known:
            raise NotSupportedError(
                f"RETURNING cannot show {name}: rows get it when they are committed; "
                f"SELECT {name}, … FROM {spelled(target.table.name)} before or after the statement, or return a key "
                "of your own"
            )


def _source_rows(target: Target, number: int, hidden: str | None) -> str:
    rows = f"SELECT UNNEST(s{number}) FROM {target.path_of(SOURCES)}"
    return rows if hidden is None else f"SELECT * EXCLUDE ({hidden}) FROM ({rows})"


def _render(target: Target, item: exp.Expression) -> str:
    """A bare `*` means the columns of the target alone."""
    if isinstance(item, exp.Star):
        return target.render_shown(exp.Column(this=item.copy(), table=exp.to_identifier(target.name, quoted=True)))
    return target.render_shown(item)
