"""Erasure of rows from an Iceberg table: which files may hold them, and how these go with the snapshots that read
them, and with all that manifests and older metadata tell of them.

The files of snapshots that expire are removed behind the commit. Who is interrupted in between finds them by the older
metadata files, which go last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.errors import ConflictError, NotSupportedError, OperationalError
from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.erasure import ORPHAN, Ended, Erasure, StoredTable, UnreachableFile, Wiped
from lakedbapi.formats.iceberg.delete_rewriting import reached_by
from lakedbapi.formats.iceberg.expiry import Expiry, check_may_remove, expire
from lakedbapi.formats.iceberg.reachable import stored_files
from lakedbapi.formats.iceberg.snapshot import IcebergSnapshot
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.formats.iceberg.stored_history import StoredHistory
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.territory import UnknownTerritoryError, unclaimed
from lakedbapi.formats.iceberg.tidying import tidy
from lakedbapi.formats.iceberg.travel import lineage
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.sql_types import spelled

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.catalog import IcebergCatalog

_OWN_NAME = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}[^/]*\.parquet$")
"""How writers of Iceberg tables name data files and delete files: with a UUID."""
_NO_ROWS = re.compile(r"(\.avro|\.json|\.puffin|\.stats|(^|/)\.[^/]+\.crc|version-hint\.text)$")
"""Metadata, which is looked at apart, deletion vectors and checksums."""
_HIDDEN = re.compile(r"(^|/)[_.][^/=]*(/|$)")


class IcebergErasure(Erasure):
    way_out = (
        "once none is, CALL ducklake_delete_orphaned_files(…, cleanup_all => true) removes files that no snapshot has"
    )

    def __init__(self, catalog: IcebergCatalog) -> None:
        self._catalog = catalog

    def stored(self, base: Snapshot, table: TableInfo) -> Sequence[StoredTable]:
        history = self._history(table)
        self._catalog.reach(history.directories)
        return [history.data(table), *history.equality_deletes(table)]

    def unreachable(self, base: Snapshot, table: TableInfo) -> Sequence[UnreachableFile]:
        # Listed before the metadata is read: what is committed in between is known then.
        listed = stored_files(self._version(table))
        history = self._history(table)
        root = history.version.paths.full(history.version.metadata.location).rstrip("/") + "/"
        known = {*history.files.data.column("path").to_pylist(), *history.files.deletes.column("path").to_pylist()}
        nobodys = self._nobodys(history.version, set(listed["path"].to_pylist()) - known)
        found = []
        for path, changed in zip(listed["path"].to_pylist(), listed["mtime"].to_pylist(), strict=True):
            below = path.removeprefix(root)
            if path in known or _NO_ROWS.search(path):
                continue
            if _HIDDEN.search(below) and ".parquet" not in below:
                continue
            own = path in nobodys and _OWN_NAME.search(path) is not None
            found.append(UnreachableFile(path, ORPHAN, is_own=own, in_table=True, changed=changed))
        return found

    def worn_by(self, base: Snapshot, table: TableInfo, paths: pa.Array) -> pa.Array:
        """Those at `paths`, and what equality delete files among them reach."""
        assert isinstance(base, IcebergSnapshot)
        version = base.version_of(table)
        live = version.live.data.column("path").filter(pa.array(reached_by(version, paths)))
        return pa.concat_arrays([paths, live.combine_chunks()])

    def forget(
        self,
        base: Snapshot,
        table: TableInfo,
        paths: pa.Array,
        begins: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
    ) -> Sequence[Ended]:
        return self._cleanse(table, frozenset(paths.to_pylist()))

    def remove(self, table: TableInfo, paths: Sequence[str]) -> None:
        history = self._history(table)
        kept = history.kept.files
        inside = set(history.listed["path"].to_pylist())
        going = [path for path in paths if path in inside and path not in kept]
        history.version.storage.delete(going)
        history.version.storage.remove_value_folders(going)

    def wipe(self, base: Snapshot, table: TableInfo) -> Sequence[Wiped]:
        """Manifests have bounds of the columns of files, also of such as are gone; older metadata has partitions."""
        ended = self._cleanse(table, frozenset())
        history = self._history(table)
        result = "tells of no file that is gone"
        if ended:
            result = f"{len(ended)} snapshots ended, which told of files that are gone"
        lines = [Wiped(history.location, "metadata", True, result)]
        for name in sorted(history.named(history.telling(frozenset()))):
            what = f"names snapshot {history.version.metadata.refs[name].snapshot_id}, whose manifests have bounds of "
            lines.append(Wiped(name, "branch or tag", False, f"{what}files that are gone: drop it, and purge again"))
        unknown = history.unknown_metadata()
        nobodys = self._nobodys(history.version, {path for path, is_old in unknown if is_old})
        history.version.storage.delete(nobodys)
        for path, _ in unknown:
            result = "removed" if path in nobodys else "unknown: remove it by hand once no writer runs"
            lines.append(Wiped(path, "metadata file", path in nobodys, result))
        return lines

    def _nobodys(self, version: TableVersion, files: set[str]) -> set[str]:
        """Those of the files that are surely no other table's."""
        with suppress(UnknownTerritoryError):
            return unclaimed(files, version, self._catalog.source)
        return set()

    def _cleanse(self, table: TableInfo, paths: frozenset[str]) -> Sequence[Ended]:
        """End the snapshots that read files at `paths` or tell of files that are gone, and remove all that only they
        and earlier ones needed."""
        history = self._history(table)
        if history.version.snapshot_id in history.telling(paths):
            tidy(self._catalog, table, history.version, manifests=True, deletes=True)
            history = self._history(table)
        ended = self._end(table, history, paths)
        if ended:
            history = self._history(table)
        if history.forgotten:
            history.remove_forgotten()
        return ended

    def _end(self, table: TableInfo, history: StoredHistory, paths: frozenset[str]) -> Sequence[Ended]:
        version = history.version
        having = history.having(paths) - {version.snapshot_id}
        telling = history.telling(paths) - {version.snapshot_id}
        # What a name stands for is given up only where it has such rows itself.
        named = {version.metadata.refs[name].snapshot_id for name in history.named(telling)}
        expiry = Expiry(telling - (named - having), history.named(having))
        own = {snapshot.snapshot_id for snapshot in lineage(version.metadata, version.snapshot_id)}
        for name in sorted(expiry.refs):
            ref = version.metadata.refs[name]
            if ref.snapshot_ref_type == "branch" and ref.snapshot_id not in own:
                raise OperationalError(
                    f"PURGE FROM {table.name}: branch {name!r} has files with such rows, and snapshots of its own: "
                    f"CALL fast_forward('{table.name}', 'main', '{name}') or drop it, and purge again"
                )
        source = self._catalog.source
        assert isinstance(source, CatalogSource)
        expire(source, (*self._catalog.named(table.schema_id), table.name), version, expiry)
        refs = [Ended(str(version.metadata.refs[name].snapshot_ref_type), name) for name in sorted(expiry.refs)]
        return [*(Ended("snapshot", str(id)) for id in sorted(expiry.snapshots)), *refs]

    def _version(self, table: TableInfo) -> TableVersion:
        version = self._catalog.load_whole(self._catalog.named(table.schema_id), table.name)
        if version is None:
            raise ConflictError(f"table {table.name} was dropped by another transaction")
        return version

    def _history(self, table: TableInfo) -> StoredHistory:
        version = self._version(table)
        check_may_remove(version)
        if version.metadata.format_version < 2:
            raise NotSupportedError(
                f"PURGE FROM {table.name}: rows of tables of format version 1 cannot be changed here: ALTER TABLE "
                f"{spelled(table.name)} SET ('format-version' = '2') first"
            )
        loaded = self._catalog.source.load(self._catalog.named(table.schema_id), table.name)
        if loaded is None or loaded.metadata != version.metadata:
            raise ConflictError(f"table {table.name} was changed by another transaction; purge again")
        return StoredHistory(version, version.paths.full(loaded.metadata_location))
