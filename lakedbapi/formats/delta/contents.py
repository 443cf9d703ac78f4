"""`TableContents`: what a table consists of at one version, in the model's terms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError
from lakedbapi.formats.delta import row_tracking, stats, texts
from lakedbapi.formats.delta.deletion_vectors import file_path
from lakedbapi.formats.delta.schema import physical_names
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.vector_cache import VectorCache
from lakedbapi.formats.delta.writer_features import mapping_mode
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import FIELD_ID, NAME, ColumnBounds, FileGroup, PartitionColumn
from lakedbapi.model.types import Field
from lakedbapi.storage.filesystem import Storage
from lakedbapi.storage.parquet import row_count

_POSITION_BITS = 32
"""A row id is the number of the file and, in so many bits, the position in it: it names a row of one version only."""
_READERS = 16
"""Footers that are read at the same time."""


class TableContents:
    """Loads what is asked for and keeps it."""

    def __init__(self, storage: Storage, state: TableState, table: TableInfo, vectors: VectorCache) -> None:
        self.state = state
        self._storage = storage
        self.table = table
        self._vectors = vectors

    @cached_property
    def files(self) -> pa.Table:
        """Live files, with the columns `model.scan.DATA_FILES`."""
        live = self.state.files
        count = live.num_rows
        deleted = pc.fill_null(pc.struct_field(live["deletion_vector"].combine_chunks(), "cardinality"), 0)
        return pa.table(
            {
                "file_id": pa.array(np.arange(count, dtype=np.int64)),
                "path": self.state.paths,
                "record_count": self._record_counts,
                "file_size_bytes": live["size"],
                "row_id_start": live["base_row_id"]
                if self._embedded
                else pa.array(np.arange(count, dtype=np.int64) << _POSITION_BITS),
                "snapshot_id": live["version"],
                "partition_id": pa.nulls(count, pa.int64()),
                "deleted_count": deleted,
            }
        )

    @property
    def _record_counts(self) -> pa.ChunkedArray:
        counts = self.state.per_file.of("record counts", self.state.files, self._count_records)
        return counts["record_count"]

    def _count_records(self, first: int) -> pa.Table:
        """The rows of each file from number `first` on, from the statistics, else from the files themselves.

        Some writers count live rows only. Those that count all of them say that other statistics of a file with a
        deletion vector are not tight.
        """
        files, paths = self.state.files.slice(first), self.state.paths.slice(first)
        counts = stats.record_counts(files["stats"])
        doubtful = files["deletion_vector"].is_valid().to_numpy() & ~stats.are_wide(files["stats"])
        unknown = np.flatnonzero(counts.is_null().to_numpy(zero_copy_only=False) | doubtful)
        if len(unknown):
            chosen = paths.take(pa.array(unknown)).to_pylist()
            with ThreadPoolExecutor(_READERS) as pool:
                found = list(pool.map(lambda path: row_count(self._storage, path), chosen))
            values = pc.fill_null(counts, 0).to_numpy().copy()
            values[unknown] = found
            counts = pa.array(values)
        return pa.table({"record_count": counts})

    @cached_property
    def _embedded(self) -> Mapping[int, str]:
        return row_tracking.columns(self.state.metadata.configuration)

    @cached_property
    def _physical(self) -> Mapping[int, str]:
        if self._mapping == "none":
            return {}
        return physical_names(self.state.metadata.schema_string)

    @property
    def _mapping(self) -> str:
        return mapping_mode(self.state.metadata.configuration)

    def _stored_name(self, field: Field) -> str:
        """The name of a column in the log: in statistics and partition values."""
        return self._physical.get(field.id, field.name)

    def bounds(self, files: pa.Table, field_id: int) -> ColumnBounds | None:
        field = next((field for field in self.table.schema.fields if field.id == field_id), None)
        if field is None or not stats.has_bounds(field) or field_id in self._partition_fields:
            return None
        name = self._stored_name(field)
        found = self.state.per_file.of(
            ("bounds", name, field.type), self.state.files, lambda first: self._bounds_from(first, field, name)
        )
        return ColumnBounds(*(_take(values, files["file_id"]) for values in found.columns))

    def _bounds_from(self, first: int, field: Field, name: str) -> pa.Table:
        """Of the files from number `first` on, with the columns of `ColumnBounds`."""
        counts = self._record_counts.slice(first).combine_chunks()
        found = stats.column_bounds(self.state.files["stats"].slice(first), counts, field, name)
        return pa.table({each.name: getattr(found, each.name) for each in dataclasses.fields(found)})

    @cached_property
    def _partition_fields(self) -> Mapping[int, Field]:
        spec = self.table.partitioning
        by_id = {field.id: field for field in self.table.schema.fields}
        return {} if spec is None else {part.field_id: by_id[part.field_id] for part in spec.fields}

    @property
    def _constants(self) -> pa.Table | None:
        """The partition values of all files, by field id."""
        fields = {id: (self._stored_name(field), field) for id, field in self._partition_fields.items()}
        if not fields:
            return None
        key = ("partition values", *((id, name, field.type) for id, (name, field) in fields.items()))
        return self.state.per_file.of(key, self.state.files, lambda first: self._constants_from(first, fields))

    def _constants_from(self, first: int, fields: Mapping[int, tuple[str, Field]]) -> pa.Table:
        """Of the files from number `first` on; `fields` have the names in the log."""
        maps = self.state.files["partition_values"].slice(first)
        columns = {}
        for id, (name, field) in fields.items():
            what = f"a file of Delta table {self.state.root}, column {field.name!r},"
            columns[str(id)] = texts.partition_array(texts.map_values(maps, name), field.type, what)
        return pa.table(columns)

    def partition_values(self, files: pa.Table) -> Mapping[tuple[int, str], PartitionColumn]:
        constants = self._constants
        if constants is None:
            return {}
        known = pa.array(np.ones(files.num_rows, np.bool_))
        return {
            (int(id), "identity"): PartitionColumn(_take(constants[id], files["file_id"]), known)
            for id in constants.column_names
        }

    def file_groups(self, files: pa.Table) -> Sequence[FileGroup]:
        numbers = files["file_id"]
        with_deletes = np.flatnonzero(files["deleted_count"].to_numpy())
        chosen = self.state.files["deletion_vector"].take(numbers).take(pa.array(with_deletes)).to_pylist()
        vectors = self._vectors.read(self._storage, self.state.root, chosen)
        files = self._with_room(files, dict(zip(with_deletes.tolist(), vectors, strict=True)))
        constants = self._constants
        return [
            FileGroup(
                files,
                dict(zip(with_deletes.tolist(), vectors, strict=True)),
                match=FIELD_ID if self._mapping == "id" else NAME,
                names=self._physical,
                constants=None if constants is None else constants.take(numbers),
                embedded=frozenset(self._embedded),
                embedded_names=self._embedded,
            )
        ]

    def with_row_versions(self, group: FileGroup) -> FileGroup | None:
        """The group with the commit version that rows of each file have by default in place of its snapshot."""
        if not self._embedded:
            return None
        versions = self.state.files["default_row_commit_version"].take(group.files["file_id"])
        place = group.files.schema.get_field_index("snapshot_id")
        return replace(group, files=group.files.set_column(place, "snapshot_id", versions))

    def _with_room(self, files: pa.Table, vectors: Mapping[int, DeleteVector]) -> pa.Table:
        """`files` with the true row count of those whose statistics count too few rows for their deletion vector (some
        writers count only live ones); DataError for a vector that reaches beyond the file."""
        counts = files["record_count"].to_numpy().copy()
        short = [number for number, vector in vectors.items() if vector and vector.bitmap.max() >= counts[number]]
        for number in short:
            path = files["path"][number].as_py()
            counts[number] = row_count(self._storage, path)
            last = vectors[number].bitmap.max()
            if last >= counts[number]:
                raise DataError(
                    f"{path}: its deletion vector has row {last}, but the file has {counts[number]} rows "
                    "(DELTA_DELETION_VECTOR_INVALID_ROW_INDEX)"
                )
        column = files.schema.get_field_index("record_count")
        return files.set_column(column, "record_count", pa.array(counts)) if short else files

    @property
    def delete_files(self) -> pa.Table:
        """Deletion vectors with the files that they lie in (NULL: in the log itself)."""
        live = self.state.files
        chosen = np.flatnonzero(live["deletion_vector"].is_valid().to_numpy())
        descriptors = live["deletion_vector"].take(pa.array(chosen)).to_pylist()
        return pa.table(
            {
                "data_file": self.state.paths.take(pa.array(chosen)),
                "path": pa.array([file_path(self.state.root, found) for found in descriptors], pa.string()),
                "format": pa.array(["deletion vector"] * len(chosen), pa.string()),
                "delete_count": pa.array([found["cardinality"] for found in descriptors], pa.int64()),
                "file_size_bytes": pa.array([found["sizeInBytes"] for found in descriptors], pa.int64()),
                "snapshot_id": live["version"].take(pa.array(chosen)),
            }
        )


def _take(values: pa.ChunkedArray, numbers: pa.ChunkedArray) -> pa.Array:
    places = numbers.to_numpy()
    are_all = len(places) == len(values) and bool((places == np.arange(len(values))).all())
    return (values if are_all else values.take(numbers)).combine_chunks()
