"""INSERT … ON CONFLICT, as a merge of the proposed rows (`excluded`) into the table.

Keys are not enforced by a lake: the columns of the conflict need no constraint, and decide as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Counted
from lakedbapi.dml.merge import render_qualified
from lakedbapi.dml.merging import INSERT, MATCHED, NOT_MATCHED, NOTHING, PRESENT, UPDATE, Clause, Merging
from lakedbapi.dml.new_rows import NewRows
from lakedbapi.dml.returning import Returning
from lakedbapi.dml.sources import named, with_clause
from lakedbapi.dml.target import Target
from lakedbapi.dml.values import assigned, fields_named, kept
from lakedbapi.engine.base import POSITION, RelationName, ScanRelation
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.scan import RowGroup, Scan
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Field
from lakedbapi.query.shown import Row
from lakedbapi.sql.statements import Insert, OnConflict

EXCLUDED = "excluded"
_ORDINAL = "_lake_ordinal"


class RepeatedKeyError(ProgrammingError):
    """Two proposed rows with one key would both update, or one the other."""


def upsert(
    target: Target,
    statement: Insert,
    proposed: pa.Table,
    given: Collection[str],
    new_rows: NewRows,
    *,
    reads_table: bool,
) -> Counted:
    """`proposed` rows are inserted where no row has the same key, else update it or are left out.

    OR REPLACE updates the columns that are `given`. A NULL in the key conflicts with nothing. Several proposed rows
    with one key: DO NOTHING keeps the first, OR REPLACE the last, DO UPDATE is an error.
    """
    target.require("INSERT … ON CONFLICT", target.capabilities.row_changes)
    conflict = statement.on_conflict
    assert conflict is not None
    keys = conflict_key(target, conflict)
    proposed = _one_of_each_key(target, conflict, keys, proposed)
    relation = ScanRelation(Scan(target.table.schema, rows=(RowGroup("excluded", proposed),)), {POSITION: _ORDINAL})
    name = RelationName.local("_lake_excluded")
    expressions = [conflict.where, *(assignment.value for assignment in conflict.update)]
    base = target.query(
        with_clause(statement.ctes),
        {name: relation},
        named(statement, expressions),
        statement.specials,
    )
    excluded = quote_identifier(EXCLUDED)
    return Merging(
        target,
        f"(SELECT *, true AS {PRESENT} FROM {name.sql}) AS {excluded}",
        " AND ".join(f"{target.column(key.name)} = {_proposed(key)}" for key in keys),
        _clauses(target, conflict, given),
        np.ones(target.contents.files.num_rows, np.bool_),
        base,
        Returning.of(statement),
        new_rows,
        order_by=f"{excluded}.{_ORDINAL}",
        reads_table=reads_table,
    ).run()


def conflict_key(target: Target, conflict: OnConflict) -> tuple[Field, ...]:
    """The columns named, else those of the primary key, else those of the only unique constraint."""
    if conflict.columns:
        return fields_named(target.table, conflict.columns)
    for kind in ("primary key", "unique"):
        found = [constraint for constraint in target.table.constraints if constraint.kind == kind]
        if len(found) == 1:
            return fields_named(target.table, found[0].columns)
    raise ProgrammingError(
        f"INSERT INTO {target.table.name}: the table has no primary key or single unique constraint to find "
        "conflicts by; name the columns: ON CONFLICT (column, …)"
    )


def _clauses(target: Target, conflict: OnConflict, given: Collection[str]) -> tuple[Clause, ...]:
    insert = Clause(NOT_MATCHED, None, INSERT, {field.name: _proposed(field) for field in target.fields})
    old = {field.name: kept(target, field) for field in target.fields}
    if conflict.replace:
        new = {field.name: _proposed(field) for field in target.fields if field.name in given}
        return Clause(MATCHED, None, UPDATE, {**old, **new}), insert
    if not conflict.update:
        return Clause(MATCHED, None, NOTHING), insert

    beside = {EXCLUDED: Row(target.table.schema.names, (PRESENT, _ORDINAL))}
    target = replace(target, beside=beside)

    def render(expression: exp.Expression) -> str:
        return render_qualified(target, expression, target.name)

    condition = None if conflict.where is None else render(conflict.where)
    return Clause(MATCHED, condition, UPDATE, {**old, **assigned(target, conflict.update, render)}), insert


def _proposed(field: Field) -> str:
    return f"{quote_identifier(EXCLUDED)}.{quote_identifier(field.name)}"


def _one_of_each_key(target: Target, conflict: OnConflict, keys: tuple[Field, ...], proposed: pa.Table) -> pa.Table:
    """The proposed rows of which one is left for each key, in order."""
    if proposed.num_rows < 2:
        return proposed
    columns = ", ".join(quote_identifier(key.name) for key in keys)
    known = " AND ".join(f"{quote_identifier(key.name)} IS NOT NULL" for key in keys)
    order = "DESC" if conflict.replace else "ASC"
    name = RelationName.local("_lake_excluded")
    relation = ScanRelation(Scan(target.table.schema, rows=(RowGroup("excluded", proposed),)), {POSITION: _ORDINAL})
    sql = (
        f"SELECT {_ORDINAL} FROM {name.sql} QUALIFY {known} "
        f"AND row_number() OVER (PARTITION BY {columns} ORDER BY {_ORDINAL} {order}) > 1"
    )
    surplus = target.fetch(target.query(sql, {name: relation})).column(0).to_numpy()
    if not len(surplus):
        return proposed
    if conflict.update:
        raise RepeatedKeyError(
            f"INSERT INTO {target.table.name} … ON CONFLICT DO UPDATE: {len(surplus)} of the rows have the same "
            f"({', '.join(key.name for key in keys)}) as one before them; no row can be updated twice by one statement"
        )
    keep = np.ones(proposed.num_rows, np.bool_)
    keep[surplus] = False
    return proposed.filter(pa.array(keep))
