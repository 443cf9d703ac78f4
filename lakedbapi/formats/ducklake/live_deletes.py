"""The deletes that are live in the newest catalog state, and the delete files that take them over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement

from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.delete_files import (
    DeleteFormat,
    Deletions,
    WrittenDeletes,
    read_deletes,
    write_deletes,
)
from lakedbapi.formats.ducklake.id_lists import MANY
from lakedbapi.formats.ducklake.paths import resolve
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage

_WRITERS = 8
"""Delete files that are written at once."""
_COMMITTED = -1
"""Stands for the snapshot of a delete file that has only deletes of committed snapshots."""


@dataclass(frozen=True)
class LiveDeleteFile:
    """`path` is the full path; `begin_snapshot` that of positions without an embedded one."""

    id: int
    data_file_id: int
    path: str
    format: str
    delete_count: int
    begin_snapshot: int
    encryption_key: str | None


@dataclass(frozen=True)
class LiveDeletes:
    """Deletes of some data files of a table, by data file id."""

    files: Mapping[int, LiveDeleteFile]
    inlined: Mapping[int, DeleteVector]

    @classmethod
    def read(
        cls, connection: Connection, backend: Backend, table_id: int, directory: str, file_ids: Sequence[int]
    ) -> LiveDeletes:
        """From the catalog; `directory` is the table's."""
        files = dict(_delete_files(connection, backend, table_id, directory, file_ids))
        target = backend.tables.inlined_delete(table_id)
        if not backend.has_table(connection, target.name):
            return cls(files, {})
        found = select(target.c.file_id, target.c.row_id).where(*_few(target.c.file_id, file_ids))
        positions: dict[int, list[int]] = {}
        for file_id, position in connection.execute(found):
            positions.setdefault(file_id, []).append(position)
        return cls(files, {id: DeleteVector.of(positions[id]) for id in positions.keys() & set(file_ids)})

    def count(self, file_id: int) -> int:
        """The number of deleted rows."""
        file = self.files.get(file_id)
        return (file.delete_count if file else 0) + len(self.inlined.get(file_id, ()))


def _delete_files(
    connection: Connection, backend: Backend, table_id: int, directory: str, file_ids: Sequence[int]
) -> Iterator[tuple[int, LiveDeleteFile]]:
    rows = backend.tables.delete_file.c
    live = select(
        rows.data_file_id,
        rows.delete_file_id,
        rows.path,
        rows.path_is_relative,
        rows.format,
        rows.delete_count,
        rows.begin_snapshot,
        rows.encryption_key,
    ).where(rows.table_id == table_id, rows.end_snapshot.is_(None), *_few(rows.data_file_id, file_ids))
    wanted = set(file_ids)
    for file_id, id, path, is_relative, format, count, begin, key in connection.execute(live):
        if file_id in wanted:
            full_path = resolve(directory, path, is_relative)
            yield file_id, LiveDeleteFile(id, file_id, full_path, format or "parquet", count, begin, key)


def _few(column: ColumnElement[int], ids: Sequence[int]) -> Sequence[ColumnElement[bool]]:
    """A condition for few ids. The column has no index: for many one scan of all is better than one for each part."""
    return [column.in_(ids)] if len(ids) <= MANY else []


@dataclass(frozen=True)
class DeletePlace:
    """Where and how the delete files of a table are written; `directory` is the table's."""

    directory: str
    format: DeleteFormat


class DeleteFiles:
    """Writes delete files, each only once however often the commit is tried."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._written: dict[tuple[str, str | None, int], WrittenDeletes] = {}

    @property
    def paths(self) -> set[str]:
        """Of all files written so far, used or not."""
        return {written.path for written in self._written.values()}

    def deletions(self, file: LiveDeleteFile) -> Deletions:
        """Since the file's own snapshot: until then another one has told of earlier deletes, if there were some."""
        found = read_deletes(
            self._storage, file.path, file.format, file.begin_snapshot, file.data_file_id, file.encryption_key
        )
        return replace(found, snapshots=np.maximum(found.snapshots, file.begin_snapshot))

    def write_all(self, writes: Sequence[tuple[DeletePlace, str, LiveDeleteFile | None, DeleteVector, int]]) -> None:
        """`write` with each of these arguments, several at once: each waits for the storage."""
        if len(writes) == 1:
            self.write(*writes[0])
        elif writes:
            with ThreadPoolExecutor(min(len(writes), _WRITERS)) as pool:
                list(pool.map(lambda arguments: self.write(*arguments), writes))

    def write(
        self, place: DeletePlace, data_file: str, old: LiveDeleteFile | None, positions: DeleteVector, snapshot: int
    ) -> WrittenDeletes:
        """The delete file with what `old` has and with `positions`, deleted by `snapshot`."""
        # Without earlier deletes no snapshot is embedded: the same file serves whatever snapshot it will be.
        key = (data_file, old.path, snapshot) if old else (data_file, None, 0)
        written = self._written.get(key)
        if written is None:
            deletions = Deletions.at(positions, snapshot)
            if old is not None:
                deletions = self.deletions(old) | deletions
            written = self._written[key] = self._write(place, data_file, deletions)
        return written if old else replace(written, begin_snapshot=snapshot)

    def take_over(
        self, place: DeletePlace, data_file: str, old: LiveDeleteFile | None, deletions: Deletions
    ) -> WrittenDeletes:
        """The delete file with what `old` has and with `deletions`, whose snapshots are committed ones."""
        key = data_file, old.path if old else None, _COMMITTED
        if key not in self._written:
            everything = deletions if old is None else self.deletions(old) | deletions
            self._written[key] = self._write(place, data_file, everything)
        return self._written[key]

    def _write(self, place: DeletePlace, data_file: str, deletions: Deletions) -> WrittenDeletes:
        return write_deletes(self._storage, place.directory, data_file, deletions, place.format)
