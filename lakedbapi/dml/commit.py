"""The end of a transaction: what it staged becomes a snapshot, and no file that it wrote is left unused."""

from __future__ import annotations

from lakedbapi.dml.flush import flush
from lakedbapi.engine.base import Engine
from lakedbapi.errors import CommitUnknownError
from lakedbapi.formats.base import CommitResult
from lakedbapi.transaction import Transaction


def commit(engine: Engine, transaction: Transaction) -> CommitResult:
    """Commit what is staged, which must be something. On failure no file is left, unless the outcome is unknown."""
    assert transaction.staged is not None
    alias, _ = transaction.staged
    try:
        changes = flush(engine, transaction, alias)
        result = transaction.catalogs[alias].commit(transaction.base(alias), changes)
    except CommitUnknownError:
        raise
    except Exception:  # After an interrupt in the middle nobody knows whether the files are needed: they stay.
        discard(transaction, transaction.written)
        raise
    used = {file.path for rows in changes.rows.values() for file in (*(s.file for s in rows.files), *rows.change_files)}
    discard(transaction, transaction.written - used)
    return result


def discard(transaction: Transaction, paths: set[str]) -> None:
    """Remove data files that no commit will ever name."""
    if paths and (alias := next(iter(transaction.catalogs), None)) is not None:
        staged = transaction.staged
        transaction.catalogs[staged[0] if staged else alias].discard(sorted(paths))
        transaction.written -= paths
