"""Catalogs of every format version: new ones of 1.1, old ones that are only read, and migration between them.

`old/` has lakes that earlier versions of DuckDB wrote, each with the rows that it read in `expected.json`
(`table@snapshot` -> the rows as Python tuples in text).
"""

from __future__ import annotations

import json
import math
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import event, select

import lakedbapi
from compliance.peers.peer import Peer
from lakedbapi import errors
from lakedbapi.formats.ducklake.catalog import DuckLakeCatalog
from lakedbapi.formats.ducklake.metadata import tables
from tests.engines import needs_duckdb_2
from tests.formats.ducklake.reading import find
from tests.formats.ducklake.test_read_open import Empty, empty
from tests.formats.ducklake.writing import Lake, column

__all__ = ["empty"]

OLD = Path(__file__).with_name("old")
ARCHIVES = ["duckdb-1.4.4-format-0.3", "duckdb-1.5.1-format-0.4"]

Run = Callable[[str], list[tuple[object, ...]]]
Connect = Callable[..., Run]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    """Connects to the catalog `lake/c.sqlite`, with options; each statement commits by itself."""
    opened: list[lakedbapi.Connection] = []

    def connect(**options: str) -> Run:
        url = f"ducklake:///{tmp_path}/lake/c.sqlite"
        connection = lakedbapi.connect(
            url, data_path=f"{tmp_path}/lake/data/", override_data_path="true", autocommit=True, **options
        )
        opened.append(connection)

        def run(sql: str) -> list[tuple[object, ...]]:
            cursor = connection.cursor()
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

        return run

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture(params=ARCHIVES)
def expected(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, list[str]]:
    """Unpacks an old lake; what its writer read of it."""
    with tarfile.open(OLD / f"{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(tmp_path)
    return json.loads((tmp_path / "lake" / "expected.json").read_text())  # type: ignore[no-any-return]


def read(run: Run, expected: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows of the same tables at the same snapshots."""
    names = (name.split("@") for name in expected)
    return {
        f"{table}@{version}": sorted(map(str, run(f"SELECT * FROM {table} AT (VERSION => {version})")))
        for table, version in names
    }


def catalog_rows(tmp_path: Path, sql: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(tmp_path / "lake" / "c.sqlite") as connection:
        return connection.execute(sql).fetchall()


# Old catalogs


def test_an_old_catalog_reads_as_its_writer_read_it(connect: Connect, expected: dict[str, list[str]]) -> None:
    run = connect()
    assert read(run, expected) == expected
    assert run("SELECT i FROM v WHERE i > 99") == [(101,)]
    assert run("SELECT count(*) FROM q WHERE k = 'k1'") == [(17,)]


def test_an_old_catalog_is_not_written_but_says_what_to_do(
    connect: Connect, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    run = connect()
    before = (tmp_path / "lake" / "c.sqlite").read_bytes(), sorted(tmp_path.rglob("*.parquet"))
    for sql in (
        "INSERT INTO t VALUES (1, 'a', 1, 1)",
        "DELETE FROM t WHERE i = 1",
        "CREATE TABLE new (a INTEGER)",
        "CALL ducklake_expire_snapshots('lake', older_than => now())",
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
        "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)",
        "CALL ducklake_set_option('lake', 'target_file_size', '1000')",
    ):
        with pytest.raises(errors.NotSupportedError, match=r"version 0\.\d can be read.*ducklake_migrate"):
            run(sql)
    assert ((tmp_path / "lake" / "c.sqlite").read_bytes(), sorted(tmp_path.rglob("*.parquet"))) == before


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_migrated_catalog_keeps_every_snapshot_and_is_written(
    connect: Connect, expected: dict[str, list[str]], version: str
) -> None:
    run = connect()
    run(f"CALL ducklake_migrate('lake', '{version}')")
    assert read(run, expected) == expected
    run("INSERT INTO t VALUES (207, 'new', 1, 1)")
    run("DELETE FROM q WHERE x IN (8, 26)")
    run("UPDATE t SET s = 'w' WHERE i IN (101, 30)")
    run("CALL lake.flush_inlined_data()")
    run("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)")
    assert read(run, expected) == expected
    assert run("SELECT i, s FROM t WHERE i IN (30, 101, 207) ORDER BY 1") == [
        *((30, "w"), (101, "w")),
        (207, "new"),
    ]
    assert read(connect(), expected) == expected


def test_a_migrated_catalog_has_the_tables_of_a_new_one(
    connect: Connect, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    connect()("CALL lake.migrate()")
    for table in tables(None, "1.0").collection.sorted_tables:
        names = [row[1] for row in catalog_rows(tmp_path, f"PRAGMA table_info({table.name})")]
        assert names == [column.name for column in table.c], table.name
    assert catalog_rows(tmp_path, "SELECT count(*) FROM ducklake_schema_versions WHERE table_id IS NULL") == [(0,)]


def test_copies_of_a_migrated_file_have_its_statistics_and_partition(
    connect: Connect, expected: dict[str, list[str]], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    connect()("CALL lake.migrate()")
    stats, partition = (
        catalog_rows(
            tmp_path,
            f"SELECT substr(f.path, 1, 4), f.data_file_id, {columns} FROM ducklake_data_file f "
            f"LEFT JOIN {table} USING (data_file_id) WHERE f.table_id = 3 AND f.begin_snapshot < 16 ORDER BY 1, 3",
        )
        for table, columns in (
            ("ducklake_file_column_stats", "column_id, value_count, null_count, min_value, max_value"),
            ("ducklake_file_partition_value", "partition_key_index, partition_value"),
        )
    )
    files = 6 if "0.3" in request.node.name else 3
    assert len({row[1] for row in stats}) == len({row[1] for row in partition}) == files
    assert len({(row[0], *row[2:]) for row in stats}) == 6
    assert {(row[0], *row[2:]) for row in partition} == {(f"k=k{n}", 0, f"k{n}") for n in range(3)}


@pytest.mark.parametrize("expected", ARCHIVES[:1], indirect=True)
@pytest.mark.parametrize("cut", ["partial_max", "partial_file_info", "table_id", "RENAME"])
def test_a_migration_that_was_cut_off_is_repeated(
    connect: Connect, expected: dict[str, list[str]], tmp_path: Path, cut: str
) -> None:
    """Where each change of a table's columns commits. Until then all snapshots are read as before."""
    database = f"ducklake:///{tmp_path}/lake/c.sqlite"
    with lakedbapi.connect(database, data_path=f"{tmp_path}/lake/data/", override_data_path="true") as connection:
        catalog = connection.session.catalogs["lake"]
        assert isinstance(catalog, DuckLakeCatalog)

        def commit(_: object, cursor: sqlite3.Cursor, statement: str, *__: object) -> None:
            if statement.startswith(("CREATE", "ALTER")):
                cursor.execute("COMMIT")
                cursor.execute("BEGIN")
                if cut in statement:
                    raise InterruptedError(cut)

        # Before the statement, as all before it is committed then, and the column is still there.
        moment = "before_cursor_execute" if cut == "partial_file_info" else "after_cursor_execute"
        event.listen(catalog.backend.engine, moment, commit)
        try:
            with suppress(InterruptedError):
                connection.execute("CALL lake.migrate('1.1')")
        finally:
            event.remove(catalog.backend.engine, moment, commit)
    run = connect()
    assert read(run, expected) == expected
    run("CALL lake.migrate('1.1')")
    assert read(run, expected) == expected
    assert catalog_rows(tmp_path, "SELECT value FROM ducklake_metadata WHERE key = 'version'") == [("1.1",)]


def test_schema_versions_of_a_whole_catalog_become_those_of_each_table(
    connect: Connect, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    lives = catalog_rows(tmp_path, "SELECT table_id, begin_snapshot, end_snapshot FROM ducklake_table")
    columns = [row[1] for row in catalog_rows(tmp_path, "PRAGMA table_info(ducklake_schema_versions)")]
    noted = catalog_rows(tmp_path, "SELECT * FROM ducklake_schema_versions")
    if "table_id" not in columns:
        noted = [
            (at, version, id) for at, version in noted for id, begin, end in lives if begin <= at < (end or math.inf)
        ]
    for id, version in catalog_rows(tmp_path, "SELECT table_id, schema_version FROM ducklake_inlined_data_tables"):
        if (version, id) not in {known[1:] for known in noted}:
            first = "SELECT min(snapshot_id) FROM ducklake_snapshot WHERE schema_version = "
            noted.append((*catalog_rows(tmp_path, f"{first}{version}")[0], version, id))
    connect()("CALL lake.migrate()")
    names = "begin_snapshot, schema_version, table_id"
    assert sorted(catalog_rows(tmp_path, f"SELECT {names} FROM ducklake_schema_versions")) == sorted(set(noted))


def test_inlined_tables_that_nobody_noted_keep_their_columns(connect: Connect, tmp_path: Path) -> None:
    """Their schema version may be gone with its snapshots; later ones have other names."""
    run = connect()
    run("CREATE TABLE t (a INTEGER)")
    run("INSERT INTO t VALUES (1)")
    catalog_rows(tmp_path, "UPDATE ducklake_inlined_data_tables SET schema_version = 2")
    for statement in ("CREATE TABLE u (i INTEGER)", "ALTER TABLE t RENAME a TO b"):
        run(statement)
    run("CALL ducklake_expire_snapshots('lake', older_than => now())")
    run("CALL lake.migrate('1.1')")
    assert run("SELECT b FROM t") == [(1,)]
    assert connect()("SELECT b FROM t") == [(1,)]


def test_duckdb_reads_a_migrated_catalog(
    connect: Connect, expected: dict[str, list[str]], tmp_path: Path, peer: Peer
) -> None:
    connect(automatic_migration="true")("DELETE FROM t WHERE i = 8")
    peer.attach(f"ducklake:sqlite:{tmp_path}/lake/c.sqlite", f"{tmp_path}/lake/data/", override_data_path=True)
    theirs = {name: peer.rows("SELECT * FROM {} AT (VERSION => {})".format(*name.split("@"))) for name in expected}
    assert {name: sorted(map(str, rows)) for name, rows in theirs.items()} == expected
    assert peer.value("SELECT count(*) FROM t WHERE i = 8") == 0


def test_a_catalog_is_not_migrated_where_it_is_only_read(connect: Connect, expected: dict[str, list[str]]) -> None:
    run = connect(automatic_migration="true", read_only="true")
    assert read(run, expected) == expected
    with pytest.raises(errors.ProgrammingError, match="read-only"):
        run("CALL ducklake_migrate('lake')")


def test_others_notice_a_migration(connect: Connect, expected: dict[str, list[str]]) -> None:
    first, second = connect(), connect(busy_timeout="20000")
    assert first("SELECT count(*) FROM t") == second("SELECT count(*) FROM t")
    second("CALL ducklake_migrate('lake')")
    first("INSERT INTO t VALUES (207, 'new', 1, 1)")
    assert second("SELECT s FROM t WHERE i = 207") == [("new",)]
    assert read(first, expected) == expected


# Format 1.1


def test_a_new_catalog_of_1_1_has_its_tables(empty: Empty) -> None:
    catalog = empty.open(ducklake_version="1.1")
    backend = catalog.backend
    with backend.read() as connection:
        columns = {
            table: backend.column_names(connection, f"ducklake_{table}")
            for table in (
                *("schema", "data_file", "delete_file", "file_column_stats", "table_column_stats"),
                "view_column_tag",
            )
        }
        version = select(backend.tables.metadata.c.value).where(backend.tables.metadata.c.key == "version")
        assert connection.execute(version).scalar() == "1.1"
    assert columns["schema"][-1] == "parent_schema_id"
    assert columns["data_file"][-2:] == ["partial_max", "row_group_count"]
    assert columns["delete_file"][-2:] == ["partial_max", "row_group_count"]
    assert columns["file_column_stats"][-3:] == ["extra_stats", "min_is_exact", "max_is_exact"]
    assert columns["table_column_stats"][-3:] == ["extra_stats", "min_is_exact", "max_is_exact"]
    assert columns["view_column_tag"] == ["view_id", "column_name", "begin_snapshot", "end_snapshot", "key", "value"]
    assert empty.open(create=False).backend.tables.version == "1.1"


def test_other_versions_are_not_created(empty: Empty) -> None:
    with pytest.raises(errors.NotSupportedError, match=r"0\.4 cannot be created; supported: 1\.0, 1\.1"):
        empty.open(ducklake_version="0.4")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_rows_and_history_of_both_versions_are_alike(connect: Connect, tmp_path: Path, version: str) -> None:
    run = connect(ducklake_version=version)
    run("CALL ducklake_set_option('lake', 'write_deletion_vectors', 'true')")
    run("CREATE TABLE t (i INTEGER, s VARCHAR)")
    run("INSERT INTO t SELECT i, 'v' || i FROM range(50) r(i)")
    for n in range(3):
        run(f"DELETE FROM t WHERE i BETWEEN {15 * n} AND {15 * n + 11}")
    run("INSERT INTO t VALUES (100, 'inlined'), (101, 'too')")
    run("UPDATE t SET s = 'new' WHERE i = 100")
    run("DELETE FROM t WHERE i = 101")
    assert [run(f"SELECT count(*) FROM t AT (VERSION => {n})") for n in range(2, 9)] == [
        [(n,)] for n in (50, 38, 26, 14, 16, 16, 15)
    ]
    deleted = run(
        "SELECT count(*), count(DISTINCT snapshot_id) FROM table_changes('t', 1, 5) WHERE change_type = 'delete'"
    )
    assert deleted == [(36, 3)]
    before = run("SELECT rowid, * FROM t ORDER BY ALL")
    for call in ("flush_inlined_data", "merge_adjacent_files", "rewrite_data_files"):
        run(f"CALL lake.{call}()")
        assert run("SELECT rowid, * FROM t ORDER BY ALL") == before
        assert [run(f"SELECT count(*) FROM t AT (VERSION => {n})") for n in (3, 4, 5)] == [[(38,)], [(26,)], [(14,)]]


@needs_duckdb_2("does not tell the row groups of what it wrote")
def test_a_1_1_catalog_is_told_row_groups_and_exactness(connect: Connect, tmp_path: Path) -> None:
    run = connect(ducklake_version="1.1", data_inlining_row_limit="0")
    run("CREATE TABLE t (i INTEGER, s VARCHAR)")
    run("INSERT INTO t SELECT i, repeat('é', 300) || i FROM range(130000) r(i)")
    assert catalog_rows(tmp_path, "SELECT row_group_count FROM ducklake_data_file") == [(2,)]
    exact = "SELECT min_is_exact, max_is_exact FROM ducklake_file_column_stats WHERE column_id = {}"
    assert catalog_rows(tmp_path, exact.format(1)) in ([(1, 1)], [(None, None)])
    assert catalog_rows(tmp_path, exact.format(2)) in ([], [(0, 0)], [(None, None)])
    added = tmp_path / "lake" / "data" / "added.parquet"
    pq.write_table(pa.table({"i": pa.array(range(100), pa.int32()), "s": ["x"] * 100}), added, row_group_size=40)
    run(f"CALL lake.add_data_files('t', '{added}')")
    of_added = "SELECT row_group_count FROM ducklake_data_file WHERE path LIKE '%added.parquet'"
    assert catalog_rows(tmp_path, of_added) == [(3,)]
    run("DELETE FROM t WHERE s <> 'x' AND i < 10")
    assert catalog_rows(tmp_path, "SELECT format, row_group_count FROM ducklake_delete_file") == [("parquet", 1)]
    catalog_rows(tmp_path, "UPDATE ducklake_table_column_stats SET min_is_exact = 1, max_is_exact = 1")
    run("DELETE FROM t WHERE s <> 'x' AND i = 10")
    flags = catalog_rows(tmp_path, "SELECT DISTINCT min_is_exact, max_is_exact FROM ducklake_table_column_stats")
    assert flags == [(0, 0)]


def test_inlined_tables_of_1_1_leave_the_old_names_to_users(connect: Connect, tmp_path: Path) -> None:
    run = connect(ducklake_version="1.1")
    run("CREATE TABLE t (row_id INTEGER, begin_snapshot VARCHAR)")
    run("INSERT INTO t VALUES (7, 'x'), (8, 'y')")
    run("DELETE FROM t WHERE row_id = 8")
    names = [row[1] for row in catalog_rows(tmp_path, "PRAGMA table_info(ducklake_inlined_data_1_1)")]
    system = ["_ducklake_row_id", "_ducklake_begin_snapshot", "_ducklake_end_snapshot"]
    assert names == [*system, "row_id", "begin_snapshot"]
    rows = catalog_rows(tmp_path, "SELECT * FROM ducklake_inlined_data_1_1 ORDER BY 1")
    assert rows == [(0, 2, None, 7, "x"), (1, 2, 3, 8, "y")]
    assert run("SELECT * FROM t") == [(7, "x")]


def test_migration_to_1_1_renames_the_system_columns_of_inlined_tables(empty: Empty) -> None:
    catalog = empty.open()
    lake = Lake(catalog, None)  # type: ignore[arg-type]
    lake.create("t", column("i", "int32"))
    lake.insert_inlined("t", (1,), (2,))
    catalog.migrate("1.1")
    lake.pin()
    (group,) = lake.base.row_groups(find(lake.base, "t"))
    assert group.rows.column("i").to_pylist() == [1, 2]
    with catalog.backend.read() as connection:
        names = catalog.backend.column_names(connection, group.key)
    assert names == ["_ducklake_row_id", "_ducklake_begin_snapshot", "_ducklake_end_snapshot", "i"]
    lake.insert_inlined("t", (3,))
    (group,) = empty.open(create=False).latest().row_groups(find(lake.base, "t"))
    assert group.rows.column("i").to_pylist() == [1, 2, 3]
    catalog.migrate("1.1")
    with pytest.raises(errors.NotSupportedError, match="no way back"):
        catalog.migrate("1.0")


def test_a_column_with_a_reserved_name_stops_the_migration(connect: Connect, tmp_path: Path) -> None:
    run = connect()
    run("CREATE TABLE t (a INTEGER)")
    run("INSERT INTO t VALUES (1)")
    catalog_rows(tmp_path, "ALTER TABLE ducklake_inlined_data_1_1 ADD COLUMN _ducklake_row_id BIGINT")
    with pytest.raises(errors.ProgrammingError, match=r"_ducklake_row_id.*rename the column and flush"):
        run("CALL ducklake_migrate('lake', '1.1')")
    assert catalog_rows(tmp_path, "SELECT value FROM ducklake_metadata WHERE key = 'version'") == [("1.0",)]
    assert run("SELECT * FROM t") == [(1,)]


def test_names_that_1_1_reserves_are_refused_there(connect: Connect, tmp_path: Path) -> None:
    run = connect(ducklake_version="1.1")
    run("CREATE TABLE t (a INTEGER)")
    for statement in (
        "CREATE TABLE u (_ducklake_row_id INTEGER)",
        "CREATE TABLE u AS SELECT 1 AS _Ducklake_x",
        "ALTER TABLE t ADD COLUMN _ducklake_x INTEGER",
        "ALTER TABLE t RENAME a TO _ducklake_x",
    ):
        with pytest.raises(errors.ProgrammingError, match="is reserved"):
            run(statement)
    catalog_rows(tmp_path, "UPDATE ducklake_column SET column_name = '_ducklake_x'")
    run = connect()
    run("ALTER TABLE t ADD COLUMN b INTEGER")
    run("ALTER TABLE t RENAME _ducklake_x TO a")
    assert run("SELECT a, b FROM t") == []


@needs_duckdb_2("has no TIMESTAMPTZ_NS")
def test_columns_and_parameters_of_1_0_have_no_type_of_1_1(connect: Connect) -> None:
    """DuckDB refuses the whole lake for one type that it does not know."""
    run = connect()
    run("CREATE TABLE t (a INTEGER, s STRUCT(x INTEGER), z TIMESTAMPTZ)")
    for statement in (
        "CREATE TABLE u (a TIMESTAMPTZ_NS)",
        "CREATE TABLE u (a STRUCT(b TIMESTAMPTZ_NS[]))",
        "CREATE TABLE u AS SELECT NULL::TIMESTAMPTZ_NS AS a",
        "ALTER TABLE t ADD COLUMN b TIMESTAMPTZ_NS",
        "ALTER TABLE t ADD COLUMN s.b TIMESTAMPTZ_NS",
        "CREATE MACRO m(a TIMESTAMPTZ_NS) AS a",
    ):
        with pytest.raises(errors.NotSupportedError, match=r"in a catalog of format 1\.0"):
            run(statement)
    run("CALL ducklake_migrate('lake', '1.1')")
    run("CREATE TABLE u (a TIMESTAMPTZ_NS)")
    run("INSERT INTO u VALUES ('2020-01-02 03:04:05.123456789+00')")
    run("INSERT INTO u SELECT '2020-01-02 03:04:05.123456789+00'::TIMESTAMPTZ_NS FROM range(20)")
    assert run("SELECT count(*), count(DISTINCT a) FROM u WHERE a > '2020-01-02 03:04:05.123456788+00'") == [(21, 1)]


def test_partitions_by_units_since_the_epoch_came_with_1_1(connect: Connect, tmp_path: Path) -> None:
    run = connect()
    run("CREATE TABLE t (a TIMESTAMP, z TIMESTAMPTZ)")
    with pytest.raises(errors.NotSupportedError, match="format 'ducklake' has only"):
        run("ALTER TABLE t SET PARTITIONED BY (epoch_day(a))")
    run("CALL ducklake_migrate('lake', '1.1')")
    run("ALTER TABLE t SET PARTITIONED BY (epoch_year(a), epoch_month(a), epoch_day(z), epoch_hour(z))")
    with pytest.raises(errors.ProgrammingError, match="has no epoch_day"):
        run("CREATE TABLE u (i INTEGER) PARTITIONED BY (epoch_day(i))")
    run("CALL lake.set_option('data_inlining_row_limit', 0)")
    run("INSERT INTO t VALUES ('1969-12-31 23:00:00', '1969-12-31 23:30:00+00')")
    run("INSERT INTO t VALUES ('2020-02-01', '1970-01-02 03:00:00+01'), (NULL, NULL)")
    stored = catalog_rows(tmp_path, "SELECT transform FROM ducklake_partition_column ORDER BY partition_key_index")
    assert stored == [("epoch_year",), ("epoch_month",), ("epoch_day",), ("epoch_hour",)]
    values = "SELECT data_file_id, partition_value FROM ducklake_file_partition_value ORDER BY 1, partition_key_index"
    found: dict[object, list[object]] = {}
    for file, value in catalog_rows(tmp_path, values):
        found.setdefault(file, []).append(value)
    expected = [["-1", "-1", "-1", "-1"], ["50", "601", "1", "26"], [None] * 4]
    assert sorted(found.values(), key=str) == sorted(expected, key=str)
    assert run("SELECT count(*) FROM t WHERE a = '2020-02-01'") == [(1,)]
    assert run("SELECT count(*) FROM t WHERE z < '1970-01-01 00:00:00+00'") == [(1,)]
    run("DELETE FROM t WHERE a < '1970-01-01'")
    assert run("SELECT count(*) FROM t") == [(2,)]


def test_a_transaction_does_not_commit_over_a_migration(connect: Connect) -> None:
    first, second = connect(), connect()
    first("CREATE TABLE t (a INTEGER)")
    first("BEGIN")
    first("INSERT INTO t VALUES (1)")
    second("CALL ducklake_migrate('lake', '1.1')")
    with pytest.raises(errors.OperationalError, match=r"migrated from format version 1\.0 to 1\.1") as raised:
        first("COMMIT")
    assert raised.value.retryable
    first("ROLLBACK")
    first("INSERT INTO t VALUES (2)")
    assert second("SELECT * FROM t") == [(2,)]


def test_a_development_version_is_used_with_the_columns_it_has(connect: Connect, tmp_path: Path) -> None:
    run = connect(ducklake_version="1.1")
    run("CREATE TABLE t (i INTEGER)")
    for table, name in (
        *(
            (table, f"{end}_is_exact")
            for table in ("file_column_stats", "table_column_stats")
            for end in ("min", "max")
        ),
        ("schema", "parent_schema_id"),
    ):
        catalog_rows(tmp_path, f"ALTER TABLE ducklake_{table} DROP COLUMN {name}")
    for name in ("row_id", "begin_snapshot", "end_snapshot"):
        catalog_rows(tmp_path, f"ALTER TABLE ducklake_inlined_data_1_1 RENAME COLUMN _ducklake_{name} TO {name}")
    catalog_rows(tmp_path, "DROP TABLE ducklake_view_column_tag")
    catalog_rows(tmp_path, "UPDATE ducklake_metadata SET value = '1.1-dev1' WHERE key = 'version'")
    run = connect()
    run("CREATE VIEW v AS SELECT * FROM t")
    run("DROP VIEW v")
    run("CALL ducklake_expire_snapshots('lake', older_than => now())")
    run("INSERT INTO t SELECT * FROM range(50)")
    run("INSERT INTO t VALUES (100), (101)")
    run("DELETE FROM t WHERE i IN (3, 100)")
    assert run("SELECT count(*), max(i) FROM t") == [(50, 101)]
    run("CALL ducklake_migrate('lake', '1.1')")
    run("DELETE FROM t WHERE i = 101")
    assert run("SELECT count(*), max(i) FROM t") == [(49, 49)]
    assert catalog_rows(tmp_path, "SELECT * FROM ducklake_view_column_tag") == []


def test_tags_of_other_programs_stay_until_what_they_are_about_goes(connect: Connect, tmp_path: Path) -> None:
    run = connect(ducklake_version="1.1")
    run("CREATE SCHEMA s")
    run("CREATE TABLE s.t (i INTEGER, j INTEGER)")
    run("CREATE VIEW s.v AS SELECT 1 AS x")
    for id in (1, 2, 3):
        catalog_rows(tmp_path, f"INSERT INTO ducklake_tag VALUES ({id}, 3, NULL, 'owner', 'ada')")
    catalog_rows(tmp_path, "INSERT INTO ducklake_column_tag VALUES (2, 1, 3, NULL, 'owner', 'ada')")
    catalog_rows(tmp_path, "INSERT INTO ducklake_view_column_tag VALUES (3, 'x', 3, NULL, 'owner', 'ada')")
    ends = " UNION ALL ".join(
        f"SELECT end_snapshot FROM ducklake_{table} WHERE key = 'owner'"
        for table in ("tag", "column_tag", "view_column_tag")
    )
    for statement in (
        "COMMENT ON TABLE s.t IS 'c'",
        "COMMENT ON COLUMN s.t.i IS 'c'",
        "COMMENT ON VIEW s.v IS 'c'",
        "ALTER TABLE s.t RENAME i TO k",
        "ALTER TABLE s.t DROP COLUMN j",
        "ALTER TABLE s.t RENAME TO u",
        "ALTER VIEW s.v RENAME TO w",
        "COMMENT ON TABLE s.u IS NULL",
    ):
        run(statement)
        assert catalog_rows(tmp_path, ends) == [(None,)] * 5, statement
    for statement in ("DROP VIEW s.w", "DROP TABLE s.u", "DROP SCHEMA s"):
        run(statement)
    last = catalog_rows(tmp_path, "SELECT max(snapshot_id) FROM ducklake_snapshot")[0][0]
    assert sorted(catalog_rows(tmp_path, ends)) == [(last - 2,), (last - 2,), (last - 1,), (last - 1,), (last,)]


def test_schemas_inside_of_schemas_are_told_apart(connect: Connect, tmp_path: Path) -> None:
    run = connect(ducklake_version="1.1")
    for name, value in (("a", 1), ("b", 2), ("inner", 3), ('"a.other"', 4)):
        run(f"CREATE SCHEMA {name}")
        run(f"CREATE TABLE {name}.t AS SELECT {value} AS n")
    (parent,) = catalog_rows(tmp_path, "SELECT schema_id FROM ducklake_schema WHERE schema_name = 'a'")[0]
    for old, new in (("inner", "b"), ("b", "other")):
        catalog_rows(
            tmp_path,
            f"UPDATE ducklake_schema SET schema_name = '{new}', parent_schema_id = {parent} WHERE schema_name = '{old}'"
            " AND parent_schema_id IS NULL",
        )
    run = connect()
    found = {name for (name,) in run("SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'lake'")}
    assert found >= {"a", "a.b", "a.other"}
    assert run('SELECT n FROM "a.b".t') == [(3,)]
    assert run('SELECT n FROM "a.other".t') == [(4,)]
    run('INSERT INTO "a.b".t VALUES (30)')
    assert run('SELECT sum(n) FROM "a.b".t') == [(33,)]


def test_attach_takes_the_version(tmp_path: Path) -> None:
    with lakedbapi.connect("lake://", autocommit=True, allow_attach=True) as connection:
        options = f"DATA_PATH '{tmp_path}/data/', DUCKLAKE_VERSION '1.1'"
        connection.execute(f"ATTACH 'ducklake:sqlite:{tmp_path}/c.sqlite' AS new ({options})")
        connection.execute("CREATE TABLE new.t AS SELECT 1 AS a")
    with sqlite3.connect(tmp_path / "c.sqlite") as catalog:
        assert catalog.execute("SELECT value FROM ducklake_metadata WHERE key = 'version'").fetchall() == [("1.1",)]
