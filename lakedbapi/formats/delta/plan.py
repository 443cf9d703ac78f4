"""`Plan`: what a transaction does to one table, as it was at the transaction's snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.delta.commit_info import Note
from lakedbapi.formats.delta.state import TableState
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Changes, Operation, RowChanges


@dataclass(frozen=True)
class Plan:
    """`old` and `state` are the table at the snapshot, None for a new one; `new` is the table afterwards, None for a
    dropped one. `root` ends in `/`."""

    root: str
    old: TableInfo | None
    new: TableInfo | None
    state: TableState | None
    rows: RowChanges = field(default_factory=RowChanges)
    operations: tuple[Operation, ...] = ()
    marks: Mapping[str, int] = field(default_factory=dict)
    """Highest values that identity columns were given, by column."""
    read: bool = False
    """Whether a DELETE, UPDATE or MERGE chose rows of it."""
    files: pa.Table | None = None
    """Of the snapshot, columns `model.scan.DATA_FILES`; row numbers are those of `state.files`."""

    message: str | None = None
    note: Note | None = None
    """Of a commit that does nothing but tell."""

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

    @property
    def moves_rows(self) -> bool:
        """Whether rows only get into other files, or stay where they are."""
        return self.note is not None or (
            bool(self.operations) and all(operation.moves_rows for operation in self.operations)
        )

    @property
    def is_blind_append(self) -> bool:
        """Whether nothing of the table was read."""
        changed = self.rows.deleted or self.rows.removed
        return not (self.read or self.reads_table or changed or self.is_replaced)

    def record_counts(self) -> npt.NDArray[np.int64]:
        assert self.files is not None
        counts: npt.NDArray[np.int64] = self.files.column("record_count").to_numpy()
        return counts


def table_ids(changes: Changes) -> list[int]:
    """The tables that `changes` change, in the order in which they were first."""
    touched = [*changes.tables, *(id for id, rows in changes.rows.items() if not rows.empty)]
    return list(dict.fromkeys([*touched, *(id for id, _ in changes.identities)]))


def joined(plans: Sequence[Plan]) -> list[Plan]:
    """`plans` with the drop of a table and the creation of another one in its directory as one."""
    found: dict[str, Plan] = {}
    for plan in plans:
        other = found.get(plan.root)
        if other is None:
            found[plan.root] = plan
            continue
        dropped, created = (other, plan) if other.new is None else (plan, other)
        if dropped.new is not None or created.old is not None:
            raise NotSupportedError(f"two Delta tables cannot have the directory {plan.root}: give one another name")
        found[plan.root] = replace(created, old=dropped.old, state=dropped.state, files=dropped.files)
    return list(found.values())
