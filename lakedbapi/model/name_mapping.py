"""How the columns of a table are found in files that other programs wrote, without field ids: by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import NAME, FileGroup

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class MappedName:
    """`name` is what the field with `field_id` is called in the files; `parent` the index of the entry it lies in.

    With `is_folder` it is the name of a partition in the path, `name=value/`, which holds for all rows of the file.
    """

    name: str
    field_id: int
    parent: int | None = None
    is_folder: bool = False


@dataclass(frozen=True)
class NameMapping:
    """`entries` are all fields that the files have; other fields of the table have their initial default."""

    entries: tuple[MappedName, ...]

    def group(
        self,
        files: pa.Table,
        deletes: Mapping[int, DeleteVector],
        encryption_keys: Mapping[int, str] = {},
    ) -> FileGroup:
        """`files` (columns: at least `model.scan.DATA_FILES`), ready to be scanned."""
        folders = [entry for entry in self.entries if entry.is_folder]
        paths: Sequence[str] = files.column("path").to_pylist() if folders else ()
        constants = {
            str(folder.field_id): pa.array([folder_value(path, folder.name) for path in paths], pa.string())
            for folder in folders
        }
        return FileGroup(
            files,
            deletes,
            match=NAME,
            names={entry.field_id: entry.name for entry in self.entries if not entry.is_folder},
            constants=pa.table(constants) if folders else None,
            embedded=frozenset(),  # A file without field ids has none of the columns that only ids tell.
            encryption_keys=encryption_keys,
        )


def folders(path: str) -> Mapping[str, str | None]:
    """The partitions in a path, `name=value/`; None = NULL."""
    found = re.findall(r"(?:^|/)([^/=]+)=([^/]*)(?=/)", path)
    return {unquote(name): None if value == _NULL_FOLDER else unquote(value) for name, value in found}


def folder_value(path: str, name: str) -> str | None:
    """The value of the partition `name` in a path."""
    return folders(path).get(name)
