"""CALL add_data_files: what may be added, and what the transaction and the catalog make of it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi import DataError, IntegrityError, ProgrammingError
from tests.dml.conftest import Lake

Write = Callable[..., str]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakedbapi.connect(tmp_path / "lake") as connection:
        lake = Lake(connection)
        lake("CALL lake.set_option('data_inlining_row_limit', '0')")
        yield lake


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes an Arrow table below the data path, or elsewhere; returns the full path."""

    def write(rows: pa.Table, name: str = "in/a.parquet", below: str = "lake/data") -> str:
        path = tmp_path / below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        return str(path)

    return write


ROWS = pa.table({"i": pa.array([1, 2, 3], pa.int32()), "s": ["a", "b", None]})


def test_nan_is_found_in_files_of_other_programs(lake: Lake, write: Write) -> None:
    """Their statistics leave it out, though it is the greatest value."""
    lake("CREATE TABLE t (f DOUBLE, s STRUCT(x FLOAT))")
    values = [1.0, 50.0, float("nan")]
    single = pa.array([{"x": value} for value in values], pa.struct([("x", pa.float32())]))
    lake("CALL add_data_files('lake', 't', ?)", write(pa.table({"f": values, "s": single})))
    lake.commit()
    for condition in ("f > 100", "s.x > 100", "f >= 'nan'", "NOT f < 100", "isnan(s.x)"):
        assert lake(f"SELECT count(*) FROM t WHERE {condition}") == [(1,)], condition
        assert lake(f"DELETE FROM t WHERE {condition}") == 1, condition
        lake.rollback()
    assert lake("SELECT isnan(max(f)), min(s.x) FROM t") == [(True, 1.0)]


def test_added_rows_are_there_before_and_after_the_commit(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR)")
    lake("INSERT INTO t VALUES (0, 'own')")
    lake(f"CALL lake.add_data_files('t', '{write(ROWS)}')")
    expected = [(0, "own"), (1, "a"), (2, "b"), (3, None)]
    assert lake.rows() == expected
    lake.commit()
    assert lake.rows() == expected
    assert lake("SELECT count(*) FROM t WHERE i > 1") == [(2,)]


def test_rows_can_change_in_the_same_transaction(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR)")
    lake(f"CALL lake.add_data_files('t', '{write(ROWS)}')")
    assert lake("DELETE FROM t WHERE i = 2") == 1
    assert lake("UPDATE t SET s = 'c' WHERE i = 3") == 1
    lake.commit()
    assert lake.rows() == [(1, "a"), (3, "c")]


def test_a_rollback_leaves_the_file(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR)")
    lake.commit()
    path = write(ROWS)
    lake(f"CALL lake.add_data_files('t', '{path}')")
    lake("DELETE FROM t")
    lake.rollback()
    assert Path(path).exists()
    assert lake.rows() == []


def test_a_file_is_added_once(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR)")
    path = write(ROWS)
    lake(f"CALL lake.add_data_files('t', '{path}')")
    for _ in range(2):
        with pytest.raises(ProgrammingError, match="is a file of table t already"):
            lake(f"CALL lake.add_data_files('t', ['{path}'])")
        lake.commit()
    other = write(ROWS, "in/b.parquet")
    with pytest.raises(ProgrammingError, match="is a file of table t already"):
        lake(f"CALL lake.add_data_files('t', ['{other}', '{other.replace('/b.', '/../in/b.')}'])")


def test_a_file_that_takes_the_name_of_one_of_another_lake_is_read_by_its_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "lake" / "data" / "a.parquet"
    structs = pa.array([{"a": 1, "b": 2}] * 3)
    for rows in (ROWS, ROWS.append_column("st", structs)):
        with lakedbapi.connect(tmp_path / "lake") as connection:
            lake = Lake(connection)
            lake("CREATE TABLE t (i INTEGER, st STRUCT(a BIGINT, b BIGINT))")
            path.parent.mkdir(parents=True)
            pq.write_table(rows, path)
            lake("CALL lake.add_data_files('t', ?, allow_missing => true, ignore_extra_columns => true)", str(path))
            lake("ALTER TABLE t RENAME COLUMN st.a TO c")
            found = lake("SELECT st FROM t WHERE i = 1")
            lake.commit()
        shutil.rmtree(tmp_path / "lake")
    assert found == [({"c": 1, "b": 2},)]


def test_columns_that_are_renamed_added_and_dropped_later(lake: Lake, write: Write) -> None:
    """A column of the file that was left out does not come back as a later column of its name."""
    lake("CREATE TABLE t (i INTEGER, st STRUCT(a INTEGER, b INTEGER))")
    structs = pa.array([{"a": 1, "b": 2, "c": 3}] * 3)
    rows = ROWS.append_column("st", structs.cast(pa.struct([(n, pa.int32()) for n in "abc"])))
    lake(f"CALL lake.add_data_files('t', '{write(rows)}', ignore_extra_columns => true)")
    lake.commit()
    for change in (
        "ADD COLUMN s VARCHAR DEFAULT 'new'",
        "ADD COLUMN st.c INTEGER",
        "RENAME COLUMN i TO j",
        "RENAME COLUMN st.a TO b2",
        "DROP COLUMN st.b",
    ):
        lake(f"ALTER TABLE t {change}")
    lake.commit()
    assert lake("SELECT j, s, st FROM t WHERE j = 1") == [(1, "new", {"b2": 1, "c": None})]


def test_missing_columns_have_their_defaults(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR, n INTEGER DEFAULT 7, d DATE DEFAULT '2020-02-29')")
    path = write(ROWS)
    with pytest.raises(ProgrammingError, match=r"column 'n' of table t is missing.*allow_missing => true"):
        lake(f"CALL lake.add_data_files('t', '{path}')")
    lake(f"CALL lake.add_data_files('t', '{path}', allow_missing => true)")
    lake.commit()
    assert lake("SELECT DISTINCT n, CAST(d AS VARCHAR) FROM t") == [(7, "2020-02-29")]
    assert lake("SELECT count(*) FROM t WHERE n = 7") == [(3,)]


def test_missing_fields_of_structs_are_missing_columns(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, st STRUCT(a BIGINT, b STRUCT(c BIGINT, d BIGINT)))")
    path = write(ROWS.select(["i"]).append_column("st", pa.array([{"a": 1, "b": {"d": 2}}] * 3)))
    with pytest.raises(ProgrammingError, match=r"column 'st\.b\.c' of table t is missing"):
        lake(f"CALL lake.add_data_files('t', '{path}')")
    lake(f"CALL lake.add_data_files('t', '{path}', allow_missing => true)")
    assert lake("SELECT DISTINCT st FROM t") == [({"a": 1, "b": {"c": None, "d": 2}},)]


@pytest.mark.parametrize("at_once", [True, False])
def test_each_file_has_the_mapping_of_its_own_names(lake: Lake, write: Write, at_once: bool) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR DEFAULT 'none')")
    numbers = pa.array([4], pa.int32())
    files = (
        pa.table({"i": numbers}),
        pa.table({"S": ["z"], "I": numbers}),
        pa.table({"i": numbers, "s": ["y"]}),
    )
    for number, rows in enumerate(files):
        lake("CALL add_data_files('lake', 't', ?, allow_missing => true)", write(rows, f"in/{number}.parquet"))
        if not at_once:
            lake.commit()
    lake.commit()
    assert lake("SELECT s FROM t WHERE i = 4 ORDER BY s") == [("none",), ("y",), ("z",)]


def test_types_must_fit(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR)")
    wide = pa.table({"i": pa.array([1], pa.int64()), "s": ["a"]})
    with pytest.raises(DataError, match="'i' is BIGINT in the file, which cannot be read as the INTEGER"):
        lake(f"CALL lake.add_data_files('t', '{write(wide)}')")
    lake("CREATE TABLE d (d DECIMAL(8, 2))")
    lake(f"CALL lake.add_data_files('d', '{write(pa.table({'d': pa.array([1], pa.decimal128(5, 2))}), 'd.parquet')}')")
    with pytest.raises(DataError, match=r"'d' is DECIMAL\(5, ?1\) in the file"):
        lake(f"CALL lake.add_data_files('d', '{write(pa.table({'d': pa.array([1], pa.decimal128(5, 1))}))}')")


@pytest.mark.parametrize("type", ["TIMESTAMP_S", "TIMESTAMP_MS"])
def test_nanoseconds_are_no_seconds_and_milliseconds(lake: Lake, write: Write, type: str) -> None:
    """DuckDB 1.5 could not read the table any more."""
    lake(f"CREATE TABLE t (t {type})")
    rows = pa.table({"t": pa.array([0], pa.timestamp("ns"))})
    with pytest.raises(DataError, match="'t' is TIMESTAMP_NS in the file"):
        lake(f"CALL lake.add_data_files('t', '{write(rows)}')")


@pytest.mark.parametrize(
    ("type", "unit"), [("TIMESTAMP", "ns"), ("TIMESTAMP_MS", "us"), ("TIMESTAMP_S", "ms"), ("TIMESTAMP_S", "us")]
)
def test_times_that_are_finer_in_a_file_are_found_as_they_are_read(
    lake: Lake, write: Write, type: str, unit: str
) -> None:
    per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    rows = pa.table({"t": pa.array([10 * per_second - 1, 8 * per_second + 1], pa.timestamp(unit))})
    lake(f"CREATE TABLE t (t {type})")
    lake(f"CALL lake.add_data_files('t', '{write(rows)}')")
    lake.commit()
    values = [value for (value,) in lake("SELECT CAST(t AS VARCHAR) FROM t")]
    for value in values:
        assert lake(f"SELECT count(*) FROM t WHERE t = '{value}'") == [(1,)]
    assert lake(f"SELECT count(*) FROM t WHERE t >= '{max(values)}'") == [(1,)]
    assert lake("SELECT CAST(min(t) AS VARCHAR), CAST(max(t) AS VARCHAR) FROM t") == [(min(values), max(values))]


def test_constraints_hold_for_files_too(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR NOT NULL)")
    with pytest.raises(IntegrityError, match="'s' of table t is NOT NULL"):
        lake(f"CALL lake.add_data_files('t', '{write(ROWS)}')")
    lake("CREATE TABLE c (i INTEGER CHECK (i < 3), s VARCHAR)")
    with pytest.raises(IntegrityError, match="1 rows of the files violate a CHECK"):
        lake(f"CALL lake.add_data_files('c', '{write(ROWS)}')")
    lake(f"CALL lake.add_data_files('t', '{write(ROWS.slice(0, 0), 'empty.parquet')}')")
    lake("CREATE TABLE m (i INTEGER, n INTEGER NOT NULL)")
    with pytest.raises(IntegrityError, match="'n' of table m is NOT NULL, but is missing in the file"):
        lake(f"CALL lake.add_data_files('m', '{write(ROWS.select(['i']))}', allow_missing => true)")


def test_files_elsewhere_need_permission(lake: Lake, write: Write, tmp_path: Path) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR)")
    lake.commit()
    path = write(ROWS, below="elsewhere")
    with pytest.raises(ProgrammingError, match=r"outside of the lake's data path.*allow_external=True"):
        lake(f"CALL lake.add_data_files('t', '{path}')")
    link = tmp_path / "lake" / "data" / "link.parquet"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(path)
    with pytest.raises(ProgrammingError, match="outside of the lake's data path"):
        lake(f"CALL lake.add_data_files('t', '{link}')")
    with lakedbapi.connect(tmp_path / "lake", allow_external=True) as trusted:
        trusted.execute(f"CALL lake.add_data_files('t', '{path}')")
    lake.commit()
    assert lake("SELECT count(*) FROM t") == [(3,)]
    assert lake("SELECT sum(i) FROM t") == [(6,)]


def test_folders_count_unless_they_are_switched_off(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, k INTEGER)")
    rows = pa.table({"i": pa.array([1], pa.int32()), "k": pa.array([5], pa.int32())})
    path = write(rows, "in/k=7/other=1/a.parquet")
    again = write(rows, "in/k=7/b.parquet")
    lake(f"CALL lake.add_data_files('t', '{path}')")
    lake(f"CALL lake.add_data_files('t', '{again}', hive_partitioning => false)")
    assert lake("SELECT k FROM t ORDER BY k") == [(5,), (7,)]
    wrong = write(rows, "in/k=x/a.parquet")
    with pytest.raises(DataError, match="has no value of its column's type"):
        lake(f"CALL lake.add_data_files('t', '{wrong}')")


def test_partitions_that_no_folder_tells_prune_nothing(lake: Lake, write: Write) -> None:
    """Folders have the values of columns: they are no keys of other transforms."""
    rows = pa.table({"i": pa.array([1, 2], pa.int32()), "k": pa.array([5, 6], pa.int32())})
    for name, keys in {"t": "k", "u": "bucket(4, k)", "v": "k, bucket(4, i)"}.items():
        lake(f"CREATE TABLE {name} (i INTEGER, k INTEGER) PARTITIONED BY ({keys})")
        lake(f"CALL lake.add_data_files('{name}', '{write(rows, f'{name}/a.parquet')}')")
        lake(f"CALL lake.add_data_files('{name}', '{write(rows, f'{name}/k=7/a.parquet')}')")
        lake(f"INSERT INTO {name} VALUES (3, 7)")
    lake.commit()
    for name in "tuv":
        counts = [lake(f"SELECT count(*) FROM {name} WHERE k = {k}") for k in (5, 6, 7)]
        assert counts == [[(1,)], [(1,)], [(3,)]], name
        assert lake(f"SELECT k FROM {name} WHERE i = 2 ORDER BY k") == [(6,), (7,)]


def test_statistics_are_those_of_the_columns_that_are_read(lake: Lake, write: Write, tmp_path: Path) -> None:
    """Beside columns that are left out, or that a folder hides."""
    extra = pa.array([{"a": 100 + i, "b": [200 + i]} for i in range(3)])
    hidden = pa.array([300, 301, 302], pa.int32())
    rows = pa.table({"more": extra, "k": hidden, "i": pa.array([1, None, 3], pa.int32())})
    lake("CREATE TABLE t (k INTEGER, i INTEGER)")
    for folder in ("7", "__HIVE_DEFAULT_PARTITION__"):
        path = write(rows, f"in/k={folder}/a.parquet")
        lake(f"CALL lake.add_data_files('t', '{path}', ignore_extra_columns => true)")
    lake.commit()
    for condition, count in {"i = 1": 2, "i > 2": 2, "i IS NULL": 2, "k = 7": 3, "k IS NULL": 3, "k > 7": 0}.items():
        assert lake(f"SELECT count(*) FROM t WHERE {condition}") == [(count,)], condition
    with sqlite3.connect(tmp_path / "lake" / "catalog.sqlite") as catalog:
        told = "SELECT min_value, max_value, value_count, null_count FROM ducklake_file_column_stats ORDER BY 1, 2, 3"
        assert catalog.execute(told).fetchall() == [(None, None, 0, 3), *[("1", "3", 2, 1)] * 2, ("7", "7", 3, 0)]


def test_unknown_bounds_prune_nothing(lake: Lake, write: Write) -> None:
    """Long text may be cut in a footer, and some writers tell nothing."""
    long = "x" * 40
    rows = pa.table({"s": [long + "a", long + "z"], "f": [1.0, 200.0]})
    path = write(rows)
    pq.write_table(rows, path.replace("a.parquet", "b.parquet"), write_statistics=False)
    lake("CREATE TABLE t (s VARCHAR, f DOUBLE)")
    lake("INSERT INTO t VALUES ('a', 0)")
    lake(f"CALL lake.add_data_files('t', '{path.replace('a.parquet', '*.parquet')}')")
    lake.commit()
    assert lake(f"SELECT count(*) FROM t WHERE s > '{long}y'") == [(2,)]
    assert lake("SELECT count(*) FROM t WHERE f > 100") == [(2,)]
    assert lake("SELECT max(s) FROM t") == [(long + "z",)]


def test_compaction_takes_over_added_files(lake: Lake, write: Write) -> None:
    lake("CREATE TABLE t (i INTEGER, s VARCHAR)")
    for number in range(3):
        lake(f"CALL lake.add_data_files('t', '{write(ROWS, f'in/{number}.parquet')}')")
        lake.commit()
    lake("INSERT INTO t VALUES (9, 'own')")
    lake.commit()
    before = lake("SELECT rowid, * FROM t ORDER BY rowid")
    lake("CALL ducklake_merge_adjacent_files('lake')")
    lake.commit()
    assert lake("SELECT rowid, * FROM t ORDER BY rowid") == before
    assert lake("SELECT count(*) FROM t AT (VERSION => 2)") == [(6,)]
    assert lake("SELECT count(*) FROM ducklake_list_files('lake', 't')") == [(1,)]


def test_nested_columns(lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "data"
    folder.mkdir(parents=True, exist_ok=True)
    query = "SELECT [{'x': 1, 'y': 'a'}] AS l, MAP {'k': [1, NULL]} AS m, {'a': {'b': 2}} AS s"
    duckdb.sql(query).write_parquet(f"{folder}/n.parquet")
    lake("CREATE TABLE t (m MAP(VARCHAR, INTEGER[]), l STRUCT(y VARCHAR, x INTEGER)[], s STRUCT(a STRUCT(b INTEGER)))")
    shutil.copy(folder / "n.parquet", folder / "again.parquet")
    for name in ("n", "again"):
        lake(f"CALL lake.add_data_files('t', '{folder}/{name}.parquet')")
        lake.commit()
    assert lake("SELECT l, m, s FROM t") == [([{"y": "a", "x": 1}], {"k": [1, None]}, {"a": {"b": 2}})] * 2
    with sqlite3.connect(folder.parent / "catalog.sqlite") as catalog:
        names = "SELECT column_id, source_name, parent_column FROM ducklake_name_mapping ORDER BY mapping_id, column_id"
        entries = catalog.execute(names).fetchall()
    inside = {name: entries[parent][1] for _, name, parent in entries if parent is not None}
    assert len(entries) == 11, "the second file has the mapping of the first"
    assert inside == {"list": "value", "x": "list", "y": "list", "key": "m", "value": "m", "a": "s", "b": "a"}
