"""Opening a directory of Hudi tables: `HudiFormat`, the registry's entry."""

from __future__ import annotations

from collections.abc import Mapping

from lakedbapi.errors import InterfaceError, ProgrammingError
from lakedbapi.formats.base import Format
from lakedbapi.formats.hudi import rust
from lakedbapi.formats.hudi.catalog import HudiCatalog
from lakedbapi.storage.filesystem import Storage
from lakedbapi.storage.options import storage_options


class HudiFormat(Format):
    """Apache Hudi: each directory with a `.hoodie` directory is a table. Tables can only be read."""

    name = "hudi"

    def open(self, location: str, options: Mapping[str, str], *, read_only: bool, create: bool) -> HudiCatalog:
        """The tables in and below the directory `location`, a local path or a URL.

        `options` (all text) are

        - `read_optimized`: `true` = leave the log files of merge-on-read tables out, and with them what was updated,
          deleted or inserted since the last compaction
        - `meta_columns`: `true` = the tables have the columns that Hudi adds (`_hoodie_commit_time` and so on)
        - `storage_options.<name>`: what the fsspec filesystem takes; of those for S3 hudi-rs gets `key`, `secret`,
          `token`, `anon`, `endpoint_url` and the region

        NotSupportedError where the package `hudi` is missing, ProgrammingError for a local directory that does not
        exist.
        """
        rust.load()
        filesystem = storage_options(options)
        storage = Storage.of(location, filesystem)
        if storage.is_local and not storage.is_directory(storage.root):
            raise ProgrammingError(f"{storage.root}: no such directory, so there are no Hudi tables")
        return HudiCatalog(
            storage,
            filesystem,
            read_optimized=_is_on(options, "read_optimized"),
            meta_columns=_is_on(options, "meta_columns"),
        )


def _is_on(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").strip().lower()
    if text in ("true", "1", "on", "yes", ""):
        return True
    if text in ("false", "0", "off", "no"):
        return False
    raise InterfaceError(f"{name}={options[name]!r} is neither true nor false")
