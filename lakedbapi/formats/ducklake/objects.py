"""Schemas, tables and views of a catalog at one snapshot."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Table, and_, null, or_, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.expression import BindParameter, FromClause

from lakedbapi.errors import DataError
from lakedbapi.formats.ducklake import tags
from lakedbapi.formats.ducklake.metadata import Tables
from lakedbapi.formats.ducklake.paths import resolve
from lakedbapi.formats.ducklake.types import LIST, MAP, STRUCT, parse_type
from lakedbapi.model.catalog import (
    MacroBody,
    MacroInfo,
    MacroParameter,
    PartitionField,
    PartitionSpec,
    SchemaInfo,
    SortField,
    TableInfo,
    ViewInfo,
    nested_name,
)
from lakedbapi.model.sql_types import quote_literal
from lakedbapi.model.types import Decimal, Field, Identity, List, Map, Scalar, Schema, Struct, Type

_QUOTED_NAME = re.compile(r'"((?:[^"]|"")*)"')
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def visible(table: FromClause, snapshot: int | BindParameter[int]) -> ColumnElement[bool]:
    """Whether a versioned row is part of `snapshot`."""
    return and_(
        table.c.begin_snapshot <= snapshot, or_(table.c.end_snapshot.is_(None), table.c.end_snapshot > snapshot)
    )


@dataclass(frozen=True)
class Objects:
    schemas: Mapping[int, SchemaInfo]
    tables: Mapping[int, TableInfo]
    views: Mapping[int, ViewInfo]
    macros: Mapping[int, MacroInfo]


def load_objects(connection: Connection, tables: Tables, snapshot: int, data_path: str) -> Objects:
    """All objects that `snapshot` sees. `data_path` is the full path of the lake's data."""
    comments = _tags(connection, tables, snapshot)
    schemas = _schemas(connection, tables, snapshot, data_path, comments)
    return Objects(
        schemas,
        _tables(connection, tables, snapshot, schemas, comments),
        _views(connection, tables, snapshot, comments),
        _macros(connection, tables, snapshot),
    )


def load_schema(connection: Connection, tables: Tables, table_id: int, snapshot: int) -> Schema:
    """The columns that a table had at `snapshot`."""
    column = tables.column
    rows = connection.execute(_columns(column).where(column.c.table_id == table_id, visible(column, snapshot)))
    return build_schema([ColumnRow(*row) for row in rows], {})


@dataclass(frozen=True)
class ColumnRow:
    """A row of `ducklake_column`."""

    table_id: int
    id: int
    order: int
    name: str
    type: str
    initial_default: str | None
    default: str | None
    nullable: bool | None
    parent: int | None
    default_type: str | None


def _columns(column: Table) -> Any:
    return select(
        column.c.table_id,
        column.c.column_id,
        column.c.column_order,
        column.c.column_name,
        column.c.column_type,
        column.c.initial_default,
        column.c.default_value,
        column.c.nulls_allowed,
        column.c.parent_column,
        column.c.default_value_type,
    )


def build_schema(
    rows: Sequence[ColumnRow], column_tags: Mapping[int, Mapping[str, str]], identities: Collection[int] = ()
) -> Schema:
    """The column tree of one table from its rows, in any order. `column_tags` by column id."""
    children: dict[int | None, list[ColumnRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.order):
        children[row.parent].append(row)
    columns = (_field(row, children, column_tags.get(row.id, {})) for row in children[None])
    return Schema(tuple(replace(field, identity=Identity() if field.id in identities else None) for field in columns))


def _field(row: ColumnRow, children: Mapping[int | None, list[ColumnRow]], tagged: Mapping[str, str]) -> Field:
    type = _type(row, children)
    return Field(
        name=row.name,
        type=type,
        id=row.id,
        # Fields inside others have no NOT NULL; DuckDB writes false for some of them all the same.
        nullable=row.parent is not None or row.nullable is not False,
        default=_default(row, type),
        initial_default=row.initial_default,
        comment=tagged.get(tags.COMMENT),
    )


def _type(row: ColumnRow, children: Mapping[int | None, list[ColumnRow]]) -> Type:
    name = row.type.strip().lower()
    if name not in (STRUCT, LIST, MAP):
        return parse_type(row.type)
    fields = [_field(child, children, {}) for child in children.get(row.id, [])]
    if name == STRUCT:
        return Struct(tuple(fields))
    if name == LIST and len(fields) == 1:
        return List(fields[0])
    if name == MAP and len(fields) == 2:
        by_name = {field.name: field for field in fields}
        return Map(by_name.get("key", fields[0]), by_name.get("value", fields[1]))
    raise DataError(f"column {row.name!r} is a {name} with {len(fields)} children in the catalog")


def _default(row: ColumnRow, type: Type) -> str | None:
    """The default as an SQL expression. The text `NULL` stands for no default; a literal's text is bare."""
    if row.default is None or row.default == "NULL":
        return None
    if row.default_type == "expression":
        return row.default
    numeric = isinstance(type, Decimal) or (isinstance(type, Scalar) and type.name.startswith(("int", "uint", "float")))
    if numeric and _NUMBER.fullmatch(row.default) and type != Scalar("interval"):
        return row.default
    if type == Scalar("boolean") and row.default.lower() in ("true", "false"):
        return row.default.lower()
    return quote_literal(row.default)


def _tags(connection: Connection, tables: Tables, snapshot: int) -> Mapping[int, Mapping[str, str]]:
    """Tags by object id."""
    tag = tables.tag
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for object_id, key, value in connection.execute(
        select(tag.c.object_id, tag.c.key, tag.c.value).where(visible(tag, snapshot), tag.c.value.is_not(None))
    ):
        found[object_id][key] = value
    return found


def _column_tags(
    connection: Connection, tables: Tables, snapshot: int
) -> Mapping[int, Mapping[int, Mapping[str, str]]]:
    """Tags by table id and column id."""
    tag = tables.column_tag
    found: dict[int, dict[int, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for table_id, column_id, key, value in connection.execute(
        select(tag.c.table_id, tag.c.column_id, tag.c.key, tag.c.value).where(
            visible(tag, snapshot), tag.c.value.is_not(None)
        )
    ):
        found[table_id][column_id][key] = value
    return found


def _schemas(
    connection: Connection, tables: Tables, snapshot: int, data_path: str, comments: Mapping[int, Mapping[str, str]]
) -> Mapping[int, SchemaInfo]:
    schema = tables.schema
    parent = schema.c.parent_schema_id if tables.nests_schemas else null()
    rows = connection.execute(
        select(schema.c.schema_id, schema.c.schema_name, schema.c.path, schema.c.path_is_relative, parent).where(
            visible(schema, snapshot)
        )
    ).all()
    paths = _schema_parts({id: (name, parent_id) for id, name, _, _, parent_id in rows})
    plain = [parts[0] for parts in paths.values() if len(parts) == 1]
    return {
        id: SchemaInfo(
            id,
            paths[id][0] if len(paths[id]) == 1 else nested_name(paths[id], plain),
            resolve(data_path, path, is_relative),
            comments.get(id, {}).get(tags.COMMENT),
            paths[id] if len(paths[id]) > 1 else (),
        )
        for id, _, path, is_relative, _ in rows
    }


def _schema_parts(schemas: Mapping[int, tuple[str, int | None]]) -> Mapping[int, tuple[str, ...]]:
    """The names of each schema from the outermost on, from its own name and its parent's id (format 1.1).

    A parent that another program dropped alone is `#3` by its id: what was in it is not taken for what is outside.
    """
    found: dict[int, tuple[str, ...]] = {}
    for id, (name, parent) in schemas.items():
        parts = [name]
        while parent is not None and len(parts) <= len(schemas):
            outer, parent = schemas.get(parent, (f"#{parent}", None))
            parts.insert(0, outer)
        found[id] = tuple(parts)
    return found


def parent_id(schema: SchemaInfo, schemas: Mapping[int, SchemaInfo]) -> int:
    """The id of the schema, out of `schemas`, that `schema` lies in."""
    return next(id for id, other in schemas.items() if other.is_called(schema.parts[:-1]))


def _tables(
    connection: Connection,
    tables: Tables,
    snapshot: int,
    schemas: Mapping[int, SchemaInfo],
    comments: Mapping[int, Mapping[str, str]],
) -> Mapping[int, TableInfo]:
    table = tables.table
    columns: dict[int, list[ColumnRow]] = defaultdict(list)
    for values in connection.execute(_columns(tables.column).where(visible(tables.column, snapshot))):
        row = ColumnRow(*values)
        columns[row.table_id].append(row)
    column_tags = _column_tags(connection, tables, snapshot)
    partitionings = _partitionings(connection, tables, snapshot)
    sortings = _sortings(connection, tables, snapshot)
    rows = connection.execute(
        select(
            table.c.table_id,
            table.c.schema_id,
            table.c.table_name,
            table.c.table_uuid,
            table.c.path,
            table.c.path_is_relative,
        ).where(visible(table, snapshot))
    )
    return {
        id: TableInfo(
            id=id,
            schema_id=schema_id,
            name=name,
            schema=build_schema(
                columns[id], column_tags.get(id, {}), tags.decode_identities(comments.get(id, {}).get(tags.IDENTITY))
            ),
            path=resolve(schemas[schema_id].path or "", path, is_relative),
            uuid=uuid,
            partitioning=partitionings.get(id),
            sorting=sortings.get(id, ()),
            constraints=tags.decode_constraints(comments.get(id, {}).get(tags.CONSTRAINTS, "[]")),
            comment=comments.get(id, {}).get(tags.COMMENT),
        )
        for id, schema_id, name, uuid, path, is_relative in rows
    }


def _partitionings(connection: Connection, tables: Tables, snapshot: int) -> Mapping[int, PartitionSpec]:
    """By table id. A partitioning without keys is what RESET PARTITIONED BY leaves: none."""
    info, column = tables.partition_info, tables.partition_column
    rows = connection.execute(
        select(info.c.table_id, info.c.partition_id, column.c.column_id, column.c.transform)
        .join_from(
            info, column, and_(info.c.partition_id == column.c.partition_id, info.c.table_id == column.c.table_id)
        )
        .where(visible(info, snapshot))
        .order_by(info.c.table_id, column.c.partition_key_index)
    )
    specs: dict[int, PartitionSpec] = {}
    for table_id, partition_id, column_id, transform in rows:
        before = specs.get(table_id, PartitionSpec(partition_id, ()))
        specs[table_id] = PartitionSpec(partition_id, (*before.fields, PartitionField(column_id, transform)))
    return specs


def _sortings(connection: Connection, tables: Tables, snapshot: int) -> Mapping[int, tuple[SortField, ...]]:
    info, expression = tables.sort_info, tables.sort_expression
    rows = connection.execute(
        select(info.c.table_id, expression.c.expression, expression.c.sort_direction, expression.c.null_order)
        .join_from(
            info, expression, and_(info.c.sort_id == expression.c.sort_id, info.c.table_id == expression.c.table_id)
        )
        .where(visible(info, snapshot))
        .order_by(info.c.table_id, expression.c.sort_key_index)
    )
    sortings: dict[int, tuple[SortField, ...]] = {}
    for table_id, sql, direction, null_order in rows:
        term = SortField(sql, descending=direction == "DESC", nulls_first=null_order == "NULLS_FIRST")
        sortings[table_id] = (*sortings.get(table_id, ()), term)
    return sortings


def _views(
    connection: Connection, tables: Tables, snapshot: int, comments: Mapping[int, Mapping[str, str]]
) -> Mapping[int, ViewInfo]:
    view = tables.view
    rows = connection.execute(
        select(
            view.c.view_id, view.c.schema_id, view.c.view_name, view.c.sql, view.c.dialect, view.c.column_aliases
        ).where(visible(view, snapshot))
    )
    return {
        id: ViewInfo(
            id=id,
            schema_id=schema_id,
            name=name,
            sql=sql,
            dialect=dialect or "duckdb",
            column_aliases=tuple(alias.replace('""', '"') for alias in _QUOTED_NAME.findall(aliases or "")),
            comment=comments.get(id, {}).get(tags.COMMENT),
        )
        for id, schema_id, name, sql, dialect, aliases in rows
    }


def _macros(connection: Connection, tables: Tables, snapshot: int) -> Mapping[int, MacroInfo]:
    macro, impl, parameter = tables.macro, tables.macro_impl, tables.macro_parameters
    live = connection.execute(
        select(macro.c.macro_id, macro.c.schema_id, macro.c.macro_name).where(visible(macro, snapshot))
    ).all()
    if not live:
        return {}
    parameters: dict[tuple[int, int], list[MacroParameter]] = defaultdict(list)
    wanted = select(
        parameter.c.macro_id,
        parameter.c.impl_id,
        parameter.c.parameter_name,
        parameter.c.parameter_type,
        parameter.c.default_value,
        parameter.c.default_value_type,
    ).order_by(parameter.c.column_id)
    for id, impl_id, name, type, default, default_type in connection.execute(wanted):
        parameters[id, impl_id].append(_parameter(name, type, default, default_type))
    bodies: dict[int, list[tuple[str, MacroBody]]] = defaultdict(list)
    implementations = select(impl.c.macro_id, impl.c.impl_id, impl.c.dialect, impl.c.sql, impl.c.type)
    for id, impl_id, dialect, sql, kind in connection.execute(implementations.order_by(impl.c.impl_id)):
        bodies[id].append((kind, MacroBody(sql, tuple(parameters[id, impl_id]), dialect or "duckdb")))
    return {
        id: MacroInfo(id, schema_id, name, bodies[id][0][0] == "table", tuple(body for _, body in bodies[id]))
        for id, schema_id, name in live
        if bodies[id]
    }


def _parameter(name: str, type: str | None, default: str | None, default_type: str | None) -> MacroParameter:
    """`unknown` stands for no type, and as the type of a default for none."""
    known = None if type in (None, "unknown") else parse_type(type or "")
    if default_type in (None, "unknown"):
        return MacroParameter(name, known)
    type_of_default = parse_type(default_type or "")
    is_null = default == "NULL" and type_of_default != Scalar("varchar")
    return MacroParameter(name, known, None if is_null else default, type_of_default)
