"""Branches and tags of Iceberg tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef

from lakedbapi.errors import ConflictError, NotSupportedError, ProgrammingError
from lakedbapi.formats.iceberg.failures import reported
from lakedbapi.formats.iceberg.requests import moved_ref, set_ref, updates
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.travel import lineage, snapshot_of
from lakedbapi.formats.refs import Refs
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.refs import BRANCH, NewRef

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.catalog import IcebergCatalog

_ATTEMPTS = 100
T = TypeVar("T")
Decided = tuple[str, "tuple[Any, ...]", T]
"""The name that changes, the updates that change it, and what is told then."""


class IcebergRefs(Refs):
    def __init__(self, catalog: IcebergCatalog) -> None:
        self._catalog = catalog

    def put(self, table: TableInfo, ref: NewRef) -> None:
        def decide(version: TableVersion) -> Decided[None]:
            found = _existing(version, ref.kind, ref.name)
            if found is not None and ref.if_not_exists:
                return ref.name, (), None
            _check_put(version, ref, found)
            snapshot = ref.snapshot if ref.snapshot is not None or found is None else found.snapshot_id
            if snapshot is None:
                snapshot = version.snapshot_id
            snapshot_of(version.metadata, version.name, snapshot)
            return ref.name, (set_ref(ref.name, ref.kind, snapshot, ref.retention),), None

        self._commit(table, f"{ref.kind} {ref.name}", decide)

    def drop(self, table: TableInfo, kind: str, name: str, *, if_exists: bool) -> None:
        def decide(version: TableVersion) -> Decided[None]:
            if name == MAIN_BRANCH:
                raise ProgrammingError(
                    f"table {version.name}: the branch main is the table itself: DROP TABLE drops it"
                )
            if _existing(version, kind, name) is not None:
                return name, (updates.RemoveSnapshotRefUpdate(ref_name=name),), None
            if if_exists:
                return name, (), None
            raise ProgrammingError(f"table {version.name} has no {kind} {name!r}; it has: {_names(version.metadata)}")

        self._commit(table, f"{kind} {name}", decide)

    def fast_forward(self, table: TableInfo, branch: str, to: str) -> tuple[int | None, int]:
        def decide(version: TableVersion) -> Decided[tuple[int | None, int]]:
            metadata, goal = version.metadata, version.metadata.refs.get(to)
            if goal is None:
                raise ProgrammingError(f"table {version.name} has no branch or tag {to!r}; it has: {_names(metadata)}")
            found = _existing(version, BRANCH, branch)
            if found is None:
                return branch, (moved_ref(branch, None, goal.snapshot_id),), (None, goal.snapshot_id)
            if found.snapshot_id not in {each.snapshot_id for each in lineage(metadata, goal.snapshot_id)}:
                raise ProgrammingError(
                    f"table {version.name}: branch {branch!r} has snapshots that {to!r} was not made of, so it cannot "
                    f"be fast-forwarded: copy the rows, or REPLACE BRANCH {branch} AS OF VERSION {goal.snapshot_id} to "
                    "give its own snapshots up"
                )
            change = () if found.snapshot_id == goal.snapshot_id else (moved_ref(branch, found, goal.snapshot_id),)
            return branch, change, (found.snapshot_id, goal.snapshot_id)

        return self._commit(table, f"fast-forward of {branch}", decide)

    def _commit(self, table: TableInfo, what: str, decide: Callable[[TableVersion], Decided[T]]) -> T:
        """Commit what is decided on the newest state of the table; anew when others were faster."""
        source, namespace = self._catalog.source, self._catalog.named(table.schema_id)
        assert isinstance(source, CatalogSource)
        for _ in range(_ATTEMPTS):
            version = self._catalog.load_whole(namespace, table.name)
            if version is None:
                raise ConflictError(f"table {table.name} was dropped by another transaction")
            _check_format(version)
            name, changes, told = decide(version)
            if not changes:
                return told
            before = version.metadata.refs.get(name)
            requirements = (
                updates.AssertTableUUID(uuid=version.metadata.table_uuid),
                updates.AssertRefSnapshotId(ref=name, snapshot_id=None if before is None else before.snapshot_id),
            )
            with reported(f"table {version.name}: {what}"):
                try:
                    source.commit((*namespace, table.name), requirements, changes, before=version)
                except CommitFailedException:
                    continue
            return told
        raise ConflictError(f"table {table.name}: other transactions were faster {_ATTEMPTS} times; retry")


def _check_format(version: TableVersion) -> None:
    if version.metadata.format_version < 2:
        raise NotSupportedError(
            f"table {version.name} has format version 1, which knows no branches and tags: ALTER TABLE … SET "
            "('format-version' = '2') first"
        )


def _existing(version: TableVersion, kind: str, name: str) -> SnapshotRef | None:
    """What has the name; ProgrammingError when it is of the other kind."""
    found = version.metadata.refs.get(name)
    if found is not None and found.snapshot_ref_type != kind:
        raise ProgrammingError(f"table {version.name}: {name!r} is a {found.snapshot_ref_type}, not a {kind}")
    return found


def _check_put(version: TableVersion, ref: NewRef, found: SnapshotRef | None) -> None:
    what = f"table {version.name}: {ref.kind} {ref.name!r}"
    if found is not None and not ref.replace:
        raise ProgrammingError(
            f"{what} exists already: CREATE OR REPLACE {ref.kind.upper()} moves it, IF NOT EXISTS leaves it alone"
        )
    if found is None and not ref.create:
        raise ProgrammingError(f"{what} does not exist; there are: {_names(version.metadata)}")
    if version.snapshot_id < 0 and ref.snapshot is None:
        raise ProgrammingError(f"{what} needs a snapshot, and the table has none yet: insert rows first")
    if ref.name == MAIN_BRANCH and ref.retention.max_age_ms is not None:
        raise ProgrammingError(f"{what} is the table itself and never expires: leave RETAIN out")


def _names(metadata: TableMetadata) -> str:
    return ", ".join(sorted(metadata.refs)) or "none"
