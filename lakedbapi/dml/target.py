"""The table that a statement changes, as its engine queries name it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.dml.addresses import positions_by_part
from lakedbapi.engine.base import (
    PART,
    POSITION,
    ROW_ID,
    ROW_SNAPSHOT,
    Query,
    Relation,
    RelationName,
    Result,
    ScanRelation,
    View,
)
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Capabilities, Catalog, Snapshot
from lakedbapi.model.catalog import SchemaInfo, TableInfo
from lakedbapi.model.changes import Operation, RowChanges
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import Scan, live_counts
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Field
from lakedbapi.query.filters import table_name
from lakedbapi.query.hidden import HIDDEN_COLUMNS
from lakedbapi.query.names import DEFAULT_SCHEMA, resolve_table
from lakedbapi.query.prune import prune
from lakedbapi.query.relations import columns_of, relations
from lakedbapi.query.shown import Row, has_stars, names_columns, only_shown, whole_rows
from lakedbapi.sql.expressions import render
from lakedbapi.sql.nulls import without_compared_nulls
from lakedbapi.sql.qualified import leading, under
from lakedbapi.sql.statements import Name, Special
from lakedbapi.transaction import CatalogView, Contents

INSERT = "insert"
"""The kind of an `Operation` that chooses no rows of the table."""

HIDDEN = RelationName.local("_lake_target")
"""The name under which the target's rows stand in a query: the table's own name keeps meaning the table in
subqueries."""


@dataclass(frozen=True)
class Target:
    """`name` is what the statement calls the table: its alias, else its name; `aliased` tells which."""

    context: Context
    catalog_alias: str
    view: CatalogView
    schema: SchemaInfo
    table: TableInfo
    name: str
    aliased: bool
    hidden: frozenset[str] = frozenset()
    """The hidden columns (`query.hidden`) that the statement names."""
    others: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Those that its subqueries name, by the casefolded name of the table there."""
    sources: tuple[exp.Expression, ...] = ()
    """The other relations of the statement: USING or FROM."""
    beside: Mapping[str, Row] = field(default_factory=dict)
    """Those of them with columns that are not shown, by casefolded alias."""

    @classmethod
    def of(cls, context: Context, name: Name, alias: str | None = None) -> Target:
        """ProgrammingError when there is no such table."""
        found = resolve_table(context, name)
        return cls(
            context, found.alias, found.view, found.schema, found.table, alias or found.table.name, alias is not None
        )

    @classmethod
    def of_table(cls, context: Context, catalog_alias: str, table: TableInfo) -> Target:
        view = context.transaction.view(catalog_alias)
        return cls(context, catalog_alias, view, view.schemas[table.schema_id], table, table.name, False)

    @cached_property
    def contents(self) -> Contents:
        return self.view.contents(self.table)

    @cached_property
    def live_counts(self) -> npt.NDArray[np.int64]:
        """The rows that are left in each file of `contents.files`; those of `contents.counted` are exact, others the
        most that there can be."""
        files = self.contents.files
        live: npt.NDArray[np.int64] = live_counts(files)
        staged = self.contents.rows.deleted
        if staged:
            counts = [len(staged.get(file, ())) for file in files.column("file_id").to_pylist()]
            live = live - np.array(counts, np.int64)
        return live

    @property
    def catalog(self) -> Catalog:
        return self.view.catalog

    @property
    def capabilities(self) -> Capabilities:
        return self.catalog.capabilities

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.table.schema.fields

    @cached_property
    def part(self) -> str:
        """The hidden column with the part number of each row."""
        return self._unused("_lake_part")

    @cached_property
    def position(self) -> str:
        return self._hidden_name(POSITION, "_lake_position")

    @cached_property
    def row_id(self) -> str:
        return self._hidden_name(ROW_ID, "_lake_row_id")

    @cached_property
    def row_version(self) -> str:
        return self._unused("_lake_row_version")

    @property
    def qualified_name(self) -> str:
        """`catalog.schema.table`, for messages."""
        return f"{self.catalog_alias}.{self.schema.name}.{self.table.name}"

    def path_length(self, names: Sequence[str]) -> int:
        """How many of the casefolded `names` before a column, or before a field of one, name the target."""
        return next((len(path) for path in leading(names) if path in self._paths), 0)

    @cached_property
    def _paths(self) -> Collection[tuple[str, ...]]:
        if self.aliased:
            return {(self.name.casefold(),)}
        catalog, schema, table = (name.casefold() for name in (self.catalog_alias, self.schema.name, self.table.name))
        current, current_schema = self.context.search_path
        default = current_schema if self.catalog_alias == current else DEFAULT_SCHEMA
        paths = {(catalog, schema, table), (schema, table), (table,)}
        return paths | {(catalog, table)} if default.casefold() == schema else paths

    @cached_property
    def from_item(self) -> str:
        """The target in a FROM clause, under the name that the statement gives it."""
        return f"{HIDDEN.sql} AS {quote_identifier(self.name)}"

    def column(self, name: str) -> str:
        """SQL for a column of the target."""
        return f"{quote_identifier(self.name)}.{quote_identifier(name)}"

    def scan_relation(
        self, scan: Scan, *, exhaustive: bool = False, row_versions: bool = False
    ) -> dict[RelationName, Relation]:
        """What `from_item` reads, with the address and row id of every row in hidden columns.

        `exhaustive` as in `ScanRelation`; `row_versions`: with the row's snapshot in another one.
        """
        extra = {**self._extra, ROW_SNAPSHOT: self.row_version} if row_versions else self._extra
        return {HIDDEN: ScanRelation(scan, extra, exhaustive)}

    def query(
        self,
        sql: str,
        hidden: Mapping[RelationName, Relation],
        identifiers: frozenset[str] = frozenset(),
        specials: tuple[Special, ...] = (),
    ) -> Query:
        """`sql` with the statement's parameters and search path, over `hidden` relations and those that `identifiers`
        can name."""
        context = self.context
        others = relations(context, identifiers, specials, hidden=self.others) if identifiers or specials else {}
        return Query(sql, {**others, **hidden}, context.parameters, context.search_path)

    @property
    def _extra(self) -> dict[str, str]:
        """The columns that `from_item` has besides the table's: kind -> name."""
        named = {HIDDEN_COLUMNS[name]: name for name in sorted(self.hidden)}
        return {**named, PART: self.part, POSITION: self.position, ROW_ID: self.row_id}

    def render(self, expression: exp.Expression) -> str:
        """SQL of an expression of the statement over `from_item` and the other relations."""
        known = self._rendered.get(id(expression))
        if known is None:
            known = expression, self.render_shown(self.concealed(expression))
            self._rendered[id(expression)] = known
        return known[1]

    @cached_property
    def _rendered(self) -> dict[int, tuple[exp.Expression, str]]:
        """What `render` gave, since a statement asks several times. The expressions are there to keep their ids."""
        return {}

    def concealed(self, expression: exp.Expression) -> exp.Expression:
        """The expression without a way to see the columns that only this package knows of."""
        aliases = {self.name.casefold(), *self.beside}
        if not has_stars(expression) and next(whole_rows(expression, aliases), None) is None:
            return expression
        own = Row(self.table.schema.names, tuple(self._extra.values()))
        return only_shown(expression.copy(), {self.name.casefold(): own, **self.beside}, self._is_column)

    def _is_column(self, name: str) -> bool:
        """Whether a column of the target or of another relation has the casefolded name."""
        tables = [table_name(table) for source in self.sources for table in source.find_all(exp.Table)]
        others = (columns_of(self.context, (), table) for table in tables)
        return (
            self.table.schema.get(name) is not None
            or names_columns(self.sources, name)
            or any(columns is not None and name in columns.shown for columns in others)
        )

    def render_shown(self, expression: exp.Expression) -> str:
        """SQL of an expression over the target's own columns, in which `schema.table.column` of the target has become
        `table.column`."""
        expression = without_compared_nulls(expression, self.context.parameters)
        if self.aliased or not any(column.args.get("db") for column in expression.find_all(exp.Column)):
            return render(expression)
        return render(expression.transform(self._unqualified))

    def fetch(self, query: Query) -> pa.Table:
        """Run to the end."""
        with _plain_errors():
            return self.context.engine.fetch(query)

    def fetch_positions(self, query: Query) -> Mapping[int, DeleteVector]:
        """The positions of the rows whose addresses `query` selects, by part."""
        with _plain_errors(), closing(self.context.engine.query(query)) as result:
            return positions_by_part(result.reader())

    def open(self, query: Query) -> Result:
        """Start, to be read as it comes."""
        with _plain_errors():
            return self.context.engine.query(query)

    def stage(self, rows: RowChanges, identities: Mapping[str, int] | None = None, *, operation: Operation) -> None:
        """Stage what the statement did to the table."""
        changes = self.context.transaction.changes(self.catalog_alias)
        marks = {(self.table.id, column): mark for column, mark in (identities or {}).items()}
        staged = replace(
            changes,
            rows={**changes.rows, self.table.id: rows},
            identities={**changes.identities, **marks} if marks else changes.identities,
            operations=(*changes.operations, operation),
            read=changes.read if operation.kind == INSERT else changes.read | {self.table.id},
        )
        self.context.transaction.stage(self.catalog_alias, staged)

    def is_read_by(self, relations: Mapping[RelationName, Relation], trees: Iterable[exp.Expression | None]) -> bool:
        """Whether a query over `relations` reads the table as a source.

        `relations` are all that its text can name; `trees` are its parts, None for what only the engine understands.
        """
        own = tuple(part.casefold() for part in (self.catalog_alias, self.schema.name, self.table.name))
        read = [relation for name, relation in relations.items() if tuple(part.casefold() for part in name) == own]
        if not read:
            return False
        called = {own[-1], *(name.name.casefold() for name, relation in relations.items() if relation in read)}
        if any(isinstance(relation, View) for relation in relations.values()):
            return True
        return any(
            tree is None
            or isinstance(tree, exp.Var)
            or any(table.name.casefold() in called for table in tree.find_all(exp.Table))
            for tree in trees
        )

    def may_match(self, condition: exp.Expression | None) -> Callable[[Snapshot], npt.NDArray[np.bool_]]:
        """See `Operation.may_match`."""
        return lambda later: prune(self.context, Contents(self.table, later, RowChanges()), condition, self.name).keep

    def require(self, verb: str, capable: bool) -> None:
        """NotSupportedError when the format cannot do `verb`, or not to this table."""
        if not capable:
            raise NotSupportedError(
                f"{verb} {self.qualified_name}: tables of format {self.catalog.format!r} can only be read here; "
                f"{self.capabilities.way_out}"
            )
        self.catalog.check_rows_writable(self.view.snapshot, self.table)

    def _unqualified(self, node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column) or not node.args.get("db"):
            return node
        length = self.path_length([part.name.casefold() for part in node.parts[:-1]])
        return node if length < 2 else under(node.parts[length - 1], node, length)

    def _hidden_name(self, kind: str, otherwise: str) -> str:
        """What a column is called: as the statement calls it, if it does."""
        used = [name for name in self.hidden if HIDDEN_COLUMNS[name] == kind]
        return used[0] if used else self._unused(otherwise)

    def _unused(self, name: str) -> str:
        while self.table.schema.get(name) is not None:
            name += "_"
        return name


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors about a statement do not name what only its engine query has."""
    try:
        yield
    except ProgrammingError as error:
        message = str(error)
        if "_lake_" not in message:
            raise
        if "GROUP BY" in message:
            raise ProgrammingError("an aggregate needs a subquery here: (SELECT max(x) FROM t)") from error
        text, found, suggestions = message.partition("\nCandidate bindings:")
        shown = [name for name in suggestions.split(",") if "_lake_" not in name]
        raise ProgrammingError(text + found * bool(shown) + ",".join(shown)) from error
