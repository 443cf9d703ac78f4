"""Maintenance, and changes of how a table is laid out, in one process against changes of rows in another: no row is
lost, comes back or is there twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import lakedbapi
from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from compliance.races.partner import Partner
from lakedbapi import ConflictError

CALLS = {
    "flush": "CALL ducklake_flush_inlined_data('lake', table_name => '{t}')",
    "rewrite": "CALL ducklake_rewrite_data_files('lake', '{t}', delete_threshold => 0)",
    "merge": "CALL ducklake_merge_adjacent_files('lake', '{t}')",
    "expire": "CALL ducklake_expire_snapshots('lake', older_than => now())",
    "cleanup": "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "orphans": "CALL ducklake_delete_orphaned_files('lake')",
    "purge of others": "PURGE FROM {t} WHERE k = 12345",
    "purge": "PURGE FROM {t} WHERE k IN (7, 47, 103)",
    "partition": "ALTER TABLE {t} SET PARTITIONED BY (v)",
    "bucket": "ALTER TABLE {t} SET PARTITIONED BY (bucket(4, k))",
    "sort": "ALTER TABLE {t} SET SORTED BY (v DESC)",
}
HELD_AT = {"purge": (1, 2, 3, 4)}
"""Which of a call's writes of the catalog it is held at; the first one if nothing is said."""

MERGE = """
    MERGE INTO {t} USING (VALUES (8, 'm'), (48, 'm'), (101, 'm'), (700, 'm')) s(k, v) ON {t}.k = s.k
    WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)
"""
Rows = dict[int, str]
CHANGES: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "insert_few": ("INSERT INTO {t} VALUES (200, 'one')", lambda rows: {**rows, 200: "one"}),
    "insert_many": (
        "INSERT INTO {t} SELECT i, 'many' FROM range(300, 330) r(i)",
        lambda rows: {**rows, **dict.fromkeys(range(300, 330), "many")},
    ),
    "delete_few": ("DELETE FROM {t} WHERE k IN (5, 45)", lambda rows: _without(rows, 5, 45)),
    "delete_many": ("DELETE FROM {t} WHERE k < 60 AND k % 3 = 0", lambda rows: _without(rows, *range(0, 60, 3))),
    "delete_inlined": ("DELETE FROM {t} WHERE k = 100", lambda rows: _without(rows, 100)),
    "update": (
        "UPDATE {t} SET v = 'new' WHERE k IN (6, 46, 101)",
        lambda rows: {**rows, 6: "new", 46: "new", 101: "new"},
    ),
    "merge": (
        MERGE,
        lambda rows: {**rows, 8: "m", 48: "m", 101: "m", 700: "m"},
    ),
}
BEFORE: Rows = {**{k: f"v{k}" for k in range(60) if k != 44}, 100: "a", 101: "b", 103: "d"}
PURGED = (7, 47, 103)


def _without(rows: Rows, *keys: int) -> Rows:
    return {k: v for k, v in rows.items() if k not in keys}


FILLING = (
    "CREATE TABLE {t} (k INTEGER, v VARCHAR)",
    *(f"INSERT INTO {{t}} SELECT i, 'v' || i FROM range({start}, {start + 20}) r(i)" for start in (0, 20, 40)),
    "INSERT INTO {t} VALUES (100, 'a'), (101, 'b'), (102, 'c'), (103, 'd')",
    "DELETE FROM {t} WHERE k IN (44, 102)",
    "CREATE TABLE {t}_gone AS SELECT 1 AS i FROM range(20)",
    "DROP TABLE {t}_gone",
)


class Lake:
    def __init__(self, place: Place) -> None:
        self.connection = lakedbapi.connect(place.url, autocommit=True)

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def fill(self, tables: Sequence[str]) -> None:
        """Two files that merge, one with deletes, inlined rows, deletes of both; and something to remove.

        A step is one transaction for all tables.
        """
        for step in FILLING:
            self("BEGIN")
            for table in tables:
                self(step.format(t=table))
            self("COMMIT")


@pytest.fixture
def lake(place: Place) -> Iterator[Lake]:
    lake = Lake(place)
    lake("CREATE TABLE first (i INTEGER)")
    yield lake
    lake.connection.close()


@pytest.fixture
def partner(lake: Lake, place: Place) -> Iterator[Partner]:
    partner = Partner(place.url)
    yield partner
    partner.close()


def _filled(lake: Lake, call: str) -> Iterator[tuple[str, tuple[str, Callable[[Rows], Rows]]]]:
    """A table for each of `CHANGES`. A call that is not for one table leaves nothing to do in the others: these are
    filled after it, else all at once."""
    tables = {f"t_{name}": change for name, change in CHANGES.items()}
    together = [list(tables)] if "{t}" in CALLS[call] else [[table] for table in tables]
    for names in together:
        lake.fill(names)
        yield from ((name, tables[name]) for name in names)


def check(rows: list[tuple[Any, ...]], expected: Rows, table: str) -> None:
    assert sorted(row[1:] for row in rows) == sorted(expected.items()), table
    assert len({row[0] for row in rows}) == len(rows), table


@pytest.mark.timeout(300)
@pytest.mark.parametrize("call", CALLS)
def test_a_change_that_began_before_maintenance(
    lake: Lake, partner: Partner, place: Place, peer: Peer, call: str
) -> None:
    """It takes effect after all, or is refused with nothing changed."""
    ended: dict[str, Rows] = {}
    base = _without(BEFORE, *PURGED) if call == "purge" else BEFORE
    for table, (sql, effect) in _filled(lake, call):
        lake("BEGIN")
        lake(sql.format(t=table))
        partner.run(CALLS[call].format(t=table))
        try:
            lake("COMMIT")
            ended[table] = effect(base)
        except ConflictError:
            ended[table] = base
    _check_all(lake, partner, place, peer, ended)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("call", "hold_at"), [(call, at) for call in CALLS for at in HELD_AT.get(call, (1,))])
def test_a_change_while_maintenance_is_about_to_commit(
    lake: Lake, partner: Partner, place: Place, peer: Peer, call: str, hold_at: int
) -> None:
    """The change is never refused, and maintenance finds it."""
    ended: dict[str, Rows] = {}
    for table, (sql, effect) in _filled(lake, call):
        partner.start(CALLS[call].format(t=table), hold_at)
        lake(sql.format(t=table))
        partner.finish()
        ended[table] = effect(_without(BEFORE, *PURGED) if call == "purge" else BEFORE)
    _check_all(lake, partner, place, peer, ended)


def _check_all(lake: Lake, partner: Partner, place: Place, peer: Peer, ended: dict[str, Rows]) -> None:
    peer.attach(place.location)
    for table, expected in ended.items():
        query = f"SELECT rowid, k, v FROM {table}"
        check(lake(query), expected, table)
        check(partner.run(query), expected, table)
        check(peer.rows(query), expected, table)
        for column, some in ((0, (6, 8, 46)), (1, ("new", "many", "v46"))):
            chosen = {row[0]: row[1] for row in expected.items() if row[column] in some}
            check(lake(f"{query} WHERE {'kv'[column]} IN {some}"), chosen, table)
    lake(CALLS["cleanup"])
    for table, expected in ended.items():
        lake(CALLS["flush"].format(t=table))
        check(lake(f"SELECT rowid, k, v FROM {table}"), expected, table)
