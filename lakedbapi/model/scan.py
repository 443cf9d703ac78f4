"""What a table consists of at one snapshot, as columns: the meeting point of formats and engines.

A row of a table has an address `(part, position)`: the number of the part in the scan, and the physical, 0-based
position of the row in that part, counted before any filter and before deletes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DamagedFileError
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.types import Field, Schema

DATA_FILES = pa.schema(
    [
        pa.field("file_id", pa.int64(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("file_size_bytes", pa.int64()),
        pa.field("row_id_start", pa.int64()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("partition_id", pa.int64()),
        pa.field("deleted_count", pa.int64()),
    ]
)
"""The columns every file list has, in any order; a format may append columns of its own for its own use.

`path` is the full path or URL, `record_count` counts physical rows, `snapshot_id` is the snapshot that added the file,
`deleted_count` the rows deleted in it at the snapshot of the list (0 = no deletes, NULL = not known without
reading it, since equality deletes reach the file).
"""


def live_counts(files: pa.Table) -> npt.NDArray[np.int64]:
    """The rows of each of `files` that are not deleted; where that is not known, all its rows."""
    deleted = pc.fill_null(files.column("deleted_count"), 0)
    counts: npt.NDArray[np.int64] = pc.subtract(files.column("record_count"), deleted).to_numpy()
    return counts


def most_deleted(files: pa.Table) -> npt.NDArray[np.int64]:
    """The rows of each of `files` that may be deleted: where that is not known, all its rows."""
    deleted = pc.coalesce(files.column("deleted_count"), files.column("record_count"))
    counts: npt.NDArray[np.int64] = deleted.to_numpy()
    return counts


FIELD_ID = "field id"
NAME = "name"
POSITION = "position"

ROW_ID_FIELD = 2147483540
"""Field id of the column that files with embedded row ids have (DuckLake, Iceberg v3)."""
ROW_SNAPSHOT_FIELD = 2147483539
"""Field id of the column that holds the snapshot (sequence number) each row was added in (DuckLake, Iceberg v3)."""


@dataclass(frozen=True)
class EqualityDeletes:
    """Deletes by value: a row goes when a row of a delete file that reaches its data file has the same `keys`.

    NULL is the same as NULL, and NaN as NaN, but -0.0 is not 0.0. `files` are the delete files (columns `path` string,
    `file_size_bytes`, `scope` and `sequence_number` int64). One reaches a data file of the same scope (NULL: of any
    scope) with a lower sequence number. `scopes` and `sequence_numbers` (int64, never NULL) are those of the data
    files, by row number.
    """

    keys: tuple[Field, ...]
    """Found in both kinds of files like any column of the table; they need not be in its schema any more."""
    files: pa.Table
    scopes: pa.Array
    sequence_numbers: pa.Array
    names_without_ids: Mapping[int, tuple[str, ...]] | None = None
    """As in `FileGroup`, for the delete files."""
    is_choice: bool = False
    """Whether the rows that they hit stay, and the others go. Then all delete files have a scope or none has, and each
    data file is reached by one."""

    def reached(self) -> npt.NDArray[np.bool_]:
        """For each data file whether some delete file reaches it."""
        numbers, scopes = self.sequence_numbers.to_numpy(), self.scopes.to_numpy()
        deletes, by_scope = self.files.column("sequence_number"), self.files.column("scope")
        everywhere = pc.max(deletes.filter(by_scope.is_null())).as_py()
        found: npt.NDArray[np.bool_] = np.full(len(numbers), False) if everywhere is None else numbers < everywhere
        scoped = self.files.filter(by_scope.is_valid()).group_by("scope")
        newest = scoped.aggregate([("sequence_number", "max")]).sort_by("scope")
        if newest.num_rows:
            known, highest = newest.column("scope").to_numpy(), newest.column("sequence_number_max").to_numpy()
            place = np.minimum(np.searchsorted(known, scopes), len(known) - 1)
            found = found | ((known[place] == scopes) & (numbers < highest[place]))
        return found


@dataclass(frozen=True)
class FileGroup:
    """Data files that are read the same way.

    `match` tells how columns are found in the files: `FIELD_ID` (at every nesting level), `NAME` or `POSITION`.
    `names` maps a field id to the name that the field has in these files, where `match` is `NAME`.
    `constants` has one row a file, and columns named by field id (as text): values of columns that are not read from
    the file (hive and Delta partition columns). `max_row_snapshot`: keep only rows whose embedded
    `ROW_SNAPSHOT_FIELD` is NULL or <= this. `embedded`: the ids of the embedded columns that some file may carry.
    `encryption_keys`: base64 footer key by row number of `files`. `names_without_ids`: where `match` is `FIELD_ID`,
    the names by field id that are tried in files that have no field ids at all.
    """

    files: pa.Table
    deletes: Mapping[int, DeleteVector] = field(default_factory=dict)
    """Deleted positions by row number of `files`; files without deletes have no entry."""
    equality_deletes: tuple[EqualityDeletes, ...] = ()
    match: str = FIELD_ID
    names: Mapping[int, str] = field(default_factory=dict)
    constants: pa.Table | None = None
    max_row_snapshot: int | None = None
    embedded: frozenset[int] = frozenset({ROW_ID_FIELD, ROW_SNAPSHOT_FIELD})
    encryption_keys: Mapping[int, str] = field(default_factory=dict)
    names_without_ids: Mapping[int, tuple[str, ...]] | None = None
    embedded_names: Mapping[int, str] = field(default_factory=dict)
    """What embedded columns are called in files, by their ids, where `match` is `NAME`."""

    def check_deletes(self) -> None:
        """DamagedFileError for deleted rows beyond the end of a file: one of the two is not what its metadata say."""
        counts = self.files.column("record_count").to_numpy()
        for row, vector in self.deletes.items():
            if vector and vector.bitmap.max() >= counts[row]:
                raise DamagedFileError(
                    f"{self.files.column('path')[row]}: row {vector.bitmap.max()} is said to be deleted, but the file "
                    f"is said to have {counts[row]} rows. Restore the file's metadata from a copy."
                )

    @property
    def with_deleted(self) -> FileGroup:
        """As this, but with the deleted rows."""
        self.check_deletes()
        return replace(self, deletes={})


@dataclass(frozen=True)
class RowGroup:
    """Rows in memory: inlined in the catalog, staged in the open transaction, or of a data file (`path`).

    `key` names the group within its table (an inlined table's name; `staged:<n>`). `rows` has the columns of the
    scan's schema by name, and `row_id` values in `row_ids`, `snapshots` (NULL in both = not known before the commit).
    `deletes` are the positions that are gone. `path`: the data file whose rows these are, which its format had to merge
    with what changed them.
    """

    key: str
    rows: pa.Table
    row_ids: pa.Array | pa.ChunkedArray | None = None
    snapshots: pa.Array | pa.ChunkedArray | None = None
    deletes: DeleteVector | None = None
    path: str | None = None


@dataclass(frozen=True)
class Scan:
    """One table reference, ready for an engine: union of all parts, minus deletes, mapped to `schema`.

    Parts are numbered through: first the files of all `files` groups in order, then the `rows` groups.
    """

    schema: Schema
    files: tuple[FileGroup, ...] = ()
    rows: tuple[RowGroup, ...] = ()

    @property
    def file_count(self) -> int:
        """Data files, also those whose rows are in memory."""
        in_files: int = sum(group.files.num_rows for group in self.files)
        return in_files + len(self.merged)

    @property
    def merged(self) -> tuple[RowGroup, ...]:
        """Row groups that are the rows of a data file."""
        return tuple(group for group in self.rows if group.path is not None)

    @property
    def deleted(self) -> Mapping[int, DeleteVector]:
        """The deleted positions of files, by part."""
        found: dict[int, DeleteVector] = {}
        first = 0
        for group in self.files:
            found |= {first + row: vector for row, vector in group.deletes.items() if vector}
            first += group.files.num_rows
        return found

    @property
    def with_deleted(self) -> Scan:
        """As this, but with the rows at deleted positions of files."""
        return replace(self, files=tuple(group.with_deleted for group in self.files))


@dataclass(frozen=True)
class ColumnBounds:
    """Statistics of one column for each file of a list (arrays as long as the list; NULL = unknown).

    `lower`, `upper` have the column's Arrow type and may be wider than the true extremes. `null_count`, `value_count`
    (non-null values) int64; `has_nan` bool: bounds never include NaN.
    """

    lower: pa.Array
    upper: pa.Array
    null_count: pa.Array
    value_count: pa.Array
    has_nan: pa.Array


@dataclass(frozen=True)
class PartitionColumn:
    """The value of one partition transform for each file of a list.

    `values`: `identity` has the column's Arrow type, other transforms int64; NULL is the value NULL where `known` is
    true. `known`
    (bool, never NULL) is false for files that were written under another partitioning.
    """

    values: pa.Array
    known: pa.Array
