"""Vacuum: snapshots that others followed long ago expire, and files go that no snapshot needs any more."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import ConflictError
from lakedbapi.formats.iceberg.commit import ATTEMPTS
from lakedbapi.formats.iceberg.expiry import check_may_remove, expire, needless, older_than
from lakedbapi.formats.iceberg.places import Places
from lakedbapi.formats.iceberg.reachable import named_in_metadata, reachable
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.territory import unclaimed

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.sources import CatalogSource

_METADATA = re.compile(r"[^.].*\.json(\.gz)?|.*version-hint\.text")
"""Names of metadata files; those that are written yet begin with a dot."""


def vacuum(
    source: CatalogSource,
    identifier: tuple[str, ...],
    load: Callable[[], TableVersion | None],
    cutoff: datetime,
    unknown: datetime,
    *,
    dry_run: bool,
) -> Sequence[str]:
    """See `Maintenance.vacuum`; `load` gives the newest state of the table, which is looked at anew when others were
    faster. The snapshots go first: files that are left over are found the next time."""
    for _ in range(ATTEMPTS):
        version = load()
        if version is None:
            return []
        check_may_remove(version)
        expiry = older_than(version, cutoff, superseded=True)
        going = sorted({*needless(version, expiry.snapshots), *orphans(source, version, unknown)})
        if dry_run:
            return going
        try:
            if not expire(source, identifier, version, expiry):
                return []
        except ConflictError:
            continue
        version.storage.delete(going)
        return going
    raise ConflictError(f"table {'.'.join(identifier)}: other transactions were faster {ATTEMPTS} times; retry")


def orphans(source: CatalogSource, version: TableVersion, unknown: datetime) -> set[str]:
    """Files of the table alone that no snapshot has, last changed before `unknown`. None is a metadata file that was
    finished."""
    places = Places.of(version.metadata)
    known = {*reachable(version, version.metadata.snapshots).all, *named_in_metadata(version)}
    found: set[str] = set()
    for directory in {places.data, places.metadata}:
        listed = version.storage.list(version.paths.full(directory) + "/")
        old = pc.fill_null(pc.less(listed.column("mtime"), pa.scalar(unknown)), False)
        found |= set(listed.filter(old).column("path").to_pylist())
    going = (path for path in found - known if not _METADATA.fullmatch(posixpath.basename(path)))
    return unclaimed(going, version, source)
