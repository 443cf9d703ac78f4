"""The contract of an engine: runs relational SQL over scans. It knows nothing of a table format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, Union
from uuid import uuid4

import pyarrow as pa

from lakedbapi.errors import Error, ProgrammingError
from lakedbapi.model.catalog import PartitionSpec
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.layout import OWN_LAYOUT, FileLayout
from lakedbapi.model.scan import Scan
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Schema

_ENDING = uuid4().hex[:12]


class UnknownRelationError(ProgrammingError):
    """A query reads a relation that it was not given; `parts` are its name."""

    parts: tuple[str, ...] = ()


class RelationName(NamedTuple):
    catalog: str
    schema: str
    name: str

    @classmethod
    def local(cls, name: str) -> RelationName:
        """A name that the text of the query knows, and no view that it reads: that costs the engine less.

        It hides tables of its name, so it gets an ending that no table has.
        """
        return cls("", "", f"{name}_{_ENDING}")

    @property
    def is_local(self) -> bool:
        return not self.schema

    @property
    def sql(self) -> str:
        return ".".join(quote_identifier(part) for part in self if part)


@dataclass(frozen=True)
class View:
    """SELECT text over other relations of the same query. Unqualified names in it are looked up in `schema` first."""

    sql: str
    column_aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Macro:
    """A function; `bodies` are SQL from the parameters on, one for each overload: `(a, b := 1) AS a + b`."""

    name: str
    is_table: bool
    bodies: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name among the relations, which a table can have, too."""
        return f"{self.name}({'table' if self.is_table else ''})"


@dataclass(frozen=True)
class Unusable:
    """A view that cannot be run, or a table that cannot be read: `error` is for a query that reads it, rather than has
    a column of the name."""

    error: Error


@dataclass(frozen=True)
class ScanRelation:
    """A table. `extra` names columns that it has after its own: some of `PART`, `POSITION`, `ROW_ID`, `ROW_SNAPSHOT`,
    `FILENAME`, each with the column name that it gets.

    `exhaustive`: the query needs (nearly) all rows, in any order, since no condition of it can narrow the scan.
    `in_order`: rows had better come in the order of the files and of their positions in these.
    """

    scan: Scan
    extra: Mapping[str, str] = field(default_factory=dict)
    exhaustive: bool = False
    in_order: bool = False


PART = "part"
"""Number of the row's part in the scan, int64 NOT NULL."""
POSITION = "position"
"""The row's position in its part, int64 NOT NULL."""
ROW_ID = "row id"
"""int64; NULL = not known before the commit."""
ROW_SNAPSHOT = "row snapshot"
"""Snapshot that added the row (embedded, else that of the file), int64; NULL = not known before the commit."""
FILENAME = "filename"
"""Path of the data file; NULL for rows in no file."""

Relation: TypeAlias = Union[ScanRelation, View, Macro, Unusable, pa.Table, pa.RecordBatchReader]
"""What a name in a query can stand for."""


@dataclass(frozen=True)
class ResultColumn:
    name: str
    type: str
    """The engine's SQL spelling, e.g. `DECIMAL(9,2)`."""


class Result(ABC):
    """A running query."""

    columns: Sequence[ResultColumn]
    schema: pa.Schema

    @abstractmethod
    def reader(self) -> pa.RecordBatchReader:
        """The rest of the rows, streamed."""

    @abstractmethod
    def close(self) -> None: ...


class TableResult(Result):
    """A result that is already in memory; `types` are the SQL types of its columns."""

    def __init__(self, table: pa.Table, types: Sequence[str]) -> None:
        self.columns = [ResultColumn(name, type_) for name, type_ in zip(table.column_names, types, strict=True)]
        self.schema = table.schema
        self._table = table

    def reader(self) -> pa.RecordBatchReader:
        return self._table.to_reader()

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Query:
    """One SELECT and everything that its names mean.

    `parameters` are referenced in `sql` as `$name`; values are Python values or Arrow scalars; unused ones are ignored.
    `search_path` is the (catalog, schema) for unqualified names. `explained`: the result is the engine's own plan,
    which is to be short.
    """

    sql: str
    relations: Mapping[RelationName, Relation] = field(default_factory=dict)
    parameters: Mapping[str, object] = field(default_factory=dict)
    search_path: tuple[str, str] = ("memory", "main")
    explained: bool = False


WriteSource: TypeAlias = Union[Query, pa.Table, pa.RecordBatchReader]


@dataclass(frozen=True)
class WriteOptions:
    """How data files are written."""

    directory: str
    """Ends in `/`."""
    layout: FileLayout = OWN_LAYOUT
    compression: str = "snappy"
    compression_level: int | None = None
    row_group_size: int | None = None
    row_group_size_bytes: int | None = None
    parquet_version: str | None = None
    target_file_size: int | None = None
    hive_layout: bool = True
    sort_by: tuple[str, ...] = ()
    """SQL ordering terms."""
    partitioning: PartitionSpec | None = None


class Engine(ABC):
    """Runs queries for one connection. Safe to use from several threads; `interrupt` from any."""

    @abstractmethod
    def query(self, query: Query) -> Result: ...

    @abstractmethod
    def fetch(self, query: Query) -> pa.Table:
        """Run to the end."""

    @abstractmethod
    def write(
        self,
        source: WriteSource,
        schema: Schema,
        options: WriteOptions,
        *,
        row_ids: bool = False,
        row_snapshots: bool = False,
    ) -> tuple[WrittenFile, ...]:
        """Write the rows of `source` as data files of `options.layout`, streaming.

        With `row_ids` the source has a column more, `_lake_row_id`, embedded under `ROW_ID_FIELD`; with `row_snapshots`
        another one behind it, the snapshot that added each row, embedded under `ROW_SNAPSHOT_FIELD`. On failure no file
        is left. Arrow data without either keep their order, also over several files, where nothing sorts or partitions
        them.
        """

    @abstractmethod
    def keeps_order(self, scan: Scan) -> bool:
        """Whether `write` into one file leaves the rows of `scan`, if nothing sorts them, in the order of its files and
        of their positions in these."""

    @abstractmethod
    def interrupt(self) -> None:
        """Stop what is running; it raises OperationalError."""

    @abstractmethod
    def close(self) -> None: ...
