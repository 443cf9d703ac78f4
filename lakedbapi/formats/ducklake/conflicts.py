"""Whether staged changes still hold on the newest snapshot: what other transactions committed since the pinned one.

This looks at objects; that the touched files and rows are still live is checked where they are ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from sqlalchemy import Table, and_, func, null, or_, select
from sqlalchemy.sql import ColumnElement

from lakedbapi.errors import ConflictError
from lakedbapi.formats.base import Snapshot
from lakedbapi.formats.ducklake import changes_made, identity, tags
from lakedbapi.formats.ducklake.attempt import Attempt
from lakedbapi.formats.ducklake.objects import parent_id
from lakedbapi.model.catalog import TableInfo, ViewInfo
from lakedbapi.model.changes import Changes

Named = TypeVar("Named", TableInfo, ViewInfo)


def check(attempt: Attempt, base: Snapshot, changes: Changes) -> None:
    """ConflictError if the changes do not commute with what was committed after `base`."""
    if attempt.previous.id != base.id:
        _Check(attempt, base, changes).run()


class _Check:
    def __init__(self, attempt: Attempt, base: Snapshot, changes: Changes) -> None:
        self._attempt = attempt
        self._tables = attempt.tables
        self._connection = attempt.connection
        self._base = base
        self._changes = changes
        schemas = {**base.schemas(), **{id: schema for id, schema in changes.schemas.items() if schema is not None}}
        self._parents = {
            id: parent_id(schema, schemas) for id, schema in schemas.items() if id in changes.schemas and schema.parts
        }
        """By the id of each schema that is made inside of another, that one's id."""

    def run(self) -> None:
        self._base_is_kept()
        self._schemas_are_live()
        self._tables_are_live()
        self._columns_are_unchanged(id for id, rows in self._changes.rows.items() if id >= 0 and not rows.empty)
        self._tables_are_unchanged([id for id, table in self._changes.tables.items() if id >= 0 and table is not None])
        self._views_are_unchanged()
        self._macros_are_unchanged()
        self._new_checks_hold()
        self._names_are_free()
        self._identities_are_unused()

    def _base_is_kept(self) -> None:
        snapshot = self._tables.snapshot.c.snapshot_id
        if self._connection.execute(select(snapshot).where(snapshot == self._base.id)).first() is None:
            raise ConflictError(
                f"snapshot {self._base.id} was expired while this transaction used it; roll back and retry"
            )

    def _schemas_are_live(self) -> None:
        dropped = {id for id, schema in self._changes.schemas.items() if schema is None and id >= 0}
        used = {id for id in self._changes.schemas if id >= 0}
        entries = (*self._changes.tables.values(), *self._changes.views.values(), *self._changes.macros.values())
        used |= {entry.schema_id for entry in entries if entry is not None and entry.schema_id >= 0}
        used |= {id for id in self._parents.values() if id >= 0}
        used |= {table.schema_id for id, table in self._base.tables().items() if id in self._changes.rows}
        schema = self._tables.schema
        for id in sorted(used - self._live(schema, schema.c.schema_id, used)):
            raise _dropped("schema", self._base.schemas()[id].name)
        if dropped and self._tables.nests_schemas:
            self._nothing_is_made_in(dropped)
        for kind_name, table, own in (
            ("table", self._tables.table, self._changes.tables),
            ("view", self._tables.view, self._changes.views),
            ("macro", self._tables.macro, self._changes.macros),
        ):
            if not dropped:
                return
            id_column = table.c[f"{kind_name}_id"]
            still = select(id_column, table.c.schema_id, table.c[f"{kind_name}_name"]).where(
                table.c.schema_id.in_(dropped), table.c.end_snapshot.is_(None)
            )
            for id, schema_id, name in self._connection.execute(still):
                if own.get(id, id) is not None:
                    raise ConflictError(
                        f"schema {self._base.schemas()[schema_id].name}: another transaction created {kind_name} "
                        f"{name} in it since this one began; roll back and retry"
                    )

    def _nothing_is_made_in(self, dropped: Collection[int]) -> None:
        """No schema was created inside of those that are dropped."""
        schema = self._tables.schema.c
        inside = select(schema.schema_id, schema.schema_name, schema.parent_schema_id).where(
            schema.parent_schema_id.in_(dropped), schema.end_snapshot.is_(None)
        )
        for id, name, parent in self._connection.execute(inside):
            if id not in dropped:
                raise ConflictError(
                    f"schema {self._base.schemas()[parent].name}: another transaction created schema {name} in it "
                    "since this one began; roll back and retry"
                )

    def _tables_are_live(self) -> None:
        used = {id for id in {*self._changes.tables, *self._changes.rows} if id >= 0}
        table = self._tables.table
        for id in sorted(used - self._live(table, table.c.table_id, used)):
            raise _dropped("table", self._base.tables()[id].name)

    def _columns_are_unchanged(self, ids: Iterable[int]) -> None:
        for id in ids:
            if self._changed(self._tables.column, self._tables.column.c.table_id == id):
                raise _altered("table", self._base.tables()[id].name)
            tag = self._tables.tag
            if self._changed(tag, tag.c.object_id == id, tag.c.key == tags.CONSTRAINTS):
                raise _altered("table", self._base.tables()[id].name)

    def _tables_are_unchanged(self, ids: Collection[int]) -> None:
        rows = self._tables
        for id in ids:
            versioned = (rows.table, rows.column, rows.partition_info, rows.sort_info, rows.column_tag)
            if any(self._changed(kind, kind.c.table_id == id) for kind in versioned) or self._changed(
                rows.tag, rows.tag.c.object_id == id
            ):
                raise _altered("table", self._base.tables()[id].name)

    def _macros_are_unchanged(self) -> None:
        """Nobody created or dropped a macro of a name that these changes define or drop."""
        macro = self._tables.macro
        for id, changed in self._changes.macros.items():
            own = changed or self._base.macros()[id]
            same = (macro.c.schema_id == own.schema_id, func.lower(macro.c.macro_name) == own.name.lower())
            if own.schema_id >= 0 and self._changed(macro, *same):
                raise _altered("macro", own.name)

    def _views_are_unchanged(self) -> None:
        view, tag = self._tables.view, self._tables.tag
        used = {id for id in self._changes.views if id >= 0}
        for id in sorted(used - self._live(view, view.c.view_id, used)):
            raise _dropped("view", self._base.views()[id].name)
        for id in sorted(id for id in used if self._changes.views[id] is not None):
            if self._changed(view, view.c.view_id == id) or self._changed(tag, tag.c.object_id == id):
                raise _altered("view", self._base.views()[id].name)

    def _new_checks_hold(self) -> None:
        """Rows that others inserted since were never checked against a NOT NULL or CHECK of ours."""
        for id, table in self._changes.tables.items():
            before = self._base.tables().get(id)
            if table is None or before is None or not _is_stricter(before, table):
                continue
            if self._were_inserted(id):
                raise ConflictError(
                    f"table {table.name}: another transaction inserted rows that the new constraint was not checked "
                    "on; roll back and retry"
                )

    def _were_inserted(self, table_id: int) -> bool:
        rows = self._tables.snapshot_changes.c
        later = self._connection.execute(select(rows.changes_made).where(rows.snapshot_id > self._base.id)).scalars()
        made = [changes_made.parse(text) for text in later]
        if len(made) < self._attempt.previous.id - self._base.id:
            return True  # Some of them were expired: nobody can tell.
        words = (changes_made.INSERTED, changes_made.INLINED_INSERT)
        return any(str(table_id) in entries.get(word, ()) for entries in made for word in words)

    def _names_are_free(self) -> None:
        new_schemas = {id: schema for id, schema in self._changes.schemas.items() if schema is not None and id < 0}
        if new_schemas:
            schema = self._tables.schema.c
            parent = schema.parent_schema_id if self._tables.nests_schemas else null()
            taken = select(schema.schema_id, schema.schema_name, parent).where(schema.end_snapshot.is_(None))
            live = {
                (lies_in, name.casefold())
                for id, name, lies_in in self._connection.execute(taken)
                if self._changes.schemas.get(id, id) is not None
            }
            for id, new_schema in new_schemas.items():
                if (self._parents.get(id), new_schema.names[-1].casefold()) in live:
                    raise _taken("schema", new_schema.name)
        new = {
            *_new_names(self._base.tables(), self._changes.tables),
            *_new_names(self._base.views(), self._changes.views),
        }
        if not new:
            return
        for kind, table, own in (
            ("table", self._tables.table, self._changes.tables),
            ("view", self._tables.view, self._changes.views),
        ):
            live_names = select(table.c[f"{kind}_id"], table.c.schema_id, table.c[f"{kind}_name"]).where(
                table.c.schema_id.in_({schema_id for schema_id, _ in new}), table.c.end_snapshot.is_(None)
            )
            for id, schema_id, name in self._connection.execute(live_names):
                if id not in own and (schema_id, name.casefold()) in new:
                    raise _taken(kind, name)

    def _identities_are_unused(self) -> None:
        for table_id, column in self._changes.identities:
            if identity.assigned_since(self._connection, self._tables, table_id, column, self._base.id):
                raise ConflictError(
                    f"column {column} of table {self._base.tables()[table_id].name}: another transaction assigned "
                    "identity values since this one began; roll back and retry"
                )

    def _live(self, table: Table, id_column: ColumnElement[int], ids: Collection[int]) -> set[int]:
        if not ids:
            return set()
        live = select(id_column).where(id_column.in_(ids), table.c.end_snapshot.is_(None))
        return set(self._connection.execute(live).scalars())

    def _changed(self, table: Table, *which: ColumnElement[bool]) -> bool:
        """Whether a versioned row began or ended after the pinned snapshot."""
        later = or_(table.c.begin_snapshot > self._base.id, table.c.end_snapshot > self._base.id)
        return bool(
            self._connection.execute(select(func.count()).select_from(table).where(and_(*which, later))).scalar()
        )


def _new_names(base: Mapping[int, Named], changed: Mapping[int, Named | None]) -> Iterator[tuple[int, str]]:
    """(schema id, case-folded name) of what is created or renamed."""
    for id, entry in changed.items():
        before = base.get(id)
        if entry is not None and (before is None or before.name != entry.name):
            yield entry.schema_id, entry.name.casefold()


def _is_stricter(before: TableInfo, after: TableInfo) -> bool:
    nullable = {field.id for field in before.schema.fields if field.nullable}
    checks = {constraint for constraint in before.constraints if constraint.kind == "check"}
    return any(field.id in nullable and not field.nullable for field in after.schema.fields) or any(
        constraint.kind == "check" and constraint not in checks for constraint in after.constraints
    )


def _dropped(kind: str, name: str) -> ConflictError:
    return ConflictError(f"{kind} {name} was dropped by another transaction since this one began; roll back and retry")


def _altered(kind: str, name: str) -> ConflictError:
    return ConflictError(f"{kind} {name} was altered by another transaction since this one began; roll back and retry")


def _taken(kind: str, name: str) -> ConflictError:
    return ConflictError(f"{kind} {name} was created by another transaction since this one began; roll back and retry")
