"""Parquet delete files: the positions of a data file that are gone, each with the snapshot that deleted it."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lakedbapi.errors import DataError
from lakedbapi.formats.ducklake.ids import uuid7
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import ROW_SNAPSHOT_FIELD
from lakedbapi.storage.filesystem import Storage

FILE_PATH_FIELD = 2147483646
POSITION_FIELD = 2147483645
SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"


@dataclass(frozen=True)
class Deletions:
    """Deleted positions of one data file, ascending, and the snapshot that deleted each: int64 arrays of one length."""

    positions: npt.NDArray[np.int64]
    snapshots: npt.NDArray[np.int64]

    @classmethod
    def at(cls, positions: DeleteVector, snapshot: int) -> Deletions:
        return cls(positions.to_numpy(), np.full(len(positions), snapshot, np.int64))

    def __len__(self) -> int:
        return len(self.positions)

    def __or__(self, other: Deletions) -> Deletions:
        """Both; a position in both keeps the earlier snapshot."""
        positions = np.concatenate([self.positions, other.positions])
        snapshots = np.concatenate([self.snapshots, other.snapshots])
        order = np.lexsort((snapshots, positions))
        positions, snapshots = positions[order], snapshots[order]
        first = np.ones(len(positions), np.bool_)
        first[1:] = positions[1:] != positions[:-1]
        return Deletions(positions[first], snapshots[first])

    @property
    def vector(self) -> DeleteVector:
        return DeleteVector.of(self.positions)


@dataclass(frozen=True)
class WrittenDeletes:
    """A delete file that lies in storage."""

    path: str
    delete_count: int
    file_size_bytes: int
    footer_size: int
    begin_snapshot: int
    partial_max: int | None


def write_deletes(storage: Storage, directory: str, data_file: str, deletions: Deletions) -> WrittenDeletes:
    """Write a delete file for `data_file` (full path) into `directory`.

    The snapshot ids are only embedded where there are several: without them all positions belong to the file's own.
    """
    path = posixpath.join(directory, f"ducklake-{uuid7()}-delete.parquet")
    first, last = int(deletions.snapshots.min()), int(deletions.snapshots.max())
    # The path is the same in every row.
    paths = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(deletions), np.int32)), pa.array([data_file]))
    columns = [(_field("file_path", pa.string(), FILE_PATH_FIELD), paths.cast(pa.string()))]
    columns.append((_field("pos", pa.int64(), POSITION_FIELD), pa.array(deletions.positions)))
    if first != last:
        snapshots = pa.array(deletions.snapshots)
        columns.append((_field(SNAPSHOT_COLUMN, pa.int64(), ROW_SNAPSHOT_FIELD), snapshots))
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_arrays([array for _, array in columns], schema=pa.schema([field for field, _ in columns])),
        sink,
        compression="snappy",
        store_schema=False,
    )
    data = sink.getvalue().to_pybytes()
    storage.write_exclusive(path, data)
    footer_size = int.from_bytes(data[-8:-4], "little")
    return WrittenDeletes(path, len(deletions), len(data), footer_size, first, last if first != last else None)


def _field(name: str, type: pa.DataType, id: int) -> pa.Field:
    return pa.field(name, type, metadata={b"PARQUET:field_id": str(id).encode()})


def read_deletes(storage: Storage, path: str, begin_snapshot: int) -> Deletions:
    """The content of a Parquet delete file; rows without an embedded snapshot id belong to `begin_snapshot`."""
    try:
        table = pq.read_table(pa.BufferReader(storage.read_bytes(path)))
    except pa.ArrowInvalid as error:
        raise DataError(f"delete file {path}: {error}") from error
    positions = _column(table, POSITION_FIELD, "pos")
    if positions is None:
        raise DataError(f"delete file {path}: it has no column pos")
    snapshots = _column(table, ROW_SNAPSHOT_FIELD, SNAPSHOT_COLUMN)
    if snapshots is None:
        return Deletions.at(DeleteVector.of(positions), begin_snapshot)
    return Deletions(positions.to_numpy(), snapshots.fill_null(begin_snapshot).to_numpy())


def _column(table: pa.Table, field_id: int, name: str) -> pa.ChunkedArray | None:
    """The column with the field id, else with the name, else None."""
    wanted = str(field_id).encode()
    for number, field in enumerate(table.schema):
        if (field.metadata or {}).get(b"PARQUET:field_id") == wanted:
            return table.column(number).cast(pa.int64())
    return table.column(name).cast(pa.int64()) if name in table.column_names else None
