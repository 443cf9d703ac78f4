"""Erasure of rows from a Delta table: which files may hold them, and how these go with the versions that had them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.delta import texts, vacuum
from lakedbapi.formats.delta.checkpoints import read_checkpoint
from lakedbapi.formats.delta.columns import FILES, as_adds
from lakedbapi.formats.delta.contents import TableContents
from lakedbapi.formats.delta.features import writer_features
from lakedbapi.formats.delta.history import read_history
from lakedbapi.formats.delta.log import LOG
from lakedbapi.formats.delta.log_erasure import cut_log, unknown_files
from lakedbapi.formats.delta.paths import full_paths
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.formats.delta.writer_features import check_writable
from lakedbapi.formats.erasure import END, ORPHAN, SCHEDULED, Ended, Erasure, StoredTable, UnreachableFile, Wiped
from lakedbapi.model.catalog import PartitionField, PartitionSpec, TableInfo
from lakedbapi.model.scan import FileGroup
from lakedbapi.model.types import Field

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog

_OWN_NAME = re.compile(r"(^|/)(part|cdc)-[^/]+\.parquet$")
"""How writers of Delta tables name data files and change files."""
_NO_ROWS = re.compile(r"(^|/)(deletion_vector_[^/]+\.bin|\.[^/]+\.crc)$")
"""Deletion vectors and checksums of files."""
_HIDDEN = re.compile(r"(^|/)[_.][^/=]*(/|$)")
_NULL = "__HIVE_DEFAULT_PARTITION__"


class DeltaErasure(Erasure):
    way_out = (
        "once none is, ALTER TABLE … SET ('delta.deletedFileRetentionDuration' = 'interval 0 hours') and CALL "
        "ducklake_delete_orphaned_files(…, cleanup_all => true) remove files that no version names"
    )

    def __init__(self, catalog: DeltaCatalog) -> None:
        self._catalog = catalog

    def stored(self, base: Snapshot, table: TableInfo) -> Sequence[StoredTable]:
        log = self._log(table)
        state = log.latest()
        _check_erasable(state, table)
        told = _Told.of(log)
        files = told.searchable(table).filter(self._present(log, told.searchable(table)["path"]))
        return [StoredTable(table, tuple(self._groups(state, table, files)), (), (), is_live=True)]

    def _groups(self, state: TableState, table: TableInfo, files: pa.Table) -> list[FileGroup]:
        """By the columns that the files do not have themselves: partitioning changes when a table is replaced."""
        keys = [tuple(sorted(dict(values or ()))) for values in files["partition_values"].to_pylist()]
        groups: list[FileGroup] = []
        for key in sorted(set(keys)):
            chosen = files.filter(pa.array([each == key for each in keys]))
            keyed = [field for field in table.schema.fields if self._stored_name(table, field) in key]
            spec = PartitionSpec(0, tuple(PartitionField(field.id, "identity") for field in keyed)) if keyed else None
            contents = TableContents(
                self._catalog.storage,
                replace(state, files=_plain(chosen)),
                replace(table, partitioning=spec),
                self._catalog.vectors,
            )
            listed = contents.files.append_column(END, pa.nulls(chosen.num_rows, pa.int64()))
            groups += contents.file_groups(listed)
        return groups

    def unreachable(self, base: Snapshot, table: TableInfo) -> Sequence[UnreachableFile]:
        log = self._log(table)
        # Listed before the log is read: what is committed in between is known then.
        found = self._catalog.storage.list(log.root)
        told = _Told.of(log)
        known = set(told.searchable_paths(table))
        scheduled = set(told.paths) - known
        nested = vacuum.nested(pc.utf8_slice_codeunits(found["path"], len(log.root)))
        files = []
        for path, changed in zip(found["path"].to_pylist(), found["mtime"].to_pylist(), strict=True):
            below = path[len(log.root) :]
            if path in known or below.startswith((LOG, *nested)) or _NO_ROWS.search(below):
                continue
            shown = below.removeprefix(vacuum.CHANGE_DATA)
            if _HIDDEN.search(shown) and ".parquet" not in below:
                continue
            kind = SCHEDULED if path in scheduled else ORPHAN
            file = UnreachableFile(path, kind, _OWN_NAME.search(below) is not None, True, changed)
            files.append(self._with_partition(table, file, below))
        return files

    def _with_partition(self, table: TableInfo, file: UnreachableFile, below: str) -> UnreachableFile:
        """`file` with its partition's values, which nothing but the names of its directories tells."""
        file = replace(file, names=self._catalog.physical_names(table))
        if table.partitioning is None:
            return file
        told = dict(part.split("=", 1) for part in below.split("/")[:-1] if "=" in part)
        keys = {key.field_id for key in table.partitioning.fields}
        columns = {}
        for field in table.schema.fields:
            if field.id in keys:
                text = told.get(self._stored_name(table, field), told.get(field.name))
                if text is None:
                    return replace(file, unknown=f"its path does not tell the value of {field.name}")
                value = None if text == _NULL else unquote(text)
                what = f"{file.path}, column {field.name!r},"
                columns[str(field.id)] = texts.partition_array(pa.array([value], pa.string()), field.type, what)
        return replace(file, constants=pa.table(columns))

    def forget(
        self,
        base: Snapshot,
        table: TableInfo,
        paths: pa.Array,
        begins: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
    ) -> Sequence[Ended]:
        """All older versions go: the log is read from its newest checkpoint on. Files go first, so that who was
        interrupted finds in the log that something is left to do."""
        log = self._log(table)
        state, told = log.latest(), _Told.of(log)
        going = told.files.filter(pc.is_in(pa.array(told.paths, pa.string()), value_set=paths))
        vectors = vacuum.vector_files(log.root, pa.concat_tables([going, told.removes_in(paths)])["deletion_vector"])
        needed = set(vacuum.vector_files(log.root, state.files["deletion_vector"]))
        self.remove(table, [*paths.to_pylist(), *(path for path in vectors if path not in needed)])
        before = read_history(log)
        version = self._cut(table, state, told)
        return Ended.snapshots([info for info in before if info.id < version])

    def remove(self, table: TableInfo, paths: Sequence[str]) -> None:
        log = self._log(table)
        live = set(log.latest().paths.to_pylist())
        vacuum.delete(self._catalog.storage, [p for p in paths if p.startswith(log.root) and p not in live])

    def wipe(self, base: Snapshot, table: TableInfo) -> Sequence[Wiped]:
        """The log has bounds of the columns of each file that it names: those of files that are gone must go."""
        log = self._log(table)
        state, told = log.latest(), _Told.of(log)
        gone = pc.any(pc.invert(self._present(log, told.files["path"]))).as_py()
        result = "names no file that is gone"
        if gone:
            version = self._cut(table, state, told)
            result = f"begins at version {version} now: before, it told of files that are gone"
        unknown = [
            Wiped(path, "log file", False, "unknown: remove it by hand once no writer runs")
            for path in unknown_files(self._catalog.storage, log.root)
        ]
        return [Wiped(f"{log.root}{LOG}", "log", True, result), *unknown]

    def _cut(self, table: TableInfo, state: TableState, told: _Told) -> int:
        """Let the log begin behind `state`, without the change files of the versions that end."""
        self.remove(table, told.change_files)
        # What is left for a vacuum to remove.
        full = full_paths(state.root, state.tombstones["path"])
        waiting = pc.is_in(full, value_set=self._catalog.storage.list(state.root)["path"].combine_chunks())
        return cut_log(self._catalog, replace(state, tombstones=state.tombstones.filter(waiting)), told.sidecars)

    def _present(self, log: DeltaTable, paths: pa.ChunkedArray) -> pa.Array:
        """Which files (paths as in the log) are there."""
        storage = self._catalog.storage
        full = full_paths(log.root, paths)
        inside = pc.is_in(full, value_set=storage.list(log.root)["path"].combine_chunks())
        found = [
            known or (not path.startswith(log.root) and storage.exists(path))
            for path, known in zip(full.to_pylist(), inside.to_pylist(), strict=True)
        ]
        return pa.array(found, pa.bool_())

    def _stored_name(self, table: TableInfo, field: Field) -> str:
        return self._catalog.physical_names(table).get(field.id, field.name)

    def _log(self, table: TableInfo) -> DeltaTable:
        assert table.path is not None
        return self._catalog.table(table.path)


@dataclass(frozen=True)
class _Told:
    """All files that the log tells of, in any commit or checkpoint: one row of `files` (`columns.ADDS`) a path, with
    its partition values if something tells these."""

    root: str
    files: pa.Table
    removes: pa.Table
    change_files: Sequence[str]
    sidecars: Sequence[str]

    @classmethod
    def of(cls, log: DeltaTable) -> _Told:
        listing = log.listing()
        found = [
            *log.actions(listing.commits).values(),
            *(read_checkpoint(log.storage, log.root, each) for each in listing.checkpoints.values()),
        ]
        removes = pa.concat_tables([actions.removes for actions in found])
        # Adds and changes tell the values of partitions, removes need not.
        told = [actions.adds for actions in found] + [as_adds(actions.cdc) for actions in found]
        files = pa.concat_tables([*told, as_adds(removes)])
        known = files["partition_values"].is_valid()
        files = pa.concat_tables([files.filter(known), files.filter(pc.invert(known))])
        codes = full_paths(log.root, files["path"]).dictionary_encode().indices.to_numpy()
        _, first = np.unique(codes, return_index=True)
        sidecars = sorted({path for actions in found for path in actions.sidecars})
        changes = pa.concat_tables([actions.cdc for actions in found])
        change_files = full_paths(log.root, changes["path"]).to_pylist()
        return cls(log.root, files.take(pa.array(first, pa.int64())), removes, change_files, sidecars)

    @cached_property
    def paths(self) -> list[str]:
        found: list[str] = full_paths(self.root, self.files["path"]).to_pylist()
        return found

    def searchable(self, table: TableInfo) -> pa.Table:
        """Without those whose partition values only their paths may tell."""
        if table.partitioning is None:
            return self.files
        return self.files.filter(self.files["partition_values"].is_valid())

    def searchable_paths(self, table: TableInfo) -> list[str]:
        found: list[str] = full_paths(self.root, self.searchable(table)["path"]).to_pylist()
        return found

    def removes_in(self, paths: pa.Array) -> pa.Table:
        chosen = self.removes.filter(pc.is_in(full_paths(self.root, self.removes["path"]), value_set=paths))
        return as_adds(chosen)


def _plain(files: pa.Table) -> pa.Table:
    """Without deletes, and without statistics: some writers count only the rows that a deletion vector leaves."""
    for name in ("deletion_vector", "stats"):
        column = FILES.field(name)
        files = files.set_column(files.schema.get_field_index(name), column, pa.nulls(files.num_rows, column.type))
    return files.select(FILES.names)


def _check_erasable(state: TableState, table: TableInfo) -> None:
    check_writable(state.protocol, table.name)
    if "checkpointProtection" in writer_features(state.protocol):
        raise NotSupportedError(
            f"PURGE FROM {table.name}: the table protects its old checkpoints, which have bounds of its columns: drop "
            "its feature 'checkpointProtection' with the program that made it first"
        )
