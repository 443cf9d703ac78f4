"""Deleted rows stay deleted, and positions stay physical, whatever the way deletes are applied."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakedbapi.engine.base import PART, POSITION, ROW_ID, Query, ScanRelation
from lakedbapi.engine.duckdb import DuckDBEngine, deletions
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import RowGroup, Scan

from .conftest import SCHEMA, Ask, T, group, rows, write

METHODS = ["chosen", "join", "mask", "blocks"]
FILES, ROWS = 3, 6_000


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force each method in turn; `blocks` are masks cut into many small ones."""
    if request.param == "join":
        monkeypatch.setattr(deletions, "MASK_TOTAL", 1 << 60)
    if request.param in ("mask", "blocks"):
        monkeypatch.setattr(deletions, "MASK_TOTAL", 1)
    if request.param == "blocks":
        monkeypatch.setattr(deletions, "BLOCK_ROWS", 1_000)
    return str(request.param)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DuckDBEngine, list[WrittenFile]]]:
    """Three files of three row groups each; `id` counts through."""
    directory = f"{tmp_path_factory.mktemp('deletions')}/"
    engine = DuckDBEngine([directory], [], ["lake"])
    sql = "select {start} + i, 'n' || i % 10 from range({count}) r(i)"
    written = [
        file
        for number in range(FILES)
        for file in write(engine, directory, sql.format(start=number * ROWS, count=ROWS), row_group_size=2048)
    ]
    yield engine, written
    engine.close()


position_sets = st.sets(st.integers(0, ROWS - 1), max_size=60)
ranges = st.tuples(st.integers(0, ROWS), st.integers(0, ROWS)).map(lambda ends: set(range(min(ends), max(ends))))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    deletes=st.lists(position_sets | ranges, min_size=FILES, max_size=FILES),
    low=st.integers(0, FILES * ROWS),
    width=st.integers(1, FILES * ROWS),
)
def test_a_scan_gives_the_rows_of_a_model(
    files: tuple[DuckDBEngine, list[WrittenFile]], method: str, deletes: list[set[int]], low: int, width: int
) -> None:
    engine, written = files
    scan = Scan(SCHEMA, (group(written, {row: sorted(gone) for row, gone in enumerate(deletes) if gone}),))
    extra = {PART: "part", POSITION: "pos", ROW_ID: "row_id"}
    sql = "select id, part, pos, row_id from t where id >= $low and id < $high and name <> 'n3' order by id"
    query = Query(sql, {T: ScanRelation(scan, extra)}, {"low": low, "high": low + width}, ("lake", "main"))

    gone = np.concatenate([np.fromiter(d, np.int64, len(d)) + row * ROWS for row, d in enumerate(deletes)])
    live = np.setdiff1d(np.arange(FILES * ROWS), gone)
    live = live[(live >= low) & (live < low + width) & (live % ROWS % 10 != 3)]
    assert rows(engine.fetch(query)) == [(n, n // ROWS, n % ROWS, n) for n in live.tolist()]


@pytest.mark.parametrize("deleted", [1, 300])
def test_a_condition_prunes_row_groups_below_the_deletes(
    files: tuple[DuckDBEngine, list[WrittenFile]], method: str, deleted: int
) -> None:
    engine, written = files
    scan = Scan(SCHEMA, (group(written, {row: range(deleted) for row in range(FILES)}),))
    query = Query("explain analyze select * from t where id = 9000", {T: ScanRelation(scan)}, {}, ("lake", "main"))
    plan = str(rows(engine.fetch(query)))
    scanned = re.search(r"Row Groups Scanned: (\d+) / (\d+)", plan)
    if scanned is None:
        pytest.skip("this version of DuckDB does not tell how many row groups it read")
    assert scanned.groups() == ("1", "9")


def test_fully_deleted_files_give_nothing(files: tuple[DuckDBEngine, list[WrittenFile]], method: str) -> None:
    engine, written = files
    scan = Scan(SCHEMA, (group(written, {row: range(ROWS) for row in range(FILES)}),))
    query = Query("select count(*) from t", {T: ScanRelation(scan)}, {}, ("lake", "main"))
    assert rows(engine.fetch(query)) == [(0,)]


def test_a_count_reads_no_column_and_is_exact(files: tuple[DuckDBEngine, list[WrittenFile]], method: str) -> None:
    engine, written = files
    scan = Scan(SCHEMA, (group(written, {1: [5, 6, 7]}),))
    query = Query("select count(*) from t", {T: ScanRelation(scan)}, {}, ("lake", "main"))
    assert rows(engine.fetch(query)) == [(FILES * ROWS - 3,)]


def test_many_deletes_get_masks() -> None:
    vectors = [None, DeleteVector.of([1]), DeleteVector.of(np.arange(0, 1_000_000, 50))]
    assert deletions.methods(vectors, np.full(3, 1_000_000)).tolist() == ["none", "mask", "mask"]


def test_only_dense_deletes_get_masks_where_there_would_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions, "MAX_LEAVES", 1)
    vectors = [None, DeleteVector.of([1]), DeleteVector.of(np.arange(0, 1_000_000, 50))]
    assert deletions.methods(vectors, np.full(3, 1_000_000)).tolist() == ["none", "join", "mask"]


def test_a_few_deletes_in_all_are_joined_even_where_they_are_dense() -> None:
    assert deletions.methods([DeleteVector.of(range(900))], np.array([1_000])).tolist() == ["join"]


def test_files_share_one_read_unless_most_rows_need_no_join() -> None:
    def together(*methods: str) -> list[list[int]]:
        counts = np.full(len(methods), 1_000)
        return [rows.tolist() for rows in deletions.read_together(np.array(methods), counts)]

    assert together("none", "mask", "none") == [[0, 1, 2]]
    assert together("none", "join", "mask", "join") == [[0, 1, 2, 3]]
    assert together("none", "join", "none") == [[0, 2], [1]]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_masks_and_joins_and_neither_in_one_scan(
    files: tuple[DuckDBEngine, list[WrittenFile]], monkeypatch: pytest.MonkeyPatch, order: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(deletions, "MASK_TOTAL", 1)
    monkeypatch.setattr(deletions, "MAX_LEAVES", 1)
    engine, written = files
    dense, sparse, whole = order
    scan = Scan(SCHEMA, (group(written, {dense: range(0, ROWS, 2), sparse: [5]}),))
    query = Query(
        "select part, count(*), sum(pos)::int from t group by part order by part",
        {T: ScanRelation(scan, {PART: "part", POSITION: "pos"})},
        {},
        ("lake", "main"),
    )
    every = ROWS * (ROWS - 1) // 2
    expected = {dense: (ROWS // 2, (ROWS // 2) ** 2), sparse: (ROWS - 1, every - 5), whole: (ROWS, every)}
    assert rows(engine.fetch(query)) == [(part, *expected[part]) for part in range(FILES)]


def test_row_groups_in_memory_lose_their_deleted_rows(ask: Ask) -> None:
    held = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    scan = Scan(SCHEMA, (), (RowGroup("staged:0", held, pa.array([7, 8, None]), None, DeleteVector.of([1])),))
    extra = {POSITION: "pos", ROW_ID: "row_id"}
    assert ask("select * from t order by id", scan, extra) == [(1, "a", 0, 7), (3, "c", 2, None)]
