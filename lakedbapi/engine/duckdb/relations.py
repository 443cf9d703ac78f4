"""What the names of a query mean, as views in the instance, or as common tables of the query itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from lakedbapi.engine.base import Macro, Relation, RelationName, ScanRelation, Unusable, View
from lakedbapi.engine.duckdb import driver, errors
from lakedbapi.engine.duckdb.pool import Instance
from lakedbapi.engine.duckdb.resources import PREFIX, Resources
from lakedbapi.engine.duckdb.scan import scan_sql
from lakedbapi.errors import Error
from lakedbapi.model.sql_types import quote_identifier

Broken = Mapping[str, Error]
"""Views that could not be defined, by casefolded name, and why."""

_MACRO = "MACRO"
"""What the text of a defined macro begins with."""

_WITH = re.compile(r"WITH\b(?:\s|/\*.*?\*/|--[^\n]*)*(RECURSIVE\b)?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Defined:
    """`broken` matters only to a statement that reads those views; `local` are the common tables."""

    broken: Broken = field(default_factory=dict)
    local: Sequence[str] = ()

    def over(self, sql: str) -> str:
        """A SELECT that can read the common tables, before its own ones."""
        if not self.local:
            return sql
        tables = ", ".join(self.local)
        own = _WITH.match(sql)
        if own is None:
            return f"WITH {tables} {sql}"
        return f"WITH {'RECURSIVE ' if own.group(1) else ''}{tables}, {sql[own.end() :]}"


_FAILURES = (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException, duckdb.PermissionException)


def define(
    instance: Instance,
    cursor: duckdb.DuckDBPyConnection,
    relations: Mapping[RelationName, Relation],
    *,
    explained: bool = False,
) -> Defined:
    """Make `relations` but the local ones the only views of the instance, and register what they refer to on `cursor`.

    To be called under `instance.lock`.
    """
    unusable = {name: relation.error for name, relation in relations.items() if isinstance(relation, Unusable)}
    for name in unusable:
        # DuckDB names a missing schema before a missing table, and the table's is what the reason is known by.
        _schema(instance, cursor, name.catalog, name.schema)
    dropped = [name for name in instance.defined if name not in relations or name in unusable]
    for name in dropped:
        _drop(instance, cursor, name)
    any_order = driver.FORGETS_ORDER and _in_any_order(relations.values())
    resources = Resources(
        cursor, instance.confined, instance.threads, instance.filesystems, any_order=any_order, explained=explained
    )
    changed = bool(dropped)
    local = []
    for name, relation in relations.items():
        if isinstance(relation, (View, Macro, Unusable)):
            continue
        select = _select(relation, resources)
        if name.is_local:
            local.append(f"{name.sql} AS NOT MATERIALIZED ({select})")
        else:
            changed |= _redefine(instance, cursor, name, select)
    views = {name: relation for name, relation in relations.items() if isinstance(relation, (View, Macro))}
    if changed:
        # DuckDB remembers the types of a view's columns and refuses it when what it refers to has others.
        for name in views:
            if name in instance.defined:
                _drop(instance, cursor, name)
    failed = {
        name: errors.of_definition(_called(name, views[name]), error)
        for name, error in _define_views(instance, cursor, views).items()
    }
    return Defined({name.name.casefold(): error for name, error in {**failed, **unusable}.items()}, local)


def _called(name: RelationName, relation: View | Macro) -> str:
    return f"macro {relation.name!r}" if isinstance(relation, Macro) else f"view {name.name!r}"


def _in_any_order(relations: Iterable[Relation]) -> bool:
    """Whether no rows are asked for in their order."""
    sources = [r for r in relations if not isinstance(r, (View, Macro, Unusable))]
    return all(isinstance(source, ScanRelation) and source.exhaustive for source in sources)


def _select(relation: Relation, resources: Resources) -> str:
    if isinstance(relation, ScanRelation):
        return scan_sql(relation, resources)
    assert isinstance(relation, (pa.Table, pa.RecordBatchReader))
    return f"SELECT * FROM {resources.register(relation)}"


def _define_views(
    instance: Instance, cursor: duckdb.DuckDBPyConnection, views: Mapping[RelationName, View | Macro]
) -> dict[RelationName, duckdb.Error]:
    """Views and macros may refer to each other in any order: those that fail wait for the others, as long as that
    helps. Returns those that failed to the end."""
    waiting = dict(views)
    while waiting:
        failed: dict[RelationName, duckdb.Error] = {}
        for name, view in waiting.items():
            try:
                use(instance, cursor, name.catalog, name.schema)
                if isinstance(view, Macro):
                    _redefine_macro(instance, cursor, name, view)
                else:
                    _redefine(instance, cursor, name, view.sql, view.column_aliases)
            except _FAILURES as error:
                failed[name] = error
        if len(failed) == len(waiting):
            for name, reason in failed.items():
                if isinstance(waiting[name], Macro) and isinstance(reason, duckdb.ParserException):
                    raise reason
                _drop(instance, cursor, name)  # an older text of it may be defined
            return failed
        waiting = {name: waiting[name] for name in failed}
    return {}


def _redefine(
    instance: Instance,
    cursor: duckdb.DuckDBPyConnection,
    name: RelationName,
    select: str,
    aliases: tuple[str, ...] = (),
) -> bool:
    """Whether the view had to be changed."""
    columns = f" ({', '.join(quote_identifier(alias) for alias in aliases)})" if aliases else ""
    text = f"{columns} AS {select}"
    if instance.defined.get(name) == text and PREFIX not in text:
        return False
    qualified = f"{_schema(instance, cursor, name.catalog, name.schema)}.{quote_identifier(name.name)}"
    instance.defined.pop(name, None)
    driver.run(cursor, f"CREATE OR REPLACE VIEW {qualified}{text}")
    instance.defined[name] = text
    return True


def _redefine_macro(instance: Instance, cursor: duckdb.DuckDBPyConnection, name: RelationName, macro: Macro) -> None:
    text = f"{_MACRO} {'TABLE ' if macro.is_table else ''}{', '.join(macro.bodies)}"
    if instance.defined.get(name) == text:
        return
    qualified = f"{_schema(instance, cursor, name.catalog, name.schema)}.{quote_identifier(macro.name)}"
    driver.run(cursor, f"CREATE OR REPLACE MACRO {qualified}{', '.join(macro.bodies)}")
    instance.defined[name] = text


def use(instance: Instance, cursor: duckdb.DuckDBPyConnection, catalog: str, schema: str) -> None:
    """Make the schema, which may have nothing in it, the one for unqualified names."""
    driver.run(cursor, f"USE {_schema(instance, cursor, catalog, schema)}")


def _schema(instance: Instance, cursor: duckdb.DuckDBPyConnection, catalog: str, schema: str) -> str:
    """The quoted path of the schema, created where it does not exist yet."""
    path = f"{quote_identifier(catalog)}.{quote_identifier(schema)}"
    if (catalog, schema) not in instance.schemas:
        driver.run(cursor, f"CREATE SCHEMA IF NOT EXISTS {path}")
        instance.schemas.add((catalog, schema))
    return path


def _drop(instance: Instance, cursor: duckdb.DuckDBPyConnection, name: RelationName) -> None:
    kind, path = "VIEW", name
    if (text := instance.defined.get(name, "")).startswith(_MACRO):
        kind = _MACRO if text.startswith(f"{_MACRO} (") else f"{_MACRO} TABLE"
        path = name._replace(name=name.name[: name.name.rindex("(")])
    driver.run(cursor, f"DROP {kind} IF EXISTS {'.'.join(map(quote_identifier, path))}")
    instance.defined.pop(name, None)
