"""Row-level changes of one table as catalog rows: new files, inlined rows, deletes, and the table's statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import delete, func, select, true, update
from sqlalchemy.engine import Connection

from lakedbapi.errors import ConflictError
from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.ducklake import changes_made, inline
from lakedbapi.formats.ducklake.attempt import Attempt, known_values
from lakedbapi.formats.ducklake.file_entries import add_data_file, add_delete_file, schedule
from lakedbapi.formats.ducklake.id_lists import among
from lakedbapi.formats.ducklake.live_deletes import (
    DeleteFiles,
    DeletePlace,
    LiveDeleteFile,
    LiveDeletes,
)
from lakedbapi.formats.ducklake.stats import ColumnStats, row_stats, widen
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import FileStats, RowChanges, StagedFile
from lakedbapi.model.delete_vector import DeleteVector

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


@dataclass(frozen=True)
class Target:
    """The table that rows change in: `before` at the base (None = created by this commit), `table` after the commit."""

    catalog: DuckLakeCatalog
    base: Snapshot
    before: TableInfo | None
    table: TableInfo

    @property
    def directory(self) -> str:
        assert self.table.path is not None
        return self.table.path

    @property
    def delete_place(self) -> DeletePlace:
        return DeletePlace(self.directory, self.catalog.delete_format(self.table))

    def data_file_paths(self, file_ids: Iterable[int]) -> Mapping[int, str]:
        """Full paths by data file id; without files that compaction replaced before the file list was loaded."""
        assert self.before is not None
        files = self.base.files(self.before)
        found = files.filter(pc.is_in(files.column("file_id"), pa.array(list(file_ids), pa.int64())))
        return dict(zip(found.column("file_id").to_pylist(), found.column("path").to_pylist(), strict=True))

    def live_deletes(self, connection: Connection, file_ids: Sequence[int]) -> LiveDeletes:
        return LiveDeletes.read(connection, self.catalog.backend, self.table.id, self.directory, file_ids)

    def inlines_deletes(self, rows: RowChanges) -> bool:
        return self.catalog.keeps_rows(self.table, sum(len(vector) for vector in rows.deleted.values()))


class RowWriter:
    """Writes the row changes of one table inside an attempt."""

    def __init__(self, attempt: Attempt, target: Target, rows: RowChanges, delete_files: DeleteFiles) -> None:
        self._attempt = attempt
        self._tables = attempt.tables
        self._target = target
        self._table = target.table
        self._rows = rows
        self._delete_files = delete_files
        self._added_stats: list[Mapping[int, FileStats]] = []

    def write(self) -> None:
        if self._rows.rows or self._rows.files:
            self._insert()
        if self._rows.removed:
            self._remove_files()
        if self._rows.deleted:
            self._delete_positions()
        if self._rows.deleted_rows:
            self._end_inlined_rows()
        if self._rows.removed or self._rows.deleted or self._rows.deleted_rows:
            self._bounds_are_inexact()

    # New rows

    def _insert(self) -> None:
        stats = self._tables.table_stats
        found = None
        if self._target.before is not None:
            wanted = select(stats.c.record_count, stats.c.next_row_id, stats.c.file_size_bytes)
            found = self._attempt.connection.execute(wanted.where(stats.c.table_id == self._table.id)).first()
        records, next_row_id, size = found or (0, 0, 0)
        for staged in self._rows.files:
            # DuckDB's merge forgets embedded ids where the file has a range too and it follows on another file's.
            self._data_file(staged, None if staged.file.has_row_ids else next_row_id)
            next_row_id += 0 if staged.file.has_row_ids else staged.file.record_count
            records += staged.file.record_count
            size += staged.file.file_size_bytes
        if self._rows.rows:
            next_row_id = inline.insert_rows(self._attempt, self._table, self._rows.rows, next_row_id)
            records += sum(group.rows.num_rows for group in self._rows.rows)
            self._added_stats += [row_stats(group.rows, self._table.schema) for group in self._rows.rows]
        counts = {"record_count": records, "next_row_id": next_row_id, "file_size_bytes": size}
        if found is None:
            self._attempt.add(stats, table_id=self._table.id, **counts)
        else:
            change = update(stats).where(stats.c.table_id == self._table.id).values(**counts)
            self._attempt.connection.execute(change)
        self._widen_stats(is_first=found is None)

    def _data_file(self, staged: StagedFile, row_id_start: int | None) -> None:
        attempt, file = self._attempt, staged.file
        file_id = add_data_file(attempt, self._table.id, self._target.directory, file, row_id_start=row_id_start)
        self._added_stats.append(file.stats)
        attempt.made.add(changes_made.INSERTED, self._table.id)
        if staged.deletes:
            self._delete_file(file_id, file.path, None, staged.deletes)

    def _widen_stats(self, *, is_first: bool) -> None:
        rows = self._tables.table_column_stats
        known: dict[int, ColumnStats] | None = None
        if not is_first:
            wanted = select(
                rows.c.column_id, rows.c.contains_null, rows.c.contains_nan, rows.c.min_value, rows.c.max_value
            )
            found = self._attempt.connection.execute(wanted.where(rows.c.table_id == self._table.id))
            known = {column_id: ColumnStats(*values) for column_id, *values in found}
        for field_id, stats in widen(known, self._added_stats, self._table.schema).items():
            # Nobody said whether these bounds are the true extremes.
            values = {} if stats is None else {**vars(stats), "min_is_exact": None, "max_is_exact": None}
            own = (rows.c.table_id == self._table.id, rows.c.column_id == field_id)
            if stats is None:
                self._attempt.connection.execute(delete(rows).where(*own))
            elif known is None:
                self._attempt.add(rows, table_id=self._table.id, column_id=field_id, **values)
            else:
                self._attempt.connection.execute(update(rows).where(*own).values(**known_values(rows, values)))

    # Deletes

    def _remove_files(self) -> None:
        """End whole files. Nobody else may have deleted rows of them: these rows would be counted twice."""
        attempt, files, deletes = self._attempt, self._tables.data_file, self._tables.delete_file
        removed = sorted(self._rows.removed)
        now = self._target.live_deletes(attempt.connection, removed)
        if attempt.previous.id != self._target.base.id:
            self._nobody_else_deleted(now)
        if sum(attempt.end(files, chosen) for chosen in among(files.c.data_file_id, removed)) != len(removed):
            raise self._replaced()
        for chosen in among(deletes.c.delete_file_id, [file.id for file in now.files.values()]):
            attempt.end(deletes, chosen)
        attempt.made.add(changes_made.DELETED, self._table.id)

    def _nobody_else_deleted(self, now: LiveDeletes) -> None:
        base, before = self._target.base, self._target.before
        assert before is not None
        files = base.files(before)
        known = dict(zip(files.column("file_id").to_pylist(), files.column("deleted_count").to_pylist(), strict=True))
        if any(now.count(file_id) != known.get(file_id) for file_id in self._rows.removed):
            raise self._replaced()

    def _delete_positions(self) -> None:
        attempt, rows = self._attempt, self._rows
        file_ids = sorted(rows.deleted)
        self._files_are_live(file_ids)
        now = self._target.live_deletes(attempt.connection, file_ids)
        if attempt.previous.id != self._target.base.id:
            self._nobody_else_deleted_these(now)
        if self._target.inlines_deletes(rows):
            inline.delete_positions(attempt, self._table.id, ((id, rows.deleted[id]) for id in file_ids))
            return
        paths = self._target.data_file_paths(file_ids)
        for file_id in file_ids:
            self._delete_file(file_id, paths[file_id], now.files.get(file_id), rows.deleted[file_id])

    def _nobody_else_deleted_these(self, now: LiveDeletes) -> None:
        for file_id, mine in self._rows.deleted.items():
            file, inlined = now.files.get(file_id), now.inlined.get(file_id)
            if (inlined and inlined & mine) or (file and self._delete_files.deletions(file).vector & mine):
                raise self._replaced()

    def _files_are_live(self, file_ids: Sequence[int]) -> None:
        files = self._tables.data_file.c
        live = select(func.count()).where(files.end_snapshot.is_(None))
        counts = (
            self._attempt.connection.execute(live.where(chosen)).scalar_one()
            for chosen in among(files.data_file_id, file_ids)
        )
        if sum(counts) != len(file_ids):
            raise self._replaced()

    def _delete_file(self, file_id: int, data_file: str, old: LiveDeleteFile | None, positions: DeleteVector) -> None:
        """Add the delete file of a data file; it takes over what the `old` one has, which goes."""
        attempt, deletes = self._attempt, self._tables.delete_file
        written = self._delete_files.write(self._target.delete_place, data_file, old, positions, attempt.snapshot_id)
        if old is not None:
            attempt.connection.execute(delete(deletes).where(deletes.c.delete_file_id == old.id))
            schedule(attempt, self._target.catalog.data_path, old.id, old.path)
        add_delete_file(attempt, self._table.id, self._target.directory, file_id, written)
        attempt.made.add(changes_made.DELETED, self._table.id)

    def _end_inlined_rows(self) -> None:
        assert self._target.before is not None
        groups = {group.key: group for group in self._target.base.row_groups(self._target.before)}
        chosen = [(groups[key], positions) for key, positions in self._rows.deleted_rows.items()]
        inline.end_rows(self._attempt, self._table, chosen)

    def _bounds_are_inexact(self) -> None:
        """The rows that had the extreme values may be gone."""
        rows = self._tables.table_column_stats
        for name in ("min_is_exact", "max_is_exact"):
            if name in rows.c:
                exact = update(rows).where(rows.c.table_id == self._table.id, rows.c[name] == true())
                self._attempt.connection.execute(exact.values({name: False}))

    def _replaced(self) -> ConflictError:
        return ConflictError(
            f"table {self._table.name}: another transaction deleted, updated or compacted the same rows or files since "
            "this one began; roll back and retry"
        )
