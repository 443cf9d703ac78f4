"""Processes that write one lake at the same time, and what must be true of the lake after them."""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import lakedbapi
from compliance.peers.lakes import Place
from compliance.races.worker import work

LONG = bool(os.environ.get("LAKE_LONG"))
"""Whether to run the long versions of the tests."""

# Forked from a process that has everything loaded: starting one anew takes a second.
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["compliance.races.worker"])


@dataclass
class Acknowledged:
    """Statements and rows by kind (`insert`, `update`, `delete`, `commit`) that a process was told had succeeded.

    `changing` counts the statements among them that changed something, each of which made a snapshot.
    """

    statements: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    changing: int = 0

    def add(self, lines: str) -> None:
        for line in lines.splitlines():
            kind, rowcount = line.split()
            self.statements[kind] += 1
            self.rows[kind] += int(rowcount)
            self.changing += int(rowcount) > 0


class Running:
    """A process with a job. Its notes lie beside the lake's data."""

    def __init__(self, job: str, place: Place, number: int, count: int, **options: object) -> None:
        """`options` go to `connect`."""
        notes = Path(place.data_path).parent / f"worker-{uuid.uuid4().hex}"
        self._acknowledged, self._failure = notes.with_suffix(".lines"), notes.with_suffix(".failure")
        arguments = (job, place.url, number, count, self._acknowledged, self._failure, options)
        self.process = _forking.Process(target=work, args=arguments, daemon=True)
        self.process.start()

    @property
    def acknowledged(self) -> str:
        return self._acknowledged.read_text() if self._acknowledged.exists() else ""

    @property
    def failure(self) -> str:
        return self._failure.read_text() if self._failure.exists() else ""

    def await_statements(self, count: int) -> None:
        """Wait until so many have succeeded, or the process has ended."""
        while self.acknowledged.count("\n") < count and self.process.is_alive():
            time.sleep(0.002)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


def run(job: str, place: Place, processes: int, count: int, **options: object) -> Acknowledged:
    """Run a job in several processes at the same time; every one of them must end without an error."""
    running = [Running(job, place, number, count, **options) for number in range(processes)]
    acknowledged = Acknowledged()
    for worker in running:
        worker.process.join()
        assert worker.process.exitcode == 0, worker.failure
        acknowledged.add(worker.acknowledged)
    return acknowledged


def killed(
    job: str, place: Place, commits: int, moments: random.Random, *, most: int, pause: float
) -> Iterator[tuple[int, int]]:
    """Kill processes with a job one after another until they have been told of so many commits.

    After each kill the commits so far and the kills. A process is killed up to `pause` seconds after one to `most`
    statements.
    """
    acknowledged, kills = Acknowledged(), 0
    while acknowledged.statements["commit"] < commits:
        worker = Running(job, place, kills, commits)
        worker.await_statements(moments.randint(1, most))
        time.sleep(moments.uniform(0, pause))
        worker.kill()
        kills += 1
        assert not worker.failure
        acknowledged.add(worker.acknowledged)
        yield acknowledged.statements["commit"], kills


def lake(place: Place, *statements: str, inlined: bool = True) -> None:
    """Make the lake; without `inlined` every change of rows goes to files."""
    with lakedbapi.connect(place.url, autocommit=True) as connection:
        if not inlined:
            connection.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
        for statement in statements:
            connection.execute(statement)


def value(place: Place, sql: str) -> object:
    """The first value of a query, on a new connection."""
    with lakedbapi.connect(place.url) as connection:
        row = connection.execute(sql).fetchone()
        assert row is not None
        return row[0]


def snapshot_ids(place: Place) -> list[int]:
    return sorted(id for (id,) in catalog_rows(place, "SELECT snapshot_id FROM ducklake_snapshot"))


def orphans(place: Place) -> set[str]:
    """Names of the files in the data path that the catalog neither refers to nor has scheduled for deletion."""
    return _there(place) - _known(
        place, "ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion"
    )


def missing(place: Place) -> set[str]:
    """Names of the files that the catalog refers to and that are not there."""
    return _known(place, "ducklake_data_file", "ducklake_delete_file") - _there(place)


def catalog_rows(place: Place, sql: str) -> Iterator[tuple[object, ...]]:
    """What the catalog database itself says."""
    address = place.url.removeprefix("ducklake+").split("?")[0]
    if place.backend == "sqlite":
        with closing(sqlite3.connect(address.removeprefix("ducklake:///"))) as database:
            yield from database.execute(sql).fetchall()
    else:
        import psycopg

        with psycopg.connect(address, autocommit=True) as server:
            yield from server.execute(sql.encode()).fetchall()


def _there(place: Place) -> set[str]:
    return {name for _, _, names in os.walk(place.data_path) for name in names}


def _known(place: Place, *tables: str) -> set[str]:
    return {os.path.basename(path) for table in tables for (path,) in catalog_rows(place, f"SELECT path FROM {table}")}
