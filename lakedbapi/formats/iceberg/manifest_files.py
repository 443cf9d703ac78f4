"""Manifests and manifest lists as Avro files: read with all that they have, and written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, NestedField, StructType

from lakedbapi.formats.iceberg import avro
from lakedbapi.formats.iceberg.manifests import DATA, DELETED, EXISTING, decoded
from lakedbapi.formats.iceberg.values import encoded

_NEWEST: Any = 3
_ENTRY = [field.name for field in MANIFEST_ENTRY_SCHEMAS[_NEWEST].fields]
_FILE = [field.name for field in DATA_FILE_TYPE[_NEWEST].fields]
_LIST = [field.name for field in MANIFEST_LIST_FILE_SCHEMAS[_NEWEST].fields]
_LAYOUTS = 256
_SINCE_3 = frozenset({"first_row_id", "content_offset", "content_size_in_bytes"})

Row = dict[str, Any]
"""Fields by name, as in the specification."""


@dataclass(frozen=True)
class StoredManifest:
    """`entries` have the fields of an entry, with those of the file in `data_file`; `partition` is the type of its
    partition tuples."""

    partition: StructType
    entries: list[Row]


def read_manifest(path: str, data: bytes) -> StoredManifest:
    return decoded("manifest", path, lambda: _manifest(data))


def _manifest(data: bytes) -> StoredManifest:
    stored, rows = avro.read(data, _stored_entry)
    return StoredManifest(_partition(stored), [_entry(row) for row in rows])


def _partition(stored: Schema) -> StructType:
    of_file = next(field.field_type for field in stored.fields if field.field_id == 2)
    assert isinstance(of_file, StructType)
    partition = next((field.field_type for field in of_file.fields if field.field_id == 102), StructType())
    assert isinstance(partition, StructType)
    return partition


def _stored_entry(stored: Schema) -> Schema:
    file_type = StructType(
        *(
            NestedField(102, "partition", _partition(stored), required=False)
            if field.field_id == 102
            else _optional(field)
            for field in DATA_FILE_TYPE[_NEWEST].fields
        )
    )
    return Schema(
        *(
            NestedField(2, "data_file", file_type, required=False) if field.field_id == 2 else _optional(field)
            for field in MANIFEST_ENTRY_SCHEMAS[_NEWEST].fields
        )
    )


def _entry(record: Record) -> Row:
    entry = _row(record, _ENTRY)
    entry["data_file"] = _row(entry["data_file"], _FILE)
    entry["data_file"]["content"] = entry["data_file"]["content"] or 0
    return entry


def read_list(path: str, data: bytes) -> list[Row]:
    """The manifests of a snapshot; what old versions do not say is as in the specification's rules for them."""
    return decoded("manifest list", path, lambda: _list(data))


def _list(data: bytes) -> list[Row]:
    found = [_row(record, _LIST) for record in avro.read(data, _stored_list)[1]]
    for row in found:
        for name in ("content", "sequence_number", "min_sequence_number"):
            row[name] = row[name] or 0
    return found


def _stored_list(stored: Schema) -> Schema:
    return Schema(*(_optional(field) for field in MANIFEST_LIST_FILE_SCHEMAS[_NEWEST].fields))


def _optional(field: NestedField) -> NestedField:
    return NestedField(field.field_id, field.name, field.field_type, required=False)


def _row(record: Record, names: Sequence[str]) -> Row:
    return {name: record[position] for position, name in enumerate(names)}


def encode_manifest(
    version: int,
    schema: Schema,
    spec: PartitionSpec,
    partition: StructType,
    content: int,
    entries: Sequence[Row],
) -> bytes:
    """`content` is `DATA` or `DELETES`."""
    names = [field.name for field in _file_fields(version, partition)]
    records = [_entry_record(entry, names) for entry in entries]
    about = {
        "schema": schema.model_dump_json(),
        "schema-id": str(schema.schema_id),
        "partition-spec": json.dumps(json.loads(spec.model_dump_json())["fields"]),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(version),
        "content": "data" if content == DATA else "deletes",
    }
    return avro.encode(_entry_layout(version, partition), records, about)


def _file_fields(version: int, partition: StructType) -> list[NestedField]:
    return [
        NestedField(102, "partition", partition, required=True) if field.field_id == 102 else field
        for field in DATA_FILE_TYPE[_NEWEST].fields
        if version >= 3 or field.name not in _SINCE_3
    ]


@lru_cache(_LAYOUTS)
def _entry_layout(version: int, partition: StructType) -> avro.Layout:
    file = StructType(*_file_fields(version, partition))
    fields = (
        NestedField(2, "data_file", file, required=True) if field.field_id == 2 else field
        for field in MANIFEST_ENTRY_SCHEMAS[_NEWEST].fields
    )
    return avro.Layout.of(Schema(*fields), "manifest_entry")


def _entry_record(entry: Row, names: Sequence[str]) -> Record:
    file = Record(*(entry["data_file"].get(name) for name in names))
    return Record(*(file if name == "data_file" else entry.get(name) for name in _ENTRY))


def encode_list(version: int, rows: Sequence[Row], about: Mapping[str, str]) -> bytes:
    names = [field.name for field in MANIFEST_LIST_FILE_SCHEMAS[version].fields]
    records = [Record(*(row.get(name) for name in names)) for row in rows]
    return avro.encode(_list_layout(version), records, {**about, "format-version": str(version)})


@lru_cache(_LAYOUTS)
def _list_layout(version: int) -> avro.Layout:
    return avro.Layout.of(MANIFEST_LIST_FILE_SCHEMAS[version], "manifest_file")


def list_row(
    path: str, length: int, spec_id: int, content: int, partition: StructType, entries: Sequence[Row], snapshot_id: int
) -> Row:
    """What a manifest list says of a new manifest. Its own sequence number is that of the snapshot: `numbered`."""
    counts = {status: [e["data_file"] for e in entries if e["status"] == status] for status in (EXISTING, 1, DELETED)}
    row: Row = {
        "manifest_path": path,
        "manifest_length": length,
        "partition_spec_id": spec_id,
        "content": content,
        "added_snapshot_id": snapshot_id,
        "sequence_number": None,
        "partitions": _summaries(partition, [entry["data_file"]["partition"] for entry in entries]),
    }
    for status, name in ((1, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
        row[f"{name}_files_count"] = len(counts[status])
        row[f"{name}_rows_count"] = sum(file["record_count"] for file in counts[status])
    live = (entry["sequence_number"] for entry in entries if entry["status"] != DELETED)
    row["min_sequence_number"] = min((number for number in live if number is not None), default=None)
    return row


def numbered(row: Row, sequence_number: int) -> Row:
    """The row of a new manifest in the list of a snapshot with this number."""
    known = row["min_sequence_number"]
    least = sequence_number if known is None else min(known, sequence_number)
    return {**row, "sequence_number": sequence_number, "min_sequence_number": least}


def _summaries(partition: StructType, tuples: Sequence[Record]) -> list[Record]:
    return [
        _summary(field.field_type, [values[position] for values in tuples])
        for position, field in enumerate(partition.fields)
    ]


def _summary(type: IcebergType, values: Sequence[Any]) -> Record:
    known = [value for value in values if value is not None]
    numbers = [value for value in known if not (isinstance(value, float) and math.isnan(value))]
    lower, upper = (min(numbers), max(numbers)) if numbers else (None, None)
    return Record(len(known) < len(values), len(numbers) < len(known), encoded(lower, type), encoded(upper, type))
