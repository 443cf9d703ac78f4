"""The live files of a table at a snapshot, as columns, from its manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.formats.iceberg.manifests import (
    DATA,
    DATA_FILE,
    DELETED,
    ENTRIES,
    Manifest,
    ManifestFile,
    first_row_ids,
    read_manifests,
)
from lakedbapi.formats.iceberg.paths import Paths

ReadMany = Callable[[Sequence[str]], Sequence[bytes]]

FILES = pa.schema(
    [
        *(field for field in ENTRIES if field.name not in ("partition", "encrypted")),
        ("path", pa.string()),
        ("spec_id", pa.int32()),
        ("scope", pa.int64()),
    ]
)
"""`ENTRIES` with inherited numbers filled in, `path` to read the file at, and `scope`, the number of its partition:
files of one spec and equal partition values have the same."""


@dataclass(frozen=True)
class Partition:
    """`values` as stored, in the order of the spec's fields."""

    spec_id: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class LiveFiles:
    """`data` and `deletes` have the columns `FILES`; `partitions` are numbered by `scope`."""

    data: pa.Table
    deletes: pa.Table
    partitions: tuple[Partition, ...]

    def partition_values(self, scopes: pa.ChunkedArray, spec_id: int, position: int, type: pa.DataType) -> pa.Array:
        """The value of a partition field for each file; NULL where the file has another spec."""
        values = [p.values[position] if p.spec_id == spec_id else None for p in self.partitions]
        return pa.array(values, type).take(scopes.combine_chunks())


def live_files(manifests: Sequence[ManifestFile], paths: Paths, read_many: ReadMany) -> LiveFiles:
    """Reads the manifests that have live files. DataError when they contradict the format."""
    collected = _Collector(paths)
    wanted = [manifest for manifest in manifests if manifest.has_live_files]
    found = read_manifests([paths.full(manifest.path) for manifest in wanted], read_many)
    for file, manifest in zip(wanted, found, strict=True):
        collected.add(file, manifest)
    return collected.files()


class _Collector:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._tables: dict[int, list[pa.Table]] = {0: [], 1: []}
        self._partitions: list[Partition] = []
        self._scopes: dict[tuple[Any, ...], int] = {}

    def add(self, file: ManifestFile, manifest: Manifest) -> None:
        entries = inherit(manifest, file)
        entries = entries.filter(pc.not_equal(entries.column("status"), DELETED))
        if pc.any(entries.column("encrypted")).as_py():
            raise NotSupportedError(
                f"files listed in {file.path!r} are encrypted, and encrypted files cannot be read here"
            )
        scopes = np.array(self._numbers(manifest, file.spec_id), np.int64)
        entries = entries.append_column("path", self._paths.full_all(entries.column("raw_path")))
        entries = entries.append_column("spec_id", pa.array(np.full(entries.num_rows, file.spec_id, np.int32)))
        of_entry = scopes[entries.column("partition").to_numpy()] if entries.num_rows else np.empty(0, np.int64)
        entries = entries.append_column("scope", pa.array(of_entry, pa.int64()))
        entries = entries.select(FILES.names).cast(FILES)
        # Files are what their entries say: writers have put delete files into manifests of data.
        is_data = pc.equal(entries.column("content"), DATA_FILE)
        self._tables[0].append(entries.filter(is_data))
        self._tables[1].append(entries.filter(pc.invert(is_data)))

    def _numbers(self, manifest: Manifest, spec_id: int) -> list[int]:
        """The scope of each partition of the manifest."""
        numbers = []
        for values, key in zip(manifest.partitions, manifest.keys, strict=True):
            number = self._scopes.setdefault((spec_id, *key), len(self._scopes))
            if number == len(self._partitions):
                self._partitions.append(Partition(spec_id, values))
            numbers.append(number)
        return numbers

    def files(self) -> LiveFiles:
        data, deletes = (
            pa.concat_tables(tables).combine_chunks() if tables else FILES.empty_table()
            for tables in self._tables.values()
        )
        if data.num_rows and len(pc.unique(data.column("spec_id"))) > 1:
            data = data.take(pc.sort_indices(data.column("spec_id")))  # Files of one spec are read together.
        _check_once(data)
        return LiveFiles(data, deletes, tuple(self._partitions))


def inherit(manifest: Manifest, file: ManifestFile) -> pa.Table:
    """The entries with the numbers that they take from the manifest list (spec, Sequence Number Inheritance)."""
    entries = manifest.entries
    number = pa.scalar(file.sequence_number, pa.int64())
    columns: Mapping[str, pa.Array | pa.ChunkedArray] = {
        "snapshot_id": pc.fill_null(entries.column("snapshot_id"), pa.scalar(file.added_snapshot_id, pa.int64()))
        if file.added_snapshot_id is not None
        else entries.column("snapshot_id"),
        "sequence_number": pc.fill_null(entries.column("sequence_number"), number),
        "file_sequence_number": pc.fill_null(entries.column("file_sequence_number"), number),
    }
    if file.content == DATA:
        columns = {**columns, "first_row_id": first_row_ids(entries, file.first_row_id)}
    for name, values in columns.items():
        entries = entries.set_column(entries.column_names.index(name), ENTRIES.field(name), values)
    return entries


def _check_once(data: pa.Table) -> None:
    paths = data.column("raw_path")
    if len(pc.unique(paths)) < len(paths):
        counts = pc.value_counts(paths)
        twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0]
        raise DataError(f"The metadata is corrupt: data file {twice.as_py()!r} is listed twice in one snapshot.")
