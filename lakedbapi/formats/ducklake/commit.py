"""The commit: staged changes become the next snapshot in one catalog transaction.

The write lock is taken first, then the newest snapshot is read, conflicts are checked and all rows are written. Against
writers that know no such lock the primary key of the snapshot table decides; whoever loses tries again.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sqlalchemy import exc
from sqlalchemy.engine import Connection

from lakedbapi.errors import CommitUnknownError, Error, OperationalError, ProgrammingError
from lakedbapi.formats.base import CommitResult, Snapshot
from lakedbapi.formats.ducklake import conflicts, identity
from lakedbapi.formats.ducklake.attempt import Attempt, newest_snapshot
from lakedbapi.formats.ducklake.backend import Failure
from lakedbapi.formats.ducklake.ddl import Definitions
from lakedbapi.formats.ducklake.live_deletes import DeleteFiles
from lakedbapi.formats.ducklake.rows import RowWriter, Target
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Changes, RowChanges

if TYPE_CHECKING:
    from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog

_PATIENCE = 60.0
"""Seconds that lost races are tried again for."""
_FIRST_WAIT, _LONGEST_WAIT = 0.02, 1.0
"""Seconds between tries."""


class SnapshotCommit(ABC):
    """The making of one new snapshot, whatever it holds: tried until it is committed or cannot be."""

    def __init__(self, catalog: DuckLakeCatalog, base: Snapshot, changes: Changes) -> None:
        self._catalog = catalog
        self._backend = catalog.backend
        self._base = base
        self._changes = changes
        self._delete_files = DeleteFiles(catalog.storage)
        self._attempts = 0
        self._maybe_committed: set[str] = set()
        """Delete files of the attempt that is being committed."""

    @abstractmethod
    def _write_ahead(self) -> None:
        """Write files outside of the lock."""

    @abstractmethod
    def _write_content(self, attempt: Attempt) -> None:
        """Check for conflicts, then write the rows of the new snapshot but its own."""

    def _commit(self) -> CommitResult:
        """Raises ConflictError with nothing changed; CommitUnknownError when the connection broke and stays broken."""
        try:
            self._write_ahead()
            attempt = self._succeed()
        except CommitUnknownError:
            raise
        except Error:
            self._remove_all_but(set())
            raise
        except BaseException:
            self._remove_all_but(self._maybe_committed)
            raise
        self._remove_all_but(attempt.used_files)
        return CommitResult(attempt.result, self._attempts, attempt.table_ids, attempt.makes_snapshot)

    def _remove_all_but(self, kept: set[str]) -> None:
        """Remove delete files. One that cannot be removed is an orphan that no reader sees: not worth an error."""
        with suppress(OperationalError):
            self._catalog.storage.delete(sorted(self._delete_files.paths - kept))

    def _succeed(self) -> Attempt:
        """Try until an attempt is committed; lost races are tried again, conflicts of the content are not."""
        deadline, wait = time.monotonic() + _PATIENCE, _FIRST_WAIT
        while True:
            self._attempts += 1
            try:
                return self._try()
            except _NotCommitted:
                pass
            except CommitUnknownError:
                raise
            except OperationalError as error:
                if not self._may_succeed_later(error) or time.monotonic() > deadline:
                    raise
            time.sleep(wait * random.uniform(0.5, 1))
            wait = min(wait * 1.5, _LONGEST_WAIT)

    def _may_succeed_later(self, error: OperationalError) -> bool:
        """Whether the catalog's database failed for a moment, with nothing committed."""
        cause = error.__cause__
        passing = (Failure.CONFLICT, Failure.LOST)
        return isinstance(cause, exc.SQLAlchemyError) and self._backend.classify(cause) in passing

    def _try(self) -> Attempt:
        attempt: Attempt | None = None
        try:
            with self._backend.write() as connection:
                attempt = self._write(connection)
                self._maybe_committed = attempt.used_files
        except CommitUnknownError as error:
            assert attempt is not None
            self._look_for(attempt, error)
        except Exception:
            raise
        except BaseException as error:
            if attempt is None:
                raise
            raise CommitUnknownError(
                f"the commit of snapshot {attempt.snapshot_id} was interrupted, so it is unknown whether it took "
                "effect; its files were kept"
            ) from error
        return attempt

    def _write(self, connection: Connection) -> Attempt:
        """Write all rows of the new snapshot."""
        previous = newest_snapshot(connection, self._backend.tables)
        now = max(datetime.now(timezone.utc), previous.time)
        attempt = Attempt(self._backend, connection, previous, now, self._catalog.is_encrypted)
        self._write_content(attempt)
        if attempt.makes_snapshot:
            self._snapshot_rows(attempt)
        attempt.flush()
        return attempt

    def _snapshot_rows(self, attempt: Attempt) -> None:
        attempt.add(
            attempt.tables.snapshot,
            snapshot_id=attempt.snapshot_id,
            snapshot_time=attempt.time,
            schema_version=attempt.schema_version,
            next_catalog_id=attempt.ids.next_catalog_id,
            next_file_id=attempt.ids.next_file_id,
        )
        attempt.add(
            attempt.tables.snapshot_changes,
            snapshot_id=attempt.snapshot_id,
            changes_made=str(attempt.made),
            author=self._changes.author,
            commit_message=self._changes.message,
            commit_extra_info=self._changes.extra_info,
        )

    def _look_for(self, attempt: Attempt, error: CommitUnknownError) -> None:
        """Whether the snapshot of `attempt` was committed before the connection broke. Raises if not."""
        try:
            # The lock makes sure that the server has ended the broken transaction.
            with self._backend.write() as connection:
                found = attempt.is_committed(connection)
                newest = newest_snapshot(connection, self._backend.tables)
        except Error as reason:
            raise CommitUnknownError(
                f"{error}; the catalog could not be asked ({reason}). The files of this commit were kept: "
                "they belong to the lake if it took effect, else they are orphans"
            ) from error
        if found:
            return
        if newest.id > attempt.snapshot_id:
            known = attempt.snapshot_id
            raise CommitUnknownError(
                f"{error}; snapshot {known}, which it would be, is not in the catalog or not ours any more. "
                "The files of this commit were kept"
            ) from error
        raise _NotCommitted from error


class Committer(SnapshotCommit):
    """Makes `changes`, which were made on `base`, the next snapshot."""

    def commit(self) -> CommitResult:
        """Raises ConflictError with nothing changed; CommitUnknownError when the connection broke and stays broken."""
        if self._changes.empty:
            return CommitResult(self._base.id, is_new=False)
        self._check_allowed()
        return self._commit()

    def _check_allowed(self) -> None:
        if self._catalog.option("require_commit_message") == "true" and not self._changes.message:
            raise ProgrammingError(
                "this lake has require_commit_message set, and the transaction has no commit message; set one first"
            )

    def _write_ahead(self) -> None:
        """Write delete files outside of the lock, for the snapshot that this commit most probably becomes."""
        targets = [(self._target(id, self._base.tables().get(id)), rows) for id, rows in self._row_changes()]
        targets = [(target, rows) for target, rows in targets if rows.deleted and not target.inlines_deletes(rows)]
        if not targets:
            return
        with self._backend.read() as connection:
            snapshot = newest_snapshot(connection, self._backend.tables).id + 1
            live = [target.live_deletes(connection, sorted(rows.deleted)) for target, rows in targets]
        writes = [
            (target.delete_place, path, now.files.get(file_id), rows.deleted[file_id], snapshot)
            for (target, rows), now in zip(targets, live, strict=True)
            for file_id, path in target.data_file_paths(rows.deleted).items()
        ]
        self._delete_files.write_all(writes)

    def _write_content(self, attempt: Attempt) -> None:
        conflicts.check(attempt, self._base, self._changes)
        definitions = Definitions(attempt, self._catalog, self._base, self._changes)
        definitions.write()
        for id, rows in self._row_changes():
            target = self._target(id, definitions.tables.get(id, self._base.tables().get(id)))
            RowWriter(attempt, target, rows, self._delete_files).write()
        identity.write_marks(attempt, self._changes.identities)

    def _row_changes(self) -> Iterator[tuple[int, RowChanges]]:
        """By table id, without those of tables that the same transaction dropped."""
        for id, rows in self._changes.rows.items():
            if not rows.empty and self._changes.tables.get(id, id) is not None:
                yield id, rows

    def _target(self, id: int, table: TableInfo | None) -> Target:
        table = table or self._changes.tables[id]
        assert table is not None
        return Target(self._catalog, self._base, self._base.tables().get(id), table)


class _NotCommitted(Exception):
    """The connection broke during a commit, and the commit did not take effect."""
