"""Commits: a transaction's changes of a table become the next version of its log."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import numpy as np

from lakedbapi.errors import (
    CommitUnknownError,
    ConflictError,
    Error,
    OperationalError,
    ProgrammingError,
)
from lakedbapi.formats.delta import housekeeping
from lakedbapi.formats.delta.attempt import Attempt
from lakedbapi.formats.delta.commits import Actions, parse_commits
from lakedbapi.formats.delta.conflicts import check_commit, check_new_files
from lakedbapi.formats.delta.directories import check_free, remove_table, withdraw
from lakedbapi.formats.delta.log import commit_path
from lakedbapi.formats.delta.plan import Plan
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.writer_features import check_writable
from lakedbapi.storage.exclusive import may_arrive

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog

ATTEMPTS = 200
"""How often a commit is tried on the then newest version."""
_WAIT, _WAIT_MAX = 0.002, 0.2
"""Seconds between attempts; they grow."""


class TableCommit:
    """The commit of one plan."""

    def __init__(self, catalog: DeltaCatalog, plan: Plan) -> None:
        self._catalog = catalog
        self._plan = plan
        self._log = catalog.table(plan.root)
        self._storage = catalog.storage
        self._transaction_id = str(uuid.uuid4())
        self._since: dict[int, Actions] = {}
        """What others committed since the snapshot, by version."""
        self.attempts = 0

    def commit(self) -> int | None:
        """The new version; None when there was nothing to commit.

        ConflictError, with nothing changed, when what others committed does not go together with it.
        """
        head = self._plan.state
        if head is None:
            self._check_place()
        else:
            check_writable(head.protocol, self._plan.table.name)
        random = np.random.default_rng()
        for attempt in range(ATTEMPTS):
            self.attempts = attempt + 1
            if head is not None:
                head = self._rebased(head)
            version = self._try(head)
            if version is None or version >= 0:
                return version
            if head is None:
                raise self._created_meanwhile()
            time.sleep(min(_WAIT * (attempt + 1), _WAIT_MAX) * random.random())
        raise ConflictError(
            f"table {self._plan.table.name}: other transactions were faster {ATTEMPTS} times; roll back and retry"
        )

    def _check_place(self) -> None:
        """A new table needs a directory of its own."""
        if self._storage.exists(commit_path(self._plan.root, 0)):
            raise self._created_meanwhile()
        check_free(self._storage, self._plan.root, {entry.file.path for entry in self._plan.rows.files})

    def _created_meanwhile(self) -> ConflictError:
        return ConflictError(
            f"table {self._plan.table.name} was created by another transaction since this one began; roll back and "
            "retry"
        )

    def drop(self) -> int:
        """Remove the table; the version that it had. ConflictError when it changed since the snapshot."""
        plan = self._plan
        assert plan.state is not None
        check_writable(plan.state.protocol, plan.table.name)
        newest = self._newest()
        if newest.metadata.id != plan.state.metadata.id or newest.version != plan.state.version:
            raise ConflictError(
                f"table {plan.table.name} was changed by another transaction since this one began; roll back and retry"
            )
        remove_table(self._storage, plan.root)
        self._catalog.forget(plan.root)
        return newest.version

    def _try(self, head: TableState | None) -> int | None:
        """The version that was committed on `head`; None when there is nothing to commit, -1 when another one has the
        place."""
        attempt = Attempt(self._catalog, self._plan, head, self._transaction_id)
        try:
            content = attempt.content()
        except BaseException:
            self._storage.delete(attempt.written)
            raise
        if content is None:
            return None
        try:
            committed = self._put(attempt.version, content)
        except CommitUnknownError:
            raise
        except Error:
            self._storage.delete(attempt.written)
            if head is None:
                withdraw(self._storage, self._plan.root)
            raise
        except BaseException as error:
            raise CommitUnknownError(
                f"table {self._plan.table.name}: the commit was interrupted, so that nobody can tell whether it became "
                f"version {attempt.version}; its files are kept"
            ) from error
        if not committed:
            self._storage.delete(attempt.written)
            return -1
        if head is not None:
            housekeeping.follow(self._log, head, attempt.version, content)
        housekeeping.after_commit(self._catalog, self._log, attempt.version, attempt.configuration)
        return attempt.version

    def _put(self, version: int, content: bytes) -> bool:
        """Whether the commit is there now; False when another one is.

        An answer can get lost, and a store's client try again by itself: then the log tells whose commit it is.
        """
        path = commit_path(self._plan.root, version)
        try:
            self._storage.put_if_absent(path, content)
        except FileExistsError:
            return self._is_ours(version)
        except OperationalError as error:
            try:
                if self._storage.exists(path):
                    return self._is_ours(version)
            except OperationalError:
                raise self._unknown(version, error) from error
            if may_arrive(error.__cause__):
                raise self._unknown(version, error) from error
            raise
        return True

    def _unknown(self, version: int, error: OperationalError) -> CommitUnknownError:
        return CommitUnknownError(
            f"table {self._plan.table.name}: the store did not answer, so that nobody can tell whether version "
            f"{version} was committed: {error}"
        )

    def _is_ours(self, version: int) -> bool:
        path = commit_path(self._plan.root, version)
        info = parse_commits([(version, path, self._storage.read_bytes(path))]).infos.get(version, {})
        return info.get("txnId") == self._transaction_id

    def _rebased(self, head: TableState) -> TableState:
        """The newest state, after a check of what others committed since `head`."""
        newest = self._newest()
        if newest.metadata.id != head.metadata.id or newest.version < head.version:
            raise self._dropped_meanwhile()
        if newest.version > head.version:
            since = range(head.version + 1, newest.version + 1)
            for version, actions in self._log.actions(since).items():
                check_commit(self._plan, version, actions)
                self._since[version] = actions
            check_new_files(self._catalog, self._plan, newest, self._since)
        return newest

    def _newest(self) -> TableState:
        try:
            return self._log.latest()
        except ProgrammingError as error:
            raise self._dropped_meanwhile() from error

    def _dropped_meanwhile(self) -> ConflictError:
        return ConflictError(
            f"table {self._plan.table.name} was dropped by another transaction since this one began; roll back and "
            "retry"
        )
