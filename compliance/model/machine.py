"""Random programs on up to three tables of DuckLake. The lake's snapshots are the history."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize

import lakedbapi
from compliance.model.clients import Lake
from compliance.model.program import Data
from compliance.model.random_programs import RandomPrograms
from compliance.peers.lakes import Place, on_postgresql, on_sqlite


@dataclass(frozen=True)
class Setting:
    """Where a lake is and how it keeps small changes."""

    catalog: str = "sqlite"
    inlining: int = 10
    mode: str = "auto"

    def __str__(self) -> str:
        return f"{self.catalog}-{self.inlining}-{self.mode}"


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


class Programs(RandomPrograms):
    setting = Setting()

    @initialize(source=st.data(), file_size=st.sampled_from([None, "1KB", "20KB"]))
    def set_up(self, source: Any, file_size: str | None) -> None:
        self._at = self.closing.enter_context(place(self.setting.catalog))
        url = self._at.url
        with lakedbapi.connect(url, autocommit=True) as connection:
            connection.execute(f"CALL set_option('lake', 'data_inlining_row_limit', '{self.setting.inlining}')")
            connection.execute(f"CALL set_option('lake', 'lake.write_mode', '{self.setting.mode}')")
            if file_size is not None:
                connection.execute(f"CALL set_option('lake', 'target_file_size', '{file_size}')")
        self.begin(Data(source), Lake(url, self.setting.mode))

    def check_end(self) -> None:
        if self.setting.catalog == "sqlite":
            self._check_files()
        lake = self.lake
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
