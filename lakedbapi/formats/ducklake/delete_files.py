"""Delete files: the positions of a data file that are gone, each with the snapshot that deleted it."""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakedbapi.deletes import parquet, puffin, roaring
from lakedbapi.errors import DamagedFileError, NotSupportedError
from lakedbapi.formats.ducklake.ids import uuid7
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage

_TAG = "ducklake-snapshot-id"


@dataclass(frozen=True)
class Deletions:
    """Deleted positions of one data file, ascending, and the snapshot that deleted each: int64 arrays of one length."""

    positions: npt.NDArray[np.int64]
    snapshots: npt.NDArray[np.int64]

    @classmethod
    def at(cls, positions: DeleteVector, snapshot: int) -> Deletions:
        return cls(positions.to_numpy(), np.full(len(positions), snapshot, np.int64))

    @classmethod
    def of(cls, positions: Sequence[int], snapshots: Sequence[int]) -> Deletions:
        return cls(np.array(positions, np.int64), np.array(snapshots, np.int64))

    def until(self, snapshot: int) -> Deletions:
        """Those of snapshots up to this one."""
        kept = self.snapshots <= snapshot
        return Deletions(self.positions[kept], self.snapshots[kept])

    def __len__(self) -> int:
        return len(self.positions)

    def __or__(self, other: Deletions) -> Deletions:
        """Both; a position in both keeps the earlier snapshot."""
        positions = np.concatenate([self.positions, other.positions])
        snapshots = np.concatenate([self.snapshots, other.snapshots])
        order = np.argsort(positions, kind="stable")  # Merges two sorted runs in linear time.
        positions, snapshots = positions[order], snapshots[order]
        first = np.flatnonzero(np.r_[True, positions[1:] != positions[:-1]])
        if len(first) < len(positions):
            positions, snapshots = positions[first], np.minimum.reduceat(snapshots, first)
        return Deletions(positions, snapshots)

    @property
    def vector(self) -> DeleteVector:
        return DeleteVector.of(self.positions)


class DeleteFormat(enum.Enum):
    """How deletes are written."""

    PARQUET = "parquet"
    BARE_VECTORS = "bare vectors"
    """A file that is one deletion vector. It has no place for several snapshots: those go to Parquet."""
    VECTORS = "vectors"
    """As `BARE_VECTORS`, but a Puffin container where there are several snapshots."""
    ENCRYPTED = "encrypted"
    """Parquet, each file with a key of its own. Puffin has no encryption that DuckDB reads."""


@dataclass(frozen=True)
class WrittenDeletes:
    """A delete file that lies in storage; `format` is what the catalog calls it: parquet or puffin."""

    path: str
    format: str
    delete_count: int
    file_size_bytes: int
    footer_size: int
    begin_snapshot: int
    partial_max: int | None
    row_group_count: int | None
    encryption_key: str | None = None


def write_deletes(
    storage: Storage, directory: str, data_file: str, deletions: Deletions, format: DeleteFormat
) -> WrittenDeletes:
    """Write a delete file for `data_file` (full path) into `directory`.

    The snapshot ids are only embedded where there are several: without them all positions belong to the file's own.
    """
    path = f"{directory}ducklake-{uuid7()}-delete."
    first, last = int(deletions.snapshots.min()), int(deletions.snapshots.max())
    several = first != last
    partial_max = last if several else None
    encrypted = format is DeleteFormat.ENCRYPTED
    if encrypted or format is DeleteFormat.PARQUET or (several and format is DeleteFormat.BARE_VECTORS):
        path += "parquet"
        snapshots = deletions.snapshots if several else None
        file = parquet.write(storage, path, data_file, deletions.positions, snapshots, encrypted=encrypted)
        groups = parquet.row_group_count(len(deletions))
        return WrittenDeletes(
            path, "parquet", len(deletions), file.size, file.footer_size, first, partial_max, groups, file.key
        )
    path += "puffin"
    data, footer_size = _container(data_file, deletions) if several else (roaring.encode(deletions.vector), 0)
    storage.write_exclusive(path, data)
    return WrittenDeletes(path, "puffin", len(deletions), len(data), footer_size, first, partial_max, None)


def _container(data_file: str, deletions: Deletions) -> tuple[bytes, int]:
    """A vector for each snapshot that deleted something, with all that was deleted by then; and the footer's size."""
    blobs = [
        puffin.deletion_vector(deletions.until(snapshot).vector, data_file, properties={_TAG: str(snapshot)})
        for snapshot in np.unique(deletions.snapshots).tolist()
    ]
    container = puffin.encode(blobs, {"created-by": "lakedbapi"})
    return container.data, container.footer_size


def read_deletes(
    storage: Storage, path: str, format: str, begin_snapshot: int, data_file_id: int, key: str | None = None
) -> Deletions:
    """What a delete file lists of one data file; positions without a snapshot belong to `begin_snapshot`.

    `key` is that of an encrypted file; vectors are never encrypted.
    """
    if format == "puffin":
        blobs = puffin_blobs(storage.read_bytes(path), path, begin_snapshot)
        versions = [Deletions.at(decode_vectors(blobs[snapshot], path), snapshot) for snapshot in sorted(blobs)]
        return functools.reduce(operator.or_, versions, Deletions.of((), ()))
    if format != "parquet":
        raise NotSupportedError(f"delete file {path}: delete files of format {format!r} cannot be read or extended")
    positions, snapshots = parquet.read(storage, path, data_file_id, key)
    return Deletions(positions, np.full(len(positions), begin_snapshot, np.int64) if snapshots is None else snapshots)


def puffin_blobs(data: bytes, path: str, begin_snapshot: int) -> Mapping[int, Sequence[bytes]]:
    """The encoded vectors in a Puffin delete file by snapshot; those of a snapshot include all earlier ones.

    The file is one bare vector, or a container of vectors that are tagged by snapshot, or all not: then their union
    belongs to `begin_snapshot`.
    """
    if not puffin.is_container(data):
        return {begin_snapshot: [data]}
    blobs = puffin.blobs(data, path, puffin.DELETION_VECTOR)
    tagged = {int(blob.properties[_TAG]): [blob.content] for blob in blobs if _TAG in blob.properties}
    if not tagged:
        return {begin_snapshot: [blob.content for blob in blobs]}
    if len(tagged) < len(blobs):
        raise DamagedFileError(
            f"delete file {path}: its vectors contradict each other about the snapshots they belong to"
        )
    return tagged


def decode_vectors(blobs: Sequence[bytes], path: str) -> DeleteVector:
    """The union of encoded vectors."""
    return functools.reduce(operator.or_, (roaring.decode(blob, path) for blob in blobs), DeleteVector())
