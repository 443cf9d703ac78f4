"""Positional delete files in Parquet: which rows of one data file are gone (DuckLake, Iceberg v2)."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lakedbapi.errors import DamagedFileError
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage import encryption
from lakedbapi.storage.filesystem import Storage

PATH_FIELD = 2147483646
POSITION_FIELD = 2147483645
"""What DuckLake gives the two columns as field ids."""
ICEBERG_PATH_FIELD = 2147483546
ICEBERG_POSITION_FIELD = 2147483545
"""What Iceberg does (spec, Reserved Field IDs)."""
SNAPSHOT_FIELD = 2147483539
PATH_COLUMN = "file_path"
POSITION_COLUMN = "pos"
SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"
_OTHER_POSITION_COLUMN = "position"
_OWNER_COLUMN = "data_file_id"
"""Some DuckLake writers name the data file by its id in the catalog instead of by its path."""

_CACHE_BYTES = 256 << 20
_ROW_GROUP = 122_880

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Written:
    """Bytes of a file and of its footer, and its key in base64 if it is encrypted."""

    size: int
    footer_size: int
    key: str | None = None


def write(
    storage: Storage,
    path: str,
    data_file_path: str,
    positions: Positions,
    snapshots: Positions | None = None,
    *,
    encrypted: bool = False,
) -> Written:
    """Write strictly increasing `positions`, each with the snapshot that deleted it if `snapshots` is given."""
    data = encode(data_file_path, positions, snapshots, dictionaries=not encrypted)
    written = Written(len(data), int.from_bytes(data[-8:-4], "little"))
    if encrypted:
        data, file = encryption.encrypt(data)
        written = Written(file.size, file.footer_size, file.key)
    storage.write_exclusive(path, data)
    _cache.put(path, _Deletes(_own(positions), None if snapshots is None else _own(snapshots)))
    return written


def encode(
    data_file_path: str,
    positions: Positions,
    snapshots: Positions | None = None,
    field_ids: tuple[int, int] = (PATH_FIELD, POSITION_FIELD),
    *,
    dictionaries: bool = True,
) -> bytes:
    """`field_ids` are those of the path and the position. Encrypted files need to be without `dictionaries`."""
    # A dictionary costs no hash of the path for each row; files have plain strings all the same.
    numbers = pa.array(np.zeros(len(positions), dtype=np.int32))
    paths = pa.DictionaryArray.from_arrays(numbers, pa.array([data_file_path]))
    fields = [_field(PATH_COLUMN, paths.type, field_ids[0]), _field(POSITION_COLUMN, pa.int64(), field_ids[1])]
    columns: list[pa.Array] = [paths, pa.array(positions, pa.int64())]
    if snapshots is not None:
        fields.append(_field(SNAPSHOT_COLUMN, pa.int64(), SNAPSHOT_FIELD))
        columns.append(pa.array(snapshots, pa.int64()))
    table = pa.table(columns, schema=pa.schema(fields))
    encodings = {POSITION_COLUMN: "DELTA_BINARY_PACKED"}  # A byte or two for each of ascending numbers.
    if not dictionaries:
        encodings |= {PATH_COLUMN: "DELTA_BYTE_ARRAY", SNAPSHOT_COLUMN: "DELTA_BINARY_PACKED"}
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        row_group_size=_ROW_GROUP,
        compression="snappy",
        store_schema=False,
        use_dictionary=dictionaries and [PATH_COLUMN, SNAPSHOT_COLUMN],
        column_encoding=encodings,
    )
    return sink.getvalue()


def row_group_count(positions: int) -> int:
    """Of a file that `write` makes of so many positions."""
    return max(1, -(-positions // _ROW_GROUP))


def read(
    storage: Storage, path: str, data_file_id: int | None = None, key: str | None = None
) -> tuple[Positions, Positions | None]:
    """Positions in file order, and the snapshot that deleted each, if the file says so.

    `key` is that of an encrypted file, in base64. Of a file that names data files by id, only the positions in
    `data_file_id`, ascending. OperationalError when the file cannot be read, DamagedFileError when it is no delete
    file. The arrays are read-only: they are shared through a cache, since the content behind a path never changes.
    """
    found = _cache.get(path)
    if found is None:
        data = storage.read_bytes(path)
        found = _decode(data if key is None else encryption.decrypt(data, key, path), path)
        _cache.put(path, found)
    if found.owners is not None and data_file_id is not None:
        found = found.of(data_file_id)
    return found.positions, found.snapshots


def read_by_path(storage: Storage, path: str) -> Mapping[str, DeleteVector]:
    """The deleted positions by the data file that they are in, in the file's own spelling of its path."""
    found = _by_path.get(path)
    if found is None:
        found = _decode_by_path(storage.read_bytes(path), path)
        _by_path.put(path, found)
    return found.vectors


def keep_by_path(path: str, data_file_path: str, positions: DeleteVector) -> None:
    """What `read_by_path` will find at `path`, where it is known since the file is being written."""
    _by_path.put(path, _ByPath({data_file_path: positions}, 8 * len(positions)))


@dataclass(frozen=True)
class _ByPath:
    vectors: Mapping[str, DeleteVector]
    nbytes: int


def _decode_by_path(data: bytes, path: str) -> _ByPath:
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        names = [
            _find(file.schema_arrow, ICEBERG_PATH_FIELD, PATH_COLUMN),
            _find(file.schema_arrow, ICEBERG_POSITION_FIELD, POSITION_COLUMN),
        ]
        for name, wanted in zip(names, (PATH_COLUMN, POSITION_COLUMN), strict=True):
            if name is None:
                raise _corrupt(path, f"it has no column {wanted!r}")
        table = file.read(columns=names)
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(path, str(error)) from error
    positions = _numbers(table.column(names[1]), path)
    paths = table.column(names[0]).cast(pa.string())
    if paths.null_count:
        raise _corrupt(path, f"the path of a data file is NULL ({paths.null_count} rows)")
    numbered = paths.combine_chunks().dictionary_encode()
    if isinstance(numbered, pa.ChunkedArray):
        numbered = numbered.combine_chunks()
    order = np.argsort(numbered.indices.to_numpy(), kind="stable")
    starts = np.searchsorted(numbered.indices.to_numpy()[order], np.arange(1, len(numbered.dictionary)))
    pieces = np.split(positions[order], starts)
    vectors = {
        name: DeleteVector.of(piece) for name, piece in zip(numbered.dictionary.to_pylist(), pieces, strict=False)
    }
    return _ByPath(vectors, 8 * len(positions))


@dataclass(frozen=True)
class _Deletes:
    positions: Positions
    snapshots: Positions | None
    owners: Positions | None = None
    """The id of the data file that each position is in; None = all are in the file that the table's metadata names."""

    def of(self, data_file_id: int) -> _Deletes:
        """Those in one data file, ascending."""
        own = np.flatnonzero(self.owners == data_file_id)
        own = own[np.argsort(self.positions[own], kind="stable")]
        return _Deletes(_own(self.positions[own]), None if self.snapshots is None else _own(self.snapshots[own]))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.positions, self.snapshots, self.owners) if array is not None)


def _decode(data: bytes, path: str) -> _Deletes:
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        return _of_table(file.read(columns=[name for name in _columns(file.schema_arrow, path) if name]), path)
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(path, str(error)) from error


def _columns(schema: pa.Schema, path: str) -> tuple[str, str | None, str | None]:
    """The columns with the position, the snapshot and the data file's id."""
    position, owner = _find(schema, POSITION_FIELD, POSITION_COLUMN), None
    if position is None and {_OWNER_COLUMN, _OTHER_POSITION_COLUMN} <= set(schema.names):
        position, owner = _OTHER_POSITION_COLUMN, _OWNER_COLUMN
    if position is None:
        raise _corrupt(path, f"it has no column {POSITION_COLUMN!r} (field id {POSITION_FIELD})")
    return position, _find(schema, SNAPSHOT_FIELD, SNAPSHOT_COLUMN), owner


def _of_table(rows: pa.Table, path: str) -> _Deletes:
    position, snapshot, owner = _columns(rows.schema, path)
    return _Deletes(
        _numbers(rows.column(position), path),
        None if snapshot is None else _numbers(rows.column(snapshot), path),
        None if owner is None else _numbers(rows.column(owner), path),
    )


def _own(numbers: Positions) -> Positions:
    """A copy that cannot be changed."""
    copy: Positions = numbers.astype(np.int64)
    copy.flags.writeable = False
    return copy


def _numbers(column: pa.ChunkedArray, path: str) -> Positions:
    if column.null_count:
        raise _corrupt(path, f"a position or snapshot is NULL ({column.null_count} rows)")
    numbers: Positions = column.cast(pa.int64()).to_numpy()
    numbers.flags.writeable = False
    return numbers


def _find(schema: pa.Schema, field_id: int, name: str) -> str | None:
    """The column with the field id, else the one with the name."""
    for field in schema:
        if (field.metadata or {}).get(b"PARQUET:field_id") == str(field_id).encode():
            return str(field.name)
    return name if name in schema.names else None


def _field(name: str, type: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, type, nullable=False, metadata={"PARQUET:field_id": str(field_id)})


def _corrupt(path: str, reason: str) -> DamagedFileError:
    return DamagedFileError(
        f"Delete file {path!r} is not readable: {reason}. Without it nobody knows which rows of its data file are"
        " deleted; restore it from a copy, or read a snapshot from before it was added."
    )


T = TypeVar("T", bound=Union[_Deletes, _ByPath])


class _Cache(Generic[T]):
    """Least recently used delete files, up to `_CACHE_BYTES` of positions."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, T] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, path: str) -> T | None:
        with self._lock:
            found = self._entries.get(path)
            if found is not None:
                self._entries.move_to_end(path)
            return found

    def put(self, path: str, deletes: T) -> None:
        with self._lock:
            if path in self._entries or deletes.nbytes > _CACHE_BYTES:
                return
            self._entries[path] = deletes
            self._bytes += deletes.nbytes
            while self._bytes > _CACHE_BYTES:
                _, evicted = self._entries.popitem(last=False)
                self._bytes -= evicted.nbytes


_cache: _Cache[_Deletes] = _Cache()
_by_path: _Cache[_ByPath] = _Cache()
