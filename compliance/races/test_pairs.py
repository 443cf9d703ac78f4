"""Two processes on one Delta or Iceberg table: each kind of change against each, and against maintenance.

A commit takes effect after what the other process committed, or is refused with nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakedbapi
from compliance.races.partner import Partner
from lakedbapi import ConflictError

Rows = dict[int, str]
BEFORE: Rows = {k: f"v{k}" for k in range(60) if k != 44}
FORMATS = {
    "delta": ("delta:///{folder}", "'delta.deletedFileRetentionDuration' = 'interval 0 seconds'"),
    "delta-rewriting": (
        "delta:///{folder}",
        "'delta.enableDeletionVectors' = 'false', 'delta.deletedFileRetentionDuration' = 'interval 0 seconds'",
    ),
    "iceberg-2": ("iceberg+sqlite:///{folder}/catalog.db?warehouse=file://{folder}", "'format-version' = '2'"),
    "iceberg-3": ("iceberg+sqlite:///{folder}/catalog.db?warehouse=file://{folder}", "'format-version' = '3'"),
}


def _without(*keys: int) -> Callable[[Rows], Rows]:
    return lambda rows: {k: v for k, v in rows.items() if k not in keys}


def _with(value: str, *keys: int) -> Callable[[Rows], Rows]:
    return lambda rows: {**rows, **dict.fromkeys(keys, value)}


MERGE = """
    MERGE INTO {t} USING (VALUES (8, 'm'), (46, 'm'), (700, 'm')) s(k, v) ON {t}.k = s.k
    WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)
"""
CHANGES: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "insert": ("INSERT INTO {t} VALUES (200, 'one')", _with("one", 200)),
    "delete": ("DELETE FROM {t} WHERE k IN (5, 45)", _without(5, 45)),
    "delete beside it": ("DELETE FROM {t} WHERE k IN (7, 47)", _without(7, 47)),
    "delete of a file": ("DELETE FROM {t} WHERE k < 30", _without(*range(30))),
    "update": ("UPDATE {t} SET v = 'new' WHERE k IN (5, 46)", _with("new", 5, 46)),
    "merge": (
        MERGE,
        _with("m", 8, 46, 700),
    ),
}
PAIRS = [(mine, theirs) for mine in CHANGES for theirs in CHANGES if (mine, theirs) != ("insert", "insert")]
TOGETHER = {("insert", "delete"), ("delete", "delete beside it"), ("delete beside it", "delete")}
"""Pairs that go together wherever deleted rows are listed."""
MAINTENANCE = {
    "compact": "OPTIMIZE {t}",
    "sort": "OPTIMIZE {t} ZORDER BY (v)",
    "rewrite": "REORG TABLE {t} APPLY (PURGE)",
    "vacuum": "VACUUM {t} RETAIN 0 HOURS",
}


def touched(effect: Callable[[Rows], Rows]) -> set[int]:
    return {k for k, _ in BEFORE.items() ^ effect(BEFORE).items()}


class Tables:
    """Two processes on tables that are all alike: two files, one with a deleted row."""

    def __init__(self, url: str, properties: str) -> None:
        self.connection = lakedbapi.connect(url, autocommit=True)
        self.partner = Partner(url)
        self._properties = properties
        self._count = 0

    def new(self) -> str:
        self._count += 1
        table = f"t{self._count}"
        for sql in (
            f"CREATE TABLE {table} (k INTEGER, v VARCHAR) WITH ({self._properties})",
            f"INSERT INTO {table} SELECT i, 'v' || i FROM range(30) r(i)",
            f"INSERT INTO {table} SELECT i, 'v' || i FROM range(30, 60) r(i)",
            f"DELETE FROM {table} WHERE k = 44",
        ):
            self.connection.execute(sql)
        return table

    def change(self, sql: str, meanwhile: str) -> bool:
        """Whether a transaction commits that began before the partner ran `meanwhile`."""
        self.connection.execute("BEGIN")
        self.connection.execute(sql)
        self.partner.run(meanwhile)
        try:
            self.connection.execute("COMMIT")
        except ConflictError:
            return False
        return True

    def check(self, table: str, expected: Rows, what: object) -> None:
        query = f"SELECT k, v FROM {table} ORDER BY k"
        assert self.connection.execute(query).fetchall() == sorted(expected.items()), what
        assert self.partner.run(query) == sorted(expected.items()), what


@pytest.fixture(params=FORMATS)
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tables(tmp_path: Path, format: str) -> Iterator[Tables]:
    url, properties = FORMATS[format]
    tables = Tables(url.format(folder=tmp_path), properties)
    yield tables
    tables.partner.close()
    tables.connection.close()


@pytest.mark.timeout(600)
def test_two_changes(tables: Tables, format: str) -> None:
    """Of the same row one is refused."""
    for mine, theirs in PAIRS:
        table = tables.new()
        (sql, effect), (other, other_effect) = CHANGES[mine], CHANGES[theirs]
        committed = tables.change(sql.format(t=table), other.format(t=table))
        after = other_effect(BEFORE)
        tables.check(table, effect(after) if committed else after, (mine, theirs))
        if touched(effect) & touched(other_effect):
            assert not committed, (mine, theirs)
        elif (mine, theirs) in TOGETHER and format != "delta-rewriting":
            assert committed, (mine, theirs)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("call", MAINTENANCE)
def test_a_change_that_began_before_maintenance(tables: Tables, call: str) -> None:
    for name, (sql, effect) in CHANGES.items():
        table = tables.new()
        committed = tables.change(sql.format(t=table), MAINTENANCE[call].format(t=table))
        tables.check(table, effect(BEFORE) if committed else BEFORE, (name, call))
        assert committed or name != "insert"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("call", MAINTENANCE)
def test_a_change_while_maintenance_is_about_to_commit(tables: Tables, call: str) -> None:
    """The change is never refused, and maintenance finds it."""
    for name, (sql, effect) in CHANGES.items():
        table = tables.new()
        tables.partner.start(MAINTENANCE[call].format(t=table), 1)
        tables.connection.execute(sql.format(t=table))
        tables.partner.finish()
        tables.check(table, effect(BEFORE), (name, call))
