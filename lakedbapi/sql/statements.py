"""Typed statements: what a text means, before any name is resolved.

SQL fragments inside statements are sqlglot expressions in the DuckDB dialect, with parameters as `$1`, `$name`, and
with special relations (time travel, metadata, change feed) replaced by unique quoted names (`Special.name`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from sqlglot import exp

from lakedbapi.errors import ProgrammingError
from lakedbapi.model.catalog import Constraint
from lakedbapi.model.refs import NewRef
from lakedbapi.model.sql_types import spelled
from lakedbapi.model.types import Field, Type


@dataclass(frozen=True)
class Name:
    """An object name as written: `table`, `schema.table` or `catalog.schema.table`, unquoted parts kept in their
    case."""

    parts: tuple[str, ...]

    @property
    def last(self) -> str:
        return self.parts[-1]

    def __str__(self) -> str:
        return ".".join(map(spelled, self.parts))


@dataclass(frozen=True)
class Travel:
    """A time-travel reference: `kind` is `version`, `timestamp`; the table `of` is read at `value` (an expression
    without columns)."""

    of: Name
    kind: str
    value: exp.Expression


@dataclass(frozen=True)
class Named:
    """`of` with a last part such as `branch_b` or `tag_x`: a table of that name, or a branch or tag of the table that
    the parts before it name. Or with more parts than the engine knows: a relation in a schema inside of another."""

    of: Name


@dataclass(frozen=True)
class Function:
    """A lake table function in FROM, e.g. `table_changes('t', 1, 3)`; `name` may be qualified by a catalog
    (`lake.snapshots()`)."""

    of: Name
    arguments: tuple[exp.Expression, ...]
    named: tuple[tuple[str, exp.Expression], ...] = ()


@dataclass(frozen=True)
class InformationSchema:
    """`information_schema.<view>`, or `catalog.information_schema.<view>`."""

    view: str
    """Lower case."""
    catalog: str | None = None


@dataclass(frozen=True)
class Special:
    """A relation that is no plain table name; in `text` it stands as the quoted identifier `name`."""

    name: str
    relation: Union[Travel, Named, Function, InformationSchema]


@dataclass(frozen=True)
class Select:
    """A query. `text` is the engine's SQL as the user wrote it, but for parameters and specials.

    `identifiers` are all casefolded identifiers and string literals in it: every relation it can name is among them.
    `tree` is its parse for planning, None when only the engine can parse it.
    """

    text: str
    identifiers: frozenset[str]
    specials: tuple[Special, ...] = ()
    tree: exp.Expression | None = None


@dataclass(frozen=True)
class Assignment:
    column: tuple[str, ...]
    """Path: column, then struct fields. Empty in MERGE … INSERT VALUES without a column list: the column at this
    position."""
    value: exp.Expression | None
    """None = DEFAULT."""


@dataclass(frozen=True)
class OnConflict:
    columns: tuple[str, ...]
    update: tuple[Assignment, ...]
    """Empty = DO NOTHING. Expressions see `excluded` and the target."""
    where: exp.Expression | None = None
    replace: bool = False
    """INSERT OR REPLACE: update all columns, on a conflict of any key."""


@dataclass(frozen=True)
class Insert:
    """`source` is a SELECT or VALUES. A VALUES item that is DEFAULT stands as NULL in it and is marked in `defaults`:
    (row, column) pairs. `source` None = DEFAULT VALUES. The identifiers and specials are those of the whole
    statement."""

    target: Name
    alias: str | None
    columns: tuple[str, ...]
    source: Select | None
    by_name: bool = False
    defaults: frozenset[tuple[int, int]] = frozenset()
    on_conflict: OnConflict | None = None
    returning: tuple[exp.Expression, ...] = ()
    ctes: exp.With | None = None
    identifiers: frozenset[str] = frozenset()
    specials: tuple[Special, ...] = ()


@dataclass(frozen=True)
class Update:
    target: Name
    alias: str | None
    assignments: tuple[Assignment, ...]
    source: tuple[exp.Expression, ...] = ()
    """The items of FROM (with their joins)."""
    where: exp.Expression | None = None
    returning: tuple[exp.Expression, ...] = ()
    ctes: exp.With | None = None
    identifiers: frozenset[str] = frozenset()
    specials: tuple[Special, ...] = ()


@dataclass(frozen=True)
class Delete:
    target: Name
    alias: str | None
    source: tuple[exp.Expression, ...] = ()
    """The items of USING."""
    where: exp.Expression | None = None
    returning: tuple[exp.Expression, ...] = ()
    ctes: exp.With | None = None
    identifiers: frozenset[str] = frozenset()
    specials: tuple[Special, ...] = ()


@dataclass(frozen=True)
class MergeAction:
    """One WHEN clause. `when` is `matched`, `not matched` (by target) or `not matched by source`;
    `action` is `update`, `delete`, `insert`, `nothing` or `error`."""

    when: str
    condition: exp.Expression | None
    action: str
    assignments: tuple[Assignment, ...] = ()
    """Of UPDATE SET and INSERT (columns) VALUES (…)."""
    star: str | None = None
    """`*` / `by name` / `by position`: UPDATE SET *, INSERT *, INSERT BY NAME, or an action without a list (`by
    position` with assignments: INSERT VALUES without a column list)."""
    error: exp.Expression | None = None


@dataclass(frozen=True)
class Merge:
    target: Name
    alias: str | None
    source: exp.Expression
    """A table, subquery or VALUES with its alias."""
    on: exp.Expression | None
    using: tuple[str, ...]
    """Columns of `USING (…)` in place of ON."""
    actions: tuple[MergeAction, ...]
    returning: tuple[exp.Expression, ...] = ()
    ctes: exp.With | None = None
    identifiers: frozenset[str] = frozenset()
    specials: tuple[Special, ...] = ()


@dataclass(frozen=True)
class Truncate:
    target: Name


@dataclass(frozen=True)
class CreateSchema:
    name: Name
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropSchema:
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class PartitionKey:
    column: str
    transform: str


@dataclass(frozen=True)
class SortKey:
    expression: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class CreateTable:
    """`source` is the query of CREATE TABLE … AS, `like` the table of CREATE TABLE … (LIKE x)."""

    name: Name
    columns: tuple[Field, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    source: Select | None = None
    with_data: bool = True
    or_replace: bool = False
    if_not_exists: bool = False
    partitioning: tuple[PartitionKey, ...] = ()
    sorting: tuple[SortKey, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    like: Name | None = None
    using: str | None = None
    """The format that the statement asks for."""


@dataclass(frozen=True)
class DropTable:
    name: Name
    if_exists: bool = False
    view: bool = False


@dataclass(frozen=True)
class CreateView:
    name: Name
    query: Select
    sql: str
    """The text of the query as the user wrote it."""
    column_aliases: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Position:
    """Behind the column or field `after`; None: before all others."""

    after: str | None = None


@dataclass(frozen=True)
class AddColumn:
    path: tuple[str, ...]
    """Empty for a column; else the struct column and fields that the new field goes into."""
    field: Field
    if_not_exists: bool = False
    position: Position | None = None


@dataclass(frozen=True)
class DropColumn:
    path: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class RenameColumn:
    path: tuple[str, ...]
    new_name: str


@dataclass(frozen=True)
class AlterColumn:
    """Exactly one change: `type` (a `Field` whose type is the new one), `default`, `nullable` or `position`."""

    path: tuple[str, ...]
    type: Field | None = None
    set_default: exp.Expression | None = None
    drop_default: bool = False
    nullable: bool | None = None
    position: Position | None = None


@dataclass(frozen=True)
class RenameTable:
    new_name: str


@dataclass(frozen=True)
class SetPartitioning:
    keys: tuple[PartitionKey, ...]
    """Empty = RESET."""


@dataclass(frozen=True)
class SetSorting:
    keys: tuple[SortKey, ...]
    """Empty = RESET."""


@dataclass(frozen=True)
class SetProperties:
    """A None value resets the property."""

    properties: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class AddConstraint:
    constraint: Constraint


@dataclass(frozen=True)
class DropConstraint:
    name: str
    if_exists: bool = False


AlterAction = Union[
    AddColumn,
    DropColumn,
    RenameColumn,
    AlterColumn,
    RenameTable,
    SetPartitioning,
    SetSorting,
    SetProperties,
    AddConstraint,
    DropConstraint,
]


@dataclass(frozen=True)
class AlterTable:
    name: Name
    actions: tuple[AlterAction, ...]
    if_exists: bool = False
    view: bool = False


@dataclass(frozen=True)
class CreateMacro:
    """`bodies`: each overload's parameters (name, type, default) and its text."""

    name: Name
    is_table: bool
    bodies: tuple[tuple[tuple[tuple[str, Type | None, str | None], ...], str], ...]
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropMacro:
    name: Name
    is_table: bool
    if_exists: bool = False


@dataclass(frozen=True)
class CommentOn:
    kind: str
    """`table`, `view`, `column`, `schema`."""
    name: Name
    """For a column: the table's name."""
    column: tuple[str, ...]
    text: str | None


@dataclass(frozen=True)
class TransactionControl:
    """`action`: begin, commit, rollback, savepoint, release, rollback to."""

    action: str
    name: str | None = None


@dataclass(frozen=True)
class Attach:
    location: str
    alias: str | None
    options: tuple[tuple[str, str], ...]
    """Lower-case option names."""
    if_not_exists: bool = False


@dataclass(frozen=True)
class Detach:
    alias: str
    if_exists: bool = False


@dataclass(frozen=True)
class Use:
    name: Name


@dataclass(frozen=True)
class Show:
    """`what`: tables, all tables, schemas, databases, views; `of` limits it (SHOW TABLES FROM s), and so does the
    pattern `like`. Or create: the statement that makes `of`. Or properties: what is set on the table `of`."""

    what: str
    of: Name | None = None
    like: str | None = None


@dataclass(frozen=True)
class Describe:
    """DESCRIBE t, or DESCRIBE <query>, or SUMMARIZE: `verb` tells which."""

    verb: str
    query: Select
    name: Name | None = None


@dataclass(frozen=True)
class Explain:
    statement: Statement
    analyze: bool = False


@dataclass(frozen=True)
class Call:
    """`CALL name(arguments, named => …)`."""

    name: Name
    arguments: tuple[exp.Expression, ...]
    named: tuple[tuple[str, exp.Expression], ...] = ()


@dataclass(frozen=True)
class Purge:
    """`PURGE FROM target [AS alias] WHERE where [DRY RUN]`: erase rows from every snapshot and file."""

    target: Name
    alias: str | None
    where: exp.Expression
    dry_run: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """All maintenance of a catalog (None: the current one), by its options; of formats whose tables have versions of
    their own, the state of tables is written down. `name` is that of a catalog, or of such a table (`is_table`: surely
    so)."""

    name: Name | None = None
    is_table: bool = False


@dataclass(frozen=True)
class Optimize:
    """`where` limits it to the files that may have such rows; `order`: the columns that rows are clustered by."""

    name: Name
    where: exp.Expression | None = None
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reorg:
    """Files are written anew that have deleted rows; `where` limits it to those that may have such rows."""

    name: Name
    where: exp.Expression | None = None


@dataclass(frozen=True)
class Vacuum:
    """Of one table, or of the current catalog. `age`, in hours or days, None: what the catalog or table says."""

    name: Name | None = None
    age: exp.Expression | None = None
    dry_run: bool = False
    unit: str = "hours"


@dataclass(frozen=True)
class Restore:
    """The table that `to` names gets the columns and rows which it had there."""

    to: Travel

    @property
    def target(self) -> Name:
        return self.to.of


@dataclass(frozen=True)
class DescribeHistory:
    """The newest `limit` snapshots that changed the table, all without a limit."""

    name: Name
    limit: exp.Expression | None = None


@dataclass(frozen=True)
class PutRef:
    """CREATE or REPLACE of a branch or tag of a table; `version` is the snapshot, None = as `ref` says."""

    table: Name
    ref: NewRef
    version: exp.Expression | None = None


@dataclass(frozen=True)
class DropRef:
    table: Name
    kind: str
    name: str
    if_exists: bool = False


Statement = Union[
    Select, Insert, Update, Delete, Merge, Truncate, CreateSchema, DropSchema, CreateTable, DropTable, CreateView,
    CreateMacro, DropMacro, AlterTable, CommentOn, TransactionControl, Attach, Detach, Use, Show, Describe, Explain,
    Call,
    Checkpoint, Optimize, Reorg, Vacuum, Restore, DescribeHistory, Purge,
    PutRef, DropRef,
]  # fmt: skip


@dataclass(frozen=True)
class Parameters:
    """Which parameters a text has: `positional` = how many `?` (named `$1`… in the canonical text), `named` = their
    names."""

    positional: int = 0
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileName:
    """A quoted name that looks like that of a file, and the error for it where no relation has this name."""

    name: Name
    error: ProgrammingError


@dataclass(frozen=True)
class Parsed:
    """The result of `lakedbapi.sql.parse`; cached by text."""

    text: str
    statement: Statement
    parameters: Parameters
    external: str | None = None
    """Why the statement is no business of an untrusted user: what in it reaches files, settings or the environment."""
    file_names: tuple[FileName, ...] = ()
    """Relations that are only harmless if the lake has them."""
