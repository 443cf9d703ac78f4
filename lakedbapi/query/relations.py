"""From the identifiers of a text to the relations that they can mean."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sqlglot import exp

from lakedbapi import sql
from lakedbapi.context import Context
from lakedbapi.engine.base import Macro, Query, Relation, RelationName, ScanRelation, Unusable, View
from lakedbapi.errors import Error, NotSupportedError, ProgrammingError
from lakedbapi.model.catalog import (
    CATALOG_PLACEHOLDER,
    AsOf,
    MacroBody,
    MacroInfo,
    MacroParameter,
    SchemaInfo,
    TableInfo,
    ViewInfo,
)
from lakedbapi.model.scan import Scan
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Schema
from lakedbapi.query.exhaustive import fixed_width
from lakedbapi.query.filters import Filter, table_name
from lakedbapi.query.functions import lake_function, reveals
from lakedbapi.query.hidden import HIDDEN_COLUMNS, Columns, check_known
from lakedbapi.query.information_schema import information_schema
from lakedbapi.query.names import (
    DEFAULT_SCHEMA,
    ResolvedTable,
    catalog_alias,
    find_relation,
    nested_schemas,
    resolve_relation,
)
from lakedbapi.query.prune import matching_files
from lakedbapi.query.travel import point_of
from lakedbapi.sql import render
from lakedbapi.sql.expressions import parse_expression, parse_query
from lakedbapi.sql.nulls import without_compared_nulls
from lakedbapi.sql.qualified import table_paths
from lakedbapi.sql.statements import Function, InformationSchema, Named, Select, Special, Travel
from lakedbapi.transaction import CatalogView


def relations(
    context: Context,
    identifiers: frozenset[str],
    specials: Sequence[Special],
    *,
    predicates: Mapping[str, Filter] | None = None,
    hidden: Mapping[str, frozenset[str]] | None = None,
    aggregated: Mapping[str, frozenset[str]] | None = None,
    in_order: bool = False,
) -> dict[RelationName, Relation]:
    """Every table, view, registered Arrow object and special relation that a text with these identifiers can name.

    Names are (catalog alias, schema, name) in the catalog's own case; specials are found in the schema of the search
    path. `predicates` (by casefolded table name) limit the data files that a table's scan reads; `hidden` names the
    hidden columns (`query.hidden`) that it has; `aggregated` (`query.exhaustive`) those that are read to the end;
    `in_order` as in `ScanRelation`.
    """
    collector = _Collector(context, predicates or {}, hidden or {}, aggregated or {}, in_order)
    collector.collect(identifiers, specials, _Place(*context.search_path, context.as_of))
    collector.add_registered(identifiers)
    return collector.found


def present(
    identifiers: frozenset[str], specials: Sequence[Special], trees: Collection[exp.Expression | None]
) -> frozenset[str]:
    """What may be the name of a relation in `trees`, None for what only the engine understands: not the alias of a
    table that is read at a point, which is called so itself, since its present files would be looked up in vain."""
    parsed = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Var)]
    if not specials or len(parsed) < len(trees):
        return identifiers
    names = {special.name for special in specials}
    tables = [table for tree in parsed for table in tree.find_all(exp.Table)]
    aliases = {table.alias.casefold() for table in tables if table_name(table) in names}
    named = {part.name.casefold() for table in tables for part in table.parts}
    called = {function.name.casefold() for tree in parsed for function in tree.find_all(exp.Anonymous)}
    return identifiers - (aliases - named - called)


def columns_of(context: Context, specials: Sequence[Special], name: str) -> Columns | None:
    """The columns of the tables that a text can call `name` (casefolded, the last part); None = no table."""
    if any(s.name == name and isinstance(s.relation, Function) and reveals(s.relation) for s in specials):
        return Columns(frozenset(), frozenset(HIDDEN_COLUMNS))
    tables = list(_tables_called(context, specials, name))
    if not tables:
        return None
    shown = (column.casefold() for table in tables for column in table.schema.names)
    hidden = (column.name.casefold() for table in tables for column in table.hidden)
    names = {table.schema.names for table in tables}
    row = next(iter(names)) if len(names) == 1 else None
    return Columns(frozenset(shown), frozenset(HIDDEN_COLUMNS).union(hidden), row)


def hidden_names(context: Context) -> frozenset[str]:
    """The casefolded names of columns that some table may hide."""
    catalogs = context.transaction.catalogs.values()
    return frozenset(HIDDEN_COLUMNS).union(*(catalog.capabilities.hidden_columns for catalog in catalogs))


def _tables_called(context: Context, specials: Sequence[Special], name: str) -> Iterator[TableInfo]:
    for special in specials:
        if special.name == name and isinstance(special.relation, Travel):
            point = point_of(context, special.relation)
            resolved = resolve_relation(replace(context, as_of=point), special.relation.of)
            if isinstance(resolved, ResolvedTable):
                yield resolved.table
            return
        if special.name == name and isinstance(special.relation, Named):
            resolved = resolve_relation(context, special.relation.of)
            if isinstance(resolved, ResolvedTable):
                yield resolved.table
            return
    for alias in context.transaction.catalogs:
        view = context.transaction.view(alias, context.as_of)
        for schema in view.schemas.values():
            table = view.table(schema.name, name)
            if table is not None:
                yield table


def without_rows(relations: Mapping[RelationName, Relation]) -> dict[RelationName, Relation]:
    """The same relations with empty tables: for questions about columns only."""
    return {
        name: replace(relation, scan=Scan(relation.scan.schema)) if isinstance(relation, ScanRelation) else relation
        for name, relation in relations.items()
    }


def view_columns(context: Context, view: CatalogView, schema: SchemaInfo, info: ViewInfo) -> list[tuple[str, str]]:
    """(name, SQL type) of each column of a view; empty for one that cannot be run, such as one over a dropped table."""
    parts = (view.alias, schema.name, info.name)
    text = f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {'.'.join(map(quote_identifier, parts))})"
    try:
        found = relations(context, frozenset(part.casefold() for part in parts), ())
        rows = context.engine.fetch(Query(text, without_rows(found), context.parameters, context.search_path))
    except Error:
        return []
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@dataclass(frozen=True)
class _Place:
    """Where the unqualified names of a text are looked up, and when.

    `suffix` is appended to the schema names of the own catalog: it keeps the relations of a view that is read at a
    point apart from those of the present.
    """

    alias: str
    schema: str
    point: AsOf | None
    suffix: str = ""


@dataclass
class _Collector:
    context: Context
    predicates: Mapping[str, Filter]
    hidden: Mapping[str, frozenset[str]]
    aggregated: Mapping[str, frozenset[str]]
    in_order: bool
    found: dict[RelationName, Relation] = field(default_factory=dict)
    expanding: dict[RelationName, Select] = field(default_factory=dict)
    """The queries of the views that are being looked into, outermost first."""
    inside: set[RelationName] = field(default_factory=set)
    """Tables that a view or macro reads: the conditions of the query around it are not about these rows."""

    def collect(self, identifiers: frozenset[str], specials: Sequence[Special], place: _Place) -> None:
        for view, schema, suffix in self._schemas(identifiers, place):
            for identifier in identifiers:
                try:
                    table = view.table(schema.name, identifier)
                    if table is not None:
                        self._add_table(RelationName(view.alias, schema.name + suffix, table.name), view, table)
                except Error as error:  # for a query that reads it, rather than has a column of the name
                    self.found[RelationName(view.alias, schema.name + suffix, identifier)] = Unusable(error)
                info = view.view(schema.name, identifier)
                if info is not None:
                    at = replace(place, alias=view.alias, schema=schema.name, suffix=suffix)
                    name = RelationName(view.alias, schema.name + suffix, info.name)
                    if any(self.hidden.values()) and not (self.expanding or suffix):
                        self._add_apart(name, info, at)
                    else:
                        self._add_view(name, info, at)
                for macro in view.macros_called(schema, identifier):
                    at = replace(place, alias=view.alias, schema=schema.name, suffix=suffix)
                    self._add_macro(RelationName(view.alias, schema.name + suffix, macro.name), macro, at)
        for special in specials:
            self._add_special(special, place)

    def add_registered(self, identifiers: frozenset[str]) -> None:
        alias, schema = self.context.search_path
        taken = {name.name.casefold() for name in self.found if name[:2] == (alias, schema)}
        for name, data in self.context.registered.items():
            if name.casefold() not in identifiers:
                continue
            if name.casefold() in taken:
                raise ProgrammingError(
                    f"{name!r} is both a registered Arrow object and a table or view of {alias}.{schema}: "
                    "register the object under another name"
                )
            self.found[RelationName(alias, schema, name)] = data

    def _schemas(self, identifiers: frozenset[str], place: _Place) -> Iterator[tuple[CatalogView, SchemaInfo, str]]:
        """The schemas that a text can name tables in, with the suffix that they are registered under."""
        for alias in self.context.transaction.catalogs:
            is_named = alias.casefold() in identifiers
            if alias != place.alias and not is_named:
                continue
            is_own = alias == place.alias
            view = self.context.transaction.view(alias, place.point if is_own else self.context.as_of)
            for schema in view.schemas.values():
                name = schema.name.casefold()
                if (
                    name in identifiers
                    or (is_own and name == place.schema.casefold())
                    or (is_named and name == DEFAULT_SCHEMA)
                ):
                    yield view, schema, place.suffix if is_own else ""

    def _add_table(self, name: RelationName, view: CatalogView, table: TableInfo, called: str | None = None) -> None:
        contents = view.contents(table)
        key = (called or table.name).casefold()
        condition = self.predicates.get(key)
        if self.expanding:
            self.inside.add(name)
        if name in self.inside or condition is None:
            files = contents.files
        else:
            files = matching_files(self.context, contents, condition.predicate, condition.alias)
        used = frozenset() if self.expanding else self.hidden.get(key, frozenset())
        extra = {
            HIDDEN_COLUMNS[column]: column
            for column in sorted(used & HIDDEN_COLUMNS.keys())
            if table.schema.get(column) is None
        }
        check_known(view.catalog, table, extra.values())
        if isinstance(known := self.found.get(name), ScanRelation):
            extra = {**known.extra, **extra}
            used |= {column.casefold() for column in known.scan.schema.names}
        columns = None if name in self.inside else self.aggregated.get(key)
        exhaustive = columns is not None and fixed_width(table.schema, columns)
        scan = contents.scan_of(files)[0]
        if revealed := tuple(column for column in table.hidden if column.name.casefold() in used):
            scan = replace(scan, schema=Schema((*scan.schema.fields, *revealed)))
        self.found[name] = ScanRelation(scan, extra, exhaustive, self.in_order)

    def _add_view(self, name: RelationName, info: ViewInfo, place: _Place) -> None:
        if name in self.expanding and _reads(next(reversed(self.expanding.values())), info.name):
            raise ProgrammingError(f"view {info.name!r} reads itself; drop it, and create it anew from tables")
        if name in self.found:
            return
        try:
            self._expand(name, info, place)
        except Error as error:
            self.found[name] = Unusable(error)

    def _add_apart(self, name: RelationName, info: ViewInfo, place: _Place) -> None:
        """A view over relations of its own: `*` in it would show the hidden columns that those of the query have."""
        place = replace(place, suffix=" inside")
        target = name._replace(schema=name.schema + place.suffix)
        self._add_view(target, info, place)
        self.found[name] = View(f"SELECT * FROM {'.'.join(map(quote_identifier, target))}")

    def _add_macro(self, name: RelationName, info: MacroInfo, place: _Place) -> None:
        """The macro, and what its text can name where the macro is."""
        macro = Macro(info.name, info.is_table, tuple(_overload(info, body) for body in info.bodies))
        name = name._replace(name=macro.key)
        if name in self.found:
            return
        try:
            texts = [_macro_text(self.context, info, body, place) for body in info.bodies]
        except Error as error:
            self.found[name] = Unusable(error)
            return
        self.found[name] = macro
        for text in texts:
            self.expanding[name] = text
            try:
                self.collect(text.identifiers, text.specials, place)
            finally:
                del self.expanding[name]

    def _expand(self, name: RelationName, info: ViewInfo, place: _Place) -> None:
        if info.dialect.casefold() != "duckdb":
            raise NotSupportedError(
                f"view {info.name!r} is written in the SQL dialect {info.dialect!r}, which cannot be run here; "
                "create a view with the same meaning in this SQL"
            )
        if info.home is not None:
            place = self._home(info, info.home, place)
        query = _query_of(self.context, info, place)
        if info.home is None:
            self.found[name] = View(query.text, info.column_aliases)
        else:
            inner = RelationName(place.alias, place.schema + place.suffix, f"{name.name} of {name.schema}")
            self.found[inner] = View(query.text, info.column_aliases)
            self.found[name] = View(f"SELECT * FROM {'.'.join(map(quote_identifier, inner))}")
        self.expanding[name] = query
        try:
            self.collect(query.identifiers, query.specials, place)
        finally:
            del self.expanding[name]

    def _home(self, info: ViewInfo, home: tuple[str | None, str], place: _Place) -> _Place:
        """Where the query of a view finds tables that it names without a schema."""
        catalog, schema = home
        if catalog is None or catalog.casefold() == place.alias.casefold():
            return replace(place, schema=schema)
        alias = catalog_alias(self.context, catalog)
        if alias is None:
            raise ProgrammingError(
                f"view {info.name!r} reads tables of a catalog {catalog!r}, which is not attached: attach one as this"
            )
        return _Place(alias, schema, self.context.as_of)

    def _add_special(self, special: Special, place: _Place) -> None:
        relation = special.relation
        name = RelationName(place.alias, place.schema + place.suffix, special.name)
        inner = replace(self.context, search_path=(place.alias, place.schema), as_of=place.point)
        if isinstance(relation, Travel):
            self._add_travel(name, relation, inner)
        elif isinstance(relation, Named):
            self._add_named(name, relation, inner)
        elif isinstance(relation, Function):
            shown = frozenset() if self.expanding else self.hidden.get(special.name.casefold(), frozenset())
            for local, made in lake_function(inner, special.name, relation, shown).items():
                self.found[name._replace(name=local)] = made
        else:
            assert isinstance(relation, InformationSchema)
            self.found[name] = information_schema(
                inner,
                relation.view,
                relation.catalog,
                lambda view, schema, info: view_columns(inner, view, schema, info),
            )

    def _add_travel(self, name: RelationName, travel: Travel, context: Context) -> None:
        point = point_of(context, travel)
        resolved = resolve_relation(replace(context, as_of=point), travel.of)
        if isinstance(resolved, ResolvedTable):
            self._add_table(name, resolved.view, resolved.table, called=name.name)
            return
        place = _Place(resolved.alias, resolved.schema.name, point, f" at {_shown(point)}")
        target = RelationName(place.alias, place.schema + place.suffix, resolved.info.name)
        self._add_view(target, resolved.info, place)
        self.found[name] = View(f"SELECT * FROM {'.'.join(map(quote_identifier, target))}")

    def _add_named(self, name: RelationName, named: Named, context: Context) -> None:
        resolved = resolve_relation(context, named.of)
        if isinstance(resolved, ResolvedTable):
            self._add_table(name, resolved.view, resolved.table, called=name.name)
            self.found[RelationName(resolved.alias, resolved.schema.name, resolved.table.name)] = self.found[name]
            return
        place = _Place(resolved.alias, resolved.schema.name, context.as_of)
        target = RelationName(place.alias, place.schema, resolved.info.name)
        self._add_view(target, resolved.info, place)
        self.found[name] = View(f"SELECT * FROM {'.'.join(map(quote_identifier, target))}")


def _overload(info: MacroInfo, body: MacroBody) -> str:
    parameters = ", ".join(_parameter(parameter) for parameter in body.parameters)
    text = _engine_text(body.sql, info.is_table, frozenset(parameter.name.casefold() for parameter in body.parameters))
    return f"({parameters}) AS {'TABLE ' if info.is_table else ''}{text}"


@lru_cache(maxsize=1024)
def _engine_text(text: str, is_table: bool, parameters: frozenset[str]) -> str:
    """The body of a macro without the comparisons with NULL that the engine fails on."""
    tree = parse_query(text) if is_table else parse_expression(text)
    changed = None if tree is None else without_compared_nulls(tree, unknown=parameters)
    return text if changed is None or changed is tree else render(changed)


def _parameter(parameter: MacroParameter) -> str:
    text = quote_identifier(parameter.name)
    if parameter.type is not None:
        text += f" {sql_type(parameter.type)}"
    if parameter.default_type is not None:
        value = "NULL" if parameter.default is None else quote_literal(parameter.default)
        text += f" := CAST({value} AS {sql_type(parameter.default_type)})"
    return text


def _macro_text(context: Context, info: MacroInfo, body: MacroBody, place: _Place) -> Select:
    """A body as a query. Errors are for those who use the macro."""
    if body.dialect.casefold() != "duckdb":
        raise NotSupportedError(f"macro {info.name!r} is written in the SQL dialect {body.dialect!r}")
    return _guarded(context, f"macro {info.name!r}", body.sql if info.is_table else f"SELECT ({body.sql}\n)", place)


def _reads(query: Select, name: str) -> bool:
    """Whether a table or view of that name stands in the query as a relation, rather than only as a column or text."""
    if query.tree is None:
        return False
    named = {table.name.casefold() for table in query.tree.find_all(exp.Table)}
    return name.casefold() in named - {cte.alias.casefold() for cte in query.tree.find_all(exp.CTE)}


def _query_of(context: Context, info: ViewInfo, place: _Place) -> Select:
    """The query of a view, with the own catalog's name filled in, and with the schemas of the point in time."""
    text = info.sql.replace(CATALOG_PLACEHOLDER, quote_identifier(place.alias))
    query = _guarded(context, f"view {info.name!r}", text, place)
    if CATALOG_PLACEHOLDER in info.sql:
        query = replace(query, identifiers=query.identifiers | {place.alias.casefold()})
    return _moved(info, query, place) if place.suffix else query


def _moved(info: ViewInfo, query: Select, place: _Place) -> Select:
    """The query with `place.suffix` behind the schemas that it names of the own catalog."""
    if query.tree is None:
        raise NotSupportedError(
            f"view {info.name!r} cannot be read at a point in time, or beside hidden columns of tables, since "
            "its query is in SQL that only the engine understands; read the tables that it names instead"
        )
    tree = query.tree.copy()
    schemas: dict[tuple[str, ...], exp.Identifier] = {}
    for table in tree.find_all(exp.Table):
        if not table.args.get("db"):
            continue
        written = tuple(part.name.casefold() for part in table.parts)
        if not table.catalog and table.db.casefold() == place.alias.casefold():
            table.set("catalog", exp.to_identifier(place.alias, quoted=True))
            table.set("db", exp.to_identifier(place.schema, quoted=True))
        if table.catalog.casefold() in ("", place.alias.casefold()):
            table.set("db", exp.to_identifier(table.db + place.suffix, quoted=True))
            if not table.alias:
                schemas |= dict.fromkeys((written, written[-2:]), table.args["db"])
    for column in list(tree.find_all(exp.Column)):
        path = next((path for path in table_paths(column) if path in schemas), None)
        if path is not None:
            column.parts[len(path) - 2].replace(schemas[path].copy())
    return replace(query, text=render(tree), tree=tree)


def _guarded(context: Context, what: str, text: str, place: _Place) -> Select:
    """A query that the catalog holds. ProgrammingError for one that reaches outside: anybody may have written it."""
    inner = replace(context, search_path=(place.alias, place.schema), as_of=place.point)
    parsed = sql.parse(text, nested_schemas(inner))
    if not isinstance(parsed.statement, Select):
        raise ProgrammingError(f"{what} is no query; drop it, and create it anew")
    if not context.allow_external:
        errors = [str(file.error) for file in parsed.file_names if find_relation(inner, file.name) is None]
        refused = [parsed.external] * (parsed.external is not None) + errors
        if refused:
            raise ProgrammingError(f"{what} is not run: {refused[0]}")
    return parsed.statement


def _shown(point: AsOf) -> str:
    if point.version is not None:
        return f"version {point.version}"
    return f"ref {point.ref}" if point.ref is not None else str(point.timestamp)
