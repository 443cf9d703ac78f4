"""Deleted rows stay deleted, and positions stay physical, whatever the way deletes are applied."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakedbapi.engine.base import PART, POSITION, ROW_ID, Query, Relation, RelationName, ScanRelation
from lakedbapi.engine.duckdb import DuckDBEngine, deletions, driver
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import RowGroup, Scan

from .conftest import SCHEMA, Ask, T, group, rows, write

METHODS = ["chosen", "join", "mask", "mask for each file", "blocks", "strips", "strips of bits", "one strip"]
FILES, ROWS = 3, 6_000


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force each method in turn; `mask` is one for all files, `blocks` are masks cut into many small ones.

    `strips` are for scans that tell that they are exhaustive, which `scanned` does for them.
    """
    if request.param == "join":
        monkeypatch.setattr(deletions, "MASK_TOTAL", 1 << 60)
    if request.param in ("mask", "mask for each file", "blocks"):
        monkeypatch.setattr(deletions, "MASK_TOTAL", 1)
        monkeypatch.setattr(deletions, "MASK_ROWS", 1)
    if request.param == "mask for each file":
        monkeypatch.setattr(deletions, "SHARED_ROWS", 1)
    if request.param == "blocks":
        monkeypatch.setattr(deletions, "BLOCK_ROWS", 1_000)
    if "strip" in request.param:
        monkeypatch.setattr(deletions, "STRIP_SCAN", 1)
        monkeypatch.setattr(deletions, "STRIP_SKEW", 1_000)
        monkeypatch.setattr(deletions, "STRIP_ROWS", 1 << 60 if request.param == "one strip" else 1)
        monkeypatch.setattr(deletions, "STRIP_COST", 0)
    if request.param == "strips of bits":
        monkeypatch.setattr(deletions, "BYTE_ROWS", 0)
    return str(request.param)


def scanned(method: str, scan: Scan, extra: dict[str, str] | None = None) -> ScanRelation:
    return ScanRelation(scan, extra or {}, exhaustive="strip" in method)


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
    query = Query(sql, {T: scanned(method, scan, extra)}, {"low": low, "high": low + width}, ("lake", "main"))

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
    if "strip" in method:
        pytest.skip("strips are for scans without such conditions")
    query = Query("explain analyze select * from t where id = 9000", {T: ScanRelation(scan)}, {}, ("lake", "main"))
    plan = str(rows(engine.fetch(query)))
    scanned = re.search(r"Row Groups Scanned: (\d+) / (\d+)", plan)
    if scanned is None:
        pytest.skip("this version of DuckDB does not tell how many row groups it read")
    assert scanned.groups() == ("1", "9")


@pytest.mark.parametrize("method", ["mask"], indirect=True)
def test_a_plan_shows_no_masks_which_take_seconds_to_print(
    files: tuple[DuckDBEngine, list[WrittenFile]], method: str
) -> None:
    engine, written = files
    scan = Scan(SCHEMA, (group(written, {row: range(300) for row in range(FILES)}),))
    query = Query("explain select * from t", {T: ScanRelation(scan)}, {}, ("lake", "main"))
    assert "get_bit" in str(rows(engine.fetch(query)))
    assert "get_bit" not in str(rows(engine.fetch(replace(query, explained=True))))


def test_fully_deleted_files_give_nothing(files: tuple[DuckDBEngine, list[WrittenFile]], method: str) -> None:
    engine, written = files
    scan = Scan(SCHEMA, (group(written, {row: range(ROWS) for row in range(FILES)}),))
    query = Query("select count(*) from t", {T: scanned(method, scan)}, {}, ("lake", "main"))
    assert rows(engine.fetch(query)) == [(0,)]


def test_a_count_reads_no_column_and_is_exact(files: tuple[DuckDBEngine, list[WrittenFile]], method: str) -> None:
    engine, written = files
    scan = Scan(SCHEMA, (group(written, {1: [5, 6, 7]}),))
    query = Query("select count(*) from t", {T: scanned(method, scan)}, {}, ("lake", "main"))
    assert rows(engine.fetch(query)) == [(FILES * ROWS - 3,)]


@pytest.fixture(scope="module")
def many_groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DuckDBEngine, Scan, str]]:
    """Files of several row groups and page formats, a third of their rows deleted; and SQL for the live rows."""
    directory = f"{tmp_path_factory.mktemp('strips')}/"
    engine = DuckDBEngine([directory], [], ["lake"])
    counts = [300_000, 1, 2_049, 150_000]
    options: list[dict[str, Any]] = [
        {},
        {},
        {"parquet_version": "V2"},
        {"parquet_version": "V2", "row_group_size": 9_999},
    ]
    written = []
    for number, (count, option) in enumerate(zip(counts, options, strict=True)):
        start = sum(counts[:number])
        sql = f"select {start} + i, 'n' || (i * 7919) % 1003 from range({count}) r(i)"
        written += write(engine, directory, sql, **option)
    deletes = {row: range(row, count, 3) for row, count in enumerate(counts)}
    live = "\nunion all ".join(
        f"select {sum(counts[:row])} + i as id, 'n' || (i * 7919) % 1003 as name from range({count}) r(i)"
        f" where i < {row} or (i - {row}) % 3 <> 0"
        for row, count in enumerate(counts)
    )
    yield engine, Scan(SCHEMA, (group(written, deletes),)), live
    engine.close()


@pytest.mark.parametrize("method", ["strips", "strips of bits", "one strip"], indirect=True)
@pytest.mark.parametrize(
    "sql",
    [
        "select count(*), sum(id), min(name), max(name) from t",
        "select name, count(*), max(id) from t group by name order by name limit 20",
        "select * from t order by name, id limit 10",
        "select * from t order by id desc limit 5 offset 100000",
        "select count(*) from t where id between 150000 and 300001",
        "select count(*), sum(id) from t join (select 7 * i as id from range(50000) r(i)) u using (id)",
        "select count(*) from t where id in (select 301 * i from range(500) r(i))",
        "select count(*) from t semi join (select 449000 + i as id from range(9000) r(i)) u using (id)",
        "select sum(n * id) from (select id, row_number() over (order by id) as n from t)",
        "select count(*) from t a join t b on a.id = b.id + 1",
        "select (select name from t where id = 300001), exists (from t where id = 2), max(id) from t where id < 300000",
        "select count(*) from (select * from t using sample 100 rows) where id in (from (select id from t))",
        "select distinct length(name) from t order by all",
        "select name from t where name > 'n99' group by name having count(*) > 140 order by name",
    ],
)
def test_whatever_is_asked_of_strips_they_give_the_live_rows(
    many_groups: tuple[DuckDBEngine, Scan, str], method: str, sql: str
) -> None:
    engine, scan, live = many_groups
    asked = engine.fetch(Query(sql, {T: scanned(method, scan)}, {}, ("lake", "main")))
    assert asked.num_rows
    assert asked.equals(engine.fetch(Query(f"with t as ({live}) {sql}", {}, {}, ("lake", "main"))))


IN_ORDER = "select current_setting('preserve_insertion_order') as in_order, count(*) as n from t"
needs_forgetting = pytest.mark.skipif(
    not driver.FORGETS_ORDER, reason="DuckDB 1 keeps the order for all cursors or none"
)


@needs_forgetting
@pytest.mark.parametrize("method", ["strips"], indirect=True)
def test_only_statements_that_read_strips_forget_the_order(
    many_groups: tuple[DuckDBEngine, Scan, str], method: str
) -> None:
    """What keeps the order reads strips one after another, where it sums up floating-point numbers or fetches rows."""
    engine, scan, _ = many_groups
    u = T._replace(name="u")

    def in_order(relations: dict[RelationName, Relation]) -> bool:
        return bool(engine.fetch(Query(IN_ORDER, relations, {}, ("lake", "main"))).column("in_order")[0].as_py())

    assert not in_order({T: scanned(method, scan)})
    assert in_order({T: ScanRelation(scan)})
    assert in_order({T: scanned(method, scan), u: ScanRelation(scan)})
    assert in_order({T: scanned(method, scan), u: pa.table({"id": [1]})})
    assert in_order({T: ScanRelation(Scan(SCHEMA), exhaustive=True)})


@needs_forgetting
@pytest.mark.parametrize("method", ["strips"], indirect=True)
def test_rows_of_other_scans_stay_in_order_beside_strips(
    many_groups: tuple[DuckDBEngine, Scan, str], method: str
) -> None:
    engine, scan, live = many_groups
    whole = Query("select count(*), sum(id::double) from t", {T: scanned(method, scan)}, {}, ("lake", "main"))
    running = engine.query(whole)
    rows_in_order = engine.fetch(Query("select id from t", {T: ScanRelation(scan)}, {}, ("lake", "main")))
    assert rows_in_order.equals(engine.fetch(Query(f"select id from ({live})", {}, {}, ("lake", "main"))))
    assert running.reader().read_all().num_rows == 1


def test_whole_scans_are_read_in_strips_that_keep_all_threads_busy() -> None:
    vectors = [None, *[DeleteVector.of([1])] * 9]
    counts = np.full(10, 1_000_000)
    chosen = deletions.methods(vectors, counts, any_order=True, threads=2)
    assert chosen.tolist() == ["none", *["strip"] * 9]
    groups = deletions.read_together(chosen, counts, threads=2)
    assert [rows.tolist() for rows in groups] == [[0], [1, 2, 3, 4, 5], [6, 7, 8, 9]]


def test_files_of_different_sizes_are_cut_into_more_strips_where_threads_share_these_more_evenly() -> None:
    counts = np.array([3, 3, 3, 3, 2]) * 1_000_000
    groups = deletions.read_together(np.full(5, deletions.STRIP), counts, threads=2)
    assert [rows.tolist() for rows in groups] == [[0, 1], [2], [3], [4]]


def test_small_files_share_a_strip() -> None:
    counts = np.full(1_000, 10_000)
    chosen = deletions.methods([DeleteVector.of([1])] * 1_000, counts, any_order=True, threads=2)
    groups = deletions.read_together(chosen, counts, threads=2)
    assert np.concatenate(groups).tolist() == list(range(1_000))
    assert [len(files) for files in groups] == [500, 500]


def test_a_file_that_several_threads_had_to_share_is_no_strip() -> None:
    chosen = deletions.methods([DeleteVector.of(range(9_999))], np.array([5_000_000]), any_order=True, threads=2)
    assert chosen.tolist() == ["join"]


def test_many_deletes_get_masks() -> None:
    vectors = [None, DeleteVector.of([1]), DeleteVector.of(np.arange(0, 1_000_000, 50))]
    assert deletions.methods(vectors, np.full(3, 1_000_000)).tolist() == ["none", "mask", "mask"]


def test_only_dense_deletes_get_masks_where_there_would_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions, "MAX_LEAVES", 1)
    vectors = [None, DeleteVector.of([1]), DeleteVector.of(np.arange(0, 1_000_000, 50))]
    assert deletions.methods(vectors, np.full(3, 1_000_000)).tolist() == ["none", "join", "mask"]


def test_small_files_are_joined_since_a_mask_for_each_would_take_long_to_plan() -> None:
    vectors = [DeleteVector.of(range(50))] * 1_000
    assert set(deletions.methods(vectors, np.full(1_000, 1_000))) == {"join"}
    vectors += [DeleteVector.of(range(0, 1_000_000, 20))]
    chosen = deletions.methods(vectors, np.array([1_000] * 1_000 + [1_000_000]))
    assert chosen.tolist() == ["join"] * 1_000 + ["mask"]


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
    monkeypatch.setattr(deletions, "MASK_ROWS", 1)
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


@pytest.mark.parametrize("deletes", [{0: [5]}, {1: [0, 7]}, {0: [1], 2: [3]}], ids=str)
def test_rows_that_are_wanted_in_order_come_in_it(
    files: tuple[DuckDBEngine, list[WrittenFile]], deletes: dict[int, list[int]]
) -> None:
    engine, written = files
    scan = Scan(SCHEMA, (group(written, deletes),))
    query = Query("select id from t", {T: ScanRelation(scan, in_order=True)}, {}, ("lake", "main"))
    live = [i for i in range(FILES * ROWS) if i % ROWS not in deletes.get(i // ROWS, [])]
    assert [id for (id,) in rows(engine.fetch(query))] == live
