"""ALTER TABLE and ALTER VIEW."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.ddl.checks import require_no_nulls, require_true
from lakedbapi.ddl.defaults import with_followed_defaults
from lakedbapi.ddl.evolve import evolved
from lakedbapi.ddl.paths import edit, find, get, named
from lakedbapi.ddl.references import Change, change_references
from lakedbapi.ddl.staging import require, require_views, stage_table, stage_view
from lakedbapi.ddl.tables import (
    check_columns,
    check_field,
    kept_check,
    kept_field,
    partition_spec,
    sort_fields,
    with_constraint,
)
from lakedbapi.ddl.values import (
    check_default,
    check_expressions,
    columns_in,
    has_initial_default,
    initial_default,
    initial_value,
    kept_as_value,
    with_renamed_columns,
)
from lakedbapi.ddl.widening import widened
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.model.bucket import hashed_as
from lakedbapi.model.catalog import Constraint, PartitionSpec, SchemaInfo, TableInfo
from lakedbapi.model.changes import RowChanges
from lakedbapi.model.sql_types import sql_type
from lakedbapi.model.table_options import check_option
from lakedbapi.model.types import Field, Struct
from lakedbapi.query.information_schema import constraint_name
from lakedbapi.query.names import find_relation, resolve_table, resolve_view
from lakedbapi.sql.expressions import render
from lakedbapi.sql.statements import (
    AddColumn,
    AddConstraint,
    AlterColumn,
    AlterTable,
    DropColumn,
    DropConstraint,
    Name,
    Position,
    RenameColumn,
    RenameTable,
    SetPartitioning,
    SetProperties,
    SetSorting,
)
from lakedbapi.transaction import CatalogView


@dataclass(frozen=True)
class _Place:
    context: Context
    alias: str
    schema: SchemaInfo

    @property
    def view(self) -> CatalogView:
        """As the actions so far have left it."""
        return self.context.transaction.view(self.alias)


def alter(context: Context, statement: AlterTable) -> None:
    if statement.if_exists and find_relation(context, statement.name) is None:
        return
    if statement.view:
        _alter_view(context, statement)
        return
    alias, view, schema, table = resolve_table(context, statement.name)
    require(view.catalog, f"ALTER TABLE {statement.name}", view.catalog.capabilities.ddl)
    place = _Place(context, alias, schema)
    for action in statement.actions:
        changed = _ACTIONS[type(action)](place, table, action)
        if changed == table:
            continue
        changed = view.catalog.number_fields(view.snapshot, with_followed_defaults(context, table, changed))
        _stage(place, table, changed)
        table = changed


def _alter_view(context: Context, statement: AlterTable) -> None:
    alias, view, schema, info = resolve_view(context, statement.name)
    require_views(view.catalog, f"ALTER VIEW {statement.name}")
    for action in statement.actions:
        if not isinstance(action, RenameTable):
            raise NotSupportedError(
                f"ALTER VIEW {statement.name} can only RENAME TO; use CREATE OR REPLACE VIEW to change the view's query"
            )
        _require_free(_Place(context, alias, schema), info.id, action.new_name)
        info = replace(info, name=action.new_name)
        stage_view(context, alias, info)


def _stage(place: _Place, old: TableInfo, new: TableInfo) -> None:
    """Stage the altered table, with the rows of this transaction in its new columns."""
    changes = place.context.transaction.changes(place.alias)
    rows = changes.rows.get(old.id, RowChanges())
    followed = evolved(rows, old.schema, new.schema, lambda field: initial_value(place.context, field))
    if old.partitioning is not None and old.partitioning.id < 0 and new.partitioning != old.partitioning:
        followed = _unpartitioned(followed, old.partitioning)
    stage_table(place.context, place.alias, new, None if followed is rows else followed)


def _unpartitioned(rows: RowChanges, spec: PartitionSpec) -> RowChanges:
    """Files that were written under a partitioning which the catalog will never see."""
    files = tuple(
        replace(staged, file=replace(staged.file, partition_id=None, partition_values=()))
        if staged.file.partition_id == spec.id
        else staged
        for staged in rows.files
    )
    return replace(rows, files=files)


def _add_column(place: _Place, table: TableInfo, action: AddColumn) -> TableInfo:
    path = (*action.path, action.field.name)
    if find(table, path) is not None:
        if action.if_not_exists:
            return table
        raise ProgrammingError(f"table {table.name!r} has a column {'.'.join(path)!r} already")
    if action.path:
        _require_struct(table, action.path)
    field = action.field
    check_field(place.context, place.view.catalog, field)
    if field.generated is not None:
        raise NotSupportedError(
            f"generated column {field.name!r} cannot be added to {table.name!r}, whose rows would not have its values: "
            "make a new table"
        )
    field = replace(field, initial_default=initial_default(place.context, field))
    field = kept_as_value(place.context, place.view.catalog, field)
    if field.initial_default is not None and not has_initial_default(place.view.catalog, field):
        field = _without_initial_default(place, table, field)
    if not action.path:
        _check_new_column(place, table, field)
    elif not field.nullable:
        raise NotSupportedError(f"field {'.'.join(path)!r} cannot be NOT NULL: only columns can")
    return edit(table, action.path, lambda fields: _placed(place, table, fields, field, action.position))


def _without_initial_default(place: _Place, table: TableInfo, field: Field) -> Field:
    if place.view.contents(table).count() != 0:
        raise NotSupportedError(
            f"column {field.name!r} cannot be added with a default, since other programs read NULL in the rows that "
            f"{table.name!r} has where a column with parts is younger than them: add it without default, UPDATE it, "
            "then ALTER COLUMN … SET DEFAULT"
        )
    return replace(field, initial_default=None)


def _placed(
    place: _Place, table: TableInfo, fields: Sequence[Field], field: Field, position: Position | None
) -> tuple[Field, ...]:
    """The columns, or fields of a struct, with one among them that is new or moves; without a position it is the
    last."""
    others = [other for other in fields if other is not field]
    if position is None:
        return (*others, field)
    catalog = place.view.catalog
    if not catalog.capabilities.column_order:
        raise NotSupportedError(
            f"column {field.name!r} of table {table.name!r} cannot be FIRST or AFTER another: tables of format "
            f"{catalog.format!r} keep their columns in the order in which they came; name the columns in SELECT, or "
            "make a view or a new table"
        )
    if position.after is None:
        return (field, *others)
    behind = named(others, position.after)
    if behind is None:
        raise ProgrammingError(
            f"column {field.name!r} of table {table.name!r} cannot be AFTER {position.after!r}: there is no such "
            "column beside it"
        )
    index = others.index(behind) + 1
    return (*others[:index], field, *others[index:])


def _check_new_column(place: _Place, table: TableInfo, field: Field) -> None:
    check_columns(_name(place, table), (*table.schema.fields, field))
    if field.nullable and not field.identity:
        return
    if field.initial_default is None and place.view.contents(table).count() != 0:
        kind = "an identity column" if field.identity else "NOT NULL"
        later = place.view.catalog.capabilities.sets_not_null
        raise NotSupportedError(
            f"column {field.name!r} cannot be added as {kind}: the rows of {table.name!r} would have NULL in it; "
            + ("make a new table" if field.identity or not later else "add it nullable, UPDATE, SET NOT NULL")
        )


def _drop_column(place: _Place, table: TableInfo, action: DropColumn) -> TableInfo:
    field = find(table, action.path)
    if field is None and action.if_exists:
        return table
    field = get(table, action.path)
    parent = action.path[:-1]
    siblings = table.schema.fields if not parent else _require_struct(table, parent).fields
    shown = ".".join(action.path)
    if len(siblings) == 1:
        raise ProgrammingError(f"{shown!r} cannot be dropped: it is the last one of {'.'.join(parent) or table.name!r}")
    if table.partitioning is not None and field.id in {key.field_id for key in table.partitioning.fields}:
        raise ProgrammingError(
            f"column {shown!r} cannot be dropped: {table.name!r} is partitioned by it; RESET PARTITIONED BY first"
        )
    if not parent:
        table = _without_constraints_on(place, table, field.name)
    return edit(table, parent, lambda fields: tuple(other for other in fields if other.id != field.id))


def _without_constraints_on(place: _Place, table: TableInfo, column: str) -> TableInfo:
    """The table without keys and checks that need the column, which foreign keys to it lose as well.

    ProgrammingError when the table is sorted by the column.
    """
    folded = column.casefold()
    if any(folded in columns_in(key.expression) for key in table.sorting):
        raise ProgrammingError(
            f"column {column!r} cannot be dropped: {table.name!r} is sorted by it; SET or RESET SORTED BY first"
        )
    kept = tuple(c for c in table.constraints if folded not in {name.casefold() for name in c.columns})
    return _change_references(
        place,
        replace(table, constraints=kept),
        lambda c: None if folded in {name.casefold() for name in c.referred_columns} else c,
    )


def _rename_column(place: _Place, table: TableInfo, action: RenameColumn) -> TableInfo:
    field = get(table, action.path)
    parent, new_name = action.path[:-1], action.new_name
    siblings = table.schema.fields if not parent else _require_struct(table, parent).fields
    other = named(siblings, new_name)
    if other is not None and other.id != field.id:
        raise ProgrammingError(f"table {table.name!r} has a column {'.'.join((*parent, new_name))!r} already")
    renamed = replace(field, name=new_name)
    changed = edit(table, parent, lambda fields: tuple(renamed if f.id == field.id else f for f in fields))
    if parent or field.name == new_name:
        return changed
    check_columns(_name(place, table), changed.schema.fields)
    names = {field.name.casefold(): new_name}
    _rename_identity(place, table, field.name, new_name)
    changed = _change_references(
        place, changed, lambda c: replace(c, referred_columns=_renamed(c.referred_columns, names))
    )
    return replace(
        changed,
        sorting=tuple(replace(k, expression=with_renamed_columns(k.expression, names)) for k in changed.sorting),
        constraints=tuple(_with_renamed_columns(c, names) for c in changed.constraints),
    )


def _with_renamed_columns(constraint: Constraint, names: Mapping[str, str]) -> Constraint:
    expression = constraint.expression
    return replace(
        constraint,
        columns=_renamed(constraint.columns, names),
        expression=None if expression is None else with_renamed_columns(expression, names),
    )


def _renamed(columns: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(column.casefold(), column) for column in columns)


def _rename_identity(place: _Place, table: TableInfo, old: str, new: str) -> None:
    """The highest value that this transaction assigned stays known."""
    changes = place.context.transaction.changes(place.alias)
    mark = changes.identities.get((table.id, old))
    if mark is not None:
        others = {key: value for key, value in changes.identities.items() if key != (table.id, old)}
        place.context.transaction.stage(place.alias, replace(changes, identities={**others, (table.id, new): mark}))


def _alter_column(place: _Place, table: TableInfo, action: AlterColumn) -> TableInfo:
    field = get(table, action.path)
    if action.type is not None:
        to_decimals = place.view.catalog.capabilities.widening_to_decimals
        changed = widened(field, action.type.type, to_decimals=to_decimals)
        _require_same_buckets(table, field, changed)
        check_default(place.context, place.view.catalog, changed)
    elif action.drop_default:
        changed = replace(field, default=None)
    elif action.set_default is not None:
        is_null = isinstance(action.set_default, exp.Null)
        changed = replace(field, default=None if is_null else render(action.set_default))
        check_field(place.context, place.view.catalog, changed)
        changed = kept_as_value(place.context, place.view.catalog, changed)
        changed = kept_field(place.view.catalog, table, changed)
    elif action.position is not None:
        return edit(table, action.path[:-1], lambda fields: _placed(place, table, fields, field, action.position))
    else:
        assert action.nullable is not None
        changed = _with_nullable(place, table, field, action)
    parent = action.path[:-1]
    return edit(table, parent, lambda fields: tuple(changed if f.id == field.id else f for f in fields))


def _require_same_buckets(table: TableInfo, old: Field, new: Field) -> None:
    """NotSupportedError when values would belong in other buckets than those that their files were written to."""
    keys = () if table.partitioning is None else table.partitioning.fields
    if not any(key.field_id == old.id and key.transform.startswith("bucket") for key in keys):
        return
    if hashed_as(old.type) != hashed_as(new.type):
        raise NotSupportedError(
            f"column {old.name!r} cannot be changed to {sql_type(new.type)}: {table.name!r} is partitioned by buckets "
            "of it, and values of that type are in other buckets; RESET PARTITIONED BY first"
        )


def _with_nullable(place: _Place, table: TableInfo, field: Field, action: AlterColumn) -> Field:
    nullable = bool(action.nullable)
    if len(action.path) > 1:
        raise NotSupportedError(f"field {'.'.join(action.path)!r} cannot be NOT NULL: only columns can")
    if not nullable and field.nullable:
        require_no_nulls(place.context, place.alias, table, field.name)
    keys = [c for c in table.constraints if c.kind == "primary key" and field.name in c.columns]
    if nullable and keys:
        raise ProgrammingError(
            f"column {field.name!r} is part of the primary key, which has no NULLs; drop the key first"
        )
    return replace(field, nullable=nullable)


def _rename_table(place: _Place, table: TableInfo, action: RenameTable) -> TableInfo:
    _require_free(place, table.id, action.new_name)
    changed = _change_references(place, table, lambda c: replace(c, referred=(place.schema.name, action.new_name)))
    return replace(changed, name=action.new_name)


def _set_partitioning(place: _Place, table: TableInfo, action: SetPartitioning) -> TableInfo:
    return replace(table, partitioning=partition_spec(place.view.catalog, table, action.keys))


def _set_sorting(place: _Place, table: TableInfo, action: SetSorting) -> TableInfo:
    check_expressions(place.context, table, "SORTED BY", [key.expression for key in action.keys])
    return replace(table, sorting=sort_fields(action.keys))


def _set_properties(place: _Place, table: TableInfo, action: SetProperties) -> TableInfo:
    for name, value in action.properties:
        check_option(name, value)
    merged = {**table.properties, **dict(action.properties)}
    return replace(table, properties={name: value for name, value in merged.items() if value is not None})


def _add_constraint(place: _Place, table: TableInfo, action: AddConstraint) -> TableInfo:
    constraint, catalog = action.constraint, place.view.catalog
    changed = with_constraint(place.context, place.view, place.schema.name, table, constraint)
    if constraint.expression:
        check_expressions(place.context, table, "CHECK", [constraint.expression])
        constraint = kept_check(catalog, table, constraint)
        require_true(place.context, place.alias, table, constraint)
        added = tuple(
            c if c in table.constraints else replace(c, expression=constraint.expression) for c in changed.constraints
        )
        changed = replace(changed, constraints=added)
    for before, after in zip(table.schema.fields, changed.schema.fields, strict=True):
        if before.nullable and not after.nullable:
            require_no_nulls(place.context, place.alias, table, before.name)
    return changed


def _drop_constraint(place: _Place, table: TableInfo, action: DropConstraint) -> TableInfo:
    folded = action.name.casefold()
    kept = tuple(c for c in table.constraints if constraint_name(table, c).casefold() != folded)
    if len(kept) == len(table.constraints) and not action.if_exists:
        names = ", ".join(constraint_name(table, c) for c in table.constraints) or "none"
        raise ProgrammingError(f"table {table.name!r} has no constraint {action.name!r}; it has: {names}")
    return replace(table, constraints=kept)


def _require_struct(table: TableInfo, path: Sequence[str]) -> Struct:
    """The struct at `path`, which fields can be added to and dropped from."""
    field = get(table, path)
    if not isinstance(field.type, Struct):
        raise ProgrammingError(f"{'.'.join(path)!r} of table {table.name!r} is no struct, so that it has no fields")
    return field.type


def _require_free(place: _Place, id: int, new_name: str) -> None:
    """ProgrammingError when another table or view of the schema has the name."""
    schema = place.schema.name
    for other in (place.view.table(schema, new_name), place.view.view(schema, new_name)):
        if other is not None and other.id != id:
            raise ProgrammingError(f"{schema}.{new_name} exists already; drop it, or choose another name")


def _change_references(place: _Place, table: TableInfo, change: Change) -> TableInfo:
    return change_references(place.context, place.alias, place.schema.name, table, change)


def _name(place: _Place, table: TableInfo) -> Name:
    return Name((place.schema.name, table.name))


_ACTIONS: Mapping[type, Callable[[_Place, TableInfo, Any], TableInfo]] = {
    AddColumn: _add_column,
    DropColumn: _drop_column,
    RenameColumn: _rename_column,
    AlterColumn: _alter_column,
    RenameTable: _rename_table,
    SetPartitioning: _set_partitioning,
    SetSorting: _set_sorting,
    SetProperties: _set_properties,
    AddConstraint: _add_constraint,
    DropConstraint: _drop_constraint,
}
