"""Merge-on-read or copy-on-write: what happens to a data file of which some rows go."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.dml.arrow_rows import pieces, typed
from lakedbapi.dml.new_rows import NewRows
from lakedbapi.dml.target import Target
from lakedbapi.dml.writing import option
from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import RowChanges
from lakedbapi.model.scan import Scan, live_counts
from lakedbapi.model.table_options import (
    AUTO,
    COPY_ON_WRITE,
    DELETED_FRACTION,
    MAX_ROWS,
    MERGE_ON_READ,
    WRITE_MODE,
    check_option,
)
from lakedbapi.transaction import Contents

_DELETED_FRACTION = 0.8
"""`lake.rewrite_deleted_fraction`: with `auto`, a file that has lost at least this share of its rows may be
rewritten."""
_MAX_ROWS = 50_000
"""`lake.rewrite_max_rows`: with `auto`, a file is rewritten when no more rows than this survive."""


@dataclass(frozen=True)
class Policy:
    """How a table's files lose rows: the options `lake.write_mode`, `lake.rewrite_deleted_fraction`,
    `lake.rewrite_max_rows`.

    A delete vector leaves other writers of the file alone, but every later reader pays for it. With four fifths of
    the rows gone, rewriting costs no more CPU than the vector does and reads are four times cheaper after it,
    measured on files of 1,000 to 250,000 rows. So `auto` rewrites then, unless many rows are left to be copied in the
    commit.
    """

    mode: str
    deleted_fraction: float
    max_rows: int
    delete_vectors: bool

    @classmethod
    def of(cls, target: Target, kind: str) -> Policy:
        """For a statement of `kind`, as in `Operation`."""
        return cls.of_table(target.catalog, target.table, kind)

    @classmethod
    def of_table(cls, catalog: Catalog, table: TableInfo, kind: str | None = None) -> Policy:
        def value(name: str) -> str | None:
            text = option(catalog, table, name)
            check_option(name, text)  # Another program may have set it.
            return text

        own = None if kind is None else catalog.write_mode(table, kind)
        return cls(
            (value(WRITE_MODE) or own or AUTO).casefold(),
            float(value(DELETED_FRACTION) or _DELETED_FRACTION),
            int(value(MAX_ROWS) or _MAX_ROWS),
            catalog.has_delete_vectors(table),
        )

    def rewrites(
        self, records: npt.NDArray[np.int64], live: npt.NDArray[np.int64], overlooked: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """For files of `records` physical rows of which `live` > 0 are left: whether they are rewritten.

        `overlooked`: some readers would not see their delete vector.
        """
        if not self.delete_vectors or self.mode == COPY_ON_WRITE:
            return np.ones(len(records), np.bool_)
        if self.mode == MERGE_ON_READ:
            return np.zeros(len(records), np.bool_)
        return overlooked | ((live <= self.max_rows) & (records - live >= self.deleted_fraction * records))

    def reason(self, rewritten: bool, overlooked: bool) -> str:
        """What is done with a file, and why."""
        if not self.delete_vectors:
            return f"{COPY_ON_WRITE}, since the table has no delete vectors"
        if self.mode != AUTO:
            return f"{self.mode}, as lake.write_mode says"
        if overlooked:
            return f"{COPY_ON_WRITE}, since some readers overlook the delete vectors of files with such a path"
        rule = f"at least {self.deleted_fraction:.0%} of the rows gone and at most {self.max_rows:,} left"
        return f"{COPY_ON_WRITE}, since {rule}" if rewritten else f"{MERGE_ON_READ}, unless {rule}"


@dataclass(frozen=True)
class Touched:
    """Committed files that have lost rows and have some left; arrays of one length."""

    paths: list[str]
    ids: npt.NDArray[np.int64]
    records: npt.NDArray[np.int64]
    live: npt.NDArray[np.int64]
    rewritten: npt.NDArray[np.bool_]
    overlooked: npt.NDArray[np.bool_]
    """Some readers would not see a delete vector of theirs."""


def touched(target: Target, changes: RowChanges, kind: str) -> Touched:
    """The files of which `changes` delete more rows than `target` has staged, and which of them are to be rewritten."""
    before = target.contents.rows.deleted
    newly = [file for file, vector in changes.deleted.items() if vector is not before.get(file)]
    files = Contents(target.table, target.view.snapshot, changes).files
    files = files.filter(pa.array(np.isin(files.column("file_id").to_numpy(), newly)))
    ids = files.column("file_id").to_numpy()
    records = files.column("record_count").to_numpy()
    staged = np.array([len(changes.deleted[file]) for file in ids.tolist()], np.int64)
    live = live_counts(files) - staged
    paths = files.column("path")
    overlooked = target.catalog.loses_delete_vectors(target.table, paths)
    rewritten = Policy.of(target, kind).rewrites(records, live, overlooked)
    return Touched(paths.to_pylist(), ids, records, live, rewritten, overlooked)


def settle(target: Target, changes: RowChanges, new_rows: NewRows, kind: str) -> RowChanges:
    """`changes` with those files rewritten that the policy wants to; their surviving rows go to `new_rows`."""
    if changes.deleted == target.contents.rows.deleted:
        return changes
    found = touched(target, changes, kind)
    files = found.ids[found.rewritten]
    if not len(files):
        return changes
    _read_survivors(target, changes, files, new_rows)
    ids = frozenset(files.tolist())
    return replace(
        changes,
        deleted={file: vector for file, vector in changes.deleted.items() if file not in ids},
        removed=changes.removed | ids,
        rewritten={**changes.rewritten, **{file: changes.deleted[file] for file in ids}},
    )


def _read_survivors(target: Target, changes: RowChanges, files: npt.NDArray[np.int64], new_rows: NewRows) -> None:
    committed = Contents(target.table, target.view.snapshot, replace(changes, rows=(), files=()))
    scan, _ = committed.scan(np.isin(committed.files.column("file_id").to_numpy(), files))
    versioned = [target.view.snapshot.with_row_versions(target.table, group) for group in scan.files]
    groups = tuple(group for group in versioned if group is not None)
    relation = target.scan_relation(Scan(scan.schema, groups or scan.files), row_versions=bool(groups))
    hidden = [target.row_id, *([target.row_version] if groups else [])]
    columns = [target.column(name) for name in (*(field.name for field in target.fields), *hidden)]
    address = f"{target.column(target.part)}, {target.column(target.position)}"
    sql = f"SELECT {', '.join(columns)} FROM {target.from_item} ORDER BY {address}"
    count = len(target.fields)
    for rows in pieces(target.open(target.query(sql, relation))):
        values = typed(rows.select(range(count)), target.table.schema)
        new_rows.add(values, rows.column(count), rows.column(count + 1) if groups else None)
