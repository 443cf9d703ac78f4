"""The contract of erasure: what a format must tell so that rows can be purged from all that is stored of a table.

A purge deletes, compacts and expires by the other contracts; this one is for finding what they left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.formats.base import Snapshot
from lakedbapi.model.catalog import SnapshotInfo, TableInfo
from lakedbapi.model.scan import FileGroup, RowGroup

END = "end_snapshot"
"""Column of a file list: the snapshot that a file ended at, int64; NULL = live."""


@dataclass(frozen=True)
class StoredTable:
    """All that a catalog still has of one table, for whatever snapshot: deleted rows, too, in every version.

    `table` has, besides its last columns, those that were dropped, unless another one has their name now. `files` are
    the data files without any of their deletes, their lists have the column `END`. `ends` has for each of `rows` the
    snapshot that each row ended at (int64, NULL = live).
    """

    table: TableInfo
    files: tuple[FileGroup, ...]
    rows: tuple[RowGroup, ...]
    ends: tuple[pa.Array, ...]
    is_live: bool
    """Whether the newest snapshot has the table."""
    kind: str = "data file"
    """What the files are called in reports."""
    is_partial: bool = False
    """The files hold some columns of rows, by which these were deleted: where a condition has others, too, each row may
    be one that matches."""


SCHEDULED, ORPHAN, OTHER = "scheduled file", "orphan file", "other file"


@dataclass(frozen=True)
class UnreachableFile:
    """A file in storage that no snapshot reads, and that may hold rows of a table.

    `kind` is `SCHEDULED` (the catalog waits to remove it), `ORPHAN` (the catalog does not know it) or `OTHER` (nothing
    that a table is made of: it is told of, and neither searched nor removed); `is_own`: named as the format's writers
    name data files. `in_table`: it lies in the table's own folder. `changed` None = unknown.
    `names` and `constants` as in `FileGroup`. `unknown` tells why it cannot be searched, if it cannot.
    """

    path: str
    kind: str
    is_own: bool
    in_table: bool
    changed: datetime | None
    names: Mapping[int, str] = field(default_factory=dict)
    constants: pa.Table | None = None
    unknown: str = ""


@dataclass(frozen=True)
class Wiped:
    """What became of bytes in the catalog that told of rows that are gone: `done` is false where some may be left."""

    object: str
    kind: str
    done: bool
    result: str


@dataclass(frozen=True)
class Ended:
    """A snapshot, or a branch or tag, that was given up; `name` is the id of a snapshot."""

    kind: str
    name: str

    @classmethod
    def snapshots(cls, infos: Sequence[SnapshotInfo]) -> Sequence[Ended]:
        return [cls("snapshot", str(info.id)) for info in infos]


class Erasure(ABC):
    """Of one catalog. Everything is read anew, whatever `base` is: what was committed since counts, too."""

    way_out: str
    """How files go that the catalog does not know, when other writers are to be feared no more."""

    @abstractmethod
    def stored(self, base: Snapshot, table: TableInfo) -> Sequence[StoredTable]:
        """The table, and dropped tables that had its name last, as far as kept snapshots have them."""

    @abstractmethod
    def unreachable(self, base: Snapshot, table: TableInfo) -> Sequence[UnreachableFile]:
        """Files that may hold rows of the table: in its folder, or below the data path in no other table's folder."""

    def worn_by(self, base: Snapshot, table: TableInfo, paths: pa.Array) -> pa.Array:
        """The paths of the live data files that have to be written anew so that the files at `paths` can go."""
        return paths

    @abstractmethod
    def forget(
        self,
        base: Snapshot,
        table: TableInfo,
        paths: pa.Array,
        begins: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
    ) -> Sequence[Ended]:
        """End all snapshots that read files at `paths` or lie between one of `begins` and the same of `ends`
        (exclusive), but not the newest. Returns them, with others that the format cannot keep then."""

    @abstractmethod
    def remove(self, table: TableInfo, paths: Sequence[str]) -> None:
        """Remove files at once, with the catalog's notes of them, but none that some snapshot reads."""

    @abstractmethod
    def wipe(self, base: Snapshot, table: TableInfo) -> Sequence[Wiped]:
        """Take what is left of rows that are gone out of the catalog: bounds of columns, and bytes in free pages."""
