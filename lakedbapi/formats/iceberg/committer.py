"""`Committer`: a transaction's changes, table by table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import CommitResult
from lakedbapi.formats.iceberg.commit import TableCommit
from lakedbapi.formats.iceberg.plan import Plan
from lakedbapi.formats.iceberg.snapshot import IcebergSnapshot
from lakedbapi.formats.iceberg.sources import CatalogSource, Namespace
from lakedbapi.formats.iceberg.table import check_whole
from lakedbapi.formats.iceberg.views import ViewPlan, commit_view, joined
from lakedbapi.formats.table_by_table import Done, after, changed_tables
from lakedbapi.model.catalog import TableInfo, ViewInfo
from lakedbapi.model.changes import Changes, RowChanges

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.catalog import IcebergCatalog


class Committer:
    """A commit is atomic in one table: several are refused."""

    def __init__(self, catalog: IcebergCatalog, source: CatalogSource, base: IcebergSnapshot, changes: Changes) -> None:
        self._catalog = catalog
        self._source = source
        self._base = base
        self._changes = changes

    def commit(self) -> CommitResult:
        plans = _joined([self._plan(id) for id in changed_tables(self._changes)])
        views = joined([self._view_plan(id) for id in self._changes.views])
        names = [*(plan.name for plan in plans), *(view.name for view in views)]
        if len(names) > 1 and not self._catalog.capabilities.table_by_table:
            raise NotSupportedError(
                "a transaction can change one Iceberg table or view, since each has snapshots of its own, and this one "
                f"changes {', '.join(names)}: commit after each, or connect with non_atomic=true to commit them one by "
                "one"
            )
        for schema in self._changes.schemas.values():
            if schema is not None:
                self._source.create_namespace(self._catalog.namespace(schema), schema.comment)
        done = Done()
        result = self._commit_all(plans, views, done)
        for id, schema in self._changes.schemas.items():
            if schema is None:
                with after(done):
                    self._source.drop_namespace(self._catalog.named(id))
        return result

    def _commit_all(self, plans: list[Plan], views: list[ViewPlan], done: Done) -> CommitResult:
        """Views come last, which may read new tables."""
        snapshots: list[int] = []
        attempts, tables = 1, {}
        for plan in plans:
            with after(done):
                snapshot, tried = self._commit_one(plan)
            attempts = max(attempts, tried)
            if snapshot is not None:
                done.add(plan.name, plan.table.id)
                snapshots.append(snapshot)
            if plan.table.id < 0:
                uuid = plan.base.metadata.table_uuid if plan.base is not None else plan.table.uuid
                tables[plan.table.id] = self._catalog.number((*plan.namespace, plan.table.name, str(uuid)))
        for view in views:
            with after(done):
                commit_view(self._source, view)
            done.add(view.name)
        newest = snapshots[-1] if snapshots else -1
        return CommitResult(newest, attempts, tables, is_new=any(snapshot >= 0 for snapshot in snapshots))

    def _commit_one(self, plan: Plan) -> tuple[int | None, int]:
        if plan.new is None:
            assert plan.old is not None
            assert plan.base is not None
            check_whole(plan.base, "DROP TABLE")
            self._source.drop_table((*plan.namespace, plan.old.name))
            return -1, 1
        renamed = plan.old is not None and not plan.is_replaced and plan.old.name != plan.new.name
        if plan.base is None:
            self._source.ensure_namespace(plan.namespace)
        location = "" if plan.base is not None else self._catalog.location(plan.namespace, plan.new)
        commit = TableCommit(self._catalog, self._source, plan, location, self._source.storage_at(location))
        snapshot = commit.commit()
        if renamed:
            assert plan.old is not None
            self._source.rename_table((*plan.namespace, plan.old.name), (*plan.namespace, plan.new.name))
            return -1 if snapshot is None else snapshot, commit.attempts
        return snapshot, commit.attempts

    def _plan(self, id: int) -> Plan:
        changes = self._changes
        old = self._base.table_of(id) if id >= 0 else None
        new = changes.tables.get(id, old)
        table = new or old
        assert table is not None
        return Plan(
            namespace=self._namespace(table),
            old=old,
            new=new,
            base=None if old is None else self._base.version_of(old),
            rows=changes.rows.get(id, RowChanges()),
            operations=tuple(done for done in changes.operations if done.table_id == id),
            read=id in changes.read,
            message=changes.message,
            author=changes.author,
            extra_info=changes.extra_info,
        )

    def _view_plan(self, id: int) -> ViewPlan:
        old, base = self._base.view_of(id) if id >= 0 else (None, None)
        new = self._changes.views[id]
        view = new or old
        assert view is not None
        return ViewPlan(self._namespace(view), old, base, new)

    def _namespace(self, table: TableInfo | ViewInfo) -> Namespace:
        staged = self._changes.schemas.get(table.schema_id)
        return self._catalog.named(table.schema_id) if staged is None else self._catalog.namespace(staged)


def _joined(plans: list[Plan]) -> list[Plan]:
    """The drop of a table and the creation of another one of its name are one plan."""
    found: dict[tuple[str, ...], Plan] = {}
    for plan in plans:
        key = (*plan.namespace, plan.table.name)
        other = found.get(key)
        if other is None:
            found[key] = plan
            continue
        dropped, created = (other, plan) if other.new is None else (plan, other)
        found[key] = replace(created, old=dropped.old, base=dropped.base)
    return list(found.values())
