"""The live files of a table at a snapshot, as columns, from its manifests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
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
        ("manifest", pa.int64()),
    ]
)
"""`ENTRIES` with inherited numbers filled in, `path` to read the file at, `scope`, the number of its partition (files
of one spec and equal partition values have the same), and `manifest`, the place of its manifest in the list."""


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
    places = [place for place, manifest in enumerate(manifests) if manifest.has_live_files]
    data, deletes, partitions = _files(manifests, places, paths, read_many, alive=True)
    _check_once(data)
    return LiveFiles(data, deletes, partitions)


def all_files(manifests: Sequence[ManifestFile], paths: Paths, read_many: ReadMany) -> LiveFiles:
    """The files of manifests of any snapshots, each once, also those that were removed."""
    data, deletes, partitions = _files(manifests, range(len(manifests)), paths, read_many, alive=False)
    return LiveFiles(_first(data), _first(deletes), partitions)


def _first(files: pa.Table) -> pa.Table:
    """Without the later ones of the entries about one file (all vectors of a Puffin file are)."""
    codes = files.column("raw_path").combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, first = np.unique(codes, return_index=True)
    found = files.take(pa.array(first, pa.int64()))
    return found.take(pc.sort_indices(found.column("spec_id")))


def _files(
    manifests: Sequence[ManifestFile], places: Sequence[int], paths: Paths, read_many: ReadMany, *, alive: bool
) -> tuple[pa.Table, pa.Table, tuple[Partition, ...]]:
    """Data files, delete files and their partitions; `alive`: without those that were removed."""
    files = [manifests[place] for place in places]
    named = pa.array([file.path for file in files], pa.string())
    found = list(read_manifests(paths.full_all(named).to_pylist(), read_many))
    if not found:
        return FILES.empty_table(), FILES.empty_table(), ()
    number = np.repeat(np.arange(len(files)), [manifest.entries.num_rows for manifest in found])
    partitions, scopes = _numbered(files, found)
    entries = (
        inherit(found, files)
        .append_column("spec_id", pa.array(np.array([file.spec_id for file in files], np.int32)[number]))
        .append_column("scope", pa.array(scopes))
        .append_column("manifest", pa.array(np.array(places, np.int64)[number]))
    )
    chosen = pc.not_equal(entries.column("status"), DELETED) if alive else pc.is_valid(entries.column("status"))
    encrypted = pc.and_(chosen, entries.column("encrypted"))
    if pc.any(encrypted).as_py():
        path = files[number[pc.index(encrypted, True).as_py()]].path
        raise NotSupportedError(f"files listed in {path!r} are encrypted, and encrypted files cannot be read here")
    entries = entries.filter(chosen)
    entries = entries.append_column("path", paths.full_all(entries.column("raw_path")))
    entries = entries.select(FILES.names).cast(FILES)
    # Files are what their entries say: writers have put delete files into manifests of data.
    is_data = pc.equal(entries.column("content"), DATA_FILE)
    data, deletes = (entries.filter(kind).combine_chunks() for kind in (is_data, pc.invert(is_data)))
    if data.num_rows and len(pc.unique(data.column("spec_id"))) > 1:
        data = data.take(pc.sort_indices(data.column("spec_id")))  # Files of one spec are read together.
    return data, deletes, partitions


def _numbered(
    files: Sequence[ManifestFile], manifests: Sequence[Manifest]
) -> tuple[tuple[Partition, ...], npt.NDArray[np.int64]]:
    """The distinct partitions, and the number of that of each entry."""
    partitions: list[Partition] = []
    known: dict[tuple[Any, ...], int] = {}
    scopes = []
    for file, manifest in zip(files, manifests, strict=True):
        numbers = []
        for values, key in zip(manifest.partitions, manifest.keys, strict=True):
            number = known.setdefault((file.spec_id, *key), len(known))
            if number == len(partitions):
                partitions.append(Partition(file.spec_id, values))
            numbers.append(number)
        scopes.append(np.array(numbers, np.int64)[manifest.entries.column("partition").to_numpy()])
    return tuple(partitions), np.concatenate(scopes)


def inherit(manifests: Sequence[Manifest], files: Sequence[ManifestFile]) -> pa.Table:
    """The entries of manifests with the numbers that they take from the manifest list (spec, Sequence Number
    Inheritance)."""
    # A filter takes as long for each chunk as for a thousand rows.
    entries = pa.concat_tables([manifest.entries for manifest in manifests]).combine_chunks()
    number = np.repeat(np.arange(len(files)), [manifest.entries.num_rows for manifest in manifests])

    def inherited(name: str, of_list: Sequence[int | None]) -> pa.ChunkedArray:
        return pc.coalesce(entries.column(name), pa.array(of_list, pa.int64()).take(pa.array(number)))

    numbers = [file.sequence_number for file in files]
    columns = {
        "snapshot_id": inherited("snapshot_id", [file.added_snapshot_id for file in files]),
        "sequence_number": inherited("sequence_number", numbers),
        "file_sequence_number": inherited("file_sequence_number", numbers),
        "first_row_id": first_row_ids(
            entries, [file.first_row_id if file.content == DATA else None for file in files], number
        ),
    }
    for name, values in columns.items():
        entries = entries.set_column(entries.column_names.index(name), ENTRIES.field(name), values)
    return entries


def _check_once(data: pa.Table) -> None:
    paths = data.column("raw_path")
    if len(pc.unique(paths)) < len(paths):
        counts = pc.value_counts(paths)
        twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0]
        raise DataError(f"The metadata is corrupt: data file {twice.as_py()!r} is listed twice in one snapshot.")
