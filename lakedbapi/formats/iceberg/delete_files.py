"""Delete files of a commit: position delete files in version 2, deletion vectors in version 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyiceberg.typedef import Record
from pyiceberg.types import LongType

from lakedbapi.deletes import parquet, puffin
from lakedbapi.deletes.parquet import ICEBERG_PATH_FIELD, ICEBERG_POSITION_FIELD
from lakedbapi.formats.iceberg.manifest_files import Row
from lakedbapi.formats.iceberg.manifests import POSITION_DELETES
from lakedbapi.formats.iceberg.places import Places
from lakedbapi.formats.iceberg.values import encoded
from lakedbapi.model.delete_vector import DeleteVector

_POSITION_COLUMN = 2147483645
"""The reserved id of a row's position, which a vector is about (Puffin spec, deletion-vector-v1)."""

Write = Callable[[str, bytes], str]
"""Write a new file with a name as the metadata has it; the path to read it at."""


@dataclass(frozen=True)
class Deleted:
    """Rows of a data file that are gone. `path` is as the metadata has it, spec and partition are the file's."""

    path: str
    spec_id: int
    partition: Record
    vector: DeleteVector


def write(version: int, deleted: Sequence[Deleted], places: Places, write_file: Write) -> list[Row]:
    """Store the deletes; the `data_file` of each, in order."""
    if not deleted:
        return []
    return _vectors(deleted, places, write_file) if version >= 3 else _positions(deleted, places, write_file)


def _positions(deleted: Sequence[Deleted], places: Places, write_file: Write) -> list[Row]:
    """A file for each data file: some readers take no others, and the next delete can replace it."""
    found = []
    for file in deleted:
        positions = file.vector.to_numpy()
        path = places.new_data("deletes.parquet")
        data = parquet.encode(file.path, positions, field_ids=(ICEBERG_PATH_FIELD, ICEBERG_POSITION_FIELD))
        parquet.keep_by_path(write_file(path, data), file.path, file.vector)
        bounds = [
            {ICEBERG_PATH_FIELD: file.path.encode(), ICEBERG_POSITION_FIELD: encoded(int(position), LongType())}
            for position in (positions[0], positions[-1])
        ]
        found.append({**_entry(file, path, "PARQUET", len(data)), "lower_bounds": bounds[0], "upper_bounds": bounds[1]})
    return found


def _vectors(deleted: Sequence[Deleted], places: Places, write_file: Write) -> list[Row]:
    path = places.new_data("deletes.puffin")
    blobs = [puffin.deletion_vector(file.vector, file.path, fields=(_POSITION_COLUMN,)) for file in deleted]
    container = puffin.encode(blobs, {"created-by": "lakedbapi"})
    write_file(path, container.data)
    # Readers that do not know the referenced file find it by these bounds.
    return [
        {
            **_entry(file, path, "PUFFIN", len(container.data)),
            "lower_bounds": {ICEBERG_PATH_FIELD: file.path.encode()},
            "upper_bounds": {ICEBERG_PATH_FIELD: file.path.encode()},
            "content_offset": offset,
            "content_size_in_bytes": size,
        }
        for file, (offset, size) in zip(deleted, container.extents, strict=True)
    ]


def _entry(file: Deleted, path: str, format: str, size: int) -> Row:
    return {
        "content": POSITION_DELETES,
        "file_path": path,
        "file_format": format,
        "partition": file.partition,
        "record_count": len(file.vector),
        "file_size_in_bytes": size,
        "referenced_data_file": file.path,
        "content_size_in_bytes": None,
    }
