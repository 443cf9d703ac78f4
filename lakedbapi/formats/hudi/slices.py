"""The file slices of a version: base files, which an engine reads, and those that hudi-rs merges with log files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.hudi import evidence, rust
from lakedbapi.formats.hudi.commits import FileGroupId, FileSlice, log_instant
from lakedbapi.formats.hudi.timeline import Instant, order, version_of
from lakedbapi.model.arrow import arrow_field
from lakedbapi.model.scan import DATA_FILES
from lakedbapi.model.types import Schema
from lakedbapi.storage.parquet import row_count

if TYPE_CHECKING:
    from lakedbapi.formats.hudi.table import HudiTable

FILES = pa.schema(
    [
        *DATA_FILES,
        pa.field("partition", pa.string(), nullable=False),
        pa.field("is_merged", pa.bool_(), nullable=False),
    ]
)
"""The columns of `Slices.files`. `file_id` numbers the slices from 0. `is_merged`: hudi-rs has to read the slice."""

LOG_FILES = pa.schema(
    [
        pa.field("data_file", pa.string()),
        pa.field("path", pa.string()),
        pa.field("format", pa.string()),
        pa.field("delete_count", pa.int64()),
        pa.field("file_size_bytes", pa.int64()),
        pa.field("snapshot_id", pa.int64()),
    ]
)


class Slices:
    """`files` has one row a slice: the base file, or where a slice has none, its first log file."""

    def __init__(self, table: HudiTable, slices: Sequence[FileSlice], options: Any) -> None:
        self.files = _list(table, slices)
        self._table = table
        self._slices = slices
        self._options = options

    @classmethod
    def find(cls, table: HudiTable, at: Instant, *, read_optimized: bool) -> Slices:
        """The slices after the commit `at`, checked against what the commits say."""
        options = rust.load().HudiReadOptions().with_as_of_timestamp(at.begun)
        if read_optimized:
            options = options.with_hudi_option("hoodie.read.use.read_optimized.mode", "true")
        with rust.mapped(table.root):
            handles = table.reader.get_file_slices(options)
        layout = table.properties.layout
        found = sorted(_slice(handle, at, layout) for handle in handles)
        evidence.check(table.root, at, table.commits(), found, with_logs=not read_optimized, layout=layout)
        return cls(table, [slice for slice in found if slice.base or (slice.logs and not read_optimized)], options)

    def log_files(self) -> pa.Table:
        """The log files, each with its slice's file in `data_file`."""
        root = self._table.root
        rows = [
            {"data_file": root + slice.path, "path": root + log, "format": "hudi log", "file_size_bytes": size}
            for slice in self._slices
            for log, size in slice.log_paths.items()
        ]
        return pa.Table.from_pylist(rows, LOG_FILES)

    def read(self, number: int, schema: Schema) -> pa.Table:
        """The merged rows of a slice, in the columns of `schema`."""
        root, slice = self._table.root, self._slices[number]
        for log, size in slice.log_paths.items():
            # hudi-rs leaves out what is cut off; the sizes that it knows may be those that the metadata table says.
            found = self._table.storage.size(root + log)
            if found < size:
                raise evidence.short(root + log, found, size)
        with rust.mapped(root + slice.path):
            reader = self._table.reader.create_file_group_reader_with_options(self._options)
            batch = reader.read_file_slice_from_paths(slice.base_path, list(slice.log_paths), self._options)
        return _conformed(pa.Table.from_batches([batch]), schema, root)


def _slice(handle: Any, at: Instant, layout: int) -> FileSlice:
    """From a slice of hudi-rs, which also lists log files of later commits."""
    logs = dict(zip(handle.log_file_names, handle.log_file_sizes, strict=True))
    if layout == 2:
        logs = {name: size for name, size in logs.items() if order(log_instant(name)) <= at.order}
    group = FileGroupId(handle.partition_path, handle.file_id)
    return FileSlice(group, handle.base_file_name, handle.creation_instant_time, handle.base_file_size, logs)


def _list(table: HudiTable, slices: Sequence[FileSlice]) -> pa.Table:
    """In `FILES`."""
    counts = _row_counts(table)
    unknown = [slice.path for slice in slices if not slice.is_merged and slice.path not in counts]
    with ThreadPoolExecutor() as pool:
        counted = pool.map(lambda path: row_count(table.storage, table.root + path), unknown)
        counts = {**counts, **dict(zip(unknown, counted, strict=True))}
    number = len(slices)
    return pa.table(
        {
            "file_id": pa.array(range(number), pa.int64()),
            "path": pa.array([table.root + slice.path for slice in slices], pa.string()),
            "record_count": pa.array([counts.get(slice.path, 0) for slice in slices], pa.int64()),
            "file_size_bytes": pa.array([slice.base_size for slice in slices], pa.int64()),
            "row_id_start": pa.nulls(number, pa.int64()),
            "snapshot_id": pa.array([version_of(slice.base_instant) for slice in slices], pa.int64()),
            "partition_id": pa.nulls(number, pa.int64()),
            # Updates and deletes in log files are not known without merging them.
            "deleted_count": pa.array([None if slice.is_merged else 0 for slice in slices], pa.int64()),
            "partition": pa.array([slice.group.partition for slice in slices], pa.string()),
            "is_merged": pa.array([slice.is_merged for slice in slices], pa.bool_()),
        },
        schema=FILES,
    )


def _row_counts(table: HudiTable) -> Mapping[str, int]:
    """By path of the base file. What hudi-rs tells of slices is an estimate, what commits tell is exact."""
    return {write.path: write.row_count for commit in table.commits() for write in commit.writes if not write.is_log}


def _conformed(rows: pa.Table, schema: Schema, root: str) -> pa.Table:
    fields = [arrow_field(field) for field in schema.fields]
    columns = []
    for field in fields:
        if field.name not in rows.column_names:
            # hudi-rs merges to the newest schema, and fills in columns that a slice lacks.
            raise NotSupportedError(
                f"{root}: column {field.name!r} was dropped later, and log files are merged without it: read a version "
                "that has been compacted, or connect with read_optimized=true"
            )
        columns.append(rows.column(field.name).cast(field.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
