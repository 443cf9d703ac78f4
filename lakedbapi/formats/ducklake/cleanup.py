"""Cleanup: files that the lake does not need any more are removed from storage.

An object is removed first, then the catalog's note of it: whoever is interrupted begins again, and an object that is
missing already counts as removed. What some entry of the catalog names is never touched.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import delete, select
from sqlalchemy.engine import Connection

from lakedbapi.formats.ducklake.paths import resolve
from lakedbapi.formats.ducklake.stored_files import entered_paths, listed, normalized, table_directories

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog

_BATCH = 500
"""Files that are removed before the catalog is told."""
_OWN_NAME = r"(^|/)ducklake-[^/]+\.(parquet|puffin)$"
"""How DuckLake's writers name files. Others in the data path are somebody else's."""
_UNFINISHED = r"(^|/)\.ducklake-[^/]+\.tmp$"
"""A file of ours, as long as it is written."""


def is_own_name(path: str) -> bool:
    """Whether a file is named as DuckLake's writers name theirs."""
    return re.search(_OWN_NAME, path) is not None


def cleanup(
    catalog: DuckLakeCatalog,
    older_than: datetime | None,
    *,
    below: str = "",
    only: Collection[str] | None = None,
    dry_run: bool = False,
) -> Sequence[str]:
    """Remove the files that are scheduled for it; see `Maintenance.cleanup`.

    Only those whose path starts with `below`; `only`: just those (normalized) paths.
    """
    scheduled = catalog.backend.tables.files_scheduled_for_deletion
    columns = scheduled.c.path, scheduled.c.path_is_relative, scheduled.c.schedule_start
    with catalog.backend.read() as connection:
        rows = connection.execute(select(*columns).order_by(scheduled.c.data_file_id, scheduled.c.path)).all()
        entered = _entered(catalog, connection) if rows else set()
    due: dict[str, list[str]] = {}
    for path, is_relative, start in rows:
        full = resolve(catalog.data_path, path, is_relative)
        if only is not None and normalized(full) not in only:
            continue
        # Nobody knows since when a file waits whose time was not noted.
        is_old = older_than is None or (start is not None and start < older_than)
        if path and not full.endswith("/") and full.startswith(below) and is_old:
            due.setdefault(full, []).append(path)
    needless = [path for path in due if normalized(path) not in entered]
    if dry_run:
        return needless
    for start in range(0, len(due), _BATCH):
        batch = list(due)[start : start + _BATCH]
        catalog.storage.delete([path for path in batch if normalized(path) not in entered])
        stored = [path for full in batch for path in due[full]]
        with catalog.backend.write() as connection:
            connection.execute(delete(scheduled).where(scheduled.c.path.in_(stored)))
    return needless


def remove_orphans(
    catalog: DuckLakeCatalog, older_than: datetime | None, *, below: str, dry_run: bool
) -> Sequence[str]:
    """Remove files that the catalog does not know; see `Maintenance.remove_orphans`."""
    with catalog.backend.read() as connection:
        directories = table_directories(connection, catalog.backend.tables, catalog.data_path)
    # Listed before the catalog is asked for files: what is committed in between is known then.
    found = listed(
        catalog.storage, catalog.data_path, [path for path in directories.values() if path.startswith(below)]
    )
    path = found.column("path")
    is_own = pc.match_substring_regex(path, f"{_OWN_NAME}|{_UNFINISHED}")
    candidate = pc.and_(is_own, pc.starts_with(path, below))
    if older_than is not None:
        # Young files may belong to a transaction that has not committed yet; so may those of unknown age.
        old = pc.less(found.column("mtime"), pa.scalar(older_than, pa.timestamp("us", "UTC")))
        candidate = pc.and_(candidate, pc.fill_null(old, False))
    path = path.filter(candidate)
    if not len(path):
        return []
    # Compared by name, which is unique: no spelling of a folder makes a known file an orphan.
    orphans: list[str] = path.filter(pc.invert(pc.is_in(_names(path), _known_names(catalog)))).to_pylist()
    if not dry_run:
        catalog.storage.delete(orphans)
    return orphans


def remove(catalog: DuckLakeCatalog, paths: Collection[str]) -> None:
    """See `Erasure.remove`."""
    cleanup(catalog, None, only=frozenset(map(normalized, paths)))
    with catalog.backend.read() as connection:
        entered = _entered(catalog, connection)
    needless = [path for path in paths if normalized(path) not in entered]
    catalog.storage.delete(needless)
    catalog.storage.remove_value_folders(needless)


def _entered(catalog: DuckLakeCatalog, connection: Connection) -> set[str]:
    tables = catalog.backend.tables
    directories = table_directories(connection, tables, catalog.data_path)
    return set(map(normalized, entered_paths(connection, tables, directories).to_pylist()))


def _known_names(catalog: DuckLakeCatalog) -> pa.Array:
    tables = catalog.backend.tables
    with catalog.backend.read() as connection:
        known = [
            pa.array(connection.execute(select(source.c.path)).scalars().all(), pa.string())
            for source in (tables.data_file, tables.delete_file, tables.files_scheduled_for_deletion)
        ]
    return _names(pa.chunked_array(known)).combine_chunks()


def _names(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """The last part of each path."""
    return pc.replace_substring_regex(paths, r"^.*[/\\]", "")
