"""Changes of schemas, tables and views as catalog rows: what differs from the base is ended and added anew."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, select

from lakedbapi.errors import InternalError
from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.ducklake import changes_made, inline, tags
from lakedbapi.formats.ducklake.attempt import Attempt
from lakedbapi.formats.ducklake.columns import Numbering, flatten, type_name
from lakedbapi.formats.ducklake.ids import uuid7
from lakedbapi.formats.ducklake.objects import parent_id
from lakedbapi.formats.ducklake.paths import relative_to
from lakedbapi.formats.ducklake.stats import fits
from lakedbapi.model.catalog import Constraint, MacroInfo, PartitionSpec, SchemaInfo, TableInfo, ViewInfo
from lakedbapi.model.changes import Changes
from lakedbapi.model.types import Field

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog


class Definitions:
    """Writes the DDL of one commit.

    `tables` has, by the id that the changes use, every changed table as it is after the commit, final ids and all.
    """

    def __init__(self, attempt: Attempt, catalog: DuckLakeCatalog, base: Snapshot, changes: Changes) -> None:
        self.tables: dict[int, TableInfo] = {}
        self._attempt = attempt
        self._catalog = catalog
        self._base = base
        self._changes = changes
        self._schemas = dict(base.schemas())

    def write(self) -> None:
        self._drop()
        for id, schema in self._changes.schemas.items():
            if schema is not None:
                self._schema(id, schema)
        for id, table in self._changes.tables.items():
            if table is not None:
                self._table(id, table)
        for id, view in self._changes.views.items():
            if view is not None:
                self._view(id, view)
        for macro in self._changes.macros.values():
            if macro is not None:
                self._macro(macro)

    # Drops

    def _drop(self) -> None:
        schemas = [id for id, schema in self._changes.schemas.items() if schema is None and id >= 0]
        tables = [id for id, table in self._changes.tables.items() if table is None and id >= 0]
        views = [id for id, view in self._changes.views.items() if view is None and id >= 0]
        macros = [self._base.macros()[id] for id, macro in self._changes.macros.items() if macro is None and id >= 0]
        attempt, rows = self._attempt, self._attempt.tables
        for word, ids in (
            (changes_made.DROPPED_SCHEMA, schemas),
            (changes_made.DROPPED_TABLE, tables),
            (changes_made.DROPPED_VIEW, views),
            (changes_made.DROPPED_SCALAR_MACRO, [macro.id for macro in macros if not macro.is_table]),
            (changes_made.DROPPED_TABLE_MACRO, [macro.id for macro in macros if macro.is_table]),
        ):
            for id in ids:
                attempt.made.add(word, id)
                attempt.schema_changed = True
        if schemas:
            attempt.end(rows.schema, rows.schema.c.schema_id.in_(schemas))
            attempt.end(rows.macro, rows.macro.c.schema_id.in_(schemas))
        if macros:
            attempt.end(rows.macro, rows.macro.c.macro_id.in_([macro.id for macro in macros]))
        if tables:
            for table in (
                rows.table,
                rows.column,
                rows.column_tag,
                rows.data_file,
                rows.delete_file,
                rows.partition_info,
                rows.sort_info,
            ):
                attempt.end(table, table.c.table_id.in_(tables))
        if views:
            attempt.end(rows.view, rows.view.c.view_id.in_(views))
            if rows.view_column_tag is not None:
                attempt.end(rows.view_column_tag, rows.view_column_tag.c.view_id.in_(views))
        if schemas or tables or views:
            attempt.end(rows.tag, rows.tag.c.object_id.in_([*schemas, *tables, *views]))

    # Schemas

    def _schema(self, id: int, schema: SchemaInfo) -> None:
        attempt = self._attempt
        before = self._base.schemas().get(id)
        if before is None:
            attempt.schema_ids[id] = attempt.ids.catalog_id()
            path, is_relative = relative_to(self._catalog.data_path, self._catalog.schema_directory(schema))
            attempt.add(
                attempt.tables.schema,
                schema_id=attempt.schema_ids[id],
                schema_uuid=str(uuid.uuid4()),
                begin_snapshot=attempt.snapshot_id,
                schema_name=schema.names[-1],
                path=path,
                path_is_relative=is_relative,
                **self._parent(schema),
            )
            attempt.made.add(changes_made.CREATED_SCHEMA, *schema.names)
            attempt.schema_changed = True
            self._schemas[id] = schema
        self._tag(attempt.schema_id(id), tags.COMMENT, before.comment if before else None, schema.comment)

    def _parent(self, schema: SchemaInfo) -> dict[str, int | None]:
        """The column that says which schema it lies in, where there is one."""
        if not self._attempt.tables.nests_schemas:
            return {}
        parent = parent_id(schema, self._schemas) if schema.parts else None
        return {"parent_schema_id": None if parent is None else self._attempt.schema_id(parent)}

    # Tables

    def _table(self, id: int, table: TableInfo) -> None:
        before = self._base.tables().get(id)
        made = self._attempt.made
        names = *self._schemas[table.schema_id].names, table.name
        if before is None:
            final = self._created(id, table)
            made.add(changes_made.CREATED_TABLE, *names)
            structural = True
        else:
            final = replace(table, uuid=before.uuid, path=before.path)
            renamed = (before.name, before.schema_id) != (table.name, table.schema_id)
            if renamed:
                final = self._renamed(before, final)
                made.add(changes_made.CREATED_TABLE, *names)
            structural = renamed
        final, columns_changed = self._columns(before, final)
        final, partitioning_changed = self._partitioning(before, final)
        structural = structural or columns_changed or partitioning_changed
        minor = self._sorting(before, final)
        minor = self._tags(before, final) or minor
        self._properties(before, final)
        self.tables[id] = final
        if before is not None and (columns_changed or partitioning_changed or minor):
            made.add(changes_made.ALTERED_TABLE, final.id)
        if structural or minor:
            self._attempt.schema_changed = True
        if structural:
            self._new_structure(final)

    def _created(self, id: int, table: TableInfo) -> TableInfo:
        attempt = self._attempt
        schema = self._schemas[table.schema_id]
        final = replace(
            table,
            id=attempt.ids.catalog_id(),
            schema_id=attempt.schema_id(table.schema_id),
            uuid=table.uuid or uuid7(),
            path=self._catalog.data_directory(table, schema),
        )
        attempt.table_ids[id] = final.id
        self._table_row(final, schema)
        return final

    def _renamed(self, before: TableInfo, table: TableInfo) -> TableInfo:
        rows = self._attempt.tables.table
        self._attempt.end(rows, rows.c.table_id == before.id)
        final = replace(table, schema_id=self._attempt.schema_id(table.schema_id))
        self._table_row(final, self._schemas[table.schema_id])
        return final

    def _table_row(self, table: TableInfo, schema: SchemaInfo) -> None:
        assert table.path is not None
        path, is_relative = relative_to(self._catalog.schema_directory(schema), table.path)
        self._attempt.add(
            self._attempt.tables.table,
            table_id=table.id,
            table_uuid=table.uuid,
            begin_snapshot=self._attempt.snapshot_id,
            schema_id=table.schema_id,
            table_name=table.name,
            path=path,
            path_is_relative=is_relative,
        )

    def _new_structure(self, table: TableInfo) -> None:
        attempt = self._attempt
        attempt.add(
            attempt.tables.schema_versions,
            begin_snapshot=attempt.snapshot_id,
            schema_version=attempt.schema_version,
            table_id=table.id,
        )
        if self._catalog.keeps_rows(table, 1):
            inline.create_table(attempt, table)

    def _columns(self, before: TableInfo | None, table: TableInfo) -> tuple[TableInfo, bool]:
        """The table with all its fields numbered, and whether any field changed."""
        if before is not None and before.schema == table.schema:
            return table, False
        attempt, rows = self._attempt, self._attempt.tables.column
        old = {nested.field.id: nested for nested in flatten(before.schema.fields)} if before else {}
        numbering = Numbering(self._known_field_ids(table.id, old), self._greatest_field_id(table.id) if before else 0)
        final = replace(table, schema=numbering.schema(table.schema))
        staged = self._changes.rows.get(table.id)
        if numbering.renumbered and staged is not None and staged.files:
            raise InternalError(
                f"table {table.name}: files were written with field ids that dropped columns had; nothing was committed"
            )
        if numbering.renumbered and final.partitioning is not None:
            final = replace(final, partitioning=_renumbered(final.partitioning, numbering.renumbered))
        new = {nested.field.id: nested for nested in flatten(final.schema.fields)}
        changed = {id: nested for id, nested in new.items() if id not in old or old[id].row() != nested.row()}
        ended = [id for id in old if id not in new or id in changed]
        if ended:
            attempt.end(rows, rows.c.table_id == final.id, rows.c.column_id.in_(ended))
        dropped = [id for id in old if id not in new]
        if dropped:
            column_tag = attempt.tables.column_tag
            attempt.end(column_tag, column_tag.c.table_id == final.id, column_tag.c.column_id.in_(dropped))
        self._forget_bounds(final.id, [nested.field for id, nested in changed.items() if id in old])
        for id, nested in changed.items():
            attempt.add(
                rows,
                column_id=id,
                begin_snapshot=attempt.snapshot_id,
                table_id=final.id,
                column_order=id,
                **nested.row(),
            )
        return final, bool(changed or dropped)

    def _known_field_ids(self, table_id: int, live: Collection[int]) -> frozenset[int]:
        """Those of `live` fields, and of fields that the table had before the base: one that returns keeps its id."""
        rows = self._attempt.tables.column.c
        had = select(rows.column_id).where(rows.table_id == table_id, rows.end_snapshot <= self._base.id)
        return frozenset(live) | frozenset(self._attempt.connection.execute(had).scalars())

    def _forget_bounds(self, table_id: int, changed: Sequence[Field]) -> None:
        """Of columns that get back a type which their greatest or least value does not fit in."""
        rows = self._attempt.tables.table_column_stats
        for field in changed:
            own = (rows.c.table_id == table_id, rows.c.column_id == field.id)
            found = self._attempt.connection.execute(select(rows.c.min_value, rows.c.max_value).where(*own)).first()
            if found is not None and not fits(found, field.type):
                self._attempt.connection.execute(delete(rows).where(*own))

    def _greatest_field_id(self, table_id: int) -> int:
        rows = self._attempt.tables.column
        greatest = select(func.max(rows.c.column_id)).where(rows.c.table_id == table_id)
        return int(self._attempt.connection.execute(greatest).scalar_one() or 0)

    def _partitioning(self, before: TableInfo | None, table: TableInfo) -> tuple[TableInfo, bool]:
        old = before.partitioning.fields if before and before.partitioning else ()
        new = table.partitioning.fields if table.partitioning else ()
        if [(f.field_id, f.transform) for f in old] == [(f.field_id, f.transform) for f in new]:
            return (replace(table, partitioning=before.partitioning) if before else table), False
        attempt, info, columns = (
            self._attempt,
            self._attempt.tables.partition_info,
            self._attempt.tables.partition_column,
        )
        attempt.end(info, info.c.table_id == table.id)
        id = attempt.ids.catalog_id()
        if table.partitioning is not None:
            attempt.partition_ids[table.partitioning.id] = id
        attempt.add(info, partition_id=id, table_id=table.id, begin_snapshot=attempt.snapshot_id)
        for index, key in enumerate(new):
            attempt.add(
                columns,
                partition_id=id,
                table_id=table.id,
                partition_key_index=index,
                column_id=key.field_id,
                transform=key.transform,
            )
        return replace(table, partitioning=PartitionSpec(id, new) if new else None), True

    def _sorting(self, before: TableInfo | None, table: TableInfo) -> bool:
        if table.sorting == (before.sorting if before else ()):
            return False
        attempt, info, expressions = self._attempt, self._attempt.tables.sort_info, self._attempt.tables.sort_expression
        attempt.end(info, info.c.table_id == table.id)
        if table.sorting:
            id = attempt.ids.catalog_id()
            attempt.add(info, sort_id=id, table_id=table.id, begin_snapshot=attempt.snapshot_id)
            for index, key in enumerate(table.sorting):
                attempt.add(
                    expressions,
                    sort_id=id,
                    table_id=table.id,
                    sort_key_index=index,
                    expression=key.expression,
                    dialect="duckdb",
                    sort_direction="DESC" if key.descending else "ASC",
                    null_order="NULLS_FIRST" if key.nulls_first else "NULLS_LAST",
                )
        return True

    def _properties(self, before: TableInfo | None, table: TableInfo) -> None:
        """Options are not versioned: their rows are replaced."""
        attempt, rows = self._attempt, self._attempt.tables.metadata
        old: Mapping[str, str] = before.properties if before else {}
        changed = {key for key in {*old, *table.properties} if old.get(key) != table.properties.get(key)}
        if before is not None and changed:
            attempt.connection.execute(
                delete(rows).where(
                    rows.c.scope == "table", rows.c.scope_id == table.id, rows.c.key.in_(sorted(changed))
                )
            )
        for key in sorted(changed & set(table.properties)):
            attempt.add(rows, key=key, value=table.properties[key], scope="table", scope_id=table.id)

    # Tags

    def _tags(self, before: TableInfo | None, table: TableInfo) -> bool:
        changed = self._tag(table.id, tags.COMMENT, before.comment if before else None, table.comment)
        if table.constraints != (before.constraints if before else ()):
            old = constraints_text(before.constraints) if before else None
            changed = self._tag(table.id, tags.CONSTRAINTS, old, constraints_text(table.constraints)) or changed
        old = _identities(before) if before else None
        changed = self._tag(table.id, tags.IDENTITY, old, _identities(table)) or changed
        rows = self._attempt.tables.column_tag
        old_fields = {nested.field.id: nested.field for nested in flatten(before.schema.fields)} if before else {}
        for nested in flatten(table.schema.fields):
            old_field = old_fields.get(nested.field.id)
            old_comment = old_field.comment if old_field else None
            where = {"table_id": table.id, "column_id": nested.field.id}
            changed = self._replace_tag(rows, where, tags.COMMENT, old_comment, nested.field.comment) or changed
        return changed

    def _tag(self, object_id: int, key: str, old: str | None, new: str | None) -> bool:
        return self._replace_tag(self._attempt.tables.tag, {"object_id": object_id}, key, old, new)

    def _replace_tag(self, rows: Any, where: Mapping[str, int], key: str, old: str | None, new: str | None) -> bool:
        if old == new:
            return False
        attempt = self._attempt
        # A tag that was removed has a live row too, with the value NULL.
        attempt.end(rows, rows.c.key == key, *(rows.c[name] == value for name, value in where.items()))
        attempt.add(rows, **where, begin_snapshot=attempt.snapshot_id, key=key, value=new)
        attempt.schema_changed = True
        return True

    # Views

    def _view(self, id: int, view: ViewInfo) -> None:
        attempt, rows = self._attempt, self._attempt.tables.view
        before = self._base.views().get(id)
        named = (view.name, view.schema_id)
        redefined = before is None or replace(before, comment=None) != replace(view, comment=None)
        final_id = id if before is not None else attempt.ids.catalog_id()
        if redefined:
            identity = str(uuid.uuid4())
            if before is not None:
                known = select(rows.c.view_uuid).where(rows.c.view_id == id, rows.c.end_snapshot.is_(None))
                identity = attempt.connection.execute(known).scalar_one()
                attempt.end(rows, rows.c.view_id == id)
            attempt.add(
                rows,
                view_id=final_id,
                view_uuid=identity,
                begin_snapshot=attempt.snapshot_id,
                schema_id=attempt.schema_id(view.schema_id),
                view_name=view.name,
                dialect=view.dialect,
                sql=view.sql,
                column_aliases=",".join('"' + alias.replace('"', '""') + '"' for alias in view.column_aliases),
            )
        commented = self._tag(final_id, tags.COMMENT, before.comment if before else None, view.comment)
        if before is None or named != (before.name, before.schema_id):
            attempt.made.add(changes_made.CREATED_VIEW, *self._schemas[view.schema_id].names, view.name)
        elif redefined or commented:
            attempt.made.add(changes_made.ALTERED_VIEW, id)
        if redefined or commented:
            attempt.schema_changed = True

    # Macros

    def _macro(self, macro: MacroInfo) -> None:
        attempt, tables = self._attempt, self._attempt.tables
        id = attempt.ids.catalog_id()
        attempt.add(
            tables.macro,
            schema_id=attempt.schema_id(macro.schema_id),
            macro_id=id,
            macro_name=macro.name,
            begin_snapshot=attempt.snapshot_id,
        )
        for number, body in enumerate(macro.bodies):
            kind = "table" if macro.is_table else "scalar"
            attempt.add(tables.macro_impl, macro_id=id, impl_id=number, dialect=body.dialect, sql=body.sql, type=kind)
            for index, parameter in enumerate(body.parameters):
                attempt.add(
                    tables.macro_parameters,
                    macro_id=id,
                    impl_id=number,
                    column_id=index,
                    parameter_name=parameter.name,
                    parameter_type="unknown" if parameter.type is None else type_name(parameter.type),
                    default_value="NULL" if parameter.default is None else parameter.default,
                    default_value_type=type_name(parameter.default_type) if parameter.default_type else "unknown",
                )
        word = changes_made.CREATED_TABLE_MACRO if macro.is_table else changes_made.CREATED_SCALAR_MACRO
        attempt.made.add(word, *self._schemas[macro.schema_id].names, macro.name)
        attempt.schema_changed = True


def _identities(table: TableInfo) -> str | None:
    return tags.encode_identities(field.id for field in table.schema.fields if field.identity)


def constraints_text(constraints: tuple[Constraint, ...]) -> str | None:
    """The table tag that keeps constraints: a JSON list of objects with the attributes that are not empty."""
    if not constraints:
        return None
    entries = [{key: value for key, value in asdict(constraint).items() if value} for constraint in constraints]
    return json.dumps(entries, separators=(",", ":"))


def _renumbered(spec: PartitionSpec, ids: Mapping[int, int]) -> PartitionSpec:
    return PartitionSpec(
        spec.id, tuple(replace(key, field_id=ids.get(key.field_id, key.field_id)) for key in spec.fields)
    )
