"""The one pass of MERGE and of INSERT … ON CONFLICT: join, choose an action for each pair, collect what they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Counted
from lakedbapi.dml.addresses import Addresses, Repeats
from lakedbapi.dml.arrow_rows import pieces, typed
from lakedbapi.dml.new_rows import NewRows
from lakedbapi.dml.returning import Returning, evaluate
from lakedbapi.dml.strategy import settle
from lakedbapi.dml.target import Target
from lakedbapi.engine.base import Query
from lakedbapi.errors import IntegrityError, ProgrammingError
from lakedbapi.model.changes import MergeClause, Operation
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.sql_types import sql_type
from lakedbapi.transaction import Parts

MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "matched", "not matched", "not matched by source"
UPDATE, DELETE, INSERT, NOTHING, ERROR = "update", "delete", "insert", "nothing", "error"

PRESENT = "_lake_present"
"""The column of a source that is true in every row of it, and so NULL where an outer join found none."""
_HEAD = 5
"""Result columns before the row's values: part, position, row id, clause number, error text."""


@dataclass(frozen=True)
class Clause:
    """A WHEN clause in SQL. `values` are the row that it leaves, by column name; of DELETE, the row that goes."""

    when: str
    condition: str | None
    action: str
    values: Mapping[str, str] = field(default_factory=dict)
    error: str = "NULL"


@dataclass(frozen=True)
class Merging:
    """`source` is a FROM item with a column `PRESENT`, known to `on` and the clauses as `source_alias`.

    `base` has what names mean and, as its text, the WITH clause. `order_by` is an SQL ordering of the result.
    """

    target: Target
    source: str
    on: str
    clauses: tuple[Clause, ...]
    keep: npt.NDArray[np.bool_]
    base: Query
    returning: Returning
    new_rows: NewRows
    order_by: str | None = None
    bounds: exp.Expression | None = None
    """What is true of all rows of the target that take part, as far as statistics can tell."""
    reads_table: bool = False
    """Whether the source or a clause reads the target as a table of its own."""

    def run(self) -> Counted:
        target, new_rows = self.target, self.new_rows
        query, parts = self._query()
        collected = _Collected(self, new_rows)
        for rows in pieces(target.open(query)):
            collected.take(rows)
        addresses = Addresses.joined(collected.addresses)
        _refuse_repeated(target, addresses)
        returned, types = collected.evaluate() if self.returning else (None, ())
        counts = collected.counts
        if sum(counts.values()):
            changes = target.contents.delete(parts, addresses.by_part)
            changes = new_rows.onto(settle(target, changes, new_rows, "merge"))
            target.stage(changes, new_rows.identities, operation=self._operation(collected))
        return Counted(sum(counts.values()), returned, types, counts[INSERT], counts[UPDATE], counts[DELETE])

    @property
    def is_unambiguous(self) -> bool:
        """Whether several source rows may match a row of the target, since each would just delete it."""
        matched = [clause for clause in self.clauses if clause.when == MATCHED]
        return [(clause.action, clause.condition) for clause in matched] == [(DELETE, None)]

    def _operation(self, collected: _Collected) -> Operation:
        clauses = tuple(
            MergeClause(clause.when, clause.condition, clause.action, int(rows))
            for clause, rows in zip(self.clauses, collected.by_clause, strict=True)
            if clause.action in collected.counts
        )
        counts = collected.counts
        return Operation(
            "merge",
            self.target.table.id,
            self.on,
            clauses,
            counts[INSERT],
            counts[UPDATE],
            counts[DELETE],
            self.reads_table,
            self.target.may_match(self.bounds),
        )

    def touched(self) -> tuple[Mapping[int, DeleteVector], Parts]:
        """The rows of the target that would be updated or deleted: positions by part."""
        query, parts = self._query()
        query = replace(
            query, sql=f"SELECT _lake_p, _lake_n, _lake_clause FROM ({query.sql}) WHERE _lake_p IS NOT NULL"
        )
        return self.target.fetch_positions(query), parts

    def _query(self) -> tuple[Query, Parts]:
        scan, parts = self.target.contents.scan(self.keep)
        relations = {**self.base.relations, **self.target.scan_relation(scan)}
        return replace(self.base, sql=self._sql(), relations=relations), parts

    def _sql(self) -> str:
        target = self.target
        errors = {number: clause.error for number, clause in enumerate(self.clauses) if clause.action == ERROR}
        columns = [
            f"{target.column(target.part)} AS _lake_p",
            f"{target.column(target.position)} AS _lake_n",
            f"{target.column(target.row_id)} AS _lake_r",
            "_lake_clause" if self._has_subqueries else f"{self._clause_number()} AS _lake_clause",
            f"{self._by_clause(errors, 'VARCHAR')} AS _lake_e",
        ]
        for i, column in enumerate(target.fields):
            values = {k: clause.values[column.name] for k, clause in enumerate(self.clauses) if clause.values}
            columns.append(f"{self._by_clause(values, sql_type(column.type))} AS _lake_c{i}")
        if self.returning:
            columns += self.returning.source_columns
        # The target comes last, since a subquery sees the relations before it.
        join = f"{self.source} {self._join()} JOIN {target.from_item} ON ({self.on})"
        if self._has_subqueries:
            join += f", LATERAL (SELECT {self._clause_number()} AS _lake_clause) AS _lake_chosen"
        order = "" if self.order_by is None else f" ORDER BY {self.order_by}"
        pairs = f"{self.base.sql}SELECT {', '.join(columns)} FROM {join}{order}"
        return f"SELECT * FROM ({pairs}) WHERE _lake_clause IS NOT NULL"

    @property
    def _has_subqueries(self) -> bool:
        """Whether the choice of a clause may have a subquery, which DuckDB does not let the same SELECT refer to."""
        return any(clause.condition is not None and "select" in clause.condition.casefold() for clause in self.clauses)

    def _clause_number(self) -> str:
        """The number of the first clause that fits; NULL when none does, or one that says DO NOTHING."""
        cases = []
        for number, clause in enumerate(self.clauses):
            fits = self._fits(clause.when)
            if clause.condition is not None:
                fits += f" AND ({clause.condition})"
            cases.append(f"WHEN {fits} THEN {'NULL' if clause.action == NOTHING else number}")
        return f"CAST(CASE {' '.join(cases)} END AS BIGINT)"

    def _fits(self, when: str) -> str:
        in_target = f"{self.target.column(self.target.part)} IS NOT NULL"
        if when == MATCHED:
            return f"{in_target} AND {PRESENT}"
        return f"NOT ({in_target})" if when == NOT_MATCHED else f"{PRESENT} IS NULL"

    def _by_clause(self, values: Mapping[int, str], type: str) -> str:
        if not values:
            return f"CAST(NULL AS {type})"
        return f"CASE _lake_clause {' '.join(f'WHEN {number} THEN {value}' for number, value in values.items())} END"

    def _join(self) -> str:
        kinds = {clause.when for clause in self.clauses}
        if NOT_MATCHED in kinds:
            return "FULL" if NOT_MATCHED_BY_SOURCE in kinds else "LEFT"
        return "RIGHT" if NOT_MATCHED_BY_SOURCE in kinds else "INNER"


class _Collected:
    """What the pairs do, piece by piece."""

    def __init__(self, merging: Merging, new_rows: NewRows) -> None:
        self._merging = merging
        self._new_rows = new_rows
        self._kinds = np.array([clause.action for clause in merging.clauses])
        self.addresses: list[Addresses] = []
        self.counts = dict.fromkeys((INSERT, UPDATE, DELETE), 0)
        self.by_clause = np.zeros(len(merging.clauses), np.int64)
        self._repeats = Repeats()
        self._returned: list[tuple[pa.Table, list[pa.ChunkedArray], npt.NDArray[np.str_]]] = []
        self._row_ids: list[pa.Array] = []

    def take(self, rows: pa.Table) -> None:
        if self._merging.is_unambiguous:
            rows = self._once(rows)
        numbers = rows.column(3).to_numpy()
        kinds = self._kinds[numbers]
        self.by_clause += np.bincount(numbers, minlength=len(self.by_clause))
        self._refuse_errors(rows, kinds)
        for kind in self.counts:
            self.counts[kind] += int((kinds == kind).sum())
        old = rows.filter(pa.array(kinds != INSERT))
        self.addresses.append(Addresses.of(old))
        new = kinds != DELETE
        values = rows.select(range(_HEAD, _HEAD + self._width))
        completed = self._new_rows.complete(values.filter(pa.array(new)))
        self._new_rows.add(completed, rows.column(2).filter(pa.array(new)))
        if self._merging.returning:
            gone = typed(values.filter(pa.array(~new)), self._merging.target.table.schema)
            order = np.argsort(np.concatenate([np.flatnonzero(new), np.flatnonzero(~new)]))
            whole = pa.concat_tables([completed, gone]).take(pa.array(order))
            self._returned.append((whole, rows.columns[_HEAD + self._width :], kinds))
            self._row_ids += rows.column(2).chunks

    def _once(self, rows: pa.Table) -> pa.Table:
        """`rows` without such of the target as came before."""
        kept = rows.column(0).is_null().to_numpy().copy()
        of_target = np.flatnonzero(~kept)
        addresses = Addresses.of(rows.select([0, 1]).take(pa.array(of_target)))
        kept[of_target[self._repeats.first(addresses.keys, np.zeros(len(addresses), np.uint64))]] = True
        return rows if kept.all() else rows.filter(pa.array(kept))

    def evaluate(self) -> tuple[pa.Table, tuple[str, ...]]:
        merging = self._merging
        rows = pa.concat_tables([rows for rows, _, _ in self._returned])
        sources = [
            pa.chunked_array([chunk for _, columns, _ in self._returned for chunk in columns[i].chunks])
            for i in range(len(merging.returning.sources))
        ]
        actions = np.char.upper(np.concatenate([kinds for _, _, kinds in self._returned]))
        shown = pa.array(actions.tolist(), pa.string())
        row_ids = pa.chunked_array(self._row_ids, pa.int64())
        return evaluate(merging.target, merging.returning, rows, sources, shown, row_ids)

    @property
    def _width(self) -> int:
        return len(self._merging.target.fields)

    def _refuse_errors(self, rows: pa.Table, kinds: npt.NDArray[np.str_]) -> None:
        met = rows.column(4).filter(pa.array(kinds == ERROR))
        if len(met):
            text = met[0].as_py()
            raise IntegrityError(
                f"MERGE INTO {self._merging.target.table.name}: {len(met)} rows met WHEN … THEN ERROR"
                + ("" if text is None else f": {text}")
            )


def _refuse_repeated(target: Target, addresses: Addresses) -> None:
    repeated = len(addresses) - len(np.unique(addresses.keys))
    if repeated:
        raise ProgrammingError(
            f"MERGE INTO {target.table.name}: a row of it is matched by several source rows that would change it "
            f"({repeated} too many); make the source unique in the columns of ON, or narrow the WHEN conditions"
        )
