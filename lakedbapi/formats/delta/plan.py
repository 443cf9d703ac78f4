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
from lakedbapi.formats.table_by_table import TablePlan


@dataclass(frozen=True, kw_only=True)
class Plan(TablePlan):
    """`state` is that of `old`. `root` ends in `/`."""

    root: str
    state: TableState | None
    marks: Mapping[str, int] = field(default_factory=dict)
    """Highest values that identity columns were given, by column."""
    files: pa.Table | None = None
    """Of the snapshot, columns `model.scan.DATA_FILES`; row numbers are those of `state.files`."""
    note: Note | None = None
    """Of a commit that does nothing but tell."""

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
