"""`Committer`: a transaction's changes, table by table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats import ids
from lakedbapi.formats.base import CommitResult
from lakedbapi.formats.delta import directories
from lakedbapi.formats.delta.commit import TableCommit
from lakedbapi.formats.delta.plan import Plan, joined
from lakedbapi.formats.delta.snapshot import DeltaSnapshot
from lakedbapi.formats.table_by_table import Done, after, changed_tables
from lakedbapi.model.catalog import SchemaInfo
from lakedbapi.model.changes import Changes, RowChanges

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog


class Committer:
    """A commit is atomic in one table: several are refused."""

    def __init__(self, catalog: DeltaCatalog, base: DeltaSnapshot, changes: Changes) -> None:
        self._catalog = catalog
        self._base = base
        self._changes = changes

    def commit(self) -> CommitResult:
        plans = joined([self._plan(id) for id in changed_tables(self._changes)])
        if len(plans) > 1 and not self._catalog.capabilities.table_by_table:
            names = ", ".join(plan.table.name for plan in plans)
            raise NotSupportedError(
                f"a transaction can change one Delta table, since each has a log of its own, and this one changes "
                f"{names}: commit after each table, or connect with non_atomic=true to commit them one by one"
            )
        for schema in self._changes.schemas.values():
            if schema is not None:
                directories.create(self._catalog.storage, self._schema_path(schema))
        done = Done()
        result = self._commit_all(plans, done)
        for id, schema in self._changes.schemas.items():
            if schema is None:
                with after(done):
                    directories.remove_empty(self._catalog.storage, self._schema_path(self._base.schemas()[id]))
        return result

    def _commit_all(self, plans: list[Plan], done: Done) -> CommitResult:
        versions: list[int] = []
        attempts, tables = 0, {}
        for plan in plans:
            commit = TableCommit(self._catalog, plan)
            with after(done):
                version = commit.drop() if plan.new is None else commit.commit()
            if version is not None:
                done.add(f"{plan.table.name} (version {version})", plan.table.id)
                versions.append(version)
            attempts = max(attempts, commit.attempts)
            if plan.table.id < 0:
                assert plan.table.uuid is not None
                tables[plan.table.id] = ids.number_of(plan.root, plan.table.uuid)
        newest = versions[-1] if versions else plans[-1].state.version if plans and plans[-1].state else 0
        return CommitResult(newest, max(attempts, 1), tables, is_new=bool(versions))

    def _plan(self, id: int) -> Plan:
        changes = self._changes
        old = self._base.table_of(id) if id >= 0 else None
        new = changes.tables.get(id, old) if id in changes.tables else old
        table = new or old
        assert table is not None
        state = None if old is None else self._base.state(old)
        return Plan(
            root=table.path or self._catalog.data_directory(table, self._schema(table.schema_id)),
            old=old,
            new=new,
            state=state,
            rows=changes.rows.get(id, RowChanges()),
            operations=tuple(done for done in changes.operations if done.table_id == id),
            marks={column: mark for (table_id, column), mark in changes.identities.items() if table_id == id},
            read=id in changes.read,
            files=None if old is None else self._base.files(old),
            message=changes.message,
            author=changes.author,
            extra_info=changes.extra_info,
        )

    def _schema(self, id: int) -> SchemaInfo:
        staged = self._changes.schemas.get(id)
        return staged if staged is not None else self._base.schemas()[id]

    def _schema_path(self, schema: SchemaInfo) -> str:
        return schema.path or f"{self._catalog.storage.root}{schema.name}/"
