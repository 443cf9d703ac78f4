"""The views of `information_schema` over all attached catalogs, with the columns that DuckDB gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from lakedbapi.context import Context
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.catalog import CATALOG_PLACEHOLDER, Constraint, SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.sql_types import quote_identifier, sql_type
from lakedbapi.model.types import Decimal, Identity, Scalar, Type
from lakedbapi.query.checks import ENFORCED
from lakedbapi.query.names import resolve_catalog
from lakedbapi.query.stored import shown
from lakedbapi.transaction import CatalogView

_TEXT, _INT, _LONG, _BOOL = pa.string(), pa.int32(), pa.int64(), pa.bool_()


ViewColumns = Callable[[CatalogView, SchemaInfo, ViewInfo], "list[tuple[str, str]]"]
"""The (name, SQL type) of each column of a view."""


def information_schema(context: Context, view: str, catalog: str | None, view_columns: ViewColumns) -> pa.Table:
    """`information_schema.<view>`, of one catalog or of all. ProgrammingError when there is no such view."""
    found = _VIEWS.get(view)
    if found is None:
        raise ProgrammingError(f"information_schema.{view} does not exist; there are: {', '.join(sorted(_VIEWS))}")
    aliases = list(context.transaction.catalogs) if catalog is None else [resolve_catalog(context, catalog)]
    views = (context.transaction.view(alias, context.as_of) for alias in aliases)
    rows = list(chain.from_iterable(found.rows(_Source(context, view, view_columns)) for view in views))
    return pa.Table.from_pylist(rows, found.schema)


class _Source(NamedTuple):
    """One catalog to tell about."""

    context: Context
    view: CatalogView
    view_columns: ViewColumns


def _schemata(source: _Source) -> Iterator[dict[str, Any]]:
    view = source.view
    for schema in view.schemas.values():
        yield {"catalog_name": view.alias, "schema_name": schema.name, "schema_owner": "lake"}


def _tables(source: _Source) -> Iterator[dict[str, Any]]:
    view = source.view
    writable = view.catalog.capabilities.inserts and not source.context.transaction.read_only
    for schema, info in _relations(view):
        is_table = isinstance(info, TableInfo)
        yield {
            **_table_key(view, schema, info),
            "table_type": "BASE TABLE" if is_table else "VIEW",
            "is_insertable_into": "YES" if is_table and writable else "NO",
            "is_typed": "NO",
            "TABLE_COMMENT": info.comment,
        }


def _columns(source: _Source) -> Iterator[dict[str, Any]]:
    view = source.view
    for schema, info in _relations(view):
        key = _table_key(view, schema, info)
        if isinstance(info, TableInfo):
            for position, field in enumerate(info.schema.fields, 1):
                yield {
                    **key,
                    "column_name": field.name,
                    "ordinal_position": position,
                    "column_default": field.default,
                    "is_nullable": "YES" if field.nullable else "NO",
                    "data_type": sql_type(field.type),
                    **_numeric(field.type),
                    **_identity(field.identity),
                    "is_generated": None if field.generated is None else "ALWAYS",
                    "generation_expression": field.generated,
                    "COLUMN_COMMENT": field.comment,
                }
            continue
        for position, (name, data_type) in enumerate(source.view_columns(view, schema, info), 1):
            yield {
                **key,
                "column_name": name,
                "ordinal_position": position,
                "is_nullable": "YES",
                "data_type": data_type,
                "is_identity": False,
            }


def _identity(identity: Identity | None) -> dict[str, Any]:
    if identity is None:
        return {"is_identity": False}
    return {
        "is_identity": True,
        "identity_generation": identity.generation,
        "identity_start": str(identity.start),
        "identity_increment": str(identity.step),
    }


def _views(source: _Source) -> Iterator[dict[str, Any]]:
    view = source.view
    no = dict.fromkeys(
        (
            "is_updatable",
            "is_insertable_into",
            "is_trigger_updatable",
            "is_trigger_deletable",
            "is_trigger_insertable_into",
        ),
        "NO",
    )
    for schema, info in _relations(view):
        if isinstance(info, ViewInfo):
            columns = f" ({', '.join(map(quote_identifier, info.column_aliases))})" if info.column_aliases else ""
            definition = f"CREATE VIEW {quote_identifier(info.name)}{columns} AS {view_text(view.alias, info)};"
            yield {**_table_key(view, schema, info), "view_definition": definition, "check_option": "NONE", **no}


def _table_constraints(source: _Source) -> Iterator[dict[str, Any]]:
    view = source.view
    for schema, table, name, constraint in _constraints(view):
        yield {
            **_constraint_key(view, schema, name),
            **_table_key(view, schema, table),
            "constraint_type": constraint.kind.upper(),
            "is_deferrable": "NO",
            "initially_deferred": "NO",
            "enforced": "YES" if constraint.kind == "check" else "NO",
            "nulls_distinct": "YES" if constraint.kind == "unique" else None,
        }


def _key_column_usage(source: _Source) -> Iterator[dict[str, Any]]:
    view = source.view
    for schema, table, name, constraint in _constraints(view):
        if constraint.kind != "check":
            for position, column in enumerate(constraint.columns, 1):
                yield {
                    **_constraint_key(view, schema, name),
                    **_table_key(view, schema, table),
                    "column_name": column,
                    "ordinal_position": position,
                    "position_in_unique_constraint": position if constraint.kind == "foreign key" else None,
                }


def _referential_constraints(source: _Source) -> Iterator[dict[str, Any]]:
    view = source.view
    for schema, _, name, constraint in _constraints(view):
        if constraint.kind == "foreign key":
            referred_schema, referred_table = _referred(schema, constraint)
            yield {
                **_constraint_key(view, schema, name),
                "unique_constraint_catalog": view.alias,
                "unique_constraint_schema": referred_schema,
                "unique_constraint_name": _unique_name(view, referred_schema, referred_table, constraint),
                "match_option": "NONE",
                "update_rule": "NO ACTION",
                "delete_rule": "NO ACTION",
            }


def _constraint_column_usage(source: _Source) -> Iterator[dict[str, Any]]:
    """The columns that a constraint refers to: of a foreign key those of the other table."""
    view = source.view
    for schema, table, name, constraint in _constraints(view):
        key = _table_key(view, schema, table)
        columns = constraint.columns
        if constraint.kind == "foreign key":
            referred_schema, referred_table = _referred(schema, constraint)
            key = {**key, "table_schema": referred_schema, "table_name": referred_table}
            columns = constraint.referred_columns or _primary_key(view, referred_schema, referred_table)
        for column in columns:
            yield {
                **key,
                "column_name": column,
                **_constraint_key(view, schema, name),
                "constraint_type": constraint.kind.upper(),
                "constraint_text": constraint.expression,
            }


def _check_constraints(source: _Source) -> Iterator[dict[str, Any]]:
    view = source.view
    for schema, table, name, constraint in _constraints(view):
        if constraint.kind == "check":
            clause = shown(view.catalog, table.schema, constraint.expression or "")
            yield {**_constraint_key(view, schema, name), "check_clause": clause}


def view_text(alias: str, info: ViewInfo) -> str:
    """The query of a view with the own catalog's name filled in."""
    return info.sql.replace(CATALOG_PLACEHOLDER, quote_identifier(alias))


def constraint_name(table: TableInfo, constraint: Constraint) -> str:
    """The name given, else one made of the table, the columns and the kind."""
    if constraint.name:
        return constraint.name
    ending = {"primary key": "pkey", "unique": "key", "foreign key": "fkey", "check": "check"}[constraint.kind]
    columns = () if constraint.kind == "primary key" else constraint.columns
    return "_".join((table.name, *columns, ending))


def _relations(view: CatalogView) -> Iterator[tuple[SchemaInfo, TableInfo | ViewInfo]]:
    for table in view.tables.values():
        yield view.schemas[table.schema_id], table
    for info in view.views.values():
        yield view.schemas[info.schema_id], info


def _constraints(view: CatalogView) -> Iterator[tuple[SchemaInfo, TableInfo, str, Constraint]]:
    for table in view.tables.values():
        for constraint in table.constraints:
            shown = replace(constraint, kind="check") if constraint.kind in ENFORCED else constraint
            yield view.schemas[table.schema_id], table, constraint_name(table, constraint), shown


def _referred(schema: SchemaInfo, constraint: Constraint) -> tuple[str, str]:
    """(schema, table) that a foreign key refers to."""
    return (schema.name if len(constraint.referred) == 1 else constraint.referred[0]), constraint.referred[-1]


def _primary_key(view: CatalogView, schema: str, table: str) -> tuple[str, ...]:
    found = view.table(schema, table)
    keys = () if found is None else [c.columns for c in found.constraints if c.kind == "primary key"]
    return keys[0] if keys else ()


def _unique_name(view: CatalogView, schema: str, table: str, constraint: Constraint) -> str | None:
    """The name of the primary key or unique constraint that a foreign key refers to."""
    found = view.table(schema, table)
    wanted = {column.casefold() for column in constraint.referred_columns}
    for other in () if found is None else found.constraints:
        columns = {column.casefold() for column in other.columns}
        if other.kind == "primary key" and wanted in (set(), columns):
            return constraint_name(found, other) if found is not None else None
        if other.kind == "unique" and wanted == columns:
            return constraint_name(found, other) if found is not None else None
    return None


def _table_key(view: CatalogView, schema: SchemaInfo, info: TableInfo | ViewInfo) -> dict[str, Any]:
    return {"table_catalog": view.alias, "table_schema": schema.name, "table_name": info.name}


def _constraint_key(view: CatalogView, schema: SchemaInfo, name: str) -> dict[str, Any]:
    return {"constraint_catalog": view.alias, "constraint_schema": schema.name, "constraint_name": name}


_BITS = {"8": 8, "16": 16, "32": 32, "64": 64, "128": 128}


def _numeric(type: Type) -> dict[str, Any]:
    """Precision, radix and scale of numbers."""
    if isinstance(type, Decimal):
        return _precision(type.precision, 10, type.scale)
    if isinstance(type, Scalar):
        if type.name in ("float32", "float64"):
            return _precision(24 if type.name == "float32" else 53, 2, 0)
        stem = type.name.lstrip("uint")
        if type.name.startswith(("int", "uint")) and stem in _BITS:
            return _precision(_BITS[stem], 2, 0)
    return {}


def _precision(precision: int, radix: int, scale: int) -> dict[str, Any]:
    return {"numeric_precision": precision, "numeric_precision_radix": radix, "numeric_scale": scale}


class _View(NamedTuple):
    schema: pa.Schema
    rows: Callable[[_Source], Iterator[dict[str, Any]]]


def _schema(text: str = "", **others: pa.DataType) -> pa.Schema:
    """Columns: VARCHAR, except those of `others`; in the order of `text`."""
    return pa.schema([pa.field(name, others.get(name, _TEXT)) for name in text.split()])


_TABLE = "table_catalog table_schema table_name "
_CONSTRAINT = "constraint_catalog constraint_schema constraint_name "

_VIEWS: Mapping[str, _View] = {
    "schemata": _View(
        _schema(
            "catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema "
            "default_character_set_name sql_path"
        ),
        _schemata,
    ),
    "tables": _View(
        _schema(
            _TABLE + "table_type self_referencing_column_name reference_generation user_defined_type_catalog "
            "user_defined_type_schema user_defined_type_name is_insertable_into is_typed commit_action TABLE_COMMENT"
        ),
        _tables,
    ),
    "columns": _View(
        _schema(
            _TABLE + "column_name ordinal_position column_default is_nullable data_type character_maximum_length "
            "character_octet_length numeric_precision numeric_precision_radix numeric_scale datetime_precision "
            "interval_type interval_precision character_set_catalog character_set_schema character_set_name "
            "collation_catalog collation_schema collation_name domain_catalog domain_schema domain_name udt_catalog "
            "udt_schema udt_name scope_catalog scope_schema scope_name maximum_cardinality dtd_identifier "
            "is_self_referencing is_identity identity_generation identity_start identity_increment identity_maximum "
            "identity_minimum identity_cycle is_generated generation_expression is_updatable COLUMN_COMMENT",
            ordinal_position=_INT,
            character_maximum_length=_INT,
            character_octet_length=_INT,
            numeric_precision=_INT,
            numeric_precision_radix=_INT,
            numeric_scale=_INT,
            datetime_precision=_INT,
            interval_precision=_INT,
            maximum_cardinality=_LONG,
            is_self_referencing=_BOOL,
            is_identity=_BOOL,
            identity_cycle=_BOOL,
            is_updatable=_BOOL,
        ),
        _columns,
    ),
    "views": _View(
        _schema(
            _TABLE + "view_definition check_option is_updatable is_insertable_into is_trigger_updatable "
            "is_trigger_deletable is_trigger_insertable_into"
        ),
        _views,
    ),
    "table_constraints": _View(
        _schema(
            _CONSTRAINT + _TABLE + "constraint_type is_deferrable initially_deferred enforced nulls_distinct",
        ),
        _table_constraints,
    ),
    "key_column_usage": _View(
        _schema(
            _CONSTRAINT + _TABLE + "column_name ordinal_position position_in_unique_constraint",
            ordinal_position=_LONG,
            position_in_unique_constraint=_LONG,
        ),
        _key_column_usage,
    ),
    "referential_constraints": _View(
        _schema(
            _CONSTRAINT + "unique_constraint_catalog unique_constraint_schema unique_constraint_name match_option "
            "update_rule delete_rule"
        ),
        _referential_constraints,
    ),
    "constraint_column_usage": _View(
        _schema(_TABLE + "column_name " + _CONSTRAINT + "constraint_type constraint_text"), _constraint_column_usage
    ),
    "check_constraints": _View(_schema(_CONSTRAINT + "check_clause"), _check_constraints),
}
