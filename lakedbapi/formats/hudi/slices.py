"""The file slices of a version: base files, which an engine reads, and those that hudi-rs merges with log files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.hudi import evidence, rust
from lakedbapi.formats.hudi.commits import FileGroupId
from lakedbapi.formats.hudi.timeline import Instant, version_of
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

    def __init__(self, table: HudiTable, handles: Sequence[Any], options: Any, files: pa.Table) -> None:
        self.files = files
        self._table = table
        self._handles = handles
        self._options = options

    @classmethod
    def find(cls, table: HudiTable, at: Instant, *, read_optimized: bool) -> Slices:
        """The slices after the commit `at`, checked against what the commits say."""
        options = rust.load().HudiReadOptions().with_as_of_timestamp(at.begun)
        if read_optimized:
            options = options.with_hudi_option("hoodie.read.use.read_optimized.mode", "true")
        with rust.mapped(table.root):
            found = table.reader.get_file_slices(options)
        handles = sorted(found, key=lambda handle: (handle.partition_path, handle.file_id))
        evidence.check(
            table.root,
            at,
            table.commits(),
            [_found(handle) for handle in handles],
            with_logs=not read_optimized,
            layout=table.properties.layout,
        )
        if read_optimized:
            handles = [handle for handle in handles if handle.base_file_name]
        return cls(table, handles, options, _list(table, at, handles))

    def log_files(self) -> pa.Table:
        """The log files, each with its slice's file in `data_file`."""
        paths = self.files.column("path").to_pylist()
        rows = [
            {"data_file": path, "path": self._table.root + log, "format": "hudi log", "file_size_bytes": size}
            for path, handle in zip(paths, self._handles, strict=True)
            for log, size in zip(handle.log_files_relative_paths(), handle.log_file_sizes, strict=True)
        ]
        return pa.Table.from_pylist(rows, LOG_FILES)

    def read(self, number: int, schema: Schema) -> pa.Table:
        """The merged rows of a slice, in the columns of `schema`."""
        handle = self._handles[number]
        base = handle.base_file_relative_path() if handle.base_file_name else ""
        logs = handle.log_files_relative_paths()
        with rust.mapped(self._table.root + (base or logs[0])):
            reader = self._table.reader.create_file_group_reader_with_options(self._options)
            batch = reader.read_file_slice_from_paths(base, logs, self._options)
        return _conformed(pa.Table.from_batches([batch]), schema, self._table.root)


def _found(handle: Any) -> evidence.Slice:
    return evidence.Slice(
        FileGroupId(handle.partition_path, handle.file_id),
        handle.base_file_name,
        handle.creation_instant_time,
        handle.base_file_size,
        dict(zip(handle.log_file_names, handle.log_file_sizes, strict=True)),
    )


def _list(table: HudiTable, at: Instant, handles: Sequence[Any]) -> pa.Table:
    """In `FILES`."""
    counts = _row_counts(table)
    paths = [
        handle.base_file_relative_path() if handle.base_file_name else handle.log_files_relative_paths()[0]
        for handle in handles
    ]
    merged = [handle.has_log_files() or not handle.base_file_name.endswith(".parquet") for handle in handles]
    unknown = [path for path, is_merged in zip(paths, merged, strict=True) if not is_merged and path not in counts]
    with ThreadPoolExecutor() as pool:
        counted = pool.map(lambda path: row_count(table.storage, table.root + path), unknown)
        counts = {**counts, **dict(zip(unknown, counted, strict=True))}
    number = len(handles)
    return pa.table(
        {
            "file_id": pa.array(range(number), pa.int64()),
            "path": pa.array([table.root + path for path in paths], pa.string()),
            "record_count": pa.array([counts.get(path, 0) for path in paths], pa.int64()),
            "file_size_bytes": pa.array([handle.base_file_size for handle in handles], pa.int64()),
            "row_id_start": pa.nulls(number, pa.int64()),
            "snapshot_id": pa.array([version_of(handle.creation_instant_time) for handle in handles], pa.int64()),
            "partition_id": pa.nulls(number, pa.int64()),
            # Updates and deletes in log files are not known without merging them.
            "deleted_count": pa.array([None if is_merged else 0 for is_merged in merged], pa.int64()),
            "partition": pa.array([handle.partition_path for handle in handles], pa.string()),
            "is_merged": pa.array(merged, pa.bool_()),
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
