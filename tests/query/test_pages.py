"""Pages of a table that nothing sorts: LIMIT and OFFSET find its rows in one order, deleted ones left out or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakedbapi
from tests.formats.needs import need_pyiceberg

ROWS = 600_000
PAGE = 1_000
URLS = {
    "ducklake": "lake:///{}/lake",
    "delta": "delta:///{}/lake",
    "iceberg": "iceberg+sqlite:///{}/catalog.db?warehouse={}/lake",
}


@pytest.fixture(params=URLS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[lakedbapi.Connection]:
    """With `t(i, s)` of four files, of which few rows are deleted."""
    if request.param == "iceberg":
        need_pyiceberg()
    with lakedbapi.connect(URLS[request.param].replace("{}", str(tmp_path)), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (i INTEGER, s VARCHAR)")
        for start in range(0, ROWS, ROWS // 4):
            connection.execute(f"INSERT INTO t SELECT i, 's' || i FROM range({start}, {start + ROWS // 4}) r(i)")
        connection.execute("DELETE FROM t WHERE i % 15000 = 7")
        yield connection


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT i FROM t",
        "SELECT i FROM t WHERE s <> 's3'",
        "SELECT i FROM (SELECT i, s FROM t)",
        "SELECT i FROM t AT (VERSION => {version})",
    ],
)
def test_pages_have_each_row_once(lake: lakedbapi.Connection, sql: str) -> None:
    text = sql.format(version=lake.snapshot_id)
    every = rows(lake, f"{text} LIMIT {ROWS}")
    assert sorted(every) == [i for i in range(ROWS) if i % 15000 != 7 and (i != 3 or "WHERE" not in sql)]
    for offset in (0, 150_000, 449_000, 450_000, len(every) - PAGE // 2):
        pages = [rows(lake, f"{text} LIMIT {PAGE} OFFSET {offset + n * PAGE}") for n in range(3)]
        assert [i for page in pages for i in page] == every[offset : offset + 3 * PAGE]


def test_rows_of_a_page_can_be_written(lake: lakedbapi.Connection) -> None:
    page = rows(lake, "SELECT i FROM t LIMIT 10 OFFSET 450000")
    assert lake.execute("CREATE TABLE page AS SELECT i FROM t LIMIT 10 OFFSET 450000").rowcount == 10
    assert rows(lake, "SELECT i FROM page ORDER BY i") == sorted(page)


def rows(lake: lakedbapi.Connection, sql: str) -> list[int]:
    return [i for (i,) in lake.execute(sql).fetchall()]
