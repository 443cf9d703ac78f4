"""Iceberg tables made by hand, file by file: also those that no writer at hand makes."""

from __future__ import annotations

import itertools
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import Transform
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField

import lakedbapi
from lakedbapi.deletes import roaring
from lakedbapi.deletes.parquet import ICEBERG_PATH_FIELD as PATH_FIELD
from lakedbapi.deletes.parquet import ICEBERG_POSITION_FIELD as POSITION_FIELD
from lakedbapi.model.delete_vector import DeleteVector

DATA, POSITIONS, EQUALITY = 0, 1, 2


@dataclass(frozen=True)
class File:
    """A data or delete file as its manifest entry tells it; `numbers` None = takes that of its commit."""

    content: int
    path: str
    format: str
    spec_id: int
    partition: tuple[Any, ...]
    records: int
    size: int
    number: int | None = None
    snapshot_id: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


class Table:
    """A table under `root`. Every commit makes a snapshot and a metadata file."""

    def __init__(self, root: Path, *fields: NestedField, version: int = 2, **properties: str) -> None:
        self.root = root / "t"
        self.version = version
        self.schemas: list[Schema] = []
        self.specs = [PartitionSpec(spec_id=0)]
        self.snapshots: list[dict[str, Any]] = []
        self.log: list[dict[str, int]] = []
        self.refs: dict[str, dict[str, Any]] = {}
        self.properties = properties
        self.live: list[File] = []
        self.next_row_id = 0
        self.row_ids: dict[str, int] = {}
        """The first row id of each data file, by path."""
        self.offsets: dict[str, dict[str, int]] = {}
        """By manifest, for each of its files without row ids the rows of such files before it."""
        self.written = 0
        for folder in ("data", "metadata"):
            (self.root / folder).mkdir(parents=True)
        self.evolve(*fields)

    # Definitions

    def evolve(self, *fields: NestedField) -> None:
        self.schemas.append(Schema(*fields, schema_id=len(self.schemas)))

    def partition(self, *keys: tuple[int, Transform[Any, Any]]) -> int:
        """A new default spec of (field id, transform); returns its id."""
        used = max((f.field_id for spec in self.specs for f in spec.fields), default=999)
        fields = [
            PartitionField(source, used + 1 + i, transform, f"p{used + 1 + i}")
            for i, (source, transform) in enumerate(keys)
        ]
        self.specs.append(PartitionSpec(*fields, spec_id=len(self.specs)))
        return len(self.specs) - 1

    @property
    def spec_id(self) -> int:
        return self.specs[-1].spec_id

    # Files

    def data(
        self,
        columns: Mapping[str, Sequence[Any]],
        partition: tuple[Any, ...] = (),
        *,
        spec: int | None = None,
        ids: bool = True,
        number: int | None = None,
        row_group_size: int | None = None,
        extra: Sequence[tuple[pa.Field, Sequence[Any]]] = (),
        **more: Any,
    ) -> File:
        """Columns of the current schema, by name."""
        arrow = self._arrow(columns)
        for column, values in extra:
            arrow = arrow.append_column(column, pa.array(values, column.type))
        if not ids:
            arrow = pa.table(dict(zip(arrow.column_names, arrow.columns, strict=True)))
        path = self._write(arrow, row_group_size)
        return self._file(DATA, path, arrow.num_rows, partition, spec, number=number, more=more)

    def equality(
        self,
        columns: Mapping[str, Sequence[Any]],
        ids: Sequence[int],
        partition: tuple[Any, ...] = (),
        *,
        spec: int | None = None,
        number: int | None = None,
        schema: int = -1,
    ) -> File:
        arrow = self._arrow(columns, self.schemas[schema])
        more = {"equality_ids": list(ids)}
        return self._file(EQUALITY, self._write(arrow), arrow.num_rows, partition, spec, number=number, more=more)

    def positions(
        self, deleted: Mapping[File, Sequence[int]], *, bounds: bool = True, number: int | None = None
    ) -> File:
        rows = sorted((file.path, position) for file, found in deleted.items() for position in found)
        schema = pa.schema(
            [
                pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(PATH_FIELD)}),
                pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(POSITION_FIELD)}),
            ]
        )
        arrow = pa.table([[path for path, _ in rows], [position for _, position in rows]], schema=schema)
        first = next(iter(deleted))
        more: dict[str, Any] = {}
        if bounds:
            more = {
                "lower_bounds": {PATH_FIELD: rows[0][0].encode()},
                "upper_bounds": {PATH_FIELD: rows[-1][0].encode()},
            }
        path = self._write(arrow)
        return self._file(POSITIONS, path, len(rows), first.partition, first.spec_id, number=number, more=more)

    def vectors(self, deleted: Mapping[File, Sequence[int]], **more: Any) -> list[File]:
        """Deletion vectors, all in one file."""
        path = self.root / "data" / f"{next(_names)}.puffin"
        content, files = bytearray(b"PFA1"), []
        for data, positions in deleted.items():
            blob = roaring.encode(DeleteVector.of(list(positions)))
            place = {
                "referenced_data_file": data.path,
                "content_offset": len(content),
                "content_size_in_bytes": len(blob),
            }
            entry = self._file(
                POSITIONS, str(path), len(positions), data.partition, data.spec_id, more={**place, **more}
            )
            files.append(replace(entry, format="PUFFIN"))
            content += blob
        path.write_bytes(bytes(content))
        return files

    # Snapshots

    def commit(self, *added: File | Sequence[File], removed: Sequence[File] = (), operation: str = "append") -> int:
        """Returns the id of the new snapshot."""
        number, id = len(self.snapshots) + 1, 1_000 + len(self.snapshots)
        gone = {(file.path, file.more.get("content_offset")) for file in removed}
        flat = [file for entry in added for file in ([entry] if isinstance(entry, File) else entry)]
        kept = [file for file in self.live if (file.path, file.more.get("content_offset")) not in gone]
        dropped = [file for file in self.live if (file.path, file.more.get("content_offset")) in gone]
        manifests = [
            *self._manifests([(1, file) for file in flat], id, number),
            *self._manifests(
                [(0, file) for file in kept] + [(2, replace(f, snapshot_id=id)) for f in dropped], id, number
            ),
        ]
        row_id = self.next_row_id
        rows = [self._with_row_ids(manifest, added_rows) for manifest, added_rows in manifests]
        path = self.root / "metadata" / f"snap-{id}.avro"
        self._avro(path, MANIFEST_LIST_FILE_SCHEMAS[self.version], "manifest_file", rows, {})
        now = max(int(time.time() * 1000), self.log[-1]["timestamp-ms"] + 1 if self.log else 0)
        snapshot = {
            "snapshot-id": id,
            "timestamp-ms": now,
            "manifest-list": str(path),
            "summary": {"operation": operation},
            "schema-id": self.schemas[-1].schema_id,
            **({"parent-snapshot-id": self.snapshots[-1]["snapshot-id"]} if self.snapshots else {}),
            **({"sequence-number": number} if self.version > 1 else {}),
            **({"first-row-id": row_id, "added-rows": self.next_row_id - row_id} if self.version > 2 else {}),
        }
        self.snapshots.append(snapshot)
        self.log.append({"snapshot-id": id, "timestamp-ms": now})
        inherited = [replace(f, number=number if f.number is None else f.number, snapshot_id=id) for f in flat]
        self.live = [*inherited, *kept]
        return id

    def metadata(self) -> str:
        """Writes the metadata as it is now, and gives its path."""
        current = self.snapshots[-1]["snapshot-id"] if self.snapshots else None
        content = {
            "format-version": self.version,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": str(self.root),
            "last-sequence-number": len(self.snapshots),
            "last-updated-ms": int(time.time() * 1000),
            "last-column-id": max(schema.highest_field_id for schema in self.schemas),
            "schemas": [json.loads(schema.model_dump_json()) for schema in self.schemas],
            "schema": json.loads(self.schemas[-1].model_dump_json()),
            "current-schema-id": self.schemas[-1].schema_id,
            "partition-specs": [json.loads(spec.model_dump_json()) for spec in self.specs],
            "partition-spec": json.loads(self.specs[-1].model_dump_json())["fields"],
            "default-spec-id": self.spec_id,
            "last-partition-id": 1100,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": self.properties,
            "current-snapshot-id": current,
            "snapshots": self.snapshots,
            "snapshot-log": self.log,
            "refs": {**({"main": {"snapshot-id": current, "type": "branch"}} if current else {}), **self.refs},
            **({"next-row-id": self.next_row_id} if self.version > 2 else {}),
        }
        self.written += 1
        path = self.root / "metadata" / f"v{self.written}.metadata.json"
        path.write_text(json.dumps(content))
        return str(path)

    def connect(self, **options: Any) -> lakedbapi.Connection:
        return lakedbapi.connect(f"iceberg:///{self.metadata()}", **options)

    def rows(self, sql: str = "SELECT * FROM t") -> list[tuple[Any, ...]]:
        """Sorted, with NULLs last."""
        with self.connect() as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            return sorted(cursor.fetchall(), key=lambda row: [(value is None, value) for value in row])

    def ids(self) -> list[Any]:
        """The first column, after checking that counting and reading other columns agree with it."""
        with self.connect() as connection:

            def ask(sql: str) -> list[tuple[Any, ...]]:
                cursor = connection.cursor()
                cursor.execute(sql)
                return list(cursor.fetchall())

            found = [row[0] for row in ask("SELECT * FROM t")]
            assert ask("SELECT count(*) FROM t") == [(len(found),)]
            assert len(ask("SELECT 1 FROM t")) == len(found)
            assert bool(ask("SELECT 1 FROM t LIMIT 1")) == bool(found)
        return sorted(found, key=lambda value: (value is None, value))

    # Encoding

    def _arrow(self, columns: Mapping[str, Sequence[Any]], schema: Schema | None = None) -> pa.Table:
        arrow = schema_to_pyarrow(schema or self.schemas[-1])
        fields = [arrow.field(name) for name in columns]
        return pa.table([pa.array(columns[f.name], f.type) for f in fields], schema=pa.schema(fields))

    def _write(self, arrow: pa.Table, row_group_size: int | None = None) -> str:
        path = self.root / "data" / f"{next(_names)}.parquet"
        pq.write_table(arrow, path, row_group_size=row_group_size, store_schema=False)
        return str(path)

    def _file(
        self,
        content: int,
        path: str,
        records: int,
        partition: tuple[Any, ...],
        spec: int | None,
        *,
        number: int | None = None,
        more: Mapping[str, Any],
    ) -> File:
        size = Path(path).stat().st_size if Path(path).exists() else 0
        spec_id = self.spec_id if spec is None else spec
        return File(content, path, "PARQUET", spec_id, partition, records, size, number, None, _Hashed(more))

    def _manifests(self, entries: Sequence[tuple[int, File]], id: int, number: int) -> list[tuple[dict[str, Any], int]]:
        """A row of the manifest list for each manifest, and the rows that take ids from it."""
        grouped: dict[tuple[bool, int], list[tuple[int, File]]] = defaultdict(list)
        for status, file in entries:
            grouped[file.content != DATA, file.spec_id].append((status, file))
        return [
            self._manifest(is_deletes, self.specs[spec], group, id, number)
            for (is_deletes, spec), group in grouped.items()
        ]

    def _manifest(
        self, is_deletes: bool, spec: PartitionSpec, entries: Sequence[tuple[int, File]], id: int, number: int
    ) -> tuple[dict[str, Any], int]:
        path = self.root / "metadata" / f"{next(_names)}-m.avro"
        fields = {f.field_id: f for schema in self.schemas for f in schema.fields}
        everything = Schema(*(f.model_copy(update={"name": f"f{id}"}) for id, f in fields.items()))
        partition = spec.partition_type(everything)
        file_type = data_file_with_partition(partition, self.version)
        schema = manifest_entry_schema_with_data_file(self.version, file_type)
        names = [f.name for f in DATA_FILE_TYPE[self.version].fields]
        records = []
        for status, file in entries:
            values = {
                "content": file.content,
                "file_path": file.path,
                "file_format": file.format,
                "partition": Record(*file.partition),
                "record_count": file.records,
                "file_size_in_bytes": file.size,
                "block_size_in_bytes": 64 << 20,
                "first_row_id": self.row_ids.get(file.path),
                **file.more,
            }
            data_file = Record(*(values.get(name) for name in names))
            snapshot = id if file.snapshot_id is None else file.snapshot_id
            numbers = (file.number, file.number) if self.version > 1 else ()
            by_name = {"status": status, "snapshot_id": snapshot, "data_file": data_file}
            if numbers:
                by_name |= {"sequence_number": numbers[0], "file_sequence_number": None if status == 1 else numbers[1]}
            records.append(Record(*(by_name[f.name] for f in MANIFEST_ENTRY_SCHEMAS[self.version].fields)))
        meta = {
            "schema": self.schemas[-1].model_dump_json(),
            "partition-spec": json.dumps(json.loads(spec.model_dump_json())["fields"]),
            "partition-spec-id": str(spec.spec_id),
            "format-version": str(self.version),
            "content": "deletes" if is_deletes else "data",
        }
        self._avro(path, schema, "manifest_entry", records, meta)
        offsets, before = self.offsets.setdefault(str(path), {}), 0
        for status, file in entries:
            if status != 2 and file.content == DATA and file.path not in self.row_ids:
                offsets[file.path] = before
                before += file.records
        counts = [sum(status == wanted for status, _ in entries) for wanted in (1, 0, 2)]
        row_counts = [sum(f.records for status, f in entries if status == wanted) for wanted in (1, 0, 2)]
        row = {
            "manifest_path": str(path),
            "manifest_length": path.stat().st_size,
            "partition_spec_id": spec.spec_id,
            "content": int(is_deletes),
            "sequence_number": number,
            "min_sequence_number": 1,
            "added_snapshot_id": id,
            "added_files_count": counts[0],
            "existing_files_count": counts[1],
            "deleted_files_count": counts[2],
            "added_rows_count": row_counts[0],
            "existing_rows_count": row_counts[1],
            "deleted_rows_count": row_counts[2],
        }
        return row, 0 if is_deletes else row_counts[0] + row_counts[1]

    def _with_row_ids(self, row: dict[str, Any], rows: int) -> Record:
        if self.version > 2 and not row["content"]:
            row = {**row, "first_row_id": self.next_row_id}
            self.row_ids |= {
                path: self.next_row_id + offset for path, offset in self.offsets[row["manifest_path"]].items()
            }
            self.next_row_id += rows
        return Record(*(row.get(f.name) for f in MANIFEST_LIST_FILE_SCHEMAS[self.version].fields))

    def _avro(self, path: Path, schema: Schema, name: str, records: Sequence[Record], meta: Mapping[str, str]) -> None:
        with AvroOutputFile[Record](FsspecFileIO({}).new_output(str(path)), schema, name, metadata=dict(meta)) as file:
            file.write_block(list(records))


class _Hashed(dict[str, Any]):
    """Files are keys of mappings; two files never have one path and place."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self.get("content_offset"))


_names = itertools.count(1)
