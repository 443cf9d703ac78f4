"""Opening a directory of Delta tables: `DeltaFormat`, the registry's entry."""

from __future__ import annotations

from collections.abc import Mapping

from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.base import Format
from lakedbapi.formats.delta.catalog import DeltaCatalog
from lakedbapi.storage.filesystem import Storage
from lakedbapi.storage.options import storage_options


class DeltaFormat(Format):
    """Delta Lake: each directory with a `_delta_log` is a table."""

    name = "delta"

    def open(self, location: str, options: Mapping[str, str], *, read_only: bool, create: bool) -> DeltaCatalog:
        """The tables in and below the directory `location`, a local path or a URL.

        `options`: `storage_options.<name>`, what the fsspec filesystem takes; `non_atomic`: whether a transaction may
        change several tables, which are then committed one after the other. ProgrammingError for a local directory
        that does not exist, unless `create` is set: it is made with the first table.
        """
        storage = Storage.of(location, storage_options(options))
        if storage.is_local and not create and not storage.is_directory(storage.root):
            raise ProgrammingError(f"{storage.root}: no such directory, so there are no Delta tables")
        if storage.is_local and storage.exists(storage.root.rstrip("/")) and not storage.is_directory(storage.root):
            raise ProgrammingError(f"{storage.root.rstrip('/')}: a file, so there are no Delta tables in it")
        return DeltaCatalog(storage, non_atomic=options.get("non_atomic", "false").casefold() == "true")
