"""The end of a transaction: what it staged becomes a snapshot, and no file that it wrote is left unused."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from lakedbapi.dml.flush import flush
from lakedbapi.engine.base import Engine
from lakedbapi.errors import CommitUnknownError, Error, OperationalError
from lakedbapi.formats.base import CommitResult
from lakedbapi.model.changes import RowChanges
from lakedbapi.transaction import Transaction


def commit(engine: Engine, transaction: Transaction) -> CommitResult:
    """Commit what is staged, which must be something. On failure no file is left, unless the outcome is unknown."""
    assert transaction.staged is not None
    alias, _ = transaction.staged
    try:
        changes = flush(engine, transaction, alias)
    except Exception:
        discard(transaction, transaction.written)
        raise
    try:
        result = transaction.catalogs[alias].commit(transaction.base(alias), changes)
    except CommitUnknownError:
        raise
    except Exception as error:  # After an interrupt in the middle nobody knows whether the files are needed: they stay.
        committed = error.committed if isinstance(error, Error) else ()
        discard(transaction, transaction.written - _files(changes.rows[id] for id in committed if id in changes.rows))
        raise
    transaction.note(alias, result)
    discard(transaction, transaction.written - _files(changes.rows.values()))
    return result


def _files(changes: Iterable[RowChanges]) -> set[str]:
    """The paths of the files that a commit of `changes` names."""
    return {file.path for rows in changes for file in (*(staged.file for staged in rows.files), *rows.change_files)}


def discard(transaction: Transaction, paths: set[str]) -> None:
    """Remove data files that no commit will ever name.

    What cannot be removed stays for the removal of orphan files: it must not hide how the transaction ended.
    """
    if paths and (alias := next(iter(transaction.catalogs), None)) is not None:
        staged = transaction.staged
        with suppress(OperationalError):
            transaction.catalogs[staged[0] if staged else alias].discard(sorted(paths))
        transaction.written -= paths
