"""The open transaction of a connection: pinned snapshots, staged changes, savepoints, and what a reader sees of
them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Catalog, CommitResult, Snapshot
from lakedbapi.model.catalog import AsOf, MacroInfo, SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.changes import Changes, RowChanges, StagedFile, StagedRows
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.layout import FileLayout
from lakedbapi.model.name_mapping import NameMapping
from lakedbapi.model.scan import DATA_FILES, FIELD_ID, NAME, ROW_ID_FIELD, FileGroup, RowGroup, Scan

T = TypeVar("T", SchemaInfo, TableInfo, ViewInfo, MacroInfo)
Named = TypeVar("Named", TableInfo, ViewInfo)

FILE, STAGED_FILE, ROW_GROUP, MERGED_ROWS, STAGED_ROWS = range(5)
"""The kinds of parts a table's contents have."""


@dataclass(frozen=True)
class Parts:
    """What each part number of a scan stands for: arrays as long as the scan has parts.

    `keys`: for FILE the file id; for the others the index into `Contents.staged_files`, `row_groups`,
    `Snapshot.merged_rows` (which no statement changes), `Contents.staged_rows`.
    `live`: the rows of the part that are not deleted by position.
    """

    kinds: npt.NDArray[np.int8]
    keys: npt.NDArray[np.int64]
    live: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Contents:
    """The rows of one table as a transaction sees them: committed and not deleted by it, plus staged."""

    table: TableInfo
    snapshot: Snapshot
    rows: RowChanges

    @cached_property
    def files(self) -> pa.Table:
        """The committed data files that are still live (columns: at least `DATA_FILES`); `deleted_count` is the
        committed one."""
        if self.table.id < 0:
            return DATA_FILES.empty_table()
        return self._not_removed(self.snapshot.files(self.table))

    def files_where(self, choose: Callable[[pa.Table], npt.NDArray[np.bool_]]) -> pa.Table:
        """Those of `files` that `choose` takes; see `Snapshot.files_where`."""
        if self.table.id < 0:
            return DATA_FILES.empty_table()
        return self._not_removed(self.snapshot.files_where(self.table, choose))

    def _not_removed(self, files: pa.Table) -> pa.Table:
        if not self.rows.removed:
            return files
        removed = np.fromiter(self.rows.removed, dtype=np.int64)
        return files.filter(pa.array(~np.isin(files.column("file_id").to_numpy(), removed)))

    @property
    def staged_files(self) -> tuple[StagedFile, ...]:
        return self.rows.files

    @property
    def staged_rows(self) -> tuple[StagedRows, ...]:
        return self.rows.rows

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """Committed rows in the catalog, with the staged deletes applied."""
        if self.table.id < 0:
            return ()
        return tuple(
            replace(group, deletes=_union(group.deletes, self.rows.deleted_rows.get(group.key)))
            for group in self.snapshot.row_groups(self.table)
        )

    def scan(self, keep: npt.NDArray[np.bool_] | None = None) -> tuple[Scan, Parts]:
        """All parts of the table, its committed files limited to those where `keep` (one bool a row of `files`) is
        true."""
        return self.scan_of(self.files if keep is None else self.files.filter(pa.array(keep)))

    def scan_of(self, files: pa.Table) -> tuple[Scan, Parts]:
        """As `scan`, with the committed `files` (some of `self.files`)."""
        groups = [self._with_staged_deletes(group) for group in self._committed_groups(files)]
        ids = [group.files.column("file_id").to_numpy() for group in groups]
        live = [_live_counts(group) for group in groups]
        kinds = [np.full(len(chunk), FILE, np.int8) for chunk in ids]
        for group in staged_groups(self.table, self.staged_files):
            groups.append(group)
            live.append(_live_counts(group))
        ids.append(np.arange(len(self.staged_files)))
        kinds.append(np.full(len(self.staged_files), STAGED_FILE, np.int8))
        rows: list[RowGroup] = []
        for kind, row_groups in (
            (ROW_GROUP, self.row_groups),
            (MERGED_ROWS, self.snapshot.merged_rows(self.table, files) if files.num_rows else ()),
            (STAGED_ROWS, [_staged_row_group(i, staged) for i, staged in enumerate(self.staged_rows)]),
        ):
            rows += row_groups
            ids.append(np.arange(len(row_groups)))
            live.append(np.array([group.rows.num_rows - len(group.deletes or ()) for group in row_groups], np.int64))
            kinds.append(np.full(len(row_groups), kind, np.int8))
        parts = Parts(
            np.concatenate(kinds), np.concatenate(ids).astype(np.int64), np.concatenate(live).astype(np.int64)
        )
        return Scan(self.table.schema, tuple(groups), tuple(rows)), parts

    @cached_property
    def counted(self) -> npt.NDArray[np.bool_]:
        """For each of `files` whether its live rows can be counted without reading it."""
        known: npt.NDArray[np.bool_] = self.files.column("deleted_count").is_valid().to_numpy()
        return known

    def count(self) -> int | None:
        """The number of live rows; None when files have to be read to tell."""
        files = self.files
        if not self.counted.all():
            return None
        committed = int(files.column("record_count").to_numpy().sum() - files.column("deleted_count").to_numpy().sum())
        staged = sum(staged.file.record_count - len(staged.deletes or ()) for staged in self.staged_files)
        rows = sum(group.rows.num_rows - len(group.deletes or ()) for group in self.row_groups)
        return int(
            committed
            - sum(len(vector) for vector in self.rows.deleted.values())
            + staged
            + rows
            + sum(rows.rows.num_rows for rows in self.staged_rows)
        )

    def delete(self, parts: Parts, positions: Mapping[int, DeleteVector]) -> RowChanges:
        """The row changes after the rows at `positions` in each of `parts` of a scan are deleted as well.

        They were live. A file whose last live row goes is removed as a whole.
        """
        changes = self.rows
        deleted, removed = dict(changes.deleted), set(changes.removed)
        deleted_rows = dict(changes.deleted_rows)
        staged_files: list[StagedFile | None] = list(changes.files)
        staged_rows: list[StagedRows | None] = list(changes.rows)
        for number, vector in positions.items():
            kind, key = int(parts.kinds[number]), int(parts.keys[number])
            gone = len(vector) == int(parts.live[number])
            if kind == FILE and gone:
                removed.add(key)
                deleted.pop(key, None)
            elif kind == FILE:
                deleted[key] = deleted[key] | vector if key in deleted else vector
            elif kind == STAGED_FILE:
                old = changes.files[key]
                staged_files[key] = None if gone else replace(old, deletes=_union(old.deletes, vector))
            elif kind == ROW_GROUP:
                group = self.row_groups[key].key
                deleted_rows[group] = deleted_rows[group] | vector if group in deleted_rows else vector
            else:
                assert kind == STAGED_ROWS
                staged_rows[key] = None if gone else _without(changes.rows[key], vector)
        return replace(
            changes,
            rows=tuple(rows for rows in staged_rows if rows is not None),
            files=tuple(file for file in staged_files if file is not None),
            deleted=deleted,
            removed=frozenset(removed),
            deleted_rows=deleted_rows,
        )

    def delete_all(self) -> RowChanges:
        """The row changes after every row is deleted."""
        groups = {
            group.key: DeleteVector.of(np.arange(group.rows.num_rows)) - (group.deletes or DeleteVector())
            for group in (self.snapshot.row_groups(self.table) if self.table.id >= 0 else ())
        }
        committed = self.files.column("file_id").to_pylist()
        return RowChanges(
            removed=self.rows.removed | frozenset(committed),
            rewritten=self.rows.rewritten,
            deleted_rows={key: vector for key, vector in groups.items() if vector},
        )

    def _committed_groups(self, files: pa.Table) -> Sequence[FileGroup]:
        return self.snapshot.file_groups(self.table, files) if files.num_rows else ()

    def _with_staged_deletes(self, group: FileGroup) -> FileGroup:
        if not self.rows.deleted:
            return group
        ids = group.files.column("file_id").to_numpy()
        deletes = dict(group.deletes)
        for number in np.flatnonzero(np.isin(ids, np.fromiter(self.rows.deleted, dtype=np.int64))).tolist():
            deletes[number] = self.rows.deleted[int(ids[number])] | deletes.get(number, DeleteVector())
        return replace(group, deletes=deletes)


class CatalogView:
    """One catalog as a reader sees it: a snapshot, and on top of it the changes staged in the open transaction."""

    def __init__(self, alias: str, catalog: Catalog, snapshot: Snapshot, changes: Changes) -> None:
        self.alias = alias
        self.catalog = catalog
        self.snapshot = snapshot
        self.changes = changes

    @cached_property
    def schemas(self) -> Mapping[int, SchemaInfo]:
        return _overlay(self.snapshot.schemas(), self.changes.schemas)

    @cached_property
    def tables(self) -> Mapping[int, TableInfo]:
        return _overlay(self.snapshot.tables(), self.changes.tables)

    @cached_property
    def views(self) -> Mapping[int, ViewInfo]:
        return _overlay(self.snapshot.views(), self.changes.views)

    @cached_property
    def macros(self) -> Mapping[int, MacroInfo]:
        return _overlay(self.snapshot.macros(), self.changes.macros)

    @cached_property
    def _macro_by_name(self) -> dict[tuple[int, str], list[MacroInfo]]:
        found: dict[tuple[int, str], list[MacroInfo]] = {}
        for macro in self.macros.values():
            found.setdefault((macro.schema_id, macro.name.casefold()), []).append(macro)
        return found

    @cached_property
    def _schema_by_name(self) -> dict[str, SchemaInfo]:
        return {schema.name.casefold(): schema for schema in self.schemas.values()}

    def schema(self, name: str) -> SchemaInfo | None:
        if not self.changes.schemas:
            return self.snapshot.find_schema(name)
        return self._schema_by_name.get(name.casefold())

    def table(self, schema: str, name: str) -> TableInfo | None:
        found = self.schema(schema)
        return None if found is None else _called(name, found, self.changes.tables, self.snapshot.find_table)

    def table_names(self, schema: SchemaInfo) -> Sequence[str]:
        """The names of a schema's tables, sorted."""
        if not self.changes.tables:
            return self.snapshot.table_names(schema) if schema.id >= 0 else ()
        return sorted(table.name for table in self.tables.values() if table.schema_id == schema.id)

    def table_of(self, id: int) -> TableInfo | None:
        """The table with this id."""
        return self.changes.tables[id] if id in self.changes.tables else self.snapshot.table_of(id)

    def view(self, schema: str, name: str) -> ViewInfo | None:
        found = self.schema(schema)
        return None if found is None else _called(name, found, self.changes.views, self.snapshot.find_view)

    def macros_called(self, schema: SchemaInfo, name: str) -> Sequence[MacroInfo]:
        """The macros of that name, whatever its case: at most a scalar one and a table one."""
        return self._macro_by_name.get((schema.id, name.casefold()), ()) if self.macros else ()

    def contents(self, table: TableInfo) -> Contents:
        return Contents(table, self.snapshot, self.changes.rows.get(table.id, RowChanges()))


@dataclass(frozen=True)
class _State:
    """What a savepoint remembers."""

    changes: Mapping[str, Changes] = field(default_factory=dict)


class Transaction:
    """Snapshot isolation over any number of catalogs for reading, one for writing.

    Each catalog's snapshot is pinned when it is first asked for. `as_of` pins all of them in the past: read-only.
    `reading` names the catalogs that cannot be changed anyway, some of which are pinned at a point of their own.
    `committed` is the connection's: the last snapshot that it made of each catalog.
    """

    def __init__(
        self,
        catalogs: Mapping[str, Catalog],
        *,
        as_of: AsOf | None = None,
        read_only: bool = False,
        reading: Mapping[str, AsOf | None] = {},
        committed: dict[str, int] | None = None,
    ) -> None:
        self.catalogs = catalogs
        self.committed = {} if committed is None else committed
        self.reading = reading
        self.as_of = as_of
        self.read_only = read_only or as_of is not None
        self._pins: dict[str, Snapshot] = {}
        self._state = _State()
        self._savepoints: list[tuple[str, _State]] = []
        self._views: dict[str, CatalogView] = {}
        self._history: dict[tuple[str, AsOf], CatalogView] = {}
        self.written: set[str] = set()
        """Paths of the data files that statements of this transaction wrote, used or not."""

    def view(self, alias: str, point: AsOf | None = None) -> CatalogView:
        """The catalog as this transaction sees it; with `point`, its committed state at that point."""
        if point is not None:
            return self._view_at(alias, point)
        view = self._views.get(alias)
        if view is None:
            view = self._views[alias] = CatalogView(alias, self._catalog(alias), self._pin(alias), self.changes(alias))
        return view

    def changes(self, alias: str) -> Changes:
        return self._state.changes.get(alias, Changes())

    def stage(self, alias: str, changes: Changes) -> None:
        """Replace what is staged for the catalog. A transaction writes one catalog."""
        self.check_writable(alias)
        others = [other for other, staged in self._state.changes.items() if other != alias and not staged.empty]
        if others:
            raise NotSupportedError(
                f"this transaction has changes in catalog {others[0]!r} and cannot also change {alias!r}: "
                "a commit is atomic in one catalog only; commit first, then change the other"
            )
        self._check_one_table(alias, changes)
        self._state = _State({**self._state.changes, alias: changes})
        self._views.pop(alias, None)

    def _check_one_table(self, alias: str, changes: Changes) -> None:
        """NotSupportedError when the catalog cannot commit the changes of several tables at once."""
        capabilities = self._catalog(alias).capabilities
        if capabilities.multi_table_commit or capabilities.table_by_table:
            return
        ids = {*changes.tables, *(id for id, rows in changes.rows.items() if not rows.empty)}
        if len(ids) < 2:
            return
        base = self._pin(alias)
        tables = [base.table_of(id) or changes.tables.get(id) for id in sorted(ids)]
        names = {(table.schema_id, table.name.casefold()): table.name for table in tables if table is not None}
        if len(names) > 1:
            raise NotSupportedError(
                f"a transaction in catalog {alias!r} can change one table, since each has a log of its own, and this "
                f"one would change {' and '.join(sorted(names.values()))}: commit after each table, or connect with "
                "non_atomic=true to commit them one by one"
            )

    def check_writable(self, alias: str) -> None:
        """ProgrammingError where this connection only reads the catalog; NotSupportedError where it is of a version
        that nobody writes here.
        """
        self.check_writing(alias)
        self._catalog(alias).check_writable()

    def check_writing(self, alias: str) -> None:
        """ProgrammingError where this connection only reads the catalog."""
        if self.read_only:
            raise ProgrammingError(
                "this connection reads a past snapshot and cannot change anything; connect without as_of"
                if self.as_of is not None
                else "this connection is read-only; connect without read_only to change tables"
            )
        if alias in self.reading:
            way = "READ_ONLY" if self.reading[alias] is None else "SNAPSHOT_VERSION or SNAPSHOT_TIME"
            raise ProgrammingError(f"catalog {alias!r} is attached for reading: ATTACH it without {way} to change it")

    def note(self, alias: str, result: CommitResult) -> None:
        """Remember what a commit made."""
        if result.is_new:
            self.committed[alias] = result.snapshot

    @property
    def staged(self) -> tuple[str, Changes] | None:
        """The catalog alias that has changes, and the changes."""
        return next(((alias, changes) for alias, changes in self._state.changes.items() if not changes.empty), None)

    def base(self, alias: str) -> Snapshot:
        """The pinned snapshot."""
        return self._pin(alias)

    def mark(self) -> object:
        """The staged state, to go `back_to` when a statement fails."""
        return self._state

    def back_to(self, mark: object) -> None:
        assert isinstance(mark, _State)
        self._state = mark
        self._views.clear()

    def savepoint(self, name: str) -> None:
        self._savepoints.append((name.casefold(), self._state))

    def release(self, name: str) -> None:
        del self._savepoints[self._savepoint_index(name) :]

    def rollback_to(self, name: str) -> None:
        """Back to the savepoint, which stays."""
        index = self._savepoint_index(name)
        self.back_to(self._savepoints[index][1])
        del self._savepoints[index + 1 :]

    def _savepoint_index(self, name: str) -> int:
        for index in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[index][0] == name.casefold():
                return index
        raise ProgrammingError(f"savepoint {name!r} does not exist in this transaction")

    def _catalog(self, alias: str) -> Catalog:
        return self.catalogs[alias]

    def _pin(self, alias: str) -> Snapshot:
        snapshot = self._pins.get(alias)
        if snapshot is None:
            catalog = self._catalog(alias)
            point = self.reading.get(alias) or self.as_of
            snapshot = self._pins[alias] = catalog.latest() if point is None else catalog.as_of(point)
        return snapshot

    def _view_at(self, alias: str, point: AsOf) -> CatalogView:
        view = self._history.get((alias, point))
        if view is None:
            catalog = self._catalog(alias)
            view = self._history[alias, point] = CatalogView(alias, catalog, catalog.as_of(point), Changes())
        return view


def _called(
    name: str, schema: SchemaInfo, staged: Mapping[int, Named | None], find: Callable[[SchemaInfo, str], Named | None]
) -> Named | None:
    """What has this name in the schema: staged, or committed, as `find` finds it, and not changed since."""
    for info in staged.values():
        if info is not None and (info.schema_id, info.name.casefold()) == (schema.id, name.casefold()):
            return info
    committed = find(schema, name)
    return None if committed is None or committed.id in staged else committed


def _overlay(base: Mapping[int, T], changed: Mapping[int, T | None]) -> Mapping[int, T]:
    if not changed:
        return base
    merged: dict[int, T | None] = {**base, **changed}
    return {key: value for key, value in merged.items() if value is not None}


def _union(first: DeleteVector | None, second: DeleteVector | None) -> DeleteVector | None:
    if first is None or second is None:
        return first or second
    return first | second


def _live_counts(group: FileGroup) -> npt.NDArray[np.int64]:
    live: npt.NDArray[np.int64] = group.files.column("record_count").to_numpy().copy()
    for number, vector in group.deletes.items():
        live[number] -= len(vector)
    return live


def staged_groups(table: TableInfo, staged: Sequence[StagedFile]) -> Sequence[FileGroup]:
    """Files of a table that no commit has registered yet, in their order, ready to be scanned."""
    same = groupby(staged, lambda entry: (entry.file.layout, entry.file.names))
    return [_staged_group(table, layout, names, list(entries)) for (layout, names), entries in same]


def _staged_group(
    table: TableInfo, layout: FileLayout, names: NameMapping | None, staged: Sequence[StagedFile]
) -> FileGroup:
    count = len(staged)
    files = pa.table(
        {
            "file_id": pa.array(range(count), pa.int64()),
            "path": pa.array([entry.file.path for entry in staged], pa.string()),
            "record_count": pa.array([entry.file.record_count for entry in staged], pa.int64()),
            "file_size_bytes": pa.array([entry.file.file_size_bytes for entry in staged], pa.int64()),
            "row_id_start": pa.nulls(count, pa.int64()),
            "snapshot_id": pa.nulls(count, pa.int64()),
            "partition_id": pa.nulls(count, pa.int64()),
            "deleted_count": pa.array([len(entry.deletes or ()) for entry in staged], pa.int64()),
        },
        schema=DATA_FILES,
    )
    deletes = {i: entry.deletes for i, entry in enumerate(staged) if entry.deletes is not None}
    keys = {i: entry.file.encryption_key for i, entry in enumerate(staged) if entry.file.encryption_key is not None}
    if names is not None:
        return names.group(files, deletes, keys)
    embedded = {} if layout.row_id_column is None else {ROW_ID_FIELD: layout.row_id_column}
    match = FIELD_ID if layout.field_ids else NAME
    return FileGroup(
        files,
        deletes,
        match=match,
        names=layout.names,
        constants=None if layout.partition_columns else _constants(table, staged),
        embedded=frozenset(embedded),
        embedded_names=embedded if match == NAME else {},
        encryption_keys=keys,
    )


def _constants(table: TableInfo, staged: Sequence[StagedFile]) -> pa.Table | None:
    """The partition columns of files that leave them out, as text."""
    if table.partitioning is None:
        return None
    return pa.table(
        {
            str(key.field_id): pa.array([entry.file.partition_values[i] for entry in staged], pa.string())
            for i, key in enumerate(table.partitioning.fields)
        }
    )


def _staged_row_group(index: int, staged: StagedRows) -> RowGroup:
    return RowGroup(f"staged:{index}", staged.rows, row_ids=staged.row_ids)


def _without(staged: StagedRows, deleted: DeleteVector) -> StagedRows:
    mask = pa.array(~deleted.mask(staged.rows.num_rows))
    row_ids, versions = (None if of is None else of.filter(mask) for of in (staged.row_ids, staged.row_versions))
    return StagedRows(staged.rows.filter(mask), row_ids, versions)
