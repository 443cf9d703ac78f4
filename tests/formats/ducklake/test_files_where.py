"""Queries with conditions on a table of many files load of most of them only what tells that they are not needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakedbapi
from compliance.peers.lakes import Place, on_backend
from lakedbapi.formats.ducklake import snapshot as module
from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog
from lakedbapi.formats.ducklake.snapshot import DuckLakeSnapshot
from tests.thorough import quick


@pytest.fixture(params=quick(2, ["sqlite", "postgresql", "mysql", "duckdb"]))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with on_backend(request.param, tmp_path) as place:
        yield place


@pytest.fixture
def filled(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """`t(i, s)`: five files of ten rows each, deletes in the first two, and two rows in the catalog, one deleted."""
    monkeypatch.setattr(module, "_MANY_FILES", 5)
    monkeypatch.setattr(module, "_FEW_FILES", 3)
    with lakedbapi.connect(place.url, autocommit=True) as connection:
        connection.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
        connection.execute("CREATE TABLE t (i INTEGER, s VARCHAR)")
        for start in range(0, 50, 10):
            connection.execute("INSERT INTO t SELECT i, 'x' || i FROM range(?, ?) r(i)", (start, start + 10))
        connection.execute("DELETE FROM t WHERE i IN (3, 4)")
        connection.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '5')")
        connection.execute("DELETE FROM t WHERE i = 15")
        connection.execute("INSERT INTO t VALUES (7, 'in the catalog'), (8, 'gone')")
        connection.execute("DELETE FROM t WHERE s = 'gone'")
    return place


def first(place: Place, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """The rows that a new connection sees, which has loaded nothing yet."""
    with lakedbapi.connect(place.url) as connection:
        return connection.execute(sql, parameters).fetchall()


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has an item for every time that a whole list was loaded."""
    loads: list[int] = []
    original = DuckLakeSnapshot._table_files

    def counted(self: DuckLakeSnapshot, table: Any) -> Any:
        if table.id not in self._files:
            loads.append(table.id)
        return original(self, table)

    monkeypatch.setattr(DuckLakeSnapshot, "_table_files", counted)
    return loads


def test_first_queries(filled: Place, whole: list[int]) -> None:
    for condition, expected in (
        ("i = 25", [25]),
        ("i BETWEEN 1 AND 8", [1, 2, 5, 6, 7, 7, 8]),
        ("i IN (14, 15, 16)", [14, 16]),
        ("i IN (5, 48)", [5, 48]),
        ("i > 1000", []),
        ("s = 'in the catalog'", [7]),
    ):
        assert first(filled, f"SELECT i FROM t WHERE {condition} ORDER BY i") == [(i,) for i in expected]
    assert whole == []
    assert first(filled, "SELECT count(*) FROM t WHERE i < 40") == [(38,)]
    assert len(whole) == 1


def test_one_statement_of_parts_and_of_the_whole(filled: Place) -> None:
    sql = "SELECT (SELECT count(*) FROM t WHERE i BETWEEN 10 AND 19), (SELECT count(*) FROM t)"
    assert first(filled, sql) == [(9, 48)]
    sql = "SELECT (SELECT count(*) FROM t a WHERE a.i < 10), (SELECT sum(i) FROM t b WHERE b.i > 45)"
    assert first(filled, sql) == [(9, 46 + 47 + 48 + 49)]


def test_an_earlier_version(filled: Place) -> None:
    versions = first(filled, "SELECT snapshot_id FROM ducklake_snapshots('lake') ORDER BY 1")
    before = versions[-5][0]
    assert first(filled, f"SELECT i FROM t AT (VERSION => {before}) WHERE i < 6 ORDER BY i") == [(i,) for i in range(6)]


def test_staged_changes(filled: Place) -> None:
    with lakedbapi.connect(filled.url) as connection:
        connection.execute("DELETE FROM t WHERE i IN (26, 27) OR i BETWEEN 30 AND 39")
        connection.execute("INSERT INTO t VALUES (25, 'staged')")
        found = connection.execute("SELECT i FROM t WHERE i BETWEEN 24 AND 28 ORDER BY i").fetchall()
        assert found == [(24,), (25,), (25,), (28,)]
        assert connection.execute("SELECT i FROM t WHERE i = 35").fetchall() == []
        connection.rollback()


def test_a_later_snapshot_loads_the_whole_list(filled: Place, whole: list[int]) -> None:
    with lakedbapi.connect(filled.url, autocommit=True) as connection:
        assert connection.execute("SELECT s FROM t WHERE i = 25").fetchall() == [("x25",)]
        assert connection.execute("SELECT s FROM t WHERE i = 36").fetchall() == [("x36",)]
        assert whole == []
        connection.execute("CREATE TABLE other (i INTEGER)")
        assert connection.execute("SELECT s FROM t WHERE i = 25").fetchall() == [("x25",)]
        assert len(whole) == 1


def test_a_change_that_touches_no_file_reads_none_anew(filled: Place) -> None:
    with lakedbapi.connect(filled.url, autocommit=True) as connection:
        catalog = connection.session.catalogs["lake"]
        assert isinstance(catalog, DuckLakeCatalog)

        def changed(sql: str) -> tuple[bool, bool]:
            """Whether the statement, and then a look at the whole table, made other rows of data and delete files."""
            connection.execute("SELECT count(*) FROM t").fetchall()
            (before,) = catalog.file_rows.values()
            connection.execute(sql)
            connection.execute("SELECT count(*) FROM t").fetchall()
            (after,) = catalog.file_rows.values()
            assert after.snapshot > before.snapshot
            return after.data is not before.data, after.deletes is not before.deletes

        assert changed("UPDATE t SET s = 'y' WHERE i = 22") == (False, False)
        assert changed("DELETE FROM t WHERE i IN (30, 31, 32, 41, 42, 43)") == (False, True)
        assert changed("DELETE FROM t WHERE i BETWEEN 20 AND 29") == (True, False)


@pytest.mark.parametrize("maintenance", ["ducklake_merge_adjacent_files", "ducklake_rewrite_data_files"])
def test_compaction_between_choosing_and_loading(
    filled: Place, monkeypatch: pytest.MonkeyPatch, maintenance: str
) -> None:
    original = DuckLakeSnapshot._chosen_files
    done: list[str] = []

    def after_compaction(self: DuckLakeSnapshot, table: Any, ids: Sequence[int]) -> pa.Table:
        if not done:
            done.append(maintenance)
            first(filled, f"CALL {maintenance}('lake')")
        return original(self, table, ids)

    monkeypatch.setattr(DuckLakeSnapshot, "_chosen_files", after_compaction)
    assert first(filled, "SELECT i FROM t WHERE i < 6 ORDER BY i") == [(0,), (1,), (2,), (5,)]
    assert done


def test_a_flush_between_choosing_and_loading(filled: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    original = DuckLakeSnapshot._chosen_files

    def after_flush(self: DuckLakeSnapshot, table: Any, ids: Sequence[int]) -> pa.Table:
        monkeypatch.undo()
        monkeypatch.setattr(module, "_MANY_FILES", 5)
        first(filled, "CALL ducklake_flush_inlined_data('lake')")
        return original(self, table, ids)

    monkeypatch.setattr(DuckLakeSnapshot, "_chosen_files", after_flush)
    assert first(filled, "SELECT i FROM t WHERE i BETWEEN 7 AND 16 ORDER BY i") == [
        *((i,) for i in (7, 7, 8, 9, 10, 11, 12, 13, 14, 16))
    ]
