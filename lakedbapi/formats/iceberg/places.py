"""Where a table's files lie, and what they are called in its metadata."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata

from lakedbapi.formats.iceberg.paths import Paths

DATA_PATH, METADATA_PATH = "write.data.path", "write.metadata.path"
"""The properties that say where a table's files go."""


@dataclass(frozen=True)
class Places:
    """Directories as the metadata names them, without a slash at the end."""

    location: str
    data: str
    metadata: str

    @classmethod
    def of(cls, metadata: TableMetadata) -> Places:
        return cls.at(metadata.location, metadata.properties)

    @classmethod
    def at(cls, location: str, properties: Mapping[str, str]) -> Places:
        location = location.rstrip("/")
        return cls(
            location,
            properties.get(DATA_PATH, f"{location}/data").rstrip("/"),
            properties.get(METADATA_PATH, f"{location}/metadata").rstrip("/"),
        )

    def named(self, path: str) -> str:
        """What the metadata calls the file at `path`, which is below one of the directories."""
        for directory in (self.location, self.data, self.metadata):
            full = Paths().full(directory)
            if path.startswith(f"{full}/"):
                return directory + path[len(full) :]
        return path

    def new_data(self, suffix: str) -> str:
        """A new name, as the metadata has it."""
        return f"{self.data}/{uuid.uuid4()}-{suffix}"

    def new_metadata(self, name: str) -> str:
        return f"{self.metadata}/{name}"
