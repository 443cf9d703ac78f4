"""Transactions of formats in which each table has a log of its own, and commits by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakedbapi.errors import Error, InternalError
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Changes, Operation, RowChanges


@dataclass(frozen=True, kw_only=True)
class TablePlan:
    """What a transaction does to one table.

    `old` is the table at the transaction's snapshot, None for a new one; `new` is the table afterwards, None for a
    dropped one.
    """

    old: TableInfo | None
    new: TableInfo | None
    rows: RowChanges = field(default_factory=RowChanges)
    operations: tuple[Operation, ...] = ()
    read: bool = False
    """Whether a DELETE, UPDATE or MERGE chose rows of it."""
    author: str | None = None
    message: str | None = None
    extra_info: str | None = None

    @property
    def table(self) -> TableInfo:
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def is_replaced(self) -> bool:
        """Whether CREATE OR REPLACE puts a new table in the place of `old`."""
        return self.old is not None and self.new is not None and self.new.id != self.old.id

    @property
    def reads_table(self) -> bool:
        """Whether some statement read the table in a way that no file tells of."""
        return any(operation.reads_table for operation in self.operations)


def changed_tables(changes: Changes) -> list[int]:
    """The ids of the tables that a transaction changes, in the order in which they were first."""
    touched = [*changes.tables, *(id for id, rows in changes.rows.items() if not rows.empty)]
    return list(dict.fromkeys([*touched, *(id for id, _ in changes.identities)]))


@dataclass
class Done:
    """What a transaction has committed so far: the ids of tables, and the words for them."""

    tables: set[int] = field(default_factory=set)
    names: list[str] = field(default_factory=list)

    def add(self, name: str, table: int | None = None) -> None:
        self.names.append(name)
        if table is not None:
            self.tables.add(table)


@contextmanager
def after(done: Done) -> Iterator[None]:
    """Errors tell what was committed before, and stays: to run the transaction again would do that twice."""
    try:
        yield
    except Exception as error:
        if not done.names:
            raise
        told = error if isinstance(error, Error) else InternalError(f"{type(error).__name__}: {error}")
        told.args = (f"{told}; committed before it, and not undone: {', '.join(done.names)}",)
        told.committed, told.retryable = frozenset(done.tables), False
        if told is error:
            raise
        raise told from error
