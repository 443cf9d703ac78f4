"""The contract of maintenance: what a format must provide so that its tables can be compacted and cleaned up.

Maintenance changes how rows are stored, never which rows a snapshot has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import CommitResult, Snapshot
from lakedbapi.formats.erasure import Erasure
from lakedbapi.model.catalog import SnapshotInfo, TableInfo
from lakedbapi.model.changes import Operation, WrittenFile
from lakedbapi.model.layout import FileLayout

MERGE = "merge"
"""Small files without deletes become few: the new ones serve every snapshot that the old ones served, if the format
can do that."""
REWRITE = "rewrite"
"""Files become others, without their deleted rows; older snapshots keep the old ones."""


@dataclass(frozen=True)
class CompactionGroup:
    """Data files whose rows may lie together in one: all of one partition.

    `table` has the columns that the new file is to be written with. A row's snapshot in it is the one that is embedded
    in its old file, but not less than the old file's own.
    """

    table: TableInfo
    files: pa.Table
    partition_id: int | None = None
    partition_values: tuple[str | None, ...] = ()
    layout: FileLayout | None = None
    """Of the new files, where they embed what others do not: the ids and snapshots of rows."""


@dataclass(frozen=True)
class Compacted:
    """The files that take over the live rows of `group`: row ids embedded where the layout has them, each row's
    snapshot for `MERGE` and where the group has a layout."""

    group: CompactionGroup
    written: tuple[WrittenFile, ...]


@dataclass(frozen=True)
class StoredRows:
    """Rows of a table that lie in the catalog, in every version.

    `table` has the columns that they were stored with, which `rows` has by name. `row_ids`, `begins` and `ends` are
    int64: the snapshots that added and deleted each (NULL = live).
    """

    key: str
    table: TableInfo
    rows: pa.Table
    row_ids: pa.Array
    begins: pa.Array
    ends: pa.Array

    @property
    def invisible(self) -> npt.NDArray[np.bool_]:
        """Rows that no snapshot sees: they ended in the transaction that added them."""
        result: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(self.begins, self.ends), False).to_numpy(
            zero_copy_only=False
        )
        return result


@dataclass(frozen=True)
class Flushed:
    """The files that take over `stored`, with row ids and the snapshot of each row embedded."""

    stored: StoredRows
    written: tuple[WrittenFile, ...]


@dataclass(frozen=True)
class Expired:
    """`paths`: files that no kept snapshot needs any more; they are removed by a later cleanup."""

    snapshots: Sequence[SnapshotInfo]
    paths: Sequence[str]


@dataclass(frozen=True)
class Rewritten:
    """Numbers of files of metadata."""

    removed: int
    added: int


class Maintenance(ABC):
    """Of one catalog. Every commit checks that nobody touched the same files in the meantime: ConflictError if so."""

    merges_in_history: bool = False
    """Whether files can be compacted by `MERGE`; if not, `REWRITE` does it."""

    @abstractmethod
    def groups(self, base: Snapshot, table: TableInfo, files: pa.Table, kind: str) -> Sequence[CompactionGroup]:
        """`files` (a subset of `base.files(table)`) by what may lie in one file; without those that `kind` cannot
        take."""

    @abstractmethod
    def compact(
        self, base: Snapshot, table: TableInfo, kind: str, compacted: Sequence[Compacted], operation: Operation
    ) -> CommitResult:
        """Replace the files of the groups, as they were at `base`, in one atomic step. `operation` tells what for."""

    def clustering(self, base: Snapshot, table: TableInfo) -> Sequence[str]:
        """The columns that the table asks to be clustered by."""
        return ()

    def clustered_elsewhere(self, base: Snapshot, table: TableInfo, files: pa.Table) -> npt.NDArray[np.bool_]:
        """Which of `files` another program laid out in a way of its own, and wants to be left alone."""
        return np.zeros(files.num_rows, np.bool_)

    def checkpoint(self, base: Snapshot, table: TableInfo) -> None:
        """Write down the state of the table so that others find it faster, where the format has that."""

    @abstractmethod
    def stored_rows(self, base: Snapshot, table: TableInfo) -> Sequence[StoredRows]:
        """What `flush` would move."""

    @abstractmethod
    def has_stored_deletes(self, base: Snapshot, table: TableInfo) -> bool:
        """Whether deletes of rows in live data files lie in the catalog."""

    @abstractmethod
    def flush(self, base: Snapshot, table: TableInfo, flushed: Sequence[Flushed]) -> CommitResult:
        """Move rows, and deletes of rows in data files, out of the catalog, as they were at `base`."""

    @abstractmethod
    def expire(
        self, versions: Sequence[int] | None = None, older_than: datetime | None = None, *, dry_run: bool = False
    ) -> Expired:
        """Forget snapshots, never the newest one, and all that no kept snapshot sees."""

    def expire_table(
        self,
        base: Snapshot,
        table: TableInfo,
        versions: Sequence[int] | None,
        older_than: datetime | None,
        retain_last: int | None,
        *,
        dry_run: bool = False,
    ) -> Expired:
        """The same for one table, of formats whose tables have snapshots of their own; the files go at once. Without
        `versions` and `older_than` the table says what expires; of a branch the newest `retain_last` stay."""
        raise NotSupportedError(
            "tables of this format have no snapshots of their own that expire by a call: expire those of the whole "
            "catalog, or VACUUM t RETAIN … HOURS"
        )

    def rewrite_manifests(self, base: Snapshot, table: TableInfo) -> Rewritten:
        """Make few manifests of many, partition by partition, which tell of live files only."""
        raise NotSupportedError("tables of this format have no manifests: OPTIMIZE t rewrites what they have")

    def rewrite_delete_files(self, base: Snapshot, table: TableInfo) -> Rewritten:
        """Make one delete file, or vector, of the position delete files of each data file; those that reach none go."""
        raise NotSupportedError(
            "delete files of tables of this format are not rewritten alone: OPTIMIZE t writes the data files without "
            "deleted rows"
        )

    @abstractmethod
    def cleanup(self, older_than: datetime | None, *, dry_run: bool = False) -> Sequence[str]:
        """Remove files that became needless before `older_than` (None = all). Returns their paths. Can be repeated
        after it was interrupted."""

    @abstractmethod
    def remove_orphans(
        self, older_than: datetime | None, *, table: TableInfo | None = None, dry_run: bool = False
    ) -> Sequence[str]:
        """Remove files in the data path and the folders of tables elsewhere, or in that of one table, that the catalog
        does not know, last changed before `older_than` (None = all). Returns their paths."""

    @abstractmethod
    def vacuum(
        self, table: TableInfo | None, cutoff: datetime, unknown: datetime, *, dry_run: bool = False
    ) -> Sequence[str]:
        """Forget the versions of the table (None = of all) that were followed by others before `cutoff`, and remove the
        files that only these needed. Returns the paths.

        What was current at `cutoff` or since stays readable. Files that no version ever named may belong to a
        transaction under way: of these go only such as were last changed before `unknown`, too. Where a snapshot is a
        version of several tables, a single table's are those that changed nothing else.
        """

    def retention(self, table: TableInfo | None) -> str:
        """How long before now the cutoff of a vacuum is that is not told, as an SQL interval."""
        return "7 days"

    def check_cutoff(self, table: TableInfo | None, cutoff: datetime) -> None:
        """ProgrammingError, with the way out, for a vacuum that would take away what others rely on."""

    @property
    def erasure(self) -> Erasure:
        """How rows are found wherever they lie, to be purged, where the format can tell."""
        raise NotSupportedError("rows of tables of this format cannot be purged here: use the tools of their writer")
