"""CREATE MACRO and DROP MACRO."""

from __future__ import annotations

from lakedbapi import sql
from lakedbapi.context import Context
from lakedbapi.ddl.staging import require, stage_dropped_macro, stage_macro
from lakedbapi.engine.base import Query
from lakedbapi.errors import Error, NotSupportedError, ProgrammingError
from lakedbapi.model.catalog import MacroBody, MacroInfo, MacroParameter, provisional_id
from lakedbapi.model.types import Decimal, Scalar, Type
from lakedbapi.query.constants import is_constant
from lakedbapi.query.names import NewName, resolve_new
from lakedbapi.query.relations import relations, without_rows
from lakedbapi.sql.expressions import parse_expression
from lakedbapi.sql.statements import CreateMacro, DropMacro, Select
from lakedbapi.sql.types import type_of


def create_macro(context: Context, statement: CreateMacro) -> None:
    place = resolve_new(context, statement.name)
    catalog = place.view.catalog
    require(catalog, f"CREATE MACRO {statement.name}", catalog.capabilities.macros)
    called = place.view.macros_called(place.schema, place.name)
    existing = next((macro for macro in called if macro.is_table == statement.is_table), None)
    if existing is not None and statement.if_not_exists:
        return
    if existing is not None and not statement.or_replace:
        raise ProgrammingError(f"macro {statement.name} exists already; write IF NOT EXISTS or OR REPLACE")
    home = (place.alias, place.schema.name)
    if tuple(part.casefold() for part in context.search_path) != tuple(part.casefold() for part in home):
        raise NotSupportedError(
            f"macro {statement.name} is created in {'.'.join(home)}, where its names are looked up: USE it first"
        )
    bodies = tuple(
        MacroBody(text, tuple(_parameter(context, *parameter) for parameter in parameters))
        for parameters, text in statement.bodies
    )
    if existing is not None:
        stage_dropped_macro(context, place.alias, existing)
    macro = MacroInfo(provisional_id(), place.schema.id, place.name, statement.is_table, bodies)
    stage_macro(context, place.alias, macro)
    _check(context, place, macro)


def _check(context: Context, place: NewName, macro: MacroInfo) -> None:
    """Let the engine read the macro, so that what is no SQL is found now. Unknown names are found when it is used."""
    for body in macro.bodies:
        text = body.sql if macro.is_table else f"SELECT ({body.sql}\n)"
        try:
            statement = sql.parse(text).statement
        except Error as error:
            raise ProgrammingError(f"macro {place.name}: {error}") from error
        if not isinstance(statement, Select):
            raise ProgrammingError(
                f"macro {place.name}: {body.sql} is no {'query' if macro.is_table else 'expression'}"
            )
        if statement.specials:
            raise NotSupportedError(f"macro {place.name}: time travel and lake functions cannot stand in a macro")
        if place.alias.casefold() in statement.identifiers:
            raise NotSupportedError(
                f"macro {place.name}: name tables without their catalog, which may get another name"
            )
    found = without_rows(relations(context, frozenset({place.name.casefold()}), ()))
    try:
        context.engine.fetch(Query("SELECT 1", found, {}, context.search_path))
    except Error as error:
        raise ProgrammingError(f"macro {place.name}: {error}") from error


def drop_macro(context: Context, statement: DropMacro) -> None:
    place = resolve_new(context, statement.name)
    called = place.view.macros_called(place.schema, place.name)
    macro = next((macro for macro in called if macro.is_table == statement.is_table), None)
    if macro is not None:
        stage_dropped_macro(context, place.alias, macro)
    elif not statement.if_exists:
        others = " (there is a table macro: DROP MACRO TABLE)" if called and not statement.is_table else ""
        raise ProgrammingError(f"macro {statement.name} does not exist{others}")


def _parameter(context: Context, name: str, type: Type | None, default: str | None) -> MacroParameter:
    if type is not None and not isinstance(type, (Scalar, Decimal)):
        raise NotSupportedError(f"parameter {name!r}: a parameter with fields inside can have no type; leave it out")
    if default is None:
        return MacroParameter(name, type)
    tree = parse_expression(default)
    if tree is None or not is_constant(tree):
        raise NotSupportedError(f"parameter {name!r}: the default {default} is no constant")
    try:
        row = context.engine.fetch(Query(f"SELECT CAST(({default}\n) AS VARCHAR), typeof(({default}\n))"))
    except Error as error:
        raise ProgrammingError(f"parameter {name!r}: the default {default} has no value: {error}") from error
    text, spelled = row.column(0)[0].as_py(), row.column(1)[0].as_py()
    if text is None:
        raise NotSupportedError(
            f"parameter {name!r}: a default NULL cannot be kept, since DuckDB could not open the lake any more; "
            "give the macro an overload without the parameter: name(a, b) AS …, (a) AS …"
        )
    default_type = type_of(spelled)
    if not isinstance(default_type, (Scalar, Decimal)):
        raise NotSupportedError(f"parameter {name!r}: a default of type {spelled} cannot be kept")
    return MacroParameter(name, type, text, default_type)
