"""RESTORE: a table becomes what it was at an earlier version.

Rows that both versions have in the same place stay there. Rows that only the earlier one has are written anew, with
their row ids where the format has these; the others are deleted. What is in which place is told from file lists and
delete vectors, so only rows that come back are read.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.context import Context, Counted
from lakedbapi.ddl.staging import stage_restored_table
from lakedbapi.dml.arrow_rows import typed
from lakedbapi.dml.delete import count_rows
from lakedbapi.dml.new_rows import CHUNK_ROWS, NewRows
from lakedbapi.dml.strategy import settle
from lakedbapi.dml.target import Target
from lakedbapi.dml.writing import write_rows
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Snapshot
from lakedbapi.model.catalog import AsOf, PartitionSpec, TableInfo, provisional_id
from lakedbapi.model.changes import Operation, RowChanges, StagedFile
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.progress import Progress
from lakedbapi.model.scan import FileGroup, RowGroup, Scan, most_deleted
from lakedbapi.query.names import ResolvedTable, find_relation
from lakedbapi.query.travel import point_of
from lakedbapi.sql.statements import Name, Restore


def restore(context: Context, statement: Restore) -> Counted:
    """Columns, keys, partitioning and sort order return with the rows; the table keeps its name, comment and options.

    Counts the rows that came back as inserted, those that went as deleted.
    """
    point = point_of(context, statement.to)
    target = _target(context, statement.target, point)
    target.require("RESTORE TABLE", target.capabilities.row_changes)
    past = context.transaction.view(target.catalog_alias, point)
    earlier = past.table_of(target.table.id)
    if earlier is None:
        past.table(target.schema.name, target.table.name)  # It may not be readable, and tells why.
        raise ProgrammingError(
            f"RESTORE TABLE {statement.target}: that version does not have this table, but perhaps "
            "another of its name: CREATE TABLE … AS SELECT * FROM … FOR VERSION AS OF … makes a table of it"
        )
    committed = target.view.snapshot.table_of(target.table.id)
    assert committed is not None
    current = _Version(target.view.snapshot, committed)
    as_it_was = target.catalog.as_restored(past.snapshot, earlier, target.view.snapshot, committed)
    table = _as_before(target.table, committed, as_it_was)
    difference = _Difference(current, _Version(past.snapshot, earlier))
    with_ids = target.catalog.has_row_ids(table) and target.catalog.has_row_ids(earlier)
    changes = _with_rows(replace(target, table=table), difference, with_ids=with_ids)
    if changes.empty and target.contents.rows.empty and table == target.table:
        return Counted(0)
    # What this transaction did to the table before is gone as well.
    undone = count_rows(target) - current.count
    restored, deleted = difference.restored + max(0, -undone), difference.deleted + max(0, undone)
    operation = Operation(
        "restore",
        table.id,
        inserted=restored,
        deleted=deleted,
        reads_table=True,
        version=past.snapshot.version(earlier),
    )
    target.stage(changes, operation=operation)
    if table != target.table:
        stage_restored_table(context, target.catalog_alias, table)
    return Counted(restored + deleted, inserted=restored, deleted=deleted)


def _target(context: Context, name: Name, point: AsOf) -> Target:
    try:
        return Target.of(context, name)
    except ProgrammingError as error:
        if not _existed(replace(context, as_of=point), name):
            raise
        raise ProgrammingError(
            f"RESTORE TABLE {name}: the table was dropped since; CREATE TABLE {name} AS SELECT * FROM {name} FOR "
            "VERSION AS OF … makes it anew"
        ) from error


def _existed(context: Context, name: Name) -> bool:
    return isinstance(find_relation(context, name), ResolvedTable)


def _as_before(now: TableInfo, committed: TableInfo, earlier: TableInfo) -> TableInfo:
    """`now` with the structure of `earlier`."""
    keys = earlier.partitioning.fields if earlier.partitioning else ()
    same = [spec for spec in (committed.partitioning, now.partitioning) if spec is not None and spec.fields == keys]
    made = PartitionSpec(provisional_id(), keys) if keys else None
    return replace(
        now,
        schema=earlier.schema,
        partitioning=same[0] if same else made,
        sorting=earlier.sorting,
        constraints=earlier.constraints,
    )


def _with_rows(target: Target, difference: _Difference, *, with_ids: bool) -> RowChanges:
    """The changes of a restore to `target`, the table as it was."""
    new_rows = NewRows(target)
    changes = settle(target, difference.removal, new_rows, "restore")
    count = difference.restored
    if not count:
        return new_rows.onto(changes)
    columns = [target.column(field.name) for field in target.fields]
    if with_ids:
        columns.append(target.column(target.row_id))
    query = target.query(
        f"SELECT {', '.join(columns)} FROM {target.from_item}", target.scan_relation(difference.returning)
    )
    if count > CHUNK_ROWS:
        context, task = target.context, f"restore {target.table.name}"
        context.report(Progress(task, 0, count, "rows"))
        written = write_rows(context.engine, context.transaction, target.view, target.table, query, row_ids=with_ids)
        context.report(Progress(task, count, count, "rows"))
        changes = replace(changes, files=tuple(map(StagedFile, written)))
    else:
        rows = target.fetch(query)
        data = typed(rows.select(range(len(target.fields))), target.table.schema)
        new_rows.add(data, rows.column(len(target.fields)) if with_ids else None)
    return new_rows.onto(changes)


class _Version:
    """The committed contents of a table at a snapshot."""

    def __init__(self, snapshot: Snapshot, table: TableInfo) -> None:
        self.snapshot = snapshot
        self.table = table
        self.files = snapshot.files(table)
        if self.files.column("record_count").null_count:
            raise NotSupportedError(
                f"RESTORE TABLE {table.name}: files without a known number of rows cannot be compared; write the rows "
                "of the earlier version to a new table"
            )
        self.row_groups = {group.key: group for group in snapshot.row_groups(table)}

    @property
    def count(self) -> int:
        in_files = int(pc.sum(self.files.column("record_count"), min_count=0).as_py())
        in_files -= sum(map(len, self.vectors.values()))
        return in_files + sum(len(_live(group)) for group in self.row_groups.values())

    @cached_property
    def vectors(self) -> dict[str, DeleteVector]:
        """By the path of a file. NotSupportedError where deletes by value do not say which rows they hit."""
        deleted = self.files.filter(pa.array(most_deleted(self.files) > 0))
        found = {}
        for group in self.snapshot.file_groups(self.table, deleted) if deleted.num_rows else ():
            if group.equality_deletes:
                raise NotSupportedError(
                    f"RESTORE TABLE {self.table.name}: versions with equality deletes cannot be compared; write the "
                    "rows of the earlier version to a new table"
                )
            paths = group.files.column("path")
            found.update({paths[number].as_py(): vector for number, vector in group.deletes.items()})
        return found


class _Difference:
    """From the current version to the earlier one: `removal` takes away what only the current one has, `returning` is
    what only the earlier one has."""

    def __init__(self, current: _Version, earlier: _Version) -> None:
        self._current = current
        self._earlier = earlier
        self._gone: dict[str, DeleteVector] = {}
        self._back: dict[str, DeleteVector] = {}
        shared = set(current.vectors) | set(earlier.vectors)
        shared &= set(_common(current.files.column("path"), earlier.files.column("path"), shared))
        for path in shared:
            now, then = (version.vectors.get(path, DeleteVector()) for version in (current, earlier))
            self._gone[path], self._back[path] = then - now, now - then
        self._groups_gone: dict[str, DeleteVector] = {}
        self._groups_back: list[RowGroup] = []
        for key in current.row_groups.keys() | earlier.row_groups.keys():
            self._compare_rows(key)

    @cached_property
    def removal(self) -> RowChanges:
        files = self._current.files
        only = _not_in(files.column("path"), self._earlier.files.column("path"))
        removed = set(files.column("file_id").filter(only).to_pylist())
        deleted = {}
        touched = files.filter(pc.is_in(files.column("path"), pa.array([p for p, v in self._gone.items() if v], _TEXT)))
        for file in touched.select(["file_id", "path", "record_count"]).to_pylist():
            vector = self._gone[file["path"]]
            before = self._current.vectors.get(file["path"], ())
            if len(vector) + len(before) == file["record_count"]:
                removed.add(file["file_id"])
            else:
                deleted[file["file_id"]] = vector
        return RowChanges(deleted=deleted, removed=frozenset(removed), deleted_rows=self._groups_gone)

    @cached_property
    def returning(self) -> Scan:
        earlier = self._earlier
        path = earlier.files.column("path")
        back = pa.array([path for path, vector in self._back.items() if vector], _TEXT)
        lost = _not_in(path, self._current.files.column("path"))
        files = earlier.files.filter(pc.or_(lost, pc.is_in(path, back)))
        groups = earlier.snapshot.file_groups(earlier.table, files) if files.num_rows else ()
        return Scan(earlier.table.schema, tuple(map(self._only_back, groups)), tuple(self._groups_back))

    def _only_back(self, group: FileGroup) -> FileGroup:
        """Of files that are still there only the rows that come back."""
        deletes = dict(group.deletes)
        shared = [path for path, vector in self._back.items() if vector]
        numbers = pc.index_in(pa.array(shared, _TEXT), group.files.column("path").combine_chunks()).to_pylist()
        for path, number in zip(shared, numbers, strict=True):
            if number is not None:
                deletes[number] = self._back[path].complement(group.files.column("record_count")[number].as_py())
        return replace(group, deletes=deletes)

    @cached_property
    def restored(self) -> int:
        """The number of rows that come back."""
        files, rows = self.returning.files, self.returning.rows
        in_files = sum(
            int(pc.sum(group.files.column("record_count"), min_count=0).as_py()) - sum(map(len, group.deletes.values()))
            for group in files
        )
        return in_files + sum(len(_live(group)) for group in rows)

    @cached_property
    def deleted(self) -> int:
        """The number of rows that go."""
        return self._current.count - (self._earlier.count - self.restored)

    def _compare_rows(self, key: str) -> None:
        now, then = self._current.row_groups.get(key), self._earlier.row_groups.get(key)
        if now is not None:
            live = _live(now)
            gone = live if then is None else live[~np.isin(_identities(now, live), _identities(then, _live(then)))]
            if len(gone):
                self._groups_gone[key] = DeleteVector.of(gone)
        if then is not None:
            live = _live(then)
            back = live if now is None else live[~np.isin(_identities(then, live), _identities(now, _live(now)))]
            if len(back):
                self._groups_back.append(replace(then, deletes=DeleteVector.of(back).complement(then.rows.num_rows)))


_TEXT = pa.string()


def _common(paths: pa.ChunkedArray, others: pa.ChunkedArray, wanted: set[str]) -> list[str]:
    """Those of `wanted` that are in both."""
    found = pa.array(sorted(wanted), _TEXT)
    for known in (paths, others):
        found = found.filter(pc.is_in(found, known.combine_chunks()))
    result: list[str] = found.to_pylist()
    return result


def _not_in(paths: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(pc.is_in(paths, others.combine_chunks()))


def _live(group: RowGroup) -> npt.NDArray[np.int64]:
    """Positions of the rows that are not deleted."""
    return (group.deletes or DeleteVector()).complement(group.rows.num_rows).to_numpy()


def _identities(group: RowGroup, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
    """Row id and first snapshot of rows: what stays the same as long as the row is not changed."""
    assert group.row_ids is not None
    assert group.snapshots is not None
    columns = [
        pc.take(values, pa.array(positions)).to_numpy(zero_copy_only=False)
        for values in (group.row_ids, group.snapshots)
    ]
    pairs = np.stack(columns, axis=1).astype(np.int64)
    return np.ascontiguousarray(pairs).view([("row_id", np.int64), ("snapshot", np.int64)]).reshape(len(positions))
