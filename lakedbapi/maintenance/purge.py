"""PURGE: rows are erased from every snapshot and file, and what is left is searched for them until none is found.

A round looks through all that is stored of the table, then deletes, rewrites, expires and removes what has such rows.
The round that finds nothing to do is the proof: nothing of it is remembered from the rounds before, so a purge that was
interrupted is simply run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlglot import exp

from lakedbapi import dml, query, sql
from lakedbapi.context import Context
from lakedbapi.dml import strategy
from lakedbapi.dml.addresses import Addresses
from lakedbapi.dml.new_rows import NewRows
from lakedbapi.dml.target import Target
from lakedbapi.engine.base import Result, TableResult
from lakedbapi.errors import DataError, Error, OperationalError, ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.formats.erasure import END, ORPHAN, OTHER, Ended, StoredTable, UnreachableFile, Wiped
from lakedbapi.maintenance import retention
from lakedbapi.maintenance.compaction import rewrite
from lakedbapi.maintenance.names import called_table
from lakedbapi.maintenance.scope import Subject, check_alone, maintenance_of, settle
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation
from lakedbapi.model.scan import DATA_FILES, FIELD_ID, NAME, FileGroup, Scan
from lakedbapi.model.types import Schema
from lakedbapi.query.constants import volatile_function
from lakedbapi.query.names import resolve_table
from lakedbapi.sql import guard
from lakedbapi.sql.statements import Call, Purge

T = TypeVar("T")

_ROUNDS = 20
"""How often what others wrote meanwhile is erased, too, or waited for."""
_WAIT = 0.5
"""Seconds between looks at files that somebody is writing."""
_IN_FLIGHT = timedelta(minutes=1)
"""How long ago a file was changed that may become part of a commit in a moment."""

INLINED = "inlined table"


def purge_call(context: Context, call: Call) -> Purge:
    """The statement that `CALL purge('t', where => 'condition')` stands for; `lake.purge` means a table of `lake`."""
    arguments = {name.casefold(): query.constant(context, value) for name, value in call.named}
    dry_run = arguments.pop("dry_run", False)
    positional = [query.constant(context, value) for value in call.arguments]
    arguments = {**dict(zip(("table_name", "where"), positional, strict=False)), **arguments}
    unknown = sorted(arguments.keys() - {"table_name", "schema", "where"})
    texts = all(isinstance(value, str) for value in arguments.values())
    if unknown or len(positional) > 2 or not texts or not isinstance(dry_run, bool):
        raise ProgrammingError(
            f"{call.name} takes a table's name, schema => a name, and where => a condition, as text; dry_run => true"
        )
    if not {"table_name", "where"} <= arguments.keys():
        raise ProgrammingError(f"{call.name} needs a table and a condition: CALL purge('t', where => 'id = 1')")
    parsed = sql.parse(f"PURGE FROM _ WHERE {arguments['where']}")
    guard.check(parsed, allow_external=False)
    if parsed.parameters.positional or parsed.parameters.named:
        raise ProgrammingError(f"{call.name}: the condition is text and cannot have parameters; use PURGE FROM")
    assert isinstance(parsed.statement, Purge)
    name = called_table(context, call, arguments["table_name"], arguments.get("schema"))
    return replace(parsed.statement, target=name, alias=name.last, dry_run=dry_run or parsed.statement.dry_run)


def purge(context: Context, statement: Purge) -> Result:
    """Erase the rows where the condition is TRUE, or only look for them. One row of the result for each thing that was
    looked through.

    Raises OperationalError, naming them, when some objects still have such rows, or could not be looked through.
    """
    check_alone(context, "PURGE")
    _check_condition(statement.where)
    found = resolve_table(context, statement.target)
    maintenance_of(context, found.alias, f"PURGE FROM {found.table.name}")
    name = statement.alias or found.table.name
    run = _Purge(context, found.alias, found.table.id, statement.where, name, statement.alias is not None)
    return run.look() if statement.dry_run else run.run()


def _check_condition(where: exp.Expression) -> None:
    """It must have one answer for a row, today and when the files are searched again."""
    if isinstance(where, exp.Var):
        raise ProgrammingError("PURGE cannot read its condition: write it in plain comparisons of the table's columns")
    if where.find(exp.Query) is not None:
        raise ProgrammingError(
            "PURGE takes a condition over the table's own columns, without subqueries: read the values first, and give "
            "them, as in WHERE list_contains(?, id)"
        )
    changing = volatile_function(where)
    if changing is not None:
        raise ProgrammingError(
            f"PURGE cannot use {changing}, whose value changes: give the value itself, as in WHERE d < ?"
        )


@dataclass
class _Line:
    """A row of the report."""

    object: str
    kind: str
    rows: int | None
    result: str


@dataclass
class _Found:
    """What one look found: in `tables`, matching rows by file number and positions by row group; `files` of no
    snapshot with their matching rows, None = could not be searched, with the reason."""

    tables: list[tuple[StoredTable, npt.NDArray[np.int64], list[npt.NDArray[np.int64]]]]
    files: list[tuple[UnreachableFile, int | None, str]]

    def matching_files(self) -> list[tuple[str, str, int]]:
        """Path, kind and matching rows of reachable files."""
        return [(p, stored.kind, n) for stored, counts, _ in self.tables for p, n in _counted(stored, counts) if n]

    def has_rows(self) -> bool:
        return any(len(positions) for _, _, groups in self.tables for positions in groups)

    def is_awaited(self) -> bool:
        """Whether all that is left to do is to wait for other writers' commits."""
        young = datetime.now(timezone.utc) - _IN_FLIGHT
        return any(
            n != 0 and file.is_own and file.changed is not None and file.changed > young for file, n, _ in self.files
        )

    def lines(self) -> Iterator[_Line]:
        for stored, counts, groups in self.tables:
            for path, n in _counted(stored, counts):
                yield _Line(path, stored.kind, n, "rows match" if n else "clean")
            for group, positions in zip(stored.rows, groups, strict=True):
                yield _Line(group.key, INLINED, len(positions), "rows match" if len(positions) else "clean")
        for file, matching, reason in self.files:
            yield _Line(file.path, file.kind, matching, reason or ("rows match" if matching else "clean"))


def _counted(stored: StoredTable, counts: npt.NDArray[np.int64]) -> Iterator[tuple[str, int]]:
    paths = [path for group in stored.files for path in group.files.column("path").to_pylist()]
    return zip(paths, counts.tolist(), strict=True)


@dataclass
class _Purge:
    context: Context
    alias: str
    table_id: int
    where: exp.Expression
    name: str
    aliased: bool
    done: dict[str, _Line] = field(default_factory=dict)
    """What was done to objects that had matching rows, by path or name."""

    def look(self) -> Result:
        """Where matching rows are, those first."""
        return _report(sorted(self._look().lines(), key=lambda line: line.rows == 0))

    def run(self) -> Result:
        found = self._look()
        for _ in range(_ROUNDS):
            if not self._act(found):
                if not found.is_awaited():
                    break
                time.sleep(_WAIT)
            found = self._look()
        lines = [*self.done.values(), *found.lines()]
        lines += [_Line(wiped.object, wiped.kind, None, wiped.result) for wiped in self._wipe()]
        self._check(found)
        return _report(lines)

    # Looking

    def _look(self) -> _Found:
        """Through everything, with nothing remembered."""

        def look(subject: Subject) -> _Found:
            erasure = subject.maintenance.erasure
            # Unreachable files first: one that is committed meanwhile is found among the reachable ones.
            files = erasure.unreachable(subject.base, subject.table)
            stored = erasure.stored(subject.base, subject.table)
            tables = [(each, *self._search(subject, each)) for each in stored]
            return _Found(tables, [(file, *self._search_file(subject, stored[0].table, file)) for file in files])

        return self._settle(look)

    def _settle(self, work: Callable[[Subject], T]) -> T:
        """On the newest state of the table, again when others interfere."""
        done = settle(self.context, self.alias, self.table_id, work)
        if done is None:
            raise OperationalError(
                f"table {self.name} was dropped while it was purged: its rows are in the snapshots before; expire them"
            )
        return done

    def _search(
        self, subject: Subject, stored: StoredTable
    ) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[np.int64]]]:
        counts = np.zeros(sum(group.files.num_rows for group in stored.files), np.int64)
        groups = [np.empty(0, np.int64) for _ in stored.rows]
        if stored.is_partial and self._names_others(stored.table, whole=False):
            records = [group.files.column("record_count") for group in stored.files]
            return np.concatenate([counts[:0], *(column.to_numpy() for column in records)]), groups
        if not stored.is_live and self._names_others(stored.table):
            return counts, groups
        try:
            self._query(subject, stored.table, Scan(stored.table.schema))  # A mistake in it is told without any row.
            if len(counts):
                found = self._query(subject, stored.table, Scan(stored.table.schema, stored.files), counted=True)
                counts[found.column(0).to_numpy()] = found.column(1).to_numpy()
            if stored.rows:
                found = self._query(subject, stored.table, Scan(stored.table.schema, (), stored.rows))
                parts, positions = (found.column(n).to_numpy() for n in range(2))
                groups = [np.sort(positions[parts == number]) for number in range(len(groups))]
        except (DataError, ProgrammingError) as error:
            if stored.is_live:
                raise
            raise OperationalError(
                f"a dropped table {stored.table.name}, which kept snapshots still have, cannot be searched: {error}; "
                "expire the snapshots before it was dropped, and purge again"
            ) from error
        return counts, groups

    def _names_others(self, table: TableInfo, *, whole: bool = True) -> bool:
        """Whether the condition has columns that the table does not have: of a `whole` one no row can match."""
        if self.where.find(exp.Lambda) is not None:
            return not whole  # Its parameters look like columns.
        columns = ({part.name for part in column.parts} for column in self.where.find_all(exp.Column))
        return any(all(table.schema.get(name) is None for name in names) for names in columns)

    def _search_file(self, subject: Subject, table: TableInfo, file: UnreachableFile) -> tuple[int | None, str]:
        """The rows that match in a file that no snapshot reads; None and a reason if that cannot be told."""
        if file.kind == OTHER:
            return None, "not searched: it lies in no table's folder, and is no Parquet file by its name"
        if file.unknown:
            return None, f"could not be searched: {file.unknown}"
        try:
            group = _single(subject, table, file)
            if group is None:
                return 0, "holds no such columns"
            plain = replace(table, schema=_without_defaults(table)) if not file.in_table else table
            found = self._query(subject, plain, Scan(plain.schema, (group,)), counted=True)
        except (Error, OSError, pa.ArrowException) as error:
            return None, f"could not be searched: {str(error).splitlines()[0]}"
        return (found.column(1)[0].as_py() if found.num_rows else 0), ""

    def _query(self, subject: Subject, table: TableInfo, scan: Scan, *, counted: bool = False) -> pa.Table:
        """(part, count) of all parts with matching rows, or (part, position) of all matching rows."""
        target = self._target(subject, table)
        part, position = target.column(target.part), target.column(target.position)
        text = f"FROM {target.from_item} WHERE ({target.render(self.where)}\n)"
        text = f"SELECT {part}, count(*) {text} GROUP BY 1" if counted else f"SELECT {part}, {position} {text}"
        return target.fetch(target.query(text, target.scan_relation(scan)))

    def _target(self, subject: Subject, table: TableInfo) -> Target:
        context = replace(self.context, transaction=subject.context.transaction)
        return Target(context, self.alias, subject.view, subject.schema, table, self.name, self.aliased)

    # Acting

    def _act(self, found: _Found) -> bool:
        """Whether there was something that could be done."""
        paths: dict[str, tuple[int, str]] = {}
        for path, kind, n in found.matching_files():
            paths[path] = (max(n, paths.get(path, (0, ""))[0]), kind)
        removable = [(file, n, reason) for file, n, reason in found.files if n != 0 and self._may_go(file)]
        reachable = bool(paths) or found.has_rows()
        if reachable:
            matching = pa.array(list(paths), pa.string())
            self._delete_live(matching)
            self._rewrite(matching)
            self._expire(matching)
            self._remove(list(paths))
            for path, (n, kind) in paths.items():
                self._did(path, kind, n, "removed; other rows of the newest snapshot were written anew")
            for stored, _, groups in found.tables:
                for group, positions in zip(stored.rows, groups, strict=True):
                    if len(positions):
                        self._did(group.key, INLINED, len(positions), "rows removed")
        if removable:
            self._remove([file.path for file, _, _ in removable])
            for file, matches, reason in removable:
                self._did(file.path, file.kind, matches, f"removed{f' ({reason})' if reason else ''}")
        return reachable or bool(removable)

    def _did(self, object: str, kind: str, rows: int | None, result: str) -> None:
        before = self.done.get(object)
        total = (before.rows or 0) + (rows or 0) if before else rows
        self.done[object] = _Line(object, kind, total, result)

    def _may_go(self, file: UnreachableFile) -> bool:
        """Scheduled files, and those of writers that must be dead by now."""
        if file.kind != ORPHAN:
            return file.kind != OTHER
        cutoff = retention.option_cutoff(self.context, self.catalog, retention.DELETE_OPTION)
        return file.is_own and file.changed is not None and cutoff is not None and file.changed < cutoff

    def _delete_live(self, paths: pa.Array) -> None:
        """Rows of the newest snapshot, by an ordinary commit."""

        def delete(subject: Subject) -> int:
            table = subject.maintenance.erasure.stored(subject.base, subject.table)[0].table
            target = self._target(subject, table)
            scan, parts = target.contents.scan(_among(target.contents.files, paths))
            addresses = Addresses.of(self._query(subject, table, scan))
            if len(addresses):
                new_rows = NewRows(target)
                deleted = target.contents.delete(parts, addresses.by_part)
                changes = new_rows.onto(strategy.settle(target, deleted, new_rows, "delete"))
                # Without the condition, which has values of the rows.
                operation = Operation("delete", table.id, deleted=len(addresses))
                replace(target, table=subject.table).stage(changes, operation=operation)
                transaction = subject.context.transaction
                staged = replace(transaction.changes(self.alias), message=f"PURGE FROM {table.name}")
                transaction.stage(self.alias, staged)
                dml.commit(self.context.engine, transaction)
            return len(addresses)

        self._settle(delete)

    def _rewrite(self, paths: pa.Array) -> None:
        """Live files that hold deleted rows which match, or that other files which do are about."""
        settle(
            self.context,
            self.alias,
            self.table_id,
            lambda subject: rewrite(
                subject,
                0.0,
                lambda _, files: _among(files, subject.maintenance.erasure.worn_by(subject.base, subject.table, paths)),
            ),
        )

    def _expire(self, paths: pa.Array) -> None:
        """All snapshots that see a matching row, or a file that holds one."""

        def expire(subject: Subject) -> Sequence[Ended]:
            begins, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
            for stored in subject.maintenance.erasure.stored(subject.base, subject.table):
                for group in stored.files:
                    files = group.files.filter(pa.array(_among(group.files, paths)))
                    begins.append(_numbers(files.column("snapshot_id")))
                    ends.append(_numbers(files.column(END)))
                _, groups = self._search(subject, replace(stored, files=()))
                for rows, end, positions in zip(stored.rows, stored.ends, groups, strict=True):
                    assert rows.snapshots is not None
                    begins.append(_numbers(rows.snapshots)[positions])
                    ends.append(_numbers(end)[positions])
            return subject.maintenance.erasure.forget(
                subject.base, subject.table, paths, np.concatenate(begins), np.concatenate(ends)
            )

        for ended in self._settle(expire):
            self._did(f"{ended.kind} {ended.name}", ended.kind, None, "expired")

    def _remove(self, paths: Sequence[str]) -> None:
        settle(
            self.context,
            self.alias,
            self.table_id,
            lambda subject: subject.maintenance.erasure.remove(subject.table, paths),
        )

    @property
    def catalog(self) -> Catalog:
        return self.context.transaction.catalogs[self.alias]

    # The end

    def _wipe(self) -> Sequence[Wiped]:
        return self._settle(lambda subject: subject.maintenance.erasure.wipe(subject.base, subject.table))

    def _check(self, found: _Found) -> None:
        storage = self.catalog.storage
        left = [
            f"{line.object} ({line.kind}, {'not searched' if line.rows is None else f'{line.rows} rows'})"
            for line in found.lines()
            if line.rows != 0 and line.kind != OTHER
        ]
        known = {line.object for line in found.lines()}
        shared = [
            line.object
            for line in self.done.values()
            if line.kind not in (INLINED, "snapshot") and line.object not in known and storage.exists(line.object)
        ]
        if not left and not shared:
            return
        reasons = []
        if left:
            reasons.append(
                f"{', '.join(left[:20])}{' and more' if len(left) > 20 else ''}: if other writers were at work, purge "
                f"again; {self.catalog.maintenance.erasure.way_out}, and files of others have to be removed by hand"
            )
        if shared:
            reasons.append(f"{', '.join(shared)}: another table has this file, too; purge that table as well")
        raise OperationalError(f"PURGE FROM {self.name}: matching rows may be left in {'; '.join(reasons)}")


def _among(files: pa.Table, paths: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = pc.is_in(files.column("path"), paths).to_numpy()
    return mask


def _numbers(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """NULL is later than everything."""
    numbers: npt.NDArray[np.int64] = pc.fill_null(values, np.iinfo(np.int64).max).to_numpy(zero_copy_only=False)
    return numbers


def _without_defaults(table: TableInfo) -> Schema:
    fields = tuple(replace(field, initial_default=None) for field in table.schema.fields)
    return Schema(fields)


def _single(subject: Subject, table: TableInfo, file: UnreachableFile) -> FileGroup | None:
    """A file that no catalog describes, as a scan reads it: by field id if it has some and is one of the table's own,
    else by name. None: it has none of the table's columns."""
    with subject.view.catalog.storage.filesystem.open(file.path, "rb") as source, pq.ParquetFile(source) as parquet:
        count, schema = parquet.metadata.num_rows, parquet.schema_arrow
    numbered = any(b"PARQUET:field_id" in (column.metadata or {}) for column in schema)
    names = {name.casefold() for name in schema.names}
    by_id = numbered and file.in_table
    known = {*(name.casefold() for name in table.schema.names), *(name.casefold() for name in file.names.values())}
    if not by_id and file.constants is None and names.isdisjoint(known):
        return None
    row = {"file_id": 0, "path": file.path, "record_count": count, "deleted_count": 0}
    files = pa.Table.from_pylist([row], schema=DATA_FILES)
    return FileGroup(
        files,
        match=FIELD_ID if by_id else NAME,
        names={} if by_id else file.names,
        constants=file.constants,
        embedded=frozenset(),
    )


def _report(lines: Sequence[_Line]) -> Result:
    columns = {
        "object": pa.array([line.object for line in lines], pa.string()),
        "kind": pa.array([line.kind for line in lines], pa.string()),
        "rows_matching": pa.array([line.rows for line in lines], pa.int64()),
        "result": pa.array([line.result for line in lines], pa.string()),
    }
    return TableResult(pa.table(columns), ["VARCHAR", "VARCHAR", "BIGINT", "VARCHAR"])
