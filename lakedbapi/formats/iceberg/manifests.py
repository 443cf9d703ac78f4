"""Manifest lists and manifests as columns. The files never change, so that what was read is kept by path."""

from __future__ import annotations

import math
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from lakedbapi.errors import DataError, Error
from lakedbapi.formats.iceberg import avro

T = TypeVar("T")

DATA, DELETES = 0, 1
"""The contents of a manifest."""
DATA_FILE, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
"""The contents of a file."""
EXISTING, ADDED, DELETED = 0, 1, 2
"""The status of an entry."""

_CACHE_BYTES = 512 << 20
_READ_TOGETHER = 64


@dataclass(frozen=True)
class ManifestFile:
    """A row of a manifest list. Counts are None where the list does not say."""

    path: str
    length: int
    spec_id: int
    content: int
    sequence_number: int
    added_snapshot_id: int | None
    counts: tuple[int | None, int | None, int | None]
    """Added, existing and deleted files."""
    first_row_id: int | None

    @property
    def has_live_files(self) -> bool:
        added, existing, _ = self.counts
        return added is None or existing is None or added + existing > 0


@dataclass(frozen=True)
class Manifest:
    """`entries` has the columns `ENTRIES`; `partitions` are the distinct partition tuples, as stored, that
    `entries["partition"]` numbers; `keys` the same in a form that is equal where the stored values are."""

    entries: pa.Table
    partitions: tuple[tuple[Any, ...], ...]
    keys: tuple[tuple[Any, ...], ...]


_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())

ENTRIES = pa.schema(
    [
        ("status", pa.int8()),
        ("snapshot_id", pa.int64()),
        ("sequence_number", pa.int64()),
        ("file_sequence_number", pa.int64()),
        ("content", pa.int8()),
        ("raw_path", pa.string()),
        ("file_format", pa.string()),
        ("partition", pa.int32()),
        ("record_count", pa.int64()),
        ("file_size_bytes", pa.int64()),
        ("value_counts", _COUNTS),
        ("null_counts", _COUNTS),
        ("nan_counts", _COUNTS),
        ("lower_bounds", _BOUNDS),
        ("upper_bounds", _BOUNDS),
        ("encrypted", pa.bool_()),
        ("equality_ids", pa.list_(pa.int32())),
        ("first_row_id", pa.int64()),
        ("referenced_data_file", pa.string()),
        ("content_offset", pa.int64()),
        ("content_size", pa.int64()),
    ]
)
"""An entry with its file, as stored: numbers that are inherited are NULL. `raw_path` is the text in the metadata."""


def _optional(id: int, name: str, type: IcebergType) -> NestedField:
    return NestedField(id, name, type, required=False)


def _metrics(id: int, name: str, key: int, value: int, type: IcebergType) -> NestedField:
    return _optional(id, name, MapType(key, IntegerType(), value, type, value_required=True))


_LIST = Schema(
    _optional(500, "path", StringType()),
    _optional(501, "length", LongType()),
    _optional(502, "spec_id", IntegerType()),
    _optional(517, "content", IntegerType()),
    _optional(515, "sequence_number", LongType()),
    _optional(503, "added_snapshot_id", LongType()),
    _optional(504, "added", IntegerType()),
    _optional(505, "existing", IntegerType()),
    _optional(506, "deleted", IntegerType()),
    _optional(520, "first_row_id", LongType()),
)


def _and_nested(wanted: Sequence[NestedField], stored: Sequence[NestedField]) -> Sequence[NestedField]:
    """The wanted fields, and behind them the nested ones of the file that nobody wants: they cannot be skipped."""
    known = {field.field_id for field in wanted}
    return [*wanted, *(f for f in stored if f.field_id not in known and not f.field_type.is_primitive)]


def _list_schema(stored: Schema) -> Schema:
    return Schema(*_and_nested(_LIST.fields, stored.fields))


def _entry_schema(stored: Schema) -> Schema:
    """Everything is optional: what old versions lack has its default, and all of it is checked where it is used."""
    of_file = next((field.field_type for field in stored.fields if field.field_id == 2), None)
    stored_file = of_file.fields if isinstance(of_file, StructType) else ()
    # Its fields depend on the partition spec.
    partition = next((field.field_type for field in stored_file if field.field_id == 102), StructType())
    file = (
        _optional(134, "content", IntegerType()),
        _optional(100, "file_path", StringType()),
        _optional(101, "file_format", StringType()),
        _optional(102, "partition", partition),
        _optional(103, "record_count", LongType()),
        _optional(104, "file_size_in_bytes", LongType()),
        _metrics(109, "value_counts", 119, 120, LongType()),
        _metrics(110, "null_value_counts", 121, 122, LongType()),
        _metrics(137, "nan_value_counts", 138, 139, LongType()),
        _metrics(125, "lower_bounds", 126, 127, BinaryType()),
        _metrics(128, "upper_bounds", 129, 130, BinaryType()),
        _optional(131, "key_metadata", BinaryType()),
        _optional(135, "equality_ids", ListType(136, LongType(), element_required=True)),
        _optional(142, "first_row_id", LongType()),
        _optional(143, "referenced_data_file", StringType()),
        _optional(144, "content_offset", LongType()),
        _optional(145, "content_size_in_bytes", LongType()),
    )
    entry = (
        _optional(0, "status", IntegerType()),
        _optional(1, "snapshot_id", LongType()),
        _optional(3, "sequence_number", LongType()),
        _optional(4, "file_sequence_number", LongType()),
        _optional(2, "data_file", StructType(*_and_nested(file, stored_file))),
    )
    return Schema(*_and_nested(entry, stored.fields))


def read_list(path: str, read: Callable[[], bytes]) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot. Versions before 2 have no contents and sequence numbers: data, and 0."""
    return _lists.get(path, lambda: decoded("manifest list", path, lambda: _list(read())))


def read_manifests(paths: Sequence[str], read_many: Callable[[Sequence[str]], Sequence[bytes]]) -> Iterator[Manifest]:
    """Those that are not known are read several at a time. DataError when a file is no manifest."""
    for start in range(0, len(paths), _READ_TOGETHER):
        some = paths[start : start + _READ_TOGETHER]
        missing = [path for path in some if path not in _manifests]
        contents = dict(zip(missing, read_many(missing), strict=True))
        for path in some:
            yield _manifests.get(path, partial(_read_manifest, path, contents, read_many))


def _read_manifest(
    path: str, contents: Mapping[str, bytes], read_many: Callable[[Sequence[str]], Sequence[bytes]]
) -> Manifest:
    data = contents[path] if path in contents else read_many([path])[0]
    return decoded("manifest", path, lambda: _manifest(data))


def _list(data: bytes) -> tuple[ManifestFile, ...]:
    _, rows = avro.read(data, _list_schema)
    return tuple(
        ManifestFile(
            row[0],
            row[1] or 0,
            row[2] or 0,
            row[3] or DATA,
            row[4] or 0,
            row[5],
            (row[6], row[7], row[8]),
            row[9],
        )
        for row in rows
    )


def _manifest(data: bytes) -> Manifest:
    _, entries = avro.read(data, _entry_schema)
    files = [entry[4] for entry in entries]
    numbers, partitions, keys = _numbered([file[3] for file in files])
    columns = [
        pa.array([entry[0] for entry in entries], pa.int8()),
        pa.array([entry[1] for entry in entries], pa.int64()),
        pa.array([entry[2] for entry in entries], pa.int64()),
        pa.array([entry[3] for entry in entries], pa.int64()),
        pa.array([file[0] or DATA_FILE for file in files], pa.int8()),
        pa.array([file[1] for file in files], pa.string()),
        pa.array([file[2].lower() for file in files], pa.string()),
        pa.array(numbers, pa.int32()),
        pa.array([file[4] for file in files], pa.int64()),
        pa.array([file[5] for file in files], pa.int64()),
        *(pa.array([_items(file[index]) for file in files], _COUNTS) for index in (6, 7, 8)),
        *(pa.array([_items(file[index]) for file in files], _BOUNDS) for index in (9, 10)),
        pa.array([file[11] is not None for file in files], pa.bool_()),
        pa.array([file[12] for file in files], pa.list_(pa.int32())),
        *(pa.array([file[index] for file in files], ENTRIES.field(index + 4).type) for index in (13, 14, 15, 16)),
    ]
    return Manifest(pa.Table.from_arrays(columns, schema=ENTRIES), partitions, keys)


def _items(metrics: Any) -> list[tuple[int, Any]] | None:
    return None if metrics is None else list(metrics.items())


def _numbered(
    records: Sequence[Record | None],
) -> tuple[list[int], tuple[tuple[Any, ...], ...], tuple[tuple[Any, ...], ...]]:
    numbers: list[int] = []
    known: dict[tuple[Any, ...], int] = {}
    tuples: list[tuple[Any, ...]] = []
    for record in records:
        values = () if record is None else tuple(record[i] for i in range(len(record)))
        key = values if not any(type(value) is float for value in values) else tuple(map(_bits, values))
        number = known.setdefault(key, len(known))
        if number == len(tuples):
            tuples.append(values)
        numbers.append(number)
    return numbers, tuple(tuples), tuple(known)


def _bits(value: Any) -> Any:
    """Floats of a partition are the same when their bits are, but all NaNs are."""
    if not isinstance(value, float):
        return value
    return struct.pack(">d", math.nan if math.isnan(value) else value)


def decoded(kind: str, path: str, decode: Callable[[], T]) -> T:
    """`decode()`; DataError when the `kind` of file at `path` is not what it should be."""
    try:
        return decode()
    except Error:
        raise
    except Exception as error:  # The decoder raises whatever its input leads it to.
        raise DataError(
            f"The {kind} {path!r} is not readable: {error or type(error).__name__}. Restore it from a copy, or read a "
            "snapshot that does not need it."
        ) from error


class _Cache(Generic[T]):
    """Least recently used values by path, up to a total size."""

    def __init__(self, size: Callable[[T], int]) -> None:
        self._size = size
        self._values: OrderedDict[str, T] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __contains__(self, path: str) -> bool:
        with self._lock:
            return path in self._values

    def get(self, path: str, make: Callable[[], T]) -> T:
        with self._lock:
            if path in self._values:
                self._values.move_to_end(path)
                return self._values[path]
        value = make()
        with self._lock:
            if path not in self._values:
                self._values[path] = value
                self._bytes += self._size(value)
            while self._bytes > _CACHE_BYTES and len(self._values) > 1:
                _, dropped = self._values.popitem(last=False)
                self._bytes -= self._size(dropped)
        return value


_lists: _Cache[tuple[ManifestFile, ...]] = _Cache(lambda manifests: 300 * len(manifests))
_manifests: _Cache[Manifest] = _Cache(lambda manifest: int(manifest.entries.nbytes))


def first_row_ids(
    entries: pa.Table, starts: Sequence[int | None], manifest: npt.NDArray[np.int64]
) -> pa.Array | pa.ChunkedArray:
    """`first_row_id` of each entry, with those inherited from its manifest (spec, Row Lineage): `starts` are the
    manifests' own, `manifest` the number of that of each entry, ascending."""
    given = entries.column("first_row_id")
    if all(start is None for start in starts):
        return given
    knows = np.array([start is not None for start in starts])[manifest]
    inherits = given.is_null().to_numpy() & (entries.column("status").to_numpy() != DELETED) & knows
    counts = np.where(inherits, entries.column("record_count").to_numpy(), 0)
    before = np.cumsum(counts) - counts
    first = np.searchsorted(manifest, manifest)
    inherited = np.array([start or 0 for start in starts], np.int64)[manifest] + before - before[first]
    return pc.if_else(pa.array(inherits), pa.array(inherited, pa.int64()), given)
