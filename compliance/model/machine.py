"""Random programs, run by a lake and by the model."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import lakedbapi
from compliance.model.clients import Client, Lake
from compliance.model.merge_steps import MergeSteps
from compliance.model.program import Data, hold_rows
from compliance.model.table_steps import TableSteps
from compliance.model.transaction_steps import TransactionSteps
from compliance.peers.lakes import Place, on_postgresql, on_sqlite


@dataclass(frozen=True)
class Setting:
    """Where a lake is and how it keeps small changes."""

    catalog: str = "sqlite"
    inlining: int = 10
    mode: str = "auto"


def on_duckdb(folder: Path) -> Place:
    return Place("duckdb", f"ducklake+duckdb:///{folder}/lake.ducklake?data_path={folder}/data/", "", f"{folder}/data/")


@contextmanager
def place(catalog: str) -> Iterator[Place]:
    """A new place for a lake."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if catalog == "postgresql":
            with on_postgresql(folder) as found:
                yield found
        else:
            yield {"sqlite": on_sqlite, "duckdb": on_duckdb}[catalog](folder)


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
STEPS = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]


class Programs(MergeSteps, TableSteps, TransactionSteps, RuleBasedStateMachine):  # type: ignore[misc]
    """Statements on up to three tables by two connections."""

    setting = Setting()

    def __init__(self) -> None:
        super().__init__()
        self._place: AbstractContextManager[Place] | None = None
        self._sound = False
        """Nothing is checked at the end of a program that failed."""

    @initialize(source=st.data(), file_size=st.sampled_from([None, "1KB", "20KB"]))
    def set_up(self, source: Any, file_size: str | None) -> None:
        self._place = place(self.setting.catalog)
        self._at = self._place.__enter__()
        url = self._at.url
        with lakedbapi.connect(url, autocommit=True) as connection:
            connection.execute(f"CALL set_option('lake', 'data_inlining_row_limit', '{self.setting.inlining}')")
            connection.execute(f"CALL set_option('lake', 'lake.write_mode', '{self.setting.mode}')")
            if file_size is not None:
                connection.execute(f"CALL set_option('lake', 'target_file_size', '{file_size}')")
        self.lake = Lake(url, self.setting.mode)
        data = Data(source)
        hold_rows(in_memory=data.draw(st.booleans()))
        self.clients = [Client(self.lake), Client(self.lake, autocommit=data.draw(st.integers(0, 3)) == 0)]
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
        getattr(self, data.draw(st.sampled_from(STEPS)))(data, client)
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
            if self._place is not None:
                self._place.__exit__(None, None, None)

    def _check_history(self) -> None:
        for client in self.clients:
            client.rollback()
        lake = self.lake
        lake.check_history()
        if self.setting.catalog == "sqlite":
            self._check_files()
        first, last = min(lake.history), lake.newest
        for table in lake.history[last].values():
            lake.check_feed(first, last, table)
            lake.check_feed(last, last, table)

    def _check_files(self) -> None:
        """There are no files but those that some snapshot names, or that wait for their removal."""
        with closing(sqlite3.connect(Path(self._at.data_path).parent / "catalog.sqlite")) as catalog:
            tables = ("data_file", "delete_file", "files_scheduled_for_deletion")
            rows = catalog.execute(" UNION ALL ".join(f"SELECT path FROM ducklake_{table}" for table in tables))
            named = {Path(path).name for (path,) in rows}
        present = {path.name for path in self._at.data_files}
        assert present == named, f"orphans {present - named}, missing {named - present}"
