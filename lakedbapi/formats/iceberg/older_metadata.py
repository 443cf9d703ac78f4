"""Older metadata files, which each commit leaves behind."""

from __future__ import annotations

from contextlib import suppress

from pyiceberg.table.metadata import TableMetadata

from lakedbapi.errors import OperationalError
from lakedbapi.formats.iceberg.table import TableVersion

_ENABLED = "write.metadata.delete-after-commit.enabled"


def remove_older_metadata(before: TableVersion, after: TableMetadata) -> None:
    """Behind a commit on `before`: what the new metadata names no more (`write.metadata.previous-versions-max`), where
    the table asks for it."""
    if after.properties.get(_ENABLED, "false").casefold() != "true":
        return
    kept = {entry.metadata_file for entry in after.metadata_log}
    gone = [entry.metadata_file for entry in before.metadata.metadata_log if entry.metadata_file not in kept]
    with suppress(OperationalError):  # The commit is there; what is left costs only space.
        before.storage.delete([before.paths.full(path) for path in gone])
