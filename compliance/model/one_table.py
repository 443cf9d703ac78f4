"""Random programs on one table of a format whose tables have versions of their own: the steps of `machine` that it has.

Its commits may meet more conflicts than the model predicts, since they are serializable: where it says that a commit
goes together with others, that one may also fail, but must not go through with another outcome.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from compliance.model.clients import Client, Lake
from compliance.model.machine import DML, WEIGHTS
from compliance.model.merge_steps import MergeSteps
from compliance.model.program import Data, hold_rows
from compliance.model.table_steps import TableSteps
from compliance.model.tables import Tables, Verdict
from compliance.model.transaction_steps import TransactionSteps

OTHER_TABLES = frozenset({"create_table", "create_table_as", "drop_table", "rename_table"})


class SerializableClient(Client):
    def _outcome(self) -> tuple[Verdict, Tables]:
        verdict, merged = super()._outcome()
        alone = self.open.base == self.lake.newest or self._is_idle
        return (verdict if alone or verdict != Verdict.COMMITS else Verdict.EITHER), merged


class OneTablePrograms(MergeSteps, TableSteps, TransactionSteps, RuleBasedStateMachine):  # type: ignore[misc]
    """Statements on one table by two connections."""

    client: ClassVar[type[Client]] = SerializableClient
    more: ClassVar[Mapping[str, int]] = {}
    """Steps that only this format has, and how often each is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._sound = False
        left_out = OTHER_TABLES | self.left_out()
        weights = {**WEIGHTS, **self.more}
        self._steps = [kind for kind, weight in weights.items() if kind not in left_out for _ in range(weight)]
        stated = [f"'{name}' = '{value}'" for name, value in self.properties().items()]
        self.table_options = f" WITH ({', '.join(stated)})"

    def left_out(self) -> set[str]:
        """Steps that tables of this setting do not have."""
        raise NotImplementedError

    def properties(self) -> Mapping[str, str]:
        """Of the table."""
        raise NotImplementedError

    def new_lake(self, folder: Path) -> Lake:
        """In a folder that is there and empty."""
        raise NotImplementedError

    @initialize(source=st.data())
    def set_up(self, source: Any) -> None:
        folder = Path(self._folder.name, "lake")
        folder.mkdir()
        data = Data(source)
        hold_rows(in_memory=data.draw(st.booleans()))
        self.lake = self.new_lake(folder)
        self.clients = [self.client(self.lake), self.client(self.lake, autocommit=data.draw(st.integers(0, 3)) == 0)]
        self.keys = 0
        client = self.clients[0]
        self.create(data, client, "t")
        self.insert_range(data, client)
        client.commit()
        self._sound = True

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
            hold_rows(in_memory=True)
            for client in getattr(self, "clients", ()):
                client.close()
            if hasattr(self, "lake"):
                self.lake.close()
            self._folder.cleanup()

    def _check_history(self) -> None:
        for client in self.clients:
            client.rollback()
        self.lake.check_history()
        if "feed" in self._steps:
            for table in self.lake.history[self.lake.newest].values():
                self.lake.check_feed(0, self.lake.newest, table)
