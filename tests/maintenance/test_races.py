"""Maintenance against changes of rows in another connection: no row is lost, comes back, or is there twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lakedbapi import ConflictError, ProgrammingError
from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog
from lakedbapi.formats.ducklake.flush import Flush
from lakedbapi.formats.maintenance import Maintenance
from tests.dml.conftest import Lake

FLUSH = "CALL ducklake_flush_inlined_data('lake')"
REWRITE = "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)"
MERGE = "CALL ducklake_merge_adjacent_files('lake')"
EXPIRE = "CALL ducklake_expire_snapshots('lake', older_than => now())"
CALLS = {"flush": FLUSH, "rewrite": REWRITE, "merge": MERGE, "expire": EXPIRE}

CHANGES = {
    "delete from a merged file": "DELETE FROM t WHERE k = 5",
    "delete from a rewritten file": "DELETE FROM t WHERE k = 45",
    "delete an inlined row": "DELETE FROM t WHERE k = 100",
    "update a row of a file": "UPDATE t SET v = 'new' WHERE k IN (6, 46)",
    "update an inlined row": "UPDATE t SET v = 'new' WHERE k = 101",
    "delete many": "DELETE FROM t WHERE k % 2 = 0",
    "delete many of a file with a delete in the catalog": "DELETE FROM t WHERE k BETWEEN 46 AND 58",
    "insert one": "INSERT INTO t VALUES (200, 'one')",
    "insert many": "INSERT INTO t SELECT i, 'many' FROM range(300, 330) r(i)",
    "delete all": "TRUNCATE t",
}


@pytest.fixture
def filled(connect: Callable[[], Lake]) -> Lake:
    """Files that merge (0 to 39) and one that is worth a rewrite (40 to 59), inlined rows (100 to 102), deletes."""
    lake = connect()
    lake("CREATE TABLE t (k INTEGER, v VARCHAR)")
    for start in (0, 20, 40):
        lake(f"INSERT INTO t SELECT i, 'v' || i FROM range({start}, {start + 20}) r(i)")
    lake("INSERT INTO t VALUES (100, 'a'), (101, 'b'), (102, 'c')")
    lake("DELETE FROM t WHERE k IN (44, 102)")
    return lake


def ids(lake: Lake) -> list[tuple[int, int, str]]:
    return sorted(lake("SELECT rowid, k, v FROM t"), key=lambda row: row[1:])


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_began_before_maintenance(
    filled: Lake, connect: Callable[[], Lake], change: str, call: str
) -> None:
    """It takes effect after all, or is refused with nothing changed."""
    before = ids(filled)
    other = connect()
    other("BEGIN")
    other("SELECT count(*) FROM t")
    other(CHANGES[change])
    expected = ids(other)
    filled(CALLS[call])
    assert ids(filled) == before
    try:
        other("COMMIT")
    except ConflictError:
        assert ids(filled) == before
        return
    assert [row[1:] for row in ids(filled)] == [row[1:] for row in expected]
    assert len({id for id, _, _ in ids(filled)}) == len(expected)


@pytest.mark.parametrize("call", ["flush", "rewrite", "merge"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_while_maintenance_writes_its_files(
    filled: Lake, connect: Callable[[], Lake], monkeypatch: pytest.MonkeyPatch, change: str, call: str
) -> None:
    """Maintenance begins again, and then has the change."""
    other = connect()
    changed: list[str] = []

    def interrupted(self: DuckLakeCatalog) -> Maintenance:
        return _Interrupted(
            original.__get__(self), lambda: changed.append(other(CHANGES[change])) if not changed else 0
        )

    original = DuckLakeCatalog.maintenance
    monkeypatch.setattr(DuckLakeCatalog, "maintenance", property(interrupted))
    filled(CALLS[call])
    assert changed
    monkeypatch.undo()
    assert_only_changed(filled, connect, change)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_after_a_flush_wrote_its_files(
    filled: Lake, connect: Callable[[], Lake], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Delete files, too, which take over what others wrote until then."""
    other = connect()
    changed: list[str] = []
    original = Flush._write_ahead

    def late(self: Flush) -> None:
        original(self)
        if not changed:
            changed.append(other(CHANGES[change]))

    monkeypatch.setattr(Flush, "_write_ahead", late)
    filled(FLUSH)
    assert changed
    assert_only_changed(filled, connect, change)


@pytest.mark.parametrize("call", ["flush", "rewrite"])
def test_other_maintenance_after_a_flush_wrote_its_files(
    filled: Lake, connect: Callable[[], Lake], data: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """What the other one did is not done a second time: no delete file is made for a file that was replaced."""
    other, before = connect(), ids(filled)
    done: list[object] = []
    original = Flush._write_ahead

    def late(self: Flush) -> None:
        original(self)
        if not done:
            done.append(True)
            other(CALLS[call])

    monkeypatch.setattr(Flush, "_write_ahead", late)
    filled(FLUSH)
    assert done
    assert ids(filled) == ids(connect()) == before
    with closing(sqlite3.connect(data.parent / "catalog.sqlite")) as catalog:
        live = {
            id for (id,) in catalog.execute("SELECT data_file_id FROM ducklake_data_file WHERE end_snapshot IS NULL")
        }
        deletes = catalog.execute("SELECT data_file_id FROM ducklake_delete_file WHERE end_snapshot IS NULL").fetchall()
        assert {id for (id,) in deletes} <= live
        assert len(set(deletes)) == len(deletes)


def assert_only_changed(filled: Lake, connect: Callable[[], Lake], change: str) -> None:
    """The rows are those of `filled` with the effect of `change`, for everybody."""
    after = ids(filled)
    assert after == ids(connect())
    assert len({id for id, _, _ in after}) == len(after)
    reference = connect()
    reference("CALL ducklake_flush_inlined_data('lake')")
    assert ids(reference) == after
    expected = {k: f"v{k}" for k in range(60) if k != 44} | {100: "a", 101: "b"}
    assert {k: v for _, k, v in after} == EFFECTS[change](expected)


class _Interrupted:
    """A format's maintenance before whose commits something else happens."""

    def __init__(self, inner: Maintenance, before: Callable[[], object]) -> None:
        self._inner = inner
        self._before = before

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if name not in ("compact", "flush"):
            return found

        def late(*arguments: object) -> object:
            self._before()
            return found(*arguments)

        return late


Values = dict[int, str]
EFFECTS: dict[str, Callable[[Values], Values]] = {
    "delete from a merged file": lambda rows: {k: v for k, v in rows.items() if k != 5},
    "delete from a rewritten file": lambda rows: {k: v for k, v in rows.items() if k != 45},
    "delete an inlined row": lambda rows: {k: v for k, v in rows.items() if k != 100},
    "update a row of a file": lambda rows: {**rows, 6: "new", 46: "new"},
    "update an inlined row": lambda rows: {**rows, 101: "new"},
    "delete many": lambda rows: {k: v for k, v in rows.items() if k % 2},
    "delete many of a file with a delete in the catalog": lambda rows: {
        k: v for k, v in rows.items() if not 46 <= k <= 58
    },
    "insert one": lambda rows: {**rows, 200: "one"},
    "insert many": lambda rows: {**rows, **dict.fromkeys(range(300, 330), "many")},
    "delete all": lambda rows: {},
}


def test_files_of_a_lost_race_are_removed(
    filled: Lake, connect: Callable[[], Lake], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = connect()
    monkeypatch.setattr("lakedbapi.maintenance.scope._TRIES", 1)
    original = DuckLakeCatalog.maintenance
    monkeypatch.setattr(
        DuckLakeCatalog,
        "maintenance",
        property(lambda self: _Interrupted(original.__get__(self), lambda: other("DELETE FROM t WHERE k = 5"))),
    )
    before = set(data.rglob("*.parquet"))
    filled("BEGIN")  # Else the statement is run again as a whole.
    with pytest.raises(ConflictError, match="run it again"):
        filled(MERGE)
    assert set(data.rglob("*.parquet")) == before


@pytest.mark.parametrize("call", CALLS.values())
def test_maintenance_refuses_to_run_beside_uncommitted_changes(filled: Lake, call: str) -> None:
    filled("BEGIN")
    filled("DELETE FROM t WHERE k = 1")
    with pytest.raises(ProgrammingError, match="commit or roll back first"):
        filled(call)
    filled("ROLLBACK")
    filled(call)
