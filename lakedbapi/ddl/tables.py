"""CREATE TABLE and DROP TABLE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, count

import pyarrow as pa

from lakedbapi.context import Context
from lakedbapi.ddl.arrow_types import column
from lakedbapi.ddl.references import change_references
from lakedbapi.ddl.staging import require, stage_dropped_table, stage_table
from lakedbapi.ddl.values import (
    check_default,
    check_expressions,
    columns_in,
    has_initial_default,
    kept_as_value,
    lasting_default,
)
from lakedbapi.engine.base import Query
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import (
    Constraint,
    PartitionField,
    PartitionSpec,
    SortField,
    TableInfo,
    provisional_id,
)
from lakedbapi.model.table_options import check_option
from lakedbapi.model.types import UNASSIGNED, Field, Identity, List, Map, Scalar, Schema, Struct, Type
from lakedbapi.query.information_schema import constraint_name
from lakedbapi.query.names import NewName, find_relation, resolve_new, resolve_table
from lakedbapi.query.plan import plan
from lakedbapi.query.relations import without_rows
from lakedbapi.query.stored import kept, kept_default, runnable, runnable_default
from lakedbapi.sql.statements import CreateTable, DropTable, Name, PartitionKey, Select, SortKey
from lakedbapi.sql.types import type_of
from lakedbapi.transaction import CatalogView

RESERVED_COLUMNS = frozenset({"_ducklake_internal_row_id", "_ducklake_internal_snapshot_id", "_lake_row_id"})
"""Names that data files use for columns of their own."""

_DATED = frozenset(
    {"date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz", "timestamptz_ns"}
)
_CALENDAR = {"year": _DATED, "month": _DATED, "day": _DATED, "hour": _DATED - {"date"}}
_IDENTITY_TYPES = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


def create_table(context: Context, statement: CreateTable) -> tuple[str, TableInfo] | None:
    """Stage the table; its catalog's alias and itself, None when IF NOT EXISTS found one.

    The rows of AS SELECT are the caller's part.
    """
    place = resolve_new(context, statement.name)
    catalog = place.view.catalog
    require(catalog, f"CREATE TABLE {statement.name}", catalog.capabilities.ddl)
    if statement.using not in (None, catalog.format):
        raise NotSupportedError(
            f"CREATE TABLE {statement.name} USING {statement.using}: tables in {place.alias} are of format "
            f"{catalog.format}; leave USING out, or attach a catalog of that format"
        )
    if place.info is not None:
        raise ProgrammingError(f"{statement.name} is a view; drop it, or choose another name for the table")
    if place.table is not None and statement.if_not_exists:
        return None
    if place.table is not None and not statement.or_replace:
        raise ProgrammingError(
            f"table {statement.name} exists already; write IF NOT EXISTS or OR REPLACE, or choose another name"
        )
    table = define(context, place, statement)
    if place.table is not None:
        stage_dropped_table(context, place.alias, place.table)
    table = catalog.number_fields(place.view.snapshot, table)
    partitioning = partition_spec(catalog, table, statement.partitioning)
    table = replace(table, partitioning=partitioning)
    stage_table(context, place.alias, table)
    return place.alias, table


def create_table_for(target: Name, schema: pa.Schema, *, replace: bool, keep: bool) -> CreateTable:
    """The statement that makes a table for Arrow data. `keep`: a table that is there already stays as it is."""
    return CreateTable(target, tuple(map(column, schema)), or_replace=replace, if_not_exists=keep)


def drop_table(context: Context, statement: DropTable) -> None:
    """Foreign keys that refer to the table go with it."""
    if statement.if_exists and find_relation(context, statement.name) is None:
        return
    alias, view, schema, table = resolve_table(context, statement.name)
    require(view.catalog, f"DROP TABLE {statement.name}", view.catalog.capabilities.ddl)
    stage_dropped_table(context, alias, table)
    change_references(context, alias, schema.name, table, lambda constraint: None)


def define(context: Context, place: NewName, statement: CreateTable) -> TableInfo:
    """The table that a statement describes, without field ids and partitioning."""
    fields = _fields(context, statement)
    check_columns(statement.name, fields)
    for name, value in statement.properties:
        check_option(name, value)
    table = TableInfo(
        provisional_id(),
        place.schema.id,
        place.name,
        Schema(fields),
        sorting=sort_fields(statement.sorting),
        properties=dict(statement.properties),
        comment=statement.comment,
    )
    for constraint in statement.constraints:
        table = with_constraint(context, place.view, place.schema.name, table, constraint)
    for field in table.schema.fields:
        check_field(context, place.view.catalog, field)
    capabilities = place.view.catalog.capabilities
    if capabilities.name_mapping or capabilities.constant_defaults:
        fields = tuple(
            replace(field, initial_default=lasting_default(context, field))
            if has_initial_default(place.view.catalog, field)
            else field
            for field in table.schema.fields
        )
        fields = tuple(kept_as_value(context, place.view.catalog, field) for field in fields)
        table = replace(table, schema=Schema(fields))
    check_expressions(context, table, "SORTED BY", [key.expression for key in table.sorting])
    check_expressions(context, table, "CHECK", [c.expression for c in table.constraints if c.expression])
    _check_generated(context, table)
    return _as_kept(place.view.catalog, table)


def _check_generated(context: Context, table: TableInfo) -> None:
    """ProgrammingError unless generated columns have expressions over columns that rows bring."""
    generated = {field.name.casefold(): field.generated for field in table.schema.fields if field.generated}
    check_expressions(context, table, "GENERATED ALWAYS AS", list(generated.values()))
    for name, expression in generated.items():
        others = columns_in(expression) & generated.keys()
        if others:
            raise ProgrammingError(
                f"column {name!r} cannot be generated from {min(others)!r}, which is generated itself"
            )


def _as_kept(catalog: Catalog, table: TableInfo) -> TableInfo:
    """`table`, just described, with its expressions in the SQL that the format keeps them in."""
    fields = tuple(kept_field(catalog, table, field) for field in table.schema.fields)
    checks = tuple(kept_check(catalog, table, c) if c.expression else c for c in table.constraints)
    return replace(table, schema=Schema(fields), constraints=checks)


def kept_check(catalog: Catalog, table: TableInfo, check: Constraint) -> Constraint:
    """`check` with its expression in the SQL that the format keeps it in."""
    expression = kept(catalog, table.schema, check.expression or "", f"a CHECK of table {table.name!r}")
    return replace(check, expression=expression)


def kept_field(catalog: Catalog, table: TableInfo, field: Field) -> Field:
    """`field` with its expressions in the SQL that the format keeps them in."""
    if field.default is not None:
        field = replace(field, default=kept_default(catalog, field.default))
    if field.generated is not None:
        what = f"generated column {field.name!r}"
        field = replace(field, generated=kept(catalog, table.schema, field.generated, what))
    return field


def check_field(context: Context, catalog: Catalog, field: Field) -> None:
    """Refuse what a column cannot be."""
    check_default(context, catalog, field)
    if field.generated is not None and not catalog.capabilities.generated_columns:
        raise NotSupportedError(
            f"column {field.name!r}: format {catalog.format!r} has no generated columns: compute the column in a view"
        )
    if field.generated is not None and (field.identity or field.default is not None):
        raise ProgrammingError(f"column {field.name!r} is generated, and cannot be counted or have a default as well")
    if not field.identity:
        return
    if not catalog.capabilities.identity_columns:
        raise NotSupportedError(
            f"column {field.name!r}: format {catalog.format!r} has no identity columns; give its values in INSERT, and "
            "leave IDENTITY or AUTOINCREMENT out (in SQLAlchemy: autoincrement=False)"
        )
    if not isinstance(field.type, Scalar) or field.type.name not in _IDENTITY_TYPES:
        raise ProgrammingError(f"identity column {field.name!r} must have an integer type")
    if field.default is not None:
        raise ProgrammingError(f"identity column {field.name!r} cannot have a default as well")
    if field.identity != Identity() and not catalog.capabilities.identity_options:
        raise NotSupportedError(
            f"identity column {field.name!r}: format {catalog.format!r} has only columns that are GENERATED BY DEFAULT "
            "and count 1, 2, 3"
        )


def check_columns(name: Name, fields: Iterable[Field]) -> None:
    """Names are there, unique whatever their case, and not reserved."""
    seen: set[str] = set()
    for field in fields:
        folded = field.name.casefold()
        if not folded:
            raise ProgrammingError(f"table {name}: a column has an empty name; give it an alias")
        if "\0" in folded:
            raise ProgrammingError(f"table {name}: the name of column {field.name!r} contains a NUL character (U+0000)")
        if folded in RESERVED_COLUMNS:
            raise ProgrammingError(f"table {name}: column name {field.name!r} is reserved; choose another one")
        if folded in seen:
            raise ProgrammingError(f"table {name}: two columns are called {field.name!r}; give one an alias")
        seen.add(folded)


def partition_spec(catalog: Catalog, table: TableInfo, keys: tuple[PartitionKey, ...]) -> PartitionSpec | None:
    """The partitioning by `keys` of a table whose fields are numbered; None for no keys."""
    if not keys:
        return None
    fields = []
    for key in keys:
        field = table.schema.get(key.column)
        if field is None:
            raise ProgrammingError(
                f"table {table.name!r} cannot be partitioned by {key.column!r}: it has no such column"
            )
        _check_transform(catalog, table, field, key.transform)
        fields.append(PartitionField(field.id, key.transform))
    if len({(field.field_id, field.transform) for field in fields}) < len(fields):
        raise ProgrammingError(f"table {table.name!r}: two partition keys are the same")
    return PartitionSpec(provisional_id(), tuple(fields))


def _check_transform(catalog: Catalog, table: TableInfo, field: Field, transform: str) -> None:
    where = f"partitioning of {table.name!r} by {transform} of {field.name!r}"
    kind, _, argument = transform.partition("(")
    known = catalog.capabilities.partition_transforms
    if kind not in known:
        raise NotSupportedError(f"{where}: format {catalog.format!r} has only {', '.join(sorted(known)) or 'none'}")
    if isinstance(field.type, (Struct, List, Map)):
        raise NotSupportedError(f"{where}: a partition key needs a column without parts; add one for the field")
    allowed = _CALENDAR.get(kind.removeprefix("epoch_"))
    if allowed is not None and not (isinstance(field.type, Scalar) and field.type.name in allowed):
        raise ProgrammingError(f"{where}: the column has no {kind}")
    if kind in ("bucket", "truncate") and not (argument[:-1].isdigit() and int(argument[:-1]) > 0):
        raise ProgrammingError(f"{where}: write {kind}(N, {field.name}) with a positive N")


def sort_fields(keys: tuple[SortKey, ...]) -> tuple[SortField, ...]:
    return tuple(SortField(key.expression, key.descending, key.nulls_first) for key in keys)


def with_constraint(
    context: Context, view: CatalogView, schema: str, table: TableInfo, constraint: Constraint
) -> TableInfo:
    """The table with one more constraint. The columns of a primary key become NOT NULL."""
    if constraint.kind == "check":
        columns = columns_in(constraint.expression or "")
        constraint = replace(constraint, columns=tuple(n for n in table.schema.names if n.casefold() in columns))
    else:
        constraint = replace(constraint, columns=tuple(_column(table, name).name for name in constraint.columns))
    others = table.constraints
    if constraint.name and any((c.name or "").casefold() == constraint.name.casefold() for c in others):
        raise ProgrammingError(f"table {table.name!r} has two constraints called {constraint.name!r}; rename one")
    if constraint.kind == "primary key":
        if any(other.kind == "primary key" for other in others):
            raise ProgrammingError(f"table {table.name!r} can have only one primary key")
        names = set(constraint.columns)
        fields = tuple(replace(f, nullable=f.nullable and f.name not in names) for f in table.schema.fields)
        table = replace(table, schema=Schema(fields))
    if constraint.kind == "foreign key":
        constraint = _foreign_key(context, view, schema, table, constraint)
    if constraint in (replace(other, name=constraint.name) for other in others):
        return table
    return replace(table, constraints=(*others, replace(constraint, name=_free_name(table, constraint))))


def _free_name(table: TableInfo, constraint: Constraint) -> str:
    """The constraint's name; one without gets a name that no other constraint of the table has."""
    name = constraint_name(table, constraint)
    taken = {(other.name or "").casefold() for other in table.constraints}
    return next(n for n in chain([name], (f"{name}{i}" for i in count(1))) if n.casefold() not in taken)


def _foreign_key(
    context: Context, view: CatalogView, schema: str, table: TableInfo, constraint: Constraint
) -> Constraint:
    """The constraint with the referred table as (schema, table), and its columns."""
    referred = constraint.referred
    if len(referred) == 3 and referred[0].casefold() != view.alias.casefold():
        raise ProgrammingError(f"a foreign key cannot refer to {'.'.join(referred)}, which is in another catalog")
    other_schema, other_name = referred[-2:] if len(referred) > 1 else _found(context, view, schema, table, referred[0])
    is_itself = (other_schema.casefold(), other_name.casefold()) == (schema.casefold(), table.name.casefold())
    other = table if is_itself else view.table(other_schema, other_name)
    if other is None:
        raise ProgrammingError(
            f"table {table.name!r}: the foreign key refers to table {'.'.join(referred)}, which does not exist"
        )
    columns = constraint.referred_columns
    if not columns:
        keys = [c.columns for c in other.constraints if c.kind == "primary key"]
        if not keys:
            raise ProgrammingError(
                f"table {table.name!r}: the foreign key names no columns of {other.name!r}, which has no primary key"
            )
        columns = keys[0]
    columns = tuple(_column(other, name).name for name in columns)
    if len(columns) != len(constraint.columns):
        raise ProgrammingError(f"table {table.name!r}: the foreign key has as many columns as it refers to, or none")
    actual_schema = view.schema(other_schema)
    shown = other_schema if actual_schema is None else actual_schema.name
    return replace(constraint, referred=(shown, other.name), referred_columns=columns)


def _found(context: Context, view: CatalogView, schema: str, table: TableInfo, name: str) -> tuple[str, str]:
    """Where an unqualified table is: in the schema of the table that refers to it, or else in the current one."""
    catalog, current = context.search_path
    here = name.casefold() == table.name.casefold() or view.table(schema, name) is not None
    return (schema if here or catalog.casefold() != view.alias.casefold() else current), name


def _column(table: TableInfo, name: str) -> Field:
    field = table.schema.get(name)
    if field is None:
        raise ProgrammingError(f"table {table.name!r} has no column {name!r}; it has: {', '.join(table.schema.names)}")
    return field


def _fields(context: Context, statement: CreateTable) -> tuple[Field, ...]:
    """Columns as written, of a table that is copied, or of a query."""
    if statement.source is not None:
        return _query_fields(context, statement.source)
    fields: tuple[Field, ...] = ()
    if statement.like is not None:
        found = resolve_table(context, statement.like)
        fields = tuple(_as_written(found.view.catalog, found.table, field) for field in found.table.schema.fields)
    return fields + statement.columns


def _as_written(catalog: Catalog, table: TableInfo, field: Field) -> Field:
    """A field of another table as a new one, with its expressions in the engine's SQL."""
    default, generated = field.default, field.generated
    if default is not None:
        default = runnable_default(catalog, default, f"the default of column {field.name!r}")
    if generated is not None:
        generated = runnable(catalog, table.schema, generated, f"generated column {field.name!r}")
    return replace(unnumbered(field), default=default, generated=generated)


def _query_fields(context: Context, source: Select) -> tuple[Field, ...]:
    planned = plan(context, source)
    text = f"SELECT column_name, column_type FROM (DESCRIBE {planned.sql}\n)"
    found = context.engine.fetch(
        Query(text, without_rows(planned.relations), planned.parameters, planned.search_path)
    ).to_pydict()
    return tuple(
        Field(name, _type_of_result(type))
        for name, type in zip(found["column_name"], found["column_type"], strict=True)
    )


def _type_of_result(text: str) -> Type:
    """A column of nothing but NULL is an INTEGER, as in DuckDB."""
    return Scalar("int32") if text == '"NULL"' else type_of(text)


def unnumbered(field: Field) -> Field:
    """The field, and those in it, as a new one."""
    type = field.type
    if isinstance(type, Struct):
        type = Struct(tuple(map(unnumbered, type.fields)))
    elif isinstance(type, List):
        type = List(unnumbered(type.element))
    elif isinstance(type, Map):
        type = Map(unnumbered(type.key), unnumbered(type.value))
    return replace(field, type=type, id=UNASSIGNED, initial_default=None)
