"""`TableVersion`: a table at one of its snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH

from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.formats.iceberg.delete_index import DeleteIndex, path_bounds
from lakedbapi.formats.iceberg.failures import reported
from lakedbapi.formats.iceberg.files import LiveFiles, live_files
from lakedbapi.formats.iceberg.manifests import ManifestFile, read_list
from lakedbapi.formats.iceberg.metrics import (
    column_bounds,
    identity_keys,
    identity_values,
    may_share_keys,
    partition_columns,
)
from lakedbapi.formats.iceberg.paths import Paths
from lakedbapi.formats.iceberg.positions import deleted_positions
from lakedbapi.formats.iceberg.schemas import (
    VERSION,
    model_field,
    model_partitioning,
    model_schema,
    model_sorting,
    names_by_id,
)
from lakedbapi.formats.iceberg.travel import Point
from lakedbapi.formats.keys import PROPERTY, parse_keys
from lakedbapi.model.catalog import Constraint, TableInfo
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import (
    DATA_FILES,
    ROW_ID_FIELD,
    ROW_SNAPSHOT_FIELD,
    ColumnBounds,
    EqualityDeletes,
    FileGroup,
    PartitionColumn,
)
from lakedbapi.model.types import Decimal, Field, Scalar, Schema
from lakedbapi.storage.filesystem import Storage


@dataclass(frozen=True)
class TableVersion:
    """`name` is the qualified name, for messages; `branch` the one whose newest snapshot it is, None for a tag or an
    older snapshot."""

    name: str
    metadata: TableMetadata
    point: Point
    paths: Paths
    storage: Storage
    branch: str | None = MAIN_BRANCH

    def info(self, id: int, schema_id: int, name: str) -> TableInfo:
        metadata = self.metadata
        sort_order = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), None)
        return TableInfo(
            id,
            schema_id,
            name,
            self.schema,
            path=self.paths.full(metadata.location).rstrip("/") + "/",
            uuid=str(metadata.table_uuid),
            partitioning=model_partitioning(metadata.spec()),
            sorting=() if sort_order is None else model_sorting(sort_order, metadata.schema()),
            constraints=self._constraints(),
            properties={**self._properties(), VERSION: str(metadata.format_version)},
            comment=metadata.properties.get("comment"),
        )

    def _properties(self) -> Mapping[str, str]:
        return {name: value for name, value in self.metadata.properties.items() if name not in (PROPERTY, "comment")}

    def _constraints(self) -> tuple[Constraint, ...]:
        stated = parse_keys(self.metadata.properties.get(PROPERTY))
        return stated if any(key.kind == "primary key" for key in stated) else (*stated, *self._identifier())

    def _identifier(self) -> tuple[Constraint, ...]:
        """The identifier fields, which say what a row is known by: information, as a primary key is."""
        ids = self.point.schema.identifier_field_ids
        names = tuple(field.name for field in self.schema.fields if field.id in ids)
        return (Constraint("primary key", None, names),) if names and len(names) == len(ids) else ()

    @cached_property
    def schema(self) -> Schema:
        return model_schema(self.point.schema)

    @property
    def snapshot_id(self) -> int:
        """-1 while the table has no snapshot."""
        return -1 if self.point.snapshot is None else self.point.snapshot.snapshot_id

    @cached_property
    def specs(self) -> Mapping[int, PartitionSpec]:
        return {spec.spec_id: spec for spec in self.metadata.partition_specs}

    @cached_property
    def manifests(self) -> Sequence[ManifestFile]:
        snapshot = self.point.snapshot
        if snapshot is None:
            return ()
        path = self.paths.full(snapshot.manifest_list)
        return read_list(path, lambda: self.storage.read_bytes(path))

    @cached_property
    def live(self) -> LiveFiles:
        return live_files(self.manifests, self.paths, self.storage.read_many)

    @cached_property
    def deletes(self) -> DeleteIndex:
        without_fields = frozenset(id for id, spec in self.specs.items() if not spec.fields)
        return DeleteIndex(self.live, without_fields)

    @cached_property
    def files(self) -> pa.Table:
        """`DATA_FILES`; the id of a file is its row number in `live.data`."""
        data = self.live.data
        count = data.num_rows
        columns = {
            "file_id": pa.array(np.arange(count, dtype=np.int64)),
            "path": data.column("path"),
            "record_count": data.column("record_count"),
            "file_size_bytes": data.column("file_size_bytes"),
            "row_id_start": data.column("first_row_id"),
            "snapshot_id": data.column("snapshot_id"),
            "partition_id": data.column("scope"),
            "deleted_count": self._deleted_counts(),
        }
        return pa.table(columns, schema=DATA_FILES)

    @cached_property
    def directories(self) -> frozenset[str]:
        """Where the files lie, each ending in `/`: the table itself, and where added files are."""
        own = self.paths.full(self.metadata.location).rstrip("/") + "/"
        paths = pa.chunked_array([*self.live.data.column("path").chunks, *self.live.deletes.column("path").chunks])
        elsewhere = paths.filter(pc.invert(pc.starts_with(paths, own))) if len(paths) else paths
        folders = pc.replace_substring_regex(elsewhere, "[^/]*$", "")
        return frozenset({own, *pc.unique(folders).to_pylist()})

    def _deleted_counts(self) -> pa.Array:
        vectors = self.deletes.vectors
        cardinality = self.live.deletes.column("record_count").to_numpy()
        counts = np.where(vectors >= 0, cardinality[vectors] if len(cardinality) else 0, 0)
        unknown = self.deletes.may_have_positions.copy()
        for deletes in self.equality_deletes(np.arange(self.live.data.num_rows)):
            unknown |= deletes.reached()
        return pa.array(counts, pa.int64(), mask=unknown)

    def bounds(self, table: TableInfo, files: pa.Table, field_id: int) -> ColumnBounds | None:
        field = next((field for field in table.schema.fields if field.id == field_id), None)
        if field is None or not isinstance(field.type, (Scalar, Decimal)):
            return None
        return column_bounds(field, self._data(files), self.live, self.specs)

    def partition_values(self, table: TableInfo, files: pa.Table) -> Mapping[tuple[int, str], PartitionColumn]:
        return partition_columns(table.schema.fields, self._data(files), self.live, self.specs)

    def file_groups(self, table: TableInfo, files: pa.Table) -> Sequence[FileGroup]:
        """Files of one partition spec together."""
        numbers = files.column("file_id").to_numpy()
        data = self._data(files)
        formats = data.column("file_format")
        other = formats.filter(pc.not_equal(formats, "parquet"))
        if len(other):
            raise NotSupportedError(
                f"table {self.name} has data files of format {other[0].as_py()!r}; only Parquet is read"
            )
        vectors = self.positions(numbers)
        specs = data.column("spec_id").to_numpy()
        starts = np.flatnonzero(np.r_[True, specs[1:] != specs[:-1]]).tolist()
        return [
            self._group(table, files.slice(start, end - start), numbers[start:end], int(specs[start]), vectors)
            for start, end in zip(starts, [*starts[1:], len(specs)], strict=True)
        ]

    def with_sequence_numbers(self, group: FileGroup) -> FileGroup | None:
        """The group with each row's `_last_updated_sequence_number` in place of its snapshot (spec, Row Lineage)."""
        if self.metadata.format_version < 3:
            return None
        numbers = self._data(group.files).column("sequence_number")
        place = group.files.column_names.index("snapshot_id")
        files = group.files.set_column(place, DATA_FILES.field("snapshot_id"), numbers)
        return replace(group, files=files, embedded=group.embedded | {ROW_SNAPSHOT_FIELD})

    def positions(self, numbers: npt.NDArray[np.int64]) -> Mapping[int, DeleteVector]:
        """The deleted positions of data files, by number."""
        return deleted_positions(self.live, self.deletes, self.storage, numbers)

    def _group(
        self,
        table: TableInfo,
        files: pa.Table,
        numbers: npt.NDArray[np.int64],
        spec_id: int,
        vectors: Mapping[int, DeleteVector],
    ) -> FileGroup:
        with_deletes = np.flatnonzero(np.isin(numbers, np.fromiter(vectors, np.int64)))
        deletes = {row: vectors[int(numbers[row])] for row in with_deletes.tolist()}
        reaching = tuple(deletes for deletes in self.equality_deletes(numbers) if deletes.reached().any())
        return FileGroup(
            files,
            deletes,
            equality_deletes=reaching,
            constants=self._constants(table, files, spec_id),
            embedded=frozenset({ROW_ID_FIELD}) if self.metadata.format_version >= 3 else frozenset(),
            names_without_ids=self.names(table.schema),
        )

    def _constants(self, table: TableInfo, files: pa.Table, spec_id: int) -> pa.Table | None:
        """Identity partition columns: writers may leave them out of the files (spec, Column Projection)."""
        fields = {field.id: field for field in table.schema.fields}
        data = self._data(files)
        columns = {
            str(source): identity_values(fields[source], data, self.live, spec_id, position)
            for position, source in identity_keys(self.specs, spec_id)
            if source in fields
        }
        return pa.table(columns) if columns else None

    def names(self, schema: Schema) -> Mapping[int, tuple[str, ...]] | None:
        """The names of columns in files without field ids, where the table has a mapping for such files."""
        with reported(f"reading the name mapping of {self.name}"):
            mapping = self.metadata.name_mapping()
        return None if mapping is None else names_by_id(mapping, schema)

    def equality_deletes(self, numbers: npt.NDArray[np.int64]) -> Iterator[EqualityDeletes]:
        """All equality deletes of the snapshot, next to the data files `numbers`."""
        if not self.deletes.equality_files:
            return
        data = self.live.data.take(pa.array(numbers))
        for found in self.deletes.equality_files:
            other = found.files.filter(pc.not_equal(found.files.column("file_format"), "parquet"))
            if other.num_rows:
                raise NotSupportedError(
                    f"equality delete file {other.column('path')[0]} of table {self.name} is no Parquet file and "
                    "cannot be read here"
                )
            files = pa.table(
                {
                    "path": found.files.column("path"),
                    "file_size_bytes": found.files.column("file_size_bytes"),
                    "scope": found.scopes,
                    "sequence_number": found.sequence_numbers,
                }
            )
            keys = tuple(self.key(id) for id in found.field_ids)
            if 0 < len(numbers) < self.live.data.num_rows:
                files = files.filter(may_share_keys(keys, found.files, data))
            yield EqualityDeletes(
                keys,
                files,
                data.column("scope").combine_chunks(),
                data.column("sequence_number").combine_chunks(),
                self.names(Schema(keys)),
            )

    def key(self, field_id: int) -> Field:
        """A column by its id, which may have been dropped since (spec, Equality Delete Files)."""
        newest = sorted(self.metadata.schemas, key=lambda schema: schema.schema_id, reverse=True)
        for schema in (self.point.schema, self.metadata.schema(), *newest):
            for field in schema.fields:
                if field.field_id == field_id:
                    return model_field(field)
        for schema in (self.metadata.schema(), *newest):
            if field_id in schema.field_ids:
                raise NotSupportedError(
                    f"table {self.name} has equality deletes by the nested column "
                    f"{schema.find_column_name(field_id)!r}, which cannot be read here: let its writer compact it"
                )
        raise DataError(
            f"The metadata of {self.name} is corrupt: it has equality deletes by an unknown column {field_id}."
        )

    def delete_files(self) -> pa.Table:
        """Columns of `Snapshot.delete_files`; the data file is NULL where a delete file is about several."""
        deletes = self.live.deletes
        bounds = path_bounds(deletes)
        same = pc.if_else(pc.fill_null(pc.equal(*bounds), False), bounds[0], pa.scalar(None, pa.binary()))
        target = pc.coalesce(deletes.column("referenced_data_file").combine_chunks(), same.cast(pa.string()))
        return pa.table(
            {
                "data_file": self.paths.full_all(target),
                "path": deletes.column("path"),
                "format": deletes.column("file_format"),
                "delete_count": deletes.column("record_count"),
                "file_size_bytes": pc.coalesce(deletes.column("content_size"), deletes.column("file_size_bytes")),
                "snapshot_id": deletes.column("snapshot_id"),
            }
        )

    def _data(self, files: pa.Table) -> pa.Table:
        """The entries of `files`, a subset of the table's in its order."""
        everything = self.live.data
        return everything if files.num_rows == everything.num_rows else everything.take(files.column("file_id"))


def check_whole(version: TableVersion, what: str) -> None:
    """NotSupportedError for a branch or tag, where `what` is for tables."""
    if version.branch != MAIN_BRANCH:
        raise NotSupportedError(
            f"{version.name} is a branch or tag, and {what} is for its table: name that, or ALTER TABLE … DROP BRANCH b"
        )
