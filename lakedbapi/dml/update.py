"""UPDATE: the old version of a row goes, the new one comes with the same row id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Context, Counted
from lakedbapi.dml.addresses import Addresses, Repeats, has_few_deleted
from lakedbapi.dml.arrow_rows import pieces
from lakedbapi.dml.blame import blaming
from lakedbapi.dml.hidden import revealed
from lakedbapi.dml.key_lists import condition_sql
from lakedbapi.dml.namesakes import told_apart
from lakedbapi.dml.new_rows import NewRows
from lakedbapi.dml.returning import Returning, evaluate
from lakedbapi.dml.sources import aliases, from_clause, named, with_clause
from lakedbapi.dml.strategy import settle
from lakedbapi.dml.target import Target
from lakedbapi.dml.values import assigned, kept
from lakedbapi.engine.base import Query, Relation, RelationName
from lakedbapi.errors import DataError, ProgrammingError
from lakedbapi.model.changes import Operation
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import Scan
from lakedbapi.query.prune import prune
from lakedbapi.sql.statements import Update
from lakedbapi.transaction import Parts

IN_ONE_PIECE = 500_000
"""Up to this many rows an engine result is fetched at once, with all threads, instead of streamed."""


def update(context: Context, statement: Update) -> Counted:
    """Rows where the condition is TRUE, counted whether their values change or not.

    With FROM a row may stand beside several rows of the other relations as long as they all give the same new values:
    ProgrammingError when they do not, since the outcome would be an accident.
    """
    statement = told_apart(context, statement)
    target = Target.of(context, statement.target, statement.alias)
    target.require("UPDATE", target.capabilities.row_changes)
    return Updating(target, statement).run()


class Updating:
    """One UPDATE on its way. Result columns: part, position, row id, fingerprint, new values, source rows."""

    def __init__(
        self,
        target: Target,
        statement: Update,
        extra: Mapping[RelationName, Relation] | None = None,
        bounds: exp.Expression | None = None,
    ) -> None:
        """`extra` relations can be named in the statement; `bounds` follows from its condition, and decides about
        files."""
        target, statement = revealed(target, statement)
        expressions = [statement.where, *(assignment.value for assignment in statement.assignments)]
        target = replace(target, sources=tuple(statement.source))
        self._target = target
        self._trees = [e for e in (*expressions, statement.ctes, *statement.source) if e is not None]
        self._extra = extra or {}
        self._bounds = bounds or statement.where
        self._statement = statement
        self._values = assigned(target, statement.assignments, target.render)
        self._returning = Returning.of(statement, aliases(statement.source))
        self._identifiers = named(statement, expressions, statement.source)

    def run(self) -> Counted:
        target = self._target
        keep = prune(target.context, target.contents, self._bounds, target.name).keep
        scan, parts = target.contents.scan(keep)
        if self._statement.where is None or not has_few_deleted(scan, parts):
            return self._run(scan, parts, {})
        try:
            return self._run(scan.with_deleted, parts, scan.deleted)
        except DataError:  # Perhaps of a row that is not there any more.
            return self._run(scan, parts, {})

    def _run(self, scan: Scan, parts: Parts, deleted: Mapping[int, DeleteVector]) -> Counted:
        """`deleted` are positions, by part, of rows that the scan gives but that are not there any more."""
        target = self._target
        self._deleted = deleted
        self._new_rows = NewRows(target)
        self._repeats = Repeats()
        self._returned: list[pa.Table] = []
        statement = self._statement
        query = target.query(
            self._sql(), {**self._extra, **target.scan_relation(scan)}, self._identifiers, statement.specials
        )
        alone = {name: self._values_sql([value]) for name, value in self._values.items()}
        with blaming(target, query, alone):
            addresses = Addresses.joined([self._take(rows) for rows in self._chunks(query, parts)])
        if self._repeats.ambiguous:
            raise ProgrammingError(
                f"UPDATE {target.table.name} … FROM: {self._repeats.ambiguous} rows stand beside several rows that "
                "give different new values; make the condition match one, or aggregate the FROM relation first"
            )
        returned, types = self._evaluate() if self._returning else (None, ())
        if len(addresses):
            changes = target.contents.delete(parts, addresses.by_part)
            changes = self._new_rows.onto(settle(target, changes, self._new_rows, "update"))
            operation = Operation(
                "update",
                target.table.id,
                None if statement.where is None else target.render(statement.where),
                updated=len(addresses),
                reads_table=target.is_read_by(query.relations, self._trees),
                may_match=target.may_match(self._bounds),
            )
            target.stage(changes, self._new_rows.identities, operation=operation)
        return Counted(len(addresses), returned, types, updated=len(addresses))

    def _sql(self) -> str:
        target = self._target
        columns = [
            f"{target.column(target.part)} AS _lake_p",
            f"{target.column(target.position)} AS _lake_n",
            f"{target.column(target.row_id)} AS _lake_r",
            *(
                f"{self._values.get(field.name, kept(target, field))} AS _lake_c{i}"
                for i, field in enumerate(target.fields)
            ),
        ]
        if self._returning:
            columns += self._returning.source_columns
        return f"SELECT {self._fingerprint()}, * FROM ({self._values_sql(columns)})"

    def _values_sql(self, columns: Sequence[str]) -> str:
        target, statement = self._target, self._statement
        sql = (
            f"{with_clause(statement.ctes)}SELECT {', '.join(columns)}{from_clause(target.from_item, statement.source)}"
        )
        if statement.where is None:
            return sql
        condition = target.render(statement.where) if statement.source else condition_sql(target, statement.where)
        return f"{sql} WHERE ({condition})"

    def _fingerprint(self) -> str:
        """A number that is the same for the same new values; only FROM can give a row several."""
        if not self._statement.source:
            return "NULL"
        changed = [f"_lake_c{i}" for i, field in enumerate(self._target.fields) if field.name in self._values]
        return f"hash({', '.join(changed)})"

    def _chunks(self, query: Query, parts: Parts) -> Iterator[pa.Table]:
        if not self._statement.source and int(parts.live.sum()) <= IN_ONE_PIECE:
            yield self._target.fetch(query)
        else:
            yield from pieces(self._target.open(query))

    def _take(self, rows: pa.Table) -> Addresses:
        """Take over the new versions in a piece of the result; returns the addresses of the old ones."""
        addresses = Addresses.of(rows.select([1, 2]))
        if self._deleted and (gone := addresses.among(self._deleted)).any():
            addresses, rows = addresses.take(np.flatnonzero(~gone)), rows.filter(pa.array(~gone))
        if self._statement.source and rows.num_rows:
            first = self._repeats.first(addresses.keys, rows.column(0).to_numpy())
            addresses, rows = addresses.take(first), rows.take(pa.array(first))
        width = len(self._target.fields)
        completed = self._new_rows.complete(rows.select(range(4, 4 + width)))
        self._new_rows.add(completed, rows.column(3))
        if self._returning:
            columns = [*completed.columns, rows.column(3), *rows.columns[4 + width :]]
            self._returned.append(pa.Table.from_arrays(columns, [f"c{i}" for i in range(len(columns))]))
        return addresses

    def _evaluate(self) -> tuple[pa.Table, tuple[str, ...]]:
        rows = pa.concat_tables(self._returned)
        width = len(self._target.fields)
        new = rows.select(range(width)).rename_columns(list(self._target.table.schema.names))
        return evaluate(self._target, self._returning, new, rows.columns[width + 1 :], row_ids=rows.column(width))
