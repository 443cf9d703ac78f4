"""What an open transaction has staged. Immutable: a savepoint is the old value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.model.catalog import MacroInfo, SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.layout import OWN_LAYOUT, FileLayout
from lakedbapi.model.name_mapping import NameMapping


@dataclass(frozen=True)
class FileStats:
    """Statistics of one leaf column of a written file; `lower`/`upper` are text in the engine's spelling, None =
    unknown."""

    lower: str | None
    upper: str | None
    null_count: int | None
    value_count: int | None
    """Number of non-null values."""
    has_nan: bool | None
    size_bytes: int | None
    exact: tuple[bool | None, bool | None] = (None, None)
    """Whether lower and upper are the true extremes."""


@dataclass(frozen=True)
class WrittenFile:
    """A data file that lies in storage and that no commit has registered yet."""

    path: str
    record_count: int
    file_size_bytes: int
    footer_size: int | None
    stats: Mapping[int, FileStats]
    """By field id, leaf columns only."""
    partition_id: int | None = None
    partition_values: tuple[str | None, ...] = ()
    """Transformed values as text, one per partition key; None = NULL."""
    has_row_ids: bool = False
    """Whether the file embeds the row ids of its rows (all rows: versions of rows that existed before)."""
    row_group_count: int | None = None
    encryption_key: str | None = None
    """In base64, of an encrypted file."""
    layout: FileLayout = OWN_LAYOUT
    names: NameMapping | None = None
    """How columns are found in a file that another program wrote; None = by field id."""


@dataclass(frozen=True)
class StagedFile:
    """A written file of this transaction and the positions in it that a later statement of the transaction deleted."""

    file: WrittenFile
    deletes: DeleteVector | None = None


@dataclass(frozen=True)
class StagedRows:
    """New rows held in memory. `rows` has all columns of the table by name, in order.

    `row_ids` (int64, as long as rows): the id of the row that a row is the new version of; NULL = a new row.
    """

    rows: pa.Table
    row_ids: pa.Array | pa.ChunkedArray | None = None
    row_versions: pa.Array | pa.ChunkedArray | None = None
    """Of formats that keep them (int64, as long as rows): which commit a row that was copied as it is came from; NULL =
    from the one to come."""


@dataclass(frozen=True)
class RowChanges:
    """Row-level changes of one table relative to the pinned snapshot."""

    rows: tuple[StagedRows, ...] = ()
    files: tuple[StagedFile, ...] = ()
    deleted: Mapping[int, DeleteVector] = field(default_factory=dict)
    """Newly deleted positions by `file_id` of committed files; never includes those deleted before."""
    removed: frozenset[int] = frozenset()
    """`file_id` of committed files whose live rows are all gone, or were rewritten into `rows`/`files`."""
    deleted_rows: Mapping[str, DeleteVector] = field(default_factory=dict)
    """Newly deleted positions in committed row groups (inlined data), by the group's `key`, as at the pinned
    snapshot."""
    change_files: tuple[WrittenFile, ...] = ()
    """What happened to rows, for the change feed of formats that store it; written just before the commit."""
    rewritten: Mapping[int, DeleteVector] = field(default_factory=dict)
    """The subset of `removed` that copy-on-write replaced, with the positions that were deleted or updated: their
    other rows are in `rows`/`files` with row ids."""

    @property
    def empty(self) -> bool:
        return not (self.rows or self.files or self.deleted or self.removed or self.deleted_rows)


@dataclass(frozen=True)
class Operation:
    """One statement that changed rows, for formats whose history tells what was done.

    `kind` is `insert`, `delete`, `update`, `merge`, `truncate` or `restore`; the counts are of rows. `optimize` and
    `reorg` move rows to other files, and change none.
    """

    kind: str
    table_id: int
    predicate: str | None = None
    """The condition as SQL text; of `merge` that of the join."""
    clauses: tuple[MergeClause, ...] = ()
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    reads_table: bool = False
    """Whether the statement also read the table as a source, beside the rows that it chose to change."""
    may_match: Callable[[Any], npt.NDArray[np.bool_]] | None = field(default=None, compare=False, repr=False)
    """For a later snapshot: which of its data files of the table (in the order of `Snapshot.files`) may have rows that
    the statement would choose; None = all."""
    version: int | None = None
    """Of `restore`: the version that the table is restored to."""
    order: tuple[str, ...] = ()
    """Of `optimize`: the columns that the rows were clustered by."""

    @property
    def moves_rows(self) -> bool:
        return self.kind in ("optimize", "reorg")


@dataclass(frozen=True)
class MergeClause:
    """A WHEN clause, and the number of rows that it acted on.

    `when` is `matched`, `not matched` or `not matched by source`, `action` is `update`, `delete` or `insert`.
    """

    when: str
    condition: str | None
    action: str
    rows: int


@dataclass(frozen=True)
class Changes:
    """All staged changes of one catalog. A None value means: dropped."""

    schemas: Mapping[int, SchemaInfo | None] = field(default_factory=dict)
    tables: Mapping[int, TableInfo | None] = field(default_factory=dict)
    views: Mapping[int, ViewInfo | None] = field(default_factory=dict)
    macros: Mapping[int, MacroInfo | None] = field(default_factory=dict)
    rows: Mapping[int, RowChanges] = field(default_factory=dict)
    """By table id."""
    identities: Mapping[tuple[int, str], int] = field(default_factory=dict)
    """(table id, column name) -> highest identity value assigned in this transaction."""
    read: frozenset[int] = frozenset()
    """Ids of the tables whose rows a DELETE, UPDATE or MERGE chose by reading them."""
    operations: tuple[Operation, ...] = ()
    """What was done to rows, in order."""
    author: str | None = None
    message: str | None = None
    extra_info: str | None = None

    @property
    def empty(self) -> bool:
        definitions = self.schemas or self.tables or self.views or self.macros
        return not (definitions or self.identities or any(not r.empty for r in self.rows.values()))
