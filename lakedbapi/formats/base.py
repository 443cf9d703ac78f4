"""The contract of a table format: what a new format must provide.

A format turns metadata into model values and staged changes into commits. It knows nothing of SQL or of an engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.errors import NotSupportedError
from lakedbapi.model.catalog import (
    AsOf,
    MacroInfo,
    OptionInfo,
    PartitionSpec,
    SchemaInfo,
    SnapshotInfo,
    TableInfo,
    ViewInfo,
)
from lakedbapi.model.changes import Changes
from lakedbapi.model.layout import OWN_LAYOUT, FileLayout
from lakedbapi.model.scan import ColumnBounds, FileGroup, PartitionColumn, RowGroup, Scan
from lakedbapi.storage.filesystem import Storage

if TYPE_CHECKING:
    from lakedbapi.formats.maintenance import Maintenance
    from lakedbapi.formats.refs import Refs


@dataclass(frozen=True)
class Capabilities:
    """What a format can do, as data. A statement that needs a missing one is refused before it touches anything."""

    multi_table_commit: bool = False
    table_versions: bool = False
    """Every table has versions of its own, the catalog as a whole has none: a snapshot looks at each table when it is
    asked for it."""
    ordered_versions: bool = True
    """A later version has the greater number."""
    metadata_tables: frozenset[str] = frozenset()
    """What `Snapshot.metadata_table` has, out of `manifests`, `partitions` and `refs`."""
    schemas: bool = False
    nested_schemas: bool = False
    """Schemas can be made inside of others: `SchemaInfo.parts`."""
    views: bool = False
    typed_views: bool = False
    """Views are kept with their columns: `ViewInfo.schema`."""
    way_out_of_views: str | None = None
    """What the error of a refused statement about views advises, where it is not `way_out`."""
    macros: bool = False
    ddl: bool = False
    row_changes: bool = False
    """DELETE, UPDATE and MERGE."""
    inserts: bool = False
    nulls_violate_checks: bool = False
    """Whether a CHECK must be TRUE; else it must not be FALSE."""
    table_by_table: bool = False
    """Without `multi_table_commit`: whether the changes of several tables are committed one after the other."""
    delete_vectors: bool = False
    """Merge-on-read; without it every row-level change is copy-on-write."""
    row_ids: bool = False
    """Rows have stable ids, which UPDATE and compaction keep."""
    sets_not_null: bool = True
    """Whether a column can become NOT NULL while older versions of the table may have NULL in it."""
    identity_columns: bool = False
    identity_options: bool = False
    """Whether identity columns can be GENERATED ALWAYS, and count from other numbers and in other steps than 1."""
    generated_columns: bool = False
    """Whether columns can be declared GENERATED ALWAYS AS (expression)."""
    widening_to_decimals: bool = False
    """ALTER TABLE may make decimals of integers, and give decimals a larger scale."""
    spark_expressions: bool = False
    """Whether checks, generated columns and defaults are kept in Spark's SQL, for other programs to run; else they are
    the engine's."""
    travel_by_version: bool = True
    travel_by_timestamp: bool = True
    travel_by_ref: bool = False
    change_feed: bool = False
    partition_transforms: frozenset[str] = frozenset()
    empty_partition_values: bool = True
    """An empty text can be the value of a partition column; else it is NULL."""
    name_mapping: bool = False
    """Files of other programs, without field ids, can be data files of a table."""
    constant_defaults: bool = False
    """Defaults are kept as values: one that has no one value is refused."""
    nested_initial_defaults: bool = True
    """Rows that are older than a column with fields or elements inside can have its default."""
    column_order: bool = False
    """Columns can be put before others, and moved."""
    maintenance: bool = False
    """Tables can be compacted, snapshots expired, files cleaned up: `Catalog.maintenance`."""
    hidden_columns: frozenset[str] = frozenset()
    """Casefolded names that columns in `TableInfo.hidden` can have."""
    way_out: str = "use a catalog of another format, such as ducklake"
    """What the error of a refused statement advises."""


@dataclass(frozen=True)
class CommitResult:
    snapshot: int
    """Id of the new snapshot (of the table's new version); without one, of the newest."""
    attempts: int = 1
    tables: Mapping[int, int] = field(default_factory=dict)
    """Provisional table id -> final table id."""
    is_new: bool = True
    """Whether the commit made a snapshot; it does not when only options changed, which have no versions."""


class Snapshot(ABC):
    """A catalog at one point, read-only and immutable: the same questions always get the same answers.

    Lookups by name are case-insensitive. Implementations load lazily and cache; they are safe to share by threads.
    """

    id: int
    """Of formats with `table_versions`: 0."""
    time: datetime

    @abstractmethod
    def schemas(self) -> Mapping[int, SchemaInfo]: ...

    @abstractmethod
    def tables(self) -> Mapping[int, TableInfo]:
        """All tables; a format whose tables have metadata of their own leaves out those that cannot be read."""

    @abstractmethod
    def views(self) -> Mapping[int, ViewInfo]: ...

    def table_of(self, id: int) -> TableInfo | None:
        """The table with this id."""
        return self.tables().get(id)

    def find_schema(self, name: str) -> SchemaInfo | None:
        """The schema with this name. A format that asks a server asks for this one only."""
        return self._schemas_by_name.get(name.casefold())

    def find_table(self, schema: SchemaInfo, name: str) -> TableInfo | None:
        """The table with this name. A format that reads metadata table by table reads that of this one only."""
        return self._tables_by_name.get((schema.id, name.casefold()))

    def find_view(self, schema: SchemaInfo, name: str) -> ViewInfo | None:
        """The view with this name, likewise."""
        return self._views_by_name.get((schema.id, name.casefold()))

    def table_names(self, schema: SchemaInfo) -> Sequence[str]:
        """The names of a schema's tables, sorted; a format that reads metadata table by table reads none."""
        return sorted(table.name for table in self.tables().values() if table.schema_id == schema.id)

    def macros(self) -> Mapping[int, MacroInfo]:
        return {}

    @cached_property
    def _schemas_by_name(self) -> Mapping[str, SchemaInfo]:
        return {schema.name.casefold(): schema for schema in self.schemas().values()}

    @cached_property
    def _tables_by_name(self) -> Mapping[tuple[int, str], TableInfo]:
        return {(table.schema_id, table.name.casefold()): table for table in self.tables().values()}

    @cached_property
    def _views_by_name(self) -> Mapping[tuple[int, str], ViewInfo]:
        return {(view.schema_id, view.name.casefold()): view for view in self.views().values()}

    def version(self, table: TableInfo) -> int:
        """The version that `table` has here: the snapshot's, unless tables have their own."""
        return self.id

    @abstractmethod
    def files(self, table: TableInfo) -> pa.Table:
        """The live data files (columns: at least `model.scan.DATA_FILES`)."""

    def files_where(self, table: TableInfo, choose: Callable[[pa.Table], npt.NDArray[np.bool_]]) -> pa.Table:
        """Those of `files(table)` that `choose` takes. It is given all of them, in any order, with at least the columns
        that `bounds` and `partition_values` need: some formats load the rest of those that are taken only."""
        files = self.files(table)
        return files.filter(pa.array(choose(files)))

    @abstractmethod
    def bounds(self, table: TableInfo, files: pa.Table, field_id: int) -> ColumnBounds | None:
        """Statistics of a top-level column for each row of `files` (a subset of `files(table)`), None = none known."""

    @abstractmethod
    def partition_values(self, table: TableInfo, files: pa.Table) -> Mapping[tuple[int, str], PartitionColumn]:
        """(field id, transform) -> the transformed value for each row of `files`; only transforms that are safe to
        prune on."""

    @abstractmethod
    def file_groups(self, table: TableInfo, files: pa.Table) -> Sequence[FileGroup]:
        """`files` (a subset of `files(table)`, possibly empty) with their delete vectors, ready to be scanned. Keeps
        the row order. Leaves out those whose rows `merged_rows` gives."""

    def merged_rows(self, table: TableInfo, files: pa.Table) -> Sequence[RowGroup]:
        """The rows of those of `files` that no engine can read by itself (Hudi's base files with log files)."""
        return ()

    @abstractmethod
    def row_groups(self, table: TableInfo) -> Sequence[RowGroup]:
        """Rows that lie in the catalog, in the columns of `table.schema`."""

    def metadata_table(self, table: TableInfo, name: str) -> pa.Table:
        """One of `Capabilities.metadata_tables`, in columns that the format chooses."""
        raise NotSupportedError(f"this format has no {name}")

    def with_row_versions(self, table: TableInfo, group: FileGroup) -> FileGroup | None:
        """`group`, one of `file_groups`, with what copies of its rows keep (`StagedRows.row_versions`) in place of the
        snapshot of each row; None where they keep nothing."""
        return None

    @abstractmethod
    def delete_files(self, table: TableInfo) -> pa.Table:
        """Live delete files: data_file path, path, format, delete_count, file_size_bytes, snapshot_id."""


class Catalog(ABC):
    """An open catalog. One per process and location, shared by connections and threads."""

    format: str
    """Registry name, e.g. `ducklake`."""
    capabilities: Capabilities
    storage: Storage

    @abstractmethod
    def latest(self) -> Snapshot:
        """The newest snapshot, as of now; cheap when nothing changed since the last call."""

    @abstractmethod
    def as_of(self, point: AsOf) -> Snapshot:
        """The snapshot at `point`; ProgrammingError when there is none."""

    @abstractmethod
    def history(self, table: TableInfo | None = None) -> Sequence[SnapshotInfo]:
        """All kept snapshots, oldest first: of the catalog, or those that touched `table`.

        ProgrammingError without `table` where tables have versions of their own.
        """

    @abstractmethod
    def option(self, name: str, table: TableInfo | None = None) -> str | None:
        """An option's value: of the table, else its schema, else the catalog, else the default; None = unset."""

    def options(self) -> Sequence[OptionInfo]:
        """What is set for the catalog, its schemas and its tables, by name; facts such as its version, too."""
        return ()

    @abstractmethod
    def set_option(
        self, name: str, value: str | None, schema: SchemaInfo | None = None, table: TableInfo | None = None
    ) -> None: ...

    def settable_properties(self, table: TableInfo) -> Mapping[str, str]:
        """The properties of a table that CREATE TABLE would take."""
        return table.properties

    @abstractmethod
    def number_fields(self, snapshot: Snapshot, table: TableInfo) -> TableInfo:
        """`table`, new or altered in a transaction on `snapshot`, with field ids for the fields that have none (id
        `UNASSIGNED`).

        Ids are never reused: they start after the highest one that the table ever had. Needed before the commit, since
        data
        files written in the transaction embed them.
        """

    @abstractmethod
    def next_identity(self, snapshot: Snapshot, table: TableInfo, column: str) -> int:
        """The next free value of an identity column at `snapshot`."""

    @abstractmethod
    def keeps_rows(self, table: TableInfo, count: int) -> bool:
        """Whether a commit with `count` new rows in `table` would store them in the catalog instead of a data file."""

    @abstractmethod
    def data_directory(self, table: TableInfo, schema: SchemaInfo) -> str:
        """Where new data files of `table` go, ending in `/`; also known for a table that is not committed yet."""

    def check_schema(self, snapshot: Snapshot, schema: SchemaInfo) -> None:
        """NotSupportedError, which tells the way out, when the format cannot have the new `schema`, in a transaction on
        `snapshot`."""

    def check_table(self, snapshot: Snapshot, old: TableInfo | None, table: TableInfo) -> None:
        """NotSupportedError, which tells the way out, when the format cannot have `table`, new or altered from `old`,
        in a transaction on `snapshot`. Its fields are numbered."""

    def check_view(self, view: ViewInfo) -> None:
        """NotSupportedError, which tells the way out, when the format cannot have the new `view`."""

    def as_restored(self, past: Snapshot, earlier: TableInfo, snapshot: Snapshot, current: TableInfo) -> TableInfo:
        """`earlier`, a table of the snapshot `past`, with its columns numbered as those of `current`, the same table in
        `snapshot`."""
        return earlier

    def check_macro(self, macro: MacroInfo) -> None:
        """NotSupportedError, which tells the way out, when the format cannot have the new `macro`."""

    def check_restored(self, snapshot: Snapshot, old: TableInfo, table: TableInfo) -> None:
        """As `check_table`, of a table that gets the structure back that it had, with the files that it had then."""
        self.check_table(snapshot, old, table)

    def check_rows_writable(self, snapshot: Snapshot, table: TableInfo) -> None:
        """NotSupportedError, before any row is read, when the rows of `table` cannot be changed here, or not in a
        transaction that makes the table what it is."""

    def has_delete_vectors(self, table: TableInfo) -> bool:
        """Whether rows of `table` may be deleted without rewriting their file."""
        return self.capabilities.delete_vectors

    def write_mode(self, table: TableInfo, kind: str) -> str | None:
        """What the table says of its files that lose rows by a statement of `kind` (as in `Operation`):
        `merge-on-read`, `copy-on-write`, None = nothing."""
        return None

    def has_row_ids(self, table: TableInfo) -> bool:
        """Whether the hidden column `rowid` names the same row in every version."""
        return True

    def stores_changes(self, table: TableInfo) -> bool:
        """Whether commits have to tell what happened to each row of `table`: `RowChanges.change_files`."""
        return False

    def loses_delete_vectors(self, table: TableInfo, paths: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """For data files at `paths` whether readers are known that would overlook their delete vector."""
        return np.zeros(len(paths), np.bool_)

    def file_partitioning(self, table: TableInfo) -> PartitionSpec | None:
        """How rows go to files, in the transforms that `Engine.write` knows."""
        return table.partitioning

    def file_layout(self, table: TableInfo) -> FileLayout:
        """What data files of `table` are called and have in them."""
        return OWN_LAYOUT

    @abstractmethod
    def commit(self, base: Snapshot, changes: Changes) -> CommitResult:
        """Make `changes`, which were made on `base`, the next snapshot in one atomic step.

        Changes that commute with what others committed since `base` are rebased. Raises ConflictError when they do not,
        with
        nothing changed; CommitUnknownError when the outcome cannot be known. Data files in `changes` are not removed
        on failure: that is the caller's part. Files that the commit itself wrote are removed on failure.
        """

    def discard(self, paths: Sequence[str]) -> None:
        """Remove data files that a transaction wrote and did not commit."""
        self.storage.delete(paths)

    def give_up(self, directory: str) -> None:
        """Called when writing the data files of a table into its directory failed; they are removed already."""

    @abstractmethod
    def table_changes(self, table: TableInfo, start: int | datetime, end: int | datetime) -> Sequence[ChangeScan]:
        """The change feed between two snapshots, both inclusive, in the columns of `table` (as of the end)."""

    @abstractmethod
    def data_roots(self) -> Sequence[str]:
        """Directories (full paths or URLs, ending in `/`) that an engine needs to read and write."""

    def migrate(self, version: str | None = None) -> None:
        """Make the catalog one of a newer format version, by default the one that new catalogs have."""
        raise NotSupportedError(
            f"format {self.format!r} has no versions of whole catalogs: there is nothing to migrate"
        )

    def check_writable(self) -> None:
        """NotSupportedError, with the way out, when the catalog is of a version that can be read but not changed."""

    @property
    def catalog_type(self) -> str:
        """What kind of database or service keeps the metadata; the format itself where it needs none."""
        return self.format

    @property
    def maintenance(self) -> Maintenance:
        """How the catalog's tables are compacted and cleaned up, where `capabilities` say that they can be."""
        raise NotSupportedError(
            f"tables of format {self.format!r} have no maintenance here: use the tools of their writer, such as Spark"
        )

    @property
    def refs(self) -> Refs:
        """The branches and tags of the catalog's tables, where the format has some and they can be changed here."""
        raise NotSupportedError(
            f"tables of format {self.format!r} have no branches and tags: note the number of a version, which "
            "DESCRIBE HISTORY t lists, and read it with FOR VERSION AS OF; to change rows apart, copy them with CREATE "
            "TABLE … AS SELECT"
        )

    def release(self) -> None:
        """The session that opened the catalog has ended: give back what only one process can have."""

    def close(self) -> None:
        """Release connections; the catalog can be used again and reconnects."""


CHANGE_TYPE = "_change_type"


@dataclass(frozen=True)
class ChangeScan:
    """Rows that were inserted or deleted. `kind` is `insert` or `delete`.

    `kind` None: each row tells by itself, in the scan's last column, `CHANGE_TYPE`: `insert`, `delete`,
    `update_preimage` or `update_postimage`.

    The scan yields exactly the rows that were changed, except where `snapshot` is None: then each row's own snapshot id
    (the scan's
    `snapshot_id` column) is the snapshot of the change, and rows outside the asked range are to be filtered out by it.
    """

    kind: str | None
    snapshot: int | None
    scan: Scan


class Format(ABC):
    """An entry of the registry: opens or creates catalogs from a location."""

    name: str

    @abstractmethod
    def open(self, location: str, options: Mapping[str, str], *, read_only: bool, create: bool) -> Catalog: ...
