"""What a maintenance call works on, and how its work is repeated when others interfere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from lakedbapi.context import Context
from lakedbapi.errors import CommitUnknownError, ConflictError, NotSupportedError, OperationalError, ProgrammingError
from lakedbapi.formats.base import CommitResult, Snapshot
from lakedbapi.formats.maintenance import Maintenance
from lakedbapi.model.catalog import SchemaInfo, TableInfo
from lakedbapi.model.progress import Progress
from lakedbapi.query.names import resolve_table
from lakedbapi.sql.statements import Name
from lakedbapi.transaction import CatalogView, Transaction

T = TypeVar("T")

_TRIES = 100
_WAIT, _LONGEST_WAIT = 0.01, 0.5
"""Seconds between tries."""


@dataclass(frozen=True)
class Subject:
    """One table, pinned at the newest snapshot of its catalog."""

    context: Context
    view: CatalogView
    schema: SchemaInfo
    table: TableInfo

    @property
    def base(self) -> Snapshot:
        return self.view.snapshot

    @property
    def maintenance(self) -> Maintenance:
        return self.view.catalog.maintenance

    def note(self, result: CommitResult) -> None:
        """Remember what a commit made."""
        self.context.transaction.note(self.view.alias, result)

    def steps(self, task: str, total: int, unit: str) -> Callable[[int], None]:
        """To be called with the number of units that a step did; the beginning is reported at once."""
        done = 0

        def report(count: int) -> None:
            nonlocal done
            done += count
            self.context.report(Progress(task, done, total, unit))

        report(0)
        return report


def check_alone(context: Context, verb: str) -> None:
    """Maintenance commits by itself: ProgrammingError where that cannot be."""
    transaction = context.transaction
    if transaction.read_only or context.as_of is not None:
        raise ProgrammingError(f"{verb}: this connection only reads; connect without read_only and as_of")
    if transaction.staged is not None:
        raise ProgrammingError(
            f"{verb} commits by itself, so it cannot run inside a transaction with changes: commit or roll back first"
        )


def maintenance_of(context: Context, alias: str, verb: str) -> Maintenance:
    """NotSupportedError when the catalog's format has none."""
    context.transaction.check_writable(alias)
    catalog = context.transaction.catalogs[alias]
    if not catalog.capabilities.maintenance:
        raise NotSupportedError(
            f"{verb}: tables of format {catalog.format!r} have no maintenance here; use the tools of their writer, "
            "such as Spark"
        )
    return catalog.maintenance


def tables(context: Context, alias: str, name: Name | None, schema: str | None = None) -> Sequence[int]:
    """Ids of the named table, or of all tables (of `schema`) whose option `auto_compact` is not false."""
    if name is not None:
        return [resolve_table(context, name).table.id]
    view = context.transaction.view(alias)
    wanted = None if schema is None else view.schema(schema)
    if schema is not None and wanted is None:
        raise ProgrammingError(f"schema {schema!r} does not exist in catalog {alias!r}")
    found = [table for table in view.tables.values() if wanted is None or table.schema_id == wanted.id]
    return sorted(
        table.id for table in found if (view.catalog.option("auto_compact", table) or "true").casefold() != "false"
    )


def settle(context: Context, alias: str, table_id: int, work: Callable[[Subject], T | None]) -> T | None:
    """Do `work` on the newest state of the table; again when another transaction touched the same rows meanwhile.

    None if the table is dropped, or there was nothing to do.
    """
    for attempt in range(_TRIES):
        transaction = Transaction(context.transaction.catalogs, committed=context.transaction.committed)
        view = transaction.view(alias)
        table = view.table_of(table_id)
        if table is None:
            return None
        try:
            return work(Subject(replace(context, transaction=transaction), view, view.schemas[table.schema_id], table))
        except ConflictError:
            if attempt == _TRIES - 1:
                raise
        time.sleep(min(_WAIT * (attempt + 1), _LONGEST_WAIT))
    raise AssertionError("unreachable")


@contextmanager
def removing(subject: Subject, paths: list[str]) -> Iterator[None]:
    """Remove the files that were written (`paths` grows meanwhile) when the commit that needs them fails."""
    try:
        yield
    except CommitUnknownError:
        raise
    except BaseException:
        with suppress(OperationalError):  # Orphans, which no reader sees, are not worth to hide the error.
            subject.view.catalog.storage.delete(paths)
        raise
