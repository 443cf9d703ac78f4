"""Commits: a transaction's changes of a table become its next snapshot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table.refs import MAIN_BRANCH

from lakedbapi.errors import CommitUnknownError, ConflictError, Error, ProgrammingError
from lakedbapi.formats.iceberg.attempt import Attempt
from lakedbapi.formats.iceberg.conflicts import check, conflict
from lakedbapi.formats.iceberg.failures import may_be_done, reported
from lakedbapi.formats.iceberg.plan import Plan
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.travel import named_ref
from lakedbapi.storage.filesystem import Storage

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.catalog import IcebergCatalog

ATTEMPTS = 100
"""How often a commit is tried on the then newest snapshot."""
_WAIT, _WAIT_MAX = 0.01, 0.5
"""Seconds between attempts; they grow."""


class TableCommit:
    """The commit of one plan. `location` and `storage` are those of a new table; `attempt` is the last one."""

    def __init__(
        self, catalog: IcebergCatalog, source: CatalogSource, plan: Plan, location: str, storage: Storage
    ) -> None:
        self._catalog = catalog
        self._source = source
        self._plan = plan
        self._location = location
        self._storage = storage if plan.base is None else plan.base.storage
        self._name = plan.table.name if plan.old is None else plan.old.name
        named = None if plan.base is None or plan.base.branch == MAIN_BRANCH else named_ref(self._name)
        self._identifier = (*plan.namespace, self._name if named is None else named[0])
        self.attempts = 0
        self.attempt: Attempt

    def commit(self) -> int | None:
        """The new snapshot; None when there is none, -1 for a table that has no snapshot.

        ConflictError, with nothing changed, when what others committed does not go together with it.
        """
        random = np.random.default_rng()
        for attempt in range(ATTEMPTS):
            self.attempts = attempt + 1
            head = None if self._plan.base is None else self._head()
            done, snapshot = self._try(head)
            if done:
                return snapshot
            if self._plan.base is None:
                raise self._created_meanwhile()
            time.sleep(min(_WAIT * (attempt + 1), _WAIT_MAX) * random.random())
        raise ConflictError(
            f"table {self._plan.name}: other transactions were faster {ATTEMPTS} times; roll back and retry"
        )

    def _head(self) -> TableVersion:
        """The newest snapshot, after a check of what others committed since the plan's."""
        try:
            head = self._catalog.load(self._plan.namespace, self._name, None)
        except ProgrammingError as error:
            raise conflict(self._plan, "dropped the branch") from error
        if head is None:
            raise conflict(self._plan, "dropped the table")
        check(self._catalog, self._plan, head)
        return head

    def _try(self, head: TableVersion | None) -> tuple[bool, int | None]:
        """Whether the commit on `head` is there, and its snapshot."""
        attempt = self.attempt = Attempt(self._plan, head, self._storage, self._location)
        try:
            changes = attempt.changes()
            if changes is None:
                return True, None
            done = self._put(attempt, head, *changes)
        except CommitUnknownError:
            raise
        except BaseException:
            self._storage.delete(attempt.written)
            raise
        if not done:
            self._storage.delete(attempt.written)
            return False, None
        return True, attempt.snapshot_id if attempt.has_snapshot else -1

    def _put(
        self, attempt: Attempt, head: TableVersion | None, requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> bool:
        try:
            self._source.commit(self._identifier, requirements, updates, before=head)
        except NoSuchTableError as error:
            raise conflict(self._plan, "dropped the table") from error
        except Exception as error:
            if self._is_there(attempt, error):
                return True
            if isinstance(error, (CommitFailedException, TableAlreadyExistsError)):
                return False
            with reported(f"table {self._plan.name}: the commit"):
                raise
        except BaseException as error:
            raise self._unknown(attempt, "the commit was interrupted") from error
        return True

    def _is_there(self, attempt: Attempt, error: Exception) -> bool:
        """Whether a commit is there whose answer was lost, or which a client or a gateway repeated, and lost to itself.

        CommitUnknownError when nobody can tell.
        """
        unknown = self._unknown(attempt, f"the catalog did not answer: {error}")
        is_open = may_be_done(error, by_server=not self._source.checks_here)
        try:
            loaded = self._source.load(self._plan.namespace, self._identifier[-1])
        except Error:
            if is_open:
                raise unknown from error
            return False
        snapshots = () if loaded is None else loaded.metadata.snapshots
        if attempt.has_snapshot and any(s.snapshot_id == attempt.snapshot_id for s in snapshots):
            return True
        if is_open:
            raise unknown from error  # It may still be on its way.
        return False

    def _unknown(self, attempt: Attempt, reason: str) -> CommitUnknownError:
        return CommitUnknownError(
            f"table {self._plan.name}: {reason}. So nobody can tell whether snapshot {attempt.snapshot_id} was "
            f"committed: look for it in history('{self._plan.table.name}'); its files are kept"
        )

    def _created_meanwhile(self) -> ConflictError:
        return ConflictError(
            f"table {self._plan.name} was created by another transaction since this one began; roll back and retry"
        )
