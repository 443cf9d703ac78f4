"""Files of other programs in one lake: either of the two programs adds them, both read and change them alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakedbapi
from compliance.ducklake.lakes import Ours, Program, Shared, Theirs, assert_same_rows, texts
from compliance.peers.lakes import on_sqlite
from compliance.peers.peer import Peer

FILES = {
    "full": "SELECT 1::INT AS i, 'x' AS s, {'a': 1, 'b': 'q'} AS st, [1, 2] AS l, MAP {'k': 5} AS m, 3::BIGINT AS n",
    "part": "SELECT range::INT AS i, 'p' || range AS s FROM range(100, 200)",
    "extra": "SELECT 3::SMALLINT AS I, 'y' AS S, 4 AS more, {'b': 'only'} AS st",
    "values": "SELECT -1.5::DOUBLE AS f, 3.25::DECIMAL(5,2) AS d, DATE '2020-02-29' AS day, TRUE AS b,"
    " TIMESTAMP '2020-01-01 00:00:00.25' AS t, TIMESTAMPTZ '2020-01-01 00:00:00+02' AS tz, uuid() AS u, 'é' AS s,"
    " '\\xAA'::BLOB AS bl, TIME '01:02:03' AS c",
}


@pytest.fixture
def external(tmp_path: Path, peer: Peer) -> Path:
    """A folder of Parquet files, among them a tree of partitions."""
    folder = tmp_path / "external"
    for name, query in FILES.items():
        folder.mkdir(exist_ok=True)
        peer.execute(f"COPY ({query}) TO '{folder / name}.parquet'")
    for place, query in {
        "k=1/z=a%20b": "SELECT 1::INT AS i",
        "k=2/z=__HIVE_DEFAULT_PARTITION__": "SELECT 2::INT AS i, 7 AS k",
        "k=10/z=": "SELECT 3::INT AS i",
    }.items():
        (folder / "tree" / place).mkdir(parents=True)
        peer.execute(f"COPY ({query}) TO '{folder}/tree/{place}/a.parquet'")
    return folder


@pytest.fixture
def shared(tmp_path: Path, peer: Peer, external: Path) -> Iterator[Shared]:
    """A lake without inlining for both, ours with the right to read all files."""
    place = on_sqlite(tmp_path)
    theirs = Theirs(peer, place)
    peer.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
    ours = Ours(place)
    ours.close()
    ours.connection = lakedbapi.connect(place.url, autocommit=True, allow_external=True)
    ours.cursor = ours.connection.cursor()
    yield Shared(place, ours, theirs, False)
    ours.close()
    peer.reset()


@pytest.fixture(params=["ours-writes", "duckdb-writes"])
def writer(request: pytest.FixtureRequest, shared: Shared) -> Program:
    return shared.ours if request.param == "ours-writes" else shared.theirs


def test_rows_are_the_same_for_both(shared: Shared, writer: Program, external: Path) -> None:
    writer.execute(
        "CREATE TABLE t (i INT, s VARCHAR, st STRUCT(a INT, b VARCHAR), l INT[], m MAP(VARCHAR, INT),"
        " n BIGINT DEFAULT 7)"
    )
    writer.execute("INSERT INTO t VALUES (0, 'own', NULL, NULL, NULL, 0)")
    add = "CALL ducklake_add_data_files('lake', 't', '{}'{})"
    writer.execute(add.format(external / "full.parquet", ""))
    writer.execute(add.format(external / "part.parquet", ", allow_missing => true"))
    writer.execute(add.format(external / "extra.parquet", ", allow_missing => true, ignore_extra_columns => true"))
    assert_same_rows(shared, "t")
    both = [texts(program, "(SELECT rowid, * FROM t)") for program in shared.both]
    assert both[0] == both[1]
    for program in shared.both:
        assert program.value("SELECT count(*) FROM t WHERE i >= 150") == 50
        assert program.rows("SELECT min(i), max(i) FROM t") == [(0, 199)]
    # DuckDB 1.5.5 leaves the default of missing columns out of the bounds that it answers max() from.
    for program in shared.both if writer is shared.ours else (shared.ours,):
        assert program.value("SELECT max(n) FROM t") == 7


@pytest.mark.parametrize("other", [False, True])
def test_rows_change_like_those_of_own_files(shared: Shared, writer: Program, external: Path, other: bool) -> None:
    """The rows are changed by the program that added the file, or by the other one."""
    writer.execute("CREATE TABLE t (i INT, s VARCHAR)")
    writer.execute(f"CALL ducklake_add_data_files('lake', 't', '{external / 'part.parquet'}')")
    changing = next(p for p in shared.both if (p is writer) != other)
    changing.execute("INSERT INTO t SELECT range, 'own' FROM range(30)")
    changing.execute("DELETE FROM t WHERE i % 10 = 3")
    changing.execute("UPDATE t SET s = 'new' WHERE i IN (104, 4)")
    changing.execute(
        "MERGE INTO t USING (SELECT 105 AS i UNION ALL SELECT 1000) u ON t.i = u.i"
        " WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (u.i, 'added')"
    )
    changing.execute("ALTER TABLE t RENAME COLUMN s TO r")
    changing.execute("ALTER TABLE t ADD COLUMN s VARCHAR DEFAULT 'later'")
    changing.execute("ALTER TABLE t ALTER COLUMN i TYPE BIGINT")
    assert_same_rows(shared, "t")
    assert texts(shared.ours, "(SELECT rowid, * FROM t)") == texts(shared.theirs, "(SELECT rowid, * FROM t)")
    # DuckDB 1.5.5 gives rows that it moved to another file new ids when it merges that one with its neighbour.
    rows = "(SELECT rowid, * FROM t)" if changing is shared.ours else "t"
    before = texts(shared.ours, rows)
    changing.execute("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)")
    changing.execute("CALL ducklake_merge_adjacent_files('lake')")
    for program in shared.both:
        assert texts(program, rows) == before, program.name
    assert_same_rows(shared, "t")


def test_folders_are_columns(shared: Shared, writer: Program, external: Path) -> None:
    writer.execute("CREATE TABLE h (i INT, k INT, z VARCHAR)")
    writer.execute(f"CALL ducklake_add_data_files('lake', 'h', '{external}/tree/*/*/*.parquet')")
    assert sorted(shared.ours.rows("SELECT * FROM h")) == [(1, 1, "a b"), (2, 2, None), (3, 10, "")]
    assert_same_rows(shared, "h")
    for program in shared.both:
        assert program.value("SELECT i FROM h WHERE k > 9") == 3
        assert program.rows("SELECT max(k), count(z) FROM h") == [(10, 2)]


def test_partitions_of_the_table_are_taken_from_folders(shared: Shared, writer: Program, external: Path) -> None:
    writer.execute("CREATE TABLE h (i INT, k INT, z VARCHAR)")
    writer.execute("ALTER TABLE h SET PARTITIONED BY (k, z)")
    writer.execute(f"CALL ducklake_add_data_files('lake', 'h', '{external}/tree/*/*/*.parquet')")
    writer.execute("INSERT INTO h VALUES (9, 1, 'a b')")
    assert_same_rows(shared, "h")
    for program in shared.both:
        assert sorted(program.rows("SELECT i FROM h WHERE k = 1 AND z = 'a b'")) == [(1,), (9,)]
    plan = "\n".join(row[0] for row in shared.ours.rows("EXPLAIN SELECT i FROM h WHERE k = 1"))
    assert "2 of 4" in plan


def test_all_kinds_of_values(shared: Shared, writer: Program, external: Path) -> None:
    writer.execute(
        "CREATE TABLE v (f DOUBLE, d DECIMAL(8,2), day DATE, b BOOLEAN, t TIMESTAMP, tz TIMESTAMPTZ, u UUID, s VARCHAR,"
        " bl BLOB, c TIME)"
    )
    writer.execute(f"CALL ducklake_add_data_files('lake', 'v', '{external / 'values.parquet'}')")
    assert_same_rows(shared, "v")
    conditions = (
        "f < -1",
        "d > 3",
        "day = '2020-02-29'",
        "b",
        "t > '2020-01-01'",
        "tz < '2020-01-01 00:00:00+00'",
        "s > 'z'",
    )
    for program in shared.both:
        for condition in conditions:
            assert program.value(f"SELECT count(*) FROM v WHERE {condition}") == 1, condition


def test_what_does_not_fit_is_refused_by_both(shared: Shared, external: Path, peer: Peer) -> None:
    peer.execute(f"COPY (SELECT 'abc' AS i, 'y' AS s) TO '{external}/text.parquet'")
    peer.execute(f"COPY (SELECT 5::BIGINT AS i, 'y' AS s) TO '{external}/wide.parquet'")
    shared.ours.execute("CREATE TABLE t (i INT, s VARCHAR)")
    for name, message in {
        "text": "cannot be read as the INTEGER",
        "wide": "cannot be read as the INTEGER",
        "extra": "ignore_extra_columns => true",
        "none": "no file matches",
    }.items():
        call = f"CALL ducklake_add_data_files('lake', 't', '{external}/{name}.parquet')"
        with pytest.raises(lakedbapi.Error, match=message):
            shared.ours.execute(call)
        with pytest.raises(Exception, match=r"(?i)error"):
            shared.theirs.execute(call)
    assert shared.last() == 1


def test_a_file_that_duckdb_adds_is_read_by_connections_that_are_open(shared: Shared, external: Path) -> None:
    plain = lakedbapi.connect(shared.place.url, autocommit=True)
    shared.theirs.execute("CREATE TABLE t (i INT, s VARCHAR)")
    assert plain.execute("SELECT count(*) FROM t").fetchone() == (0,)
    shared.theirs.execute(f"CALL ducklake_add_data_files('lake', 't', '{external}/part.parquet')")
    assert plain.execute("SELECT count(s) FROM t").fetchone() == (100,)
    plain.close()


def test_times_that_are_finer_in_a_file_are_found_as_each_reads_them(
    shared: Shared, peer: Peer, tmp_path: Path
) -> None:
    """DuckDB 2 rounds where DuckDB 1 cuts off."""
    times = "make_timestamp_ns(9_999_999_999), make_timestamp_ns(8_000_000_001)"
    peer.execute(f"COPY (SELECT unnest([{times}]) AS t) TO '{tmp_path}/fine.parquet'")
    for program in shared.both:
        shared.theirs.execute("CREATE OR REPLACE TABLE t (t TIMESTAMP)")
        program.execute(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/fine.parquet')")
        for reader in shared.both:
            values = [value for (value,) in reader.rows("SELECT CAST(t AS VARCHAR) FROM t")]
            for value in values:
                assert reader.value(f"SELECT count(*) FROM t WHERE t = '{value}'") == 1, (reader.name, value)
