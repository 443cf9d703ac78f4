"""Programs of random steps by two connections, run by a lake and by the model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from compliance.model.clients import Client, Lake
from compliance.model.merge_steps import MergeSteps
from compliance.model.program import Data, hold_rows
from compliance.model.table_steps import TableSteps
from compliance.model.transaction_steps import TransactionSteps

WEIGHTS = {
    "insert": 4,
    "insert_many": 2,
    "insert_range": 1,
    "insert_select": 2,
    "upsert": 3,
    "update": 6,
    "update_from": 3,
    "update_many": 2,
    "delete": 4,
    "delete_using": 2,
    "delete_many": 1,
    "truncate": 1,
    "merge": 5,
    "create_table": 1,
    "create_table_as": 1,
    "drop_table": 1,
    "rename_table": 1,
    "add_column": 2,
    "drop_column": 1,
    "rename_column": 1,
    "widen": 1,
    "alter_struct": 2,
    "alter_column": 2,
    "alter_partitioning": 1,
    "alter_write_mode": 1,
    "race": 6,
    "commit": 10,
    "commit_both": 2,
    "roll_back": 2,
    "savepoint": 4,
    "fail": 2,
    "query": 5,
    "travel": 1,
    "feed": 2,
}
"""How often each kind of step is taken."""
DML = ["insert", "insert_many", "upsert", "update", "update_from", "update_many", "delete", "delete_using", "merge"]


class RandomPrograms(MergeSteps, TableSteps, TransactionSteps, RuleBasedStateMachine):  # type: ignore[misc]
    """Whoever inherits makes a lake first, and calls `begin`."""

    client: ClassVar[type[Client]] = Client

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        """What is to be closed behind the program."""
        self._sound = False
        """Nothing is checked at the end of a program that failed."""
        weights = self.weights()
        self.steps = [kind for kind, weight in weights.items() for _ in range(weight)]

    def weights(self) -> Mapping[str, int]:
        """Of the steps that there are."""
        return WEIGHTS

    def begin(self, data: Data, lake: Lake) -> None:
        self.closing.callback(lake.close)
        self.closing.callback(hold_rows, in_memory=True)
        hold_rows(in_memory=data.draw(st.booleans()))
        self.lake = lake
        self.clients = [self.client(lake), self.client(lake, autocommit=data.draw(st.integers(0, 3)) == 0)]
        for client in self.clients:
            self.closing.callback(client.close)
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
        getattr(self, data.draw(st.sampled_from(self.steps)))(data, client)
        self._sound = True

    def race(self, data: Data, client: Client) -> None:
        """Both change something and commit."""
        for other in data.draw(st.permutations(self.clients)):
            getattr(self, data.draw(st.sampled_from(DML)))(data, other)
        self.commit_both(data, client)

    def teardown(self) -> None:
        with self.closing:
            if self._sound:
                for client in self.clients:
                    client.rollback()
                self.lake.check_history()
                self.check_end()

    def check_end(self) -> None:
        """What else must hold at the end of a program."""
        raise NotImplementedError


def run_programs(
    programs: type[RandomPrograms],
    setting: object,
    *,
    count: int,
    steps: int = 30,
    first: int = 0,
    phases: tuple[Phase, ...] = (Phase.generate,),
) -> None:
    """Run `count` programs of up to `steps` steps, which depend on nothing but the number `first`."""
    run_state_machine_as_test(
        seed(first)(type(programs.__name__, (programs,), {"setting": setting})),
        settings=settings(
            max_examples=count,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
