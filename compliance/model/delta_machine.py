"""Random programs on a Delta table. The table's versions are the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from compliance.model.clients import Lake, same, without_idle_updates
from compliance.model.one_table import OneTablePrograms
from compliance.model.tables import Table, changes_between
from compliance.model.values import VARCHAR, Column, Plain, Value, canonical

_MAPPED = {"drop_column", "rename_column", "alter_struct"}


@dataclass(frozen=True)
class DeltaSetting:
    vectors: bool = True
    mapping: str = "none"
    feed: bool = False
    partitioned: bool = False

    def __str__(self) -> str:
        words = [("vectors" if self.vectors else "rewriting"), self.mapping]
        return "-".join([*words, *(["feed"] if self.feed else []), *(["partitioned"] if self.partitioned else [])])


class DeltaLake(Lake):
    """Version -1 is the state before the table."""

    def __init__(self, url: str) -> None:
        super().__init__(url, "auto")
        self.history = {-1: {}}

    def check_history(self) -> None:
        assert sorted(self._times()) == sorted(self.history)[1:]
        for number, tables in self.history.items():
            for table in tables.values():
                self.check_version(number, table)

    def check_time(self, number: int) -> None:
        if number >= 0:
            super().check_time(number)

    def check_feed(self, first: int, last: int, table: Table) -> None:
        cursor = self.observer.execute("SELECT * FROM table_changes(?, ?, ?)", [table.name, max(first, 0), last])
        expected = Counter[Value]()
        for number in range(max(first, 0), last + 1):
            old, new = self.history[number - 1].get(table.id), self.history[number].get(table.id)
            if new is not None:
                for _, kind, row in changes_between(old, new, table):
                    expected[(number, None, kind, canonical(row))] += 1
        actual = Counter((row[0], None, row[2], canonical(row[3:])) for row in cursor.fetchall())
        same("the change feed", without_idle_updates(actual), expected)

    def _check_row_ids(self, table: Table) -> None:
        """There are none that stay."""

    def _newest(self) -> int:
        return -1

    def _times(self) -> dict[int, datetime]:
        return dict(self.observer.execute("SELECT snapshot_id, snapshot_time FROM history('t')").fetchall())


class DeltaPrograms(OneTablePrograms):
    setting = DeltaSetting()
    initial_defaults = False

    def left_out(self) -> set[str]:
        unmapped = set() if self.setting.mapping != "none" else _MAPPED
        return {"alter_partitioning"} | unmapped | (set() if self.setting.feed else {"feed"})

    def properties(self) -> Mapping[str, str]:
        return {
            "delta.enableDeletionVectors": str(self.setting.vectors).lower(),
            "delta.columnMapping.mode": self.setting.mapping,
            "delta.enableChangeDataFeed": str(self.setting.feed).lower(),
            "delta.enableTypeWidening": "true",
            "delta.checkpointInterval": "4",
        }

    def new_lake(self, folder: Path) -> Lake:
        return DeltaLake(f"delta:///{folder}")

    def _partition(self, draw: Any, columns: Sequence[Column]) -> tuple[tuple[int, str], ...]:
        """By columns whose values all have a text of their own: the empty one is NULL."""
        keys = [(c.id, "") for c in columns[1:] if isinstance(c.type, Plain) and c.type != VARCHAR]
        if not keys or not self.setting.partitioned:
            return ()
        return tuple(draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2, unique=True)))
