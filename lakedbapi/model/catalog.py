"""What a catalog holds at one snapshot: schemas, tables, views. Immutable values; a change is a new value.

Object ids are the catalog's own integers. Objects that exist only in an open transaction have provisional ids,
negative and unique within it (`provisional_id`); the commit replaces them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Field, Schema, Type

_provisional = itertools.count(-1, -1)


def provisional_id() -> int:
    """A new id (< 0) for an object that no commit has numbered yet."""
    return next(_provisional)


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A namespace. `path` is the full storage location of its tables, ending in `/`; None = the format decides.

    `parts` are the names of one that lies in another, from the outermost on, which is called `outer.inner`; empty = it
    lies in none.
    """

    id: int
    name: str
    path: str | None = None
    comment: str | None = None
    parts: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.parts or (self.name,)

    def is_called(self, names: Sequence[str]) -> bool:
        return [name.casefold() for name in self.names] == [name.casefold() for name in names]


def nested_name(parts: Sequence[str], others: Iterable[str]) -> str:
    """What the schema `b` in `a` is called: `a.b`, or `"a"."b"` if one of the `others` in no schema has just that
    name."""
    joined = ".".join(parts)
    is_taken = joined.casefold() in (other.casefold() for other in others)
    return ".".join(map(quote_identifier, parts)) if is_taken else joined


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One partition key: `transform` is `identity`, `year`, `month`, `day`, `hour`, `bucket(N)`, `truncate(N)`, `void`…
    over the column with field id `field_id`. `name` is the key's name where the format stores one."""

    field_id: int
    transform: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    id: int
    fields: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class SortField:
    """`expression` is SQL over the table's columns."""

    expression: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Constraint:
    """An informational constraint (kept, reflected, not enforced), except one with an `expression`, which is enforced.

    `kind` is `primary key`, `unique`, `foreign key`, `check`, or a check that belongs to the definition of a column:
    `invariant`, or `void`, which lets it be NULL only.
    """

    kind: str
    name: str | None
    columns: tuple[str, ...] = ()
    referred: tuple[str, ...] = ()
    """(schema, table) of a foreign key."""
    referred_columns: tuple[str, ...] = ()
    expression: str | None = None


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table at one version. `path` is its full storage location ending in `/` (None = the format decides at commit).

    `properties` holds the options set on the table itself (text), e.g. `lake.write_mode`.
    """

    id: int
    schema_id: int
    name: str
    schema: Schema
    path: str | None = None
    uuid: str | None = None
    partitioning: PartitionSpec | None = None
    sorting: tuple[SortField, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    hidden: tuple[Field, ...] = ()
    """Columns that can be named in a query, and are not shown by `*`."""


@dataclass(frozen=True, slots=True)
class ViewInfo:
    """A view: `sql` is a SELECT in `dialect`; the own catalog's name stands in it as `CATALOG_PLACEHOLDER`."""

    id: int
    schema_id: int
    name: str
    sql: str
    dialect: str = "duckdb"
    column_aliases: tuple[str, ...] = ()
    comment: str | None = None
    home: tuple[str | None, str] | None = None
    """The catalog (None: its own) and schema of tables that `sql` names without one, where that is not the view's."""
    schema: Schema | None = None
    """Of a new view: the columns that it has now, for formats that keep them."""


@dataclass(frozen=True, slots=True)
class MacroParameter:
    """`type` None = any; `default` is a value as text, to be cast to `default_type`; no type = no default."""

    name: str
    type: Type | None = None
    default: str | None = None
    default_type: Type | None = None


@dataclass(frozen=True, slots=True)
class MacroBody:
    """One overload: `sql` is an expression, or a query in a table macro, over the parameters."""

    sql: str
    parameters: tuple[MacroParameter, ...] = ()
    dialect: str = "duckdb"


@dataclass(frozen=True, slots=True)
class MacroInfo:
    """A function that is defined in SQL. A scalar and a table macro may have the same name."""

    id: int
    schema_id: int
    name: str
    is_table: bool
    bodies: tuple[MacroBody, ...]


CATALOG_PLACEHOLDER = "{DUCKLAKE_CATALOG}"


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """One line of a catalog's (or table's) history. `changes` maps a kind of change to the names or ids it touched.

    `operation`, its `parameters` and `metrics` are there where the format keeps them.
    """

    id: int
    time: datetime
    schema_version: int | None = None
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    author: str | None = None
    message: str | None = None
    extra_info: str | None = None
    operation: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """An option that is set: for the table `schema.table`, for `schema`, or for the whole catalog (both None)."""

    name: str
    value: str
    schema: str | None = None
    table: str | None = None


@dataclass(frozen=True, slots=True)
class AsOf:
    """A point to read at: exactly one of version (int), timestamp (aware datetime) and ref (branch or tag) is set."""

    version: int | None = None
    timestamp: datetime | None = None
    ref: str | None = None
