"""DELETE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Context, Counted
from lakedbapi.dml.addresses import Addresses, first_of_each, has_few_deleted
from lakedbapi.dml.arrow_rows import typed
from lakedbapi.dml.hidden import revealed
from lakedbapi.dml.key_lists import condition_sql
from lakedbapi.dml.namesakes import told_apart
from lakedbapi.dml.new_rows import NewRows
from lakedbapi.dml.returning import Returning, evaluate
from lakedbapi.dml.sources import aliases, from_clause, named, with_clause
from lakedbapi.dml.strategy import settle
from lakedbapi.dml.target import Target
from lakedbapi.engine.base import Macro, Query, Relation, RelationName
from lakedbapi.errors import DataError
from lakedbapi.model.changes import Operation, RowChanges
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import Scan
from lakedbapi.model.types import Schema
from lakedbapi.query.exhaustive import reads_all
from lakedbapi.query.prune import Pruning, prune
from lakedbapi.query.shown import has_stars
from lakedbapi.sql.statements import Delete, Truncate
from lakedbapi.transaction import Parts

_NOTHING = DeleteVector()


def truncate(context: Context, statement: Truncate) -> Counted:
    target = Target.of(context, statement.target)
    target.require("TRUNCATE", target.capabilities.row_changes)
    return _delete_all(target, "truncate")


def delete(context: Context, statement: Delete) -> Counted:
    """Rows where the condition is TRUE; with USING, where it is TRUE beside at least one row of the other relations."""
    statement = told_apart(context, statement)
    target = Target.of(context, statement.target, statement.alias)
    target.require("DELETE FROM", target.capabilities.row_changes)
    if statement.where is None and not statement.source and not statement.returning:
        return _delete_all(target, "delete")
    return delete_rows(target, statement)


def delete_rows(
    target: Target,
    statement: Delete,
    extra: Mapping[RelationName, Relation] | None = None,
    bounds: exp.Expression | None = None,
) -> Counted:
    """DELETE with a condition. `extra` relations can be named in it; `bounds` follows from it, and decides about
    files."""
    target, statement = reading(target, statement)
    pruning = prune(target.context, target.contents, bounds or statement.where, target.name)
    whole = whole_files(target, statement, pruning)
    scan, parts = target.contents.scan(pruning.keep & ~whole)
    rows = None
    if statement.source or statement.returning:
        rows = target.fetch(_matching(target, statement, scan, extra or {}))
    if rows is not None and statement.source:
        rows = rows.take(pa.array(first_of_each(Addresses.of(rows))))
    found = matching(target, statement, scan, parts, extra) if rows is None else Addresses.of(rows).by_part
    dropped = int(target.live_counts[whole].sum())
    count = sum(map(len, found.values())) + dropped
    returned, types = _returned(target, statement, rows) if rows is not None and statement.returning else (None, ())
    if count:
        new_rows = NewRows(target)
        changes = drop_files(target, target.contents.delete(parts, found), whole)
        operation = Operation(
            "delete",
            target.table.id,
            None if statement.where is None else target.render(statement.where),
            deleted=count,
            reads_table=_reads(target, statement),
            may_match=target.may_match(bounds or statement.where),
        )
        target.stage(new_rows.onto(settle(target, changes, new_rows, "delete")), operation=operation)
    return Counted(count, returned, types, deleted=count)


def reading(target: Target, statement: Delete) -> tuple[Target, Delete]:
    """The target as the condition sees it, and the statement as the engine is to see it."""
    target, statement = revealed(target, statement)
    return replace(target, sources=tuple(statement.source)), statement


def whole_files(target: Target, statement: Delete, pruning: Pruning) -> npt.NDArray[np.bool_]:
    """The files that go unread: statistics prove the condition for all of their rows, and nobody asks for the rows."""
    if statement.source or statement.returning:
        return np.zeros(len(pruning.keep), np.bool_)
    return pruning.all_match & target.contents.counted


def drop_files(target: Target, changes: RowChanges, whole: npt.NDArray[np.bool_]) -> RowChanges:
    """`changes` without the committed files of `target` where `whole` is true."""
    ids = frozenset(target.contents.files.column("file_id").to_numpy()[whole].tolist())
    if not ids:
        return changes
    return replace(
        changes,
        removed=changes.removed | ids,
        deleted={file: vector for file, vector in changes.deleted.items() if file not in ids},
    )


def _delete_all(target: Target, kind: str) -> Counted:
    count = count_rows(target)
    if count:
        target.stage(target.contents.delete_all(), operation=Operation(kind, target.table.id, deleted=count))
    return Counted(count, deleted=count)


def count_rows(target: Target) -> int:
    """The number of rows of the target; reads files only where equality deletes reach them."""
    count = target.contents.count()
    if count is None:
        scan, _ = target.contents.scan()
        query = target.query(f"SELECT count(*) AS n FROM {target.from_item}", target.scan_relation(scan))
        count = int(target.fetch(query).column("n")[0].as_py())
    return count


def matching(
    target: Target,
    statement: Delete,
    scan: Scan,
    parts: Parts,
    extra: Mapping[RelationName, Relation] | None = None,
) -> Mapping[int, DeleteVector]:
    """The positions of all matches, by part.

    A condition may fail for a row that is not there any more, which must not fail the statement.
    """
    if has_few_deleted(scan, parts):
        try:
            found = target.fetch_positions(_matching(target, statement, scan.with_deleted, extra or {}))
            left = {part: own - scan.deleted.get(part, _NOTHING) for part, own in found.items()}
            return {part: own for part, own in left.items() if own}
        except DataError:
            pass
    return target.fetch_positions(_matching(target, statement, scan, extra or {}))


def _matching(target: Target, statement: Delete, scan: Scan, extra: Mapping[RelationName, Relation]) -> Query:
    """Selects the address, and with RETURNING row id, all columns and the rows of the other relations, of every
    match."""
    columns = [target.column(target.part), target.column(target.position)]
    if statement.returning:
        returning = Returning.of(statement, aliases(statement.source))
        columns.append(target.column(target.row_id) if returning.may_name_row_ids else "CAST(NULL AS BIGINT)")
        columns += [f"{target.column(f.name)} AS {f'_lake_c{i}'}" for i, f in enumerate(target.fields)]
        columns += returning.source_columns
    sql = f"{with_clause(statement.ctes)}SELECT {', '.join(columns)}{from_clause(target.from_item, statement.source)}"
    if statement.where is not None:
        condition = target.render(statement.where) if statement.source else condition_sql(target, statement.where)
        sql += f" WHERE ({condition})"
    exhaustive = not statement.source and not statement.returning and reads_all(target.table.schema, statement.where)
    query = target.query(sql, extra, _identifiers(statement), statement.specials)
    if _names_what_it_reads(target, statement, query):
        named_in_text = (field for field in scan.schema.fields if field.name.casefold() in statement.identifiers)
        scan = replace(scan, schema=Schema(tuple(named_in_text)))
    return replace(query, relations={**query.relations, **target.scan_relation(scan, exhaustive=exhaustive)})


def _names_what_it_reads(target: Target, statement: Delete, query: Query) -> bool:
    """Whether the engine can do without the columns of the target that the text does not name: each costs it time.

    Not where it would tell what columns there are, as nobody has one.
    """
    condition = statement.where
    if statement.source or statement.returning or condition is None or isinstance(condition, exp.Var):
        return False
    return (
        not has_stars(condition)
        and all(target.table.schema.get(column.name) is not None for column in condition.find_all(exp.Column))
        and not any(isinstance(relation, Macro) for relation in query.relations.values())
    )


def _identifiers(statement: Delete) -> frozenset[str]:
    """What can name other relations in the condition."""
    return named(statement, [statement.where], statement.source)


def _reads(target: Target, statement: Delete) -> bool:
    others = target.query("", {}, _identifiers(statement), statement.specials).relations
    return target.is_read_by(others, [e for e in (statement.where, statement.ctes, *statement.source) if e is not None])


def _returned(target: Target, statement: Delete, rows: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    end = 3 + len(target.fields)
    old = typed(rows.select(range(3, end)), target.table.schema)
    return evaluate(
        target, Returning.of(statement, aliases(statement.source)), old, rows.columns[end:], row_ids=rows.column(2)
    )
