"""Random programs on a Delta table: the steps of `machine` that Delta has. The table's versions are the history.

Its commits may meet more conflicts than the model predicts, since they are serializable: where it says that a commit
goes together with others, that one may also fail, but must not go through with another outcome.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from compliance.model.clients import Client, Lake, same, without_idle_updates
from compliance.model.machine import DML, WEIGHTS
from compliance.model.merge_steps import MergeSteps
from compliance.model.program import Data
from compliance.model.table_steps import TableSteps
from compliance.model.tables import Table, Tables, Verdict, changes_between
from compliance.model.transaction_steps import TransactionSteps
from compliance.model.values import VARCHAR, Column, Plain, Value, canonical

_OTHER_TABLES = {"create_table", "create_table_as", "drop_table", "rename_table", "alter_partitioning"}
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


class DeltaClient(Client):
    def _outcome(self) -> tuple[Verdict, Tables]:
        verdict, merged = super()._outcome()
        alone = self.open.base == self.lake.newest or self._is_idle
        return (verdict if alone or verdict != Verdict.COMMITS else Verdict.EITHER), merged


class DeltaPrograms(MergeSteps, TableSteps, TransactionSteps, RuleBasedStateMachine):  # type: ignore[misc]
    """Statements on one table by two connections."""

    setting = DeltaSetting()
    initial_defaults = False

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._sound = False
        left_out = _OTHER_TABLES | (set() if self.setting.mapping != "none" else _MAPPED)
        left_out |= set() if self.setting.feed else {"feed"}
        self._steps = [kind for kind, weight in WEIGHTS.items() if kind not in left_out for _ in range(weight)]
        properties = {
            "delta.enableDeletionVectors": str(self.setting.vectors).lower(),
            "delta.columnMapping.mode": self.setting.mapping,
            "delta.enableChangeDataFeed": str(self.setting.feed).lower(),
            "delta.enableTypeWidening": "true",
            "delta.checkpointInterval": "4",
        }
        stated = [f"'{name}' = '{value}'" for name, value in properties.items()]
        self.table_options = f" WITH ({', '.join(stated)})"

    @initialize(source=st.data())
    def set_up(self, source: Any) -> None:
        url = f"delta:///{self._folder.name}/lake"
        Path(self._folder.name, "lake").mkdir()
        data = Data(source)
        self.lake = DeltaLake(url)
        self.clients = [DeltaClient(self.lake), DeltaClient(self.lake, autocommit=data.draw(st.integers(0, 3)) == 0)]
        self.keys = 0
        client = self.clients[0]
        self.create(data, client, "t")
        self.insert_range(data, client)
        client.commit()
        self._sound = True

    def _partition(self, draw: Any, columns: Sequence[Column]) -> tuple[tuple[int, str], ...]:
        """By columns whose values all have a text of their own: the empty one is NULL."""
        keys = [(c.id, "") for c in columns[1:] if isinstance(c.type, Plain) and c.type != VARCHAR]
        if not keys or not self.setting.partitioned:
            return ()
        return tuple(draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2, unique=True)))

    @rule(source=st.data())
    def step(self, source: Any) -> None:
        """By the first connection mostly."""
        self._sound = False
        data = Data(source)
        client = self.clients[data.draw(st.sampled_from([0, 0, 1]))]
        getattr(self, data.draw(st.sampled_from(self._steps)))(data, client)
        self._sound = True

    def race(self, data: Data, client: Client) -> None:
        """Both change something and commit."""
        for other in data.draw(st.permutations(self.clients)):
            getattr(self, data.draw(st.sampled_from(DML)))(data, other)
        self.commit_both(data, client)

    def teardown(self) -> None:
        try:
            if self._sound:
                self._check_history()
        finally:
            for client in getattr(self, "clients", ()):
                client.close()
            if hasattr(self, "lake"):
                self.lake.close()
            self._folder.cleanup()

    def _check_history(self) -> None:
        for client in self.clients:
            client.rollback()
        self.lake.check_history()
        if self.setting.feed:
            for table in self.lake.history[self.lake.newest].values():
                self.lake.check_feed(0, self.lake.newest, table)
