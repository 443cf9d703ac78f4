"""What an object name in a statement means: search path, qualification, case."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from lakedbapi.context import Context
from lakedbapi.engine.base import UnknownRelationError
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.catalog import SchemaInfo, TableInfo, ViewInfo
from lakedbapi.sql.references import names_ref
from lakedbapi.sql.statements import Name
from lakedbapi.transaction import CatalogView

DEFAULT_SCHEMA = "main"
"""The schema meant by `catalog.table`, unless that catalog is the current one."""


class ResolvedSchema(NamedTuple):
    """An existing schema and the catalog (`alias`, as the transaction sees it in `view`) that it is in."""

    alias: str
    view: CatalogView
    schema: SchemaInfo


class ResolvedTable(NamedTuple):
    alias: str
    view: CatalogView
    schema: SchemaInfo
    table: TableInfo


class ResolvedView(NamedTuple):
    alias: str
    view: CatalogView
    schema: SchemaInfo
    info: ViewInfo


class NewName(NamedTuple):
    """Where an object that may not exist yet goes; `table` or `info` tell what has the name now."""

    alias: str
    view: CatalogView
    schema: SchemaInfo
    name: str
    table: TableInfo | None
    info: ViewInfo | None


def _candidates(context: Context, name: Name) -> list[tuple[ResolvedSchema, str]]:
    """Schemas that a table may be in, with its name there, the preferred one first: `t.branch_b` is a table of the
    schema `t`, or else what the format calls so in the schema of the table `t`."""
    parts = name.parts
    if len(parts) < 2 or not names_ref(name.last):
        return [(place, name.last) for place in _places(context, name)]
    is_path = len(parts) == 2 or (len(parts) == 3 and catalog_alias(context, parts[0]) is not None)
    joined = Name((*parts[:-2], f"{parts[-2]}.{name.last}"))
    return [
        *((place, name.last) for place in (_places(context, name) if is_path else ())),
        *((place, joined.last) for place in _places(context, joined)),
    ]


def resolve_table(context: Context, name: Name) -> ResolvedTable:
    """The table that `name` means, read at `context.as_of`; ProgrammingError when there is none, or a view."""
    candidates = _candidates(context, name)
    for place, last in candidates:
        table = place.view.table(place.schema.name, last)
        if table is not None:
            return ResolvedTable(*place, table)
    for place, last in candidates:
        if place.view.view(place.schema.name, last) is not None:
            raise ProgrammingError(f"{name} is a view; this needs a table: name the table that the view reads")
    raise _unknown(context, "table", name)


def resolve_view(context: Context, name: Name) -> ResolvedView:
    """The view that `name` means; ProgrammingError when there is none, or a table."""
    for place in _places(context, name):
        info = place.view.view(place.schema.name, name.last)
        if info is not None:
            return ResolvedView(*place, info)
    for place in _places(context, name):
        if place.view.table(place.schema.name, name.last) is not None:
            raise ProgrammingError(f"{name} is a table, not a view")
    raise _unknown(context, "view", name)


def resolve_relation(context: Context, name: Name) -> ResolvedTable | ResolvedView:
    """The table or view that `name` means."""
    found = find_relation(context, name)
    if found is None:
        raise _unknown(context, "table or view", name)
    return found


@contextmanager
def naming_unknown(context: Context) -> Iterator[None]:
    """What the engine misses is named with what is near in our catalogs, of which it knows nothing."""
    try:
        yield
    except UnknownRelationError as error:
        raise _unknown(context, "table or view", Name(error.parts)) from error


def find_relation(context: Context, name: Name) -> ResolvedTable | ResolvedView | None:
    """Like `resolve_relation`; None when there is neither."""
    for place, last in _candidates(context, name):
        table = place.view.table(place.schema.name, last)
        if table is not None:
            return ResolvedTable(*place, table)
        info = place.view.view(place.schema.name, last)
        if info is not None:
            return ResolvedView(*place, info)
    return None


def resolve_schema(context: Context, name: Name) -> ResolvedSchema:
    """The schema that `schema` or `catalog.schema` means."""
    found = find_schema(context, name)
    if found is not None:
        return found
    alias, view, names = schema_place(context, name)
    near = _near(".".join(names), (schema.name for schema in view.schemas.values()))
    raise ProgrammingError(f"schema {name} does not exist in catalog {alias!r}{near}")


def find_schema(context: Context, name: Name) -> ResolvedSchema | None:
    alias, view, names = schema_place(context, name)
    schema = schema_called(view, names)
    return None if schema is None else ResolvedSchema(alias, view, schema)


def schema_called(view: CatalogView, names: Sequence[str]) -> SchemaInfo | None:
    """The schema with these names, from the outermost on."""
    if len(names) == 1:
        return view.schema(names[0])
    return next((schema for schema in view.schemas.values() if schema.is_called(names)), None)


def nested_schemas(context: Context) -> frozenset[tuple[str, ...]]:
    """The casefolded names of the current catalog's schemas that lie in others, from the outermost on."""
    alias = context.search_path[0]
    catalog = context.transaction.catalogs.get(alias)
    if catalog is None or not catalog.capabilities.nested_schemas:
        return frozenset()
    view = context.transaction.view(alias, context.as_of)
    return frozenset(tuple(map(str.casefold, schema.parts)) for schema in view.schemas.values() if schema.parts)


def schema_place(context: Context, name: Name) -> tuple[str, CatalogView, tuple[str, ...]]:
    """(alias, catalog, names from the outermost on) of the possibly new schema that `name` means: one of the catalog
    that its first part names, else of the current one."""
    parts = name.parts
    alias = context.search_path[0] if len(parts) == 1 else catalog_alias(context, parts[0])
    if alias is None and _lies_in_current(context, parts[:1]):
        return context.search_path[0], catalog_view(context, context.search_path[0]), parts
    alias = alias or resolve_catalog(context, parts[0])
    return alias, catalog_view(context, alias), parts[-1:] if len(parts) < 2 else parts[1:]


def _lies_in_current(context: Context, names: Sequence[str]) -> bool:
    """Whether the current catalog has a schema with these names."""
    current = context.search_path[0]
    return current in context.transaction.catalogs and schema_called(catalog_view(context, current), names) is not None


def resolve_new(context: Context, name: Name) -> NewName:
    """Where a table or view to be created with `name` goes; its schema must exist."""
    alias, view, schema = _new_place(context, name)
    return NewName(
        alias, view, schema, name.last, view.table(schema.name, name.last), view.view(schema.name, name.last)
    )


def catalog_alias(context: Context, name: str) -> str | None:
    """The attached catalog's alias as it was given, by a name in any case."""
    catalogs = context.transaction.catalogs
    if name in catalogs:
        return name
    folded = name.casefold()
    return next((alias for alias in catalogs if alias.casefold() == folded), None)


def resolve_catalog(context: Context, name: str) -> str:
    """The alias of the attached catalog `name`; ProgrammingError when there is none."""
    alias = catalog_alias(context, name)
    if alias is None:
        raise _not_attached(context, name)
    return alias


def resolve_schema_path(context: Context, name: Name) -> tuple[str, str]:
    """The (catalog, schema) that `USE name` means: a schema of the current catalog, else a catalog, or both parts."""
    if len(name.parts) == 1:
        current = context.search_path[0]
        schema = (
            context.transaction.view(current).schema(name.last) if current in context.transaction.catalogs else None
        )
        if schema is not None:
            return current, schema.name
        alias = catalog_alias(context, name.last)
        if alias is not None:
            return alias, DEFAULT_SCHEMA
        raise ProgrammingError(
            f"there is no schema {name} in {current}, and no catalog {name} (attached: {_attached(context)})"
        )
    found = resolve_schema(context, name)
    return found.alias, found.schema.name


def catalog_view(context: Context, alias: str) -> CatalogView:
    """The attached catalog `alias` at the point that the statement reads."""
    if alias not in context.transaction.catalogs:
        raise _not_attached(context, alias)
    return context.transaction.view(alias, context.as_of)


def _new_place(context: Context, name: Name) -> ResolvedSchema:
    places = _places(context, name)
    if places:
        return places[0]
    if len(name.parts) == 1:
        return resolve_schema(context, Name(context.search_path))
    return resolve_schema(context, Name(name.parts[:-1]))


def _places(context: Context, name: Name) -> list[ResolvedSchema]:
    """The existing schemas that the object may be in, the preferred one first."""
    parts = name.parts
    current = context.search_path[0]
    candidates: list[tuple[str, Sequence[str]]] = []
    if len(parts) == 1:
        candidates.append((current, context.search_path[1:]))
    elif len(parts) == 2:
        candidates.append((current, parts[:1]))
        alias = catalog_alias(context, parts[0])
        if alias is not None:
            candidates.append((alias, (context.search_path[1] if alias == current else DEFAULT_SCHEMA,)))
    else:
        is_nested = _lies_in_current(context, parts[:-1])
        if not is_nested or catalog_alias(context, parts[0]) is not None:
            candidates.append((resolve_catalog(context, parts[0]), parts[1:-1]))
        if is_nested:
            candidates.append((current, parts[:-1]))
    places = []
    for alias, names in candidates:
        if alias not in context.transaction.catalogs:
            continue
        view = catalog_view(context, alias)
        schema = schema_called(view, names)
        if schema is not None:
            places.append(ResolvedSchema(alias, view, schema))
    return places


def _not_attached(context: Context, alias: str) -> ProgrammingError:
    if not context.transaction.catalogs:
        return ProgrammingError(
            "no catalog is attached to this connection: use connection.attach(…), or ATTACH with allow_attach=True"
        )
    return ProgrammingError(f"catalog {alias!r} is not attached (attached: {_attached(context)}); ATTACH it first")


def _unknown(context: Context, kind: str, name: Name) -> ProgrammingError:
    if not context.transaction.catalogs:
        return _not_attached(context, context.search_path[0])
    places = _places(context, name)
    if not places:
        path = name.parts[:-1] if len(name.parts) > 1 else context.search_path
        known = f"schema {'.'.join(path)}" if len(path) > 1 else f"schema or catalog {path[0]}"
        return ProgrammingError(f"{kind} {name} does not exist: there is no {known} (catalogs: {_attached(context)})")
    names = [
        table for place in places for schema in place.view.schemas.values() for table in place.view.table_names(schema)
    ]
    names += [view.name for place in places for view in place.view.views.values()]
    where = "" if context.as_of is None else " at the point in time that is read"
    return ProgrammingError(f"{kind} {name} does not exist{where}{_near(name.last, names)}")


def _attached(context: Context) -> str:
    return ", ".join(sorted(context.transaction.catalogs)) or "none"


def _near(name: str, names: Iterable[str]) -> str:
    by_folded = {other.casefold(): other for other in names}
    near = [by_folded[folded] for folded in difflib.get_close_matches(name.casefold(), by_folded, n=3)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
