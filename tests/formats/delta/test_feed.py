"""The change feed: from change files where there are any, else from what was added and removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakedbapi.errors import ProgrammingError
from tests.formats.delta.conftest import Connect
from tests.formats.delta.test_deletion_vectors import blob, framed, stored
from tests.formats.delta.writing import DV, Table, remove, with_vector

COUNTS = {
    "r-cdf-table": [
        (0, "insert", 10),
        (1, "update_postimage", 3),
        (1, "update_preimage", 3),
        (2, "update_postimage", 3),
        (2, "update_preimage", 3),
        (3, "delete", 1),
    ],
    "r-cdc_ict_table": [(1, "insert", 4), (2, "delete", 2), (3, "update_postimage", 2), (3, "update_preimage", 2)],
}


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_changes_of_other_writers_are_found(name: str, golden: Callable[[str], Path], connect: Connect) -> None:
    connection = connect(golden(name), read_only=True)
    query = "SELECT snapshot_id, change_type, count(*) FROM table_changes('table', 0, 3) GROUP BY ALL ORDER BY ALL"
    assert connection.execute(query).fetchall() == COUNTS[name]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t").create(
        [("i", "long"), ("p", "string")], ["p"], protocol=DV, delta_enableChangeDataFeed="true"
    )


def changes(connect: Connect, table: Table, first: int, last: int) -> list[tuple[Any, ...]]:
    query = "SELECT snapshot_id, change_type, i, p FROM table_changes('t', ?, ?) ORDER BY ALL"
    return connect(table.path).execute(query, (first, last)).fetchall()


def vector(table: Table, *positions: int) -> dict[str, Any]:
    body = blob(*positions)
    return stored(table, framed(body), len(body), len(positions))


def test_added_and_removed_files_are_inserts_and_deletes(connect: Connect, table: Table) -> None:
    add = table.file("a.parquet", [1, 2], partitionValues={"p": "x"})
    table.commit(add)
    table.commit(remove(add))
    bare = {"remove": {"path": "b.parquet", "dataChange": True}}
    table.commit(table.file("b.parquet", [3], partitionValues={"p": "y"}))
    table.commit(bare)
    assert changes(connect, table, 1, 4) == [
        (1, "insert", 1, "x"),
        (1, "insert", 2, "x"),
        (2, "delete", 1, "x"),
        (2, "delete", 2, "x"),
        (3, "insert", 3, "y"),
        (4, "delete", 3, "y"),
    ]


def test_a_vector_that_grows_deletes_and_one_that_shrinks_inserts(connect: Connect, table: Table) -> None:
    plain = table.file("a.parquet", range(10), partitionValues={"p": "x"})
    one, two = (with_vector(plain, vector(table, *positions)) for positions in ([1, 4], [1, 4, 9]))
    table.commit(plain)
    table.commit(one, remove(plain))
    table.commit(remove(one), two)
    table.commit(remove(two), one)
    table.commit(remove(one))
    assert changes(connect, table, 2, 4) == [
        (2, "delete", 1, "x"),
        (2, "delete", 4, "x"),
        (3, "delete", 9, "x"),
        (4, "insert", 9, "x"),
    ]
    assert [i for _, _, i, _ in changes(connect, table, 5, 5)] == [0, 2, 3, 5, 6, 7, 8, 9]


def test_rows_of_different_files_are_no_updates(connect: Connect, table: Table) -> None:
    old, new = (table.file(f"{name}.parquet", [1], partitionValues={"p": "x"}) for name in "ab")
    table.commit(old)
    table.commit(remove(old), new)
    assert changes(connect, table, 2, 2) == [(2, "delete", 1, "x"), (2, "insert", 1, "x")]


def test_commits_that_only_rearrange_change_nothing(connect: Connect, table: Table) -> None:
    small = [table.file(f"{name}.parquet", [1], partitionValues={"p": "x"}) for name in "ab"]
    table.commit(*small)
    large = table.file("c.parquet", [1, 1], partitionValues={"p": "x"}, dataChange=False)
    table.commit(*(remove(add, dataChange=False) for add in small), large)
    assert changes(connect, table, 2, 2) == []


def test_files_that_do_not_say_that_rows_change_are_changes(connect: Connect, table: Table) -> None:
    table.commit(table.file("a.parquet", [1], partitionValues={"p": "x"}, dataChange=None))
    assert changes(connect, table, 1, 1) == [(1, "insert", 1, "x")]


def test_change_files_count_alone(connect: Connect, table: Table) -> None:
    old = table.file("a.parquet", [1, 2], partitionValues={"p": "x"})
    table.commit(old)
    kinds = ["update_preimage", "update_postimage"]
    told = table.file("_change_data/c.parquet", pa.table({"i": [1, 10], "_change_type": kinds}))["add"]
    cdc = {"cdc": {"path": told["path"], "partitionValues": {"p": "x"}, "size": told["size"], "dataChange": False}}
    table.commit(remove(old), table.file("b.parquet", [10, 2], partitionValues={"p": "x"}), cdc)
    assert changes(connect, table, 2, 2) == [(2, "update_postimage", 10, "x"), (2, "update_preimage", 1, "x")]
    connection = connect(table.path)
    assert connection.execute("SELECT i FROM table_insertions('t', 1, 2) ORDER BY i").fetchall() == [(1,), (2,), (10,)]
    assert connection.execute("SELECT i FROM table_deletions('t', 1, 2)").fetchall() == [(1,)]


def test_a_version_without_the_switch_is_named(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create([("i", "long"), ("p", "string")])
    with pytest.raises(ProgrammingError, match=r"version 0 .* no change feed: delta.enableChangeDataFeed was not true"):
        changes(connect, table, 0, 0)


def test_versions_are_named_that_had_the_switch_off_again(connect: Connect, table: Table) -> None:
    lake = connect(table.path, autocommit=True)
    lake.execute("ALTER TABLE t SET ('delta.enableChangeDataFeed' = 'false')")
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    with pytest.raises(ProgrammingError, match=r"version 1 .* no change feed"):
        changes(connect, table, 0, 2)


FEED = "'delta.enableChangeDataFeed' = 'true'"
MAPPED = f"{FEED}, 'delta.columnMapping.mode' = 'name'"
PLAIN = "i DOUBLE, s STRUCT(x BIGINT), p VARCHAR"
BY_P = f"{PLAIN}) PARTITIONED BY (p"
REPLACED = {
    "columns that are mapped anew": (PLAIN, PLAIN, "they have no column in common"),
    "other columns": (PLAIN, "j DOUBLE, t VARCHAR", "they have no column in common"),
    "no partitions any more": (BY_P, PLAIN, "they are partitioned by other columns"),
    "new partitions": (PLAIN, BY_P, "they are partitioned by other columns"),
    "partitions of another case": (BY_P, BY_P.replace("p", "P"), "they are partitioned by other columns"),
    "a narrower type": (PLAIN, PLAIN.replace("DOUBLE", "INTEGER"), "the type of column 'i' does not hold"),
    "a narrower field": (PLAIN, PLAIN.replace("BIGINT", "INTEGER"), r"the type of column 's\.x' does not hold"),
    "another kind of type": (PLAIN, "i DOUBLE, s BIGINT", "the type of column 's' does not hold"),
}
"""The columns of a table, those that it is replaced by, and what is told of them."""


@pytest.mark.parametrize("name", REPLACED)
def test_rows_of_a_replaced_table_are_not_told_in_columns_that_do_not_hold_them(
    connect: Connect, tmp_path: Path, name: str
) -> None:
    columns, others, why = REPLACED[name]
    properties = MAPPED if "mapped" in name else FEED
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t ({columns}) WITH ({properties})")
    lake.execute("INSERT INTO t VALUES (1.6, {'x': 7}, 'a')")
    lake.execute(f"CREATE OR REPLACE TABLE t ({others}) WITH ({properties})")
    lake.execute("INSERT INTO t BY NAME SELECT * FROM t")
    lake.execute("DELETE FROM t")
    with pytest.raises(ProgrammingError, match=f"the changes of version 1 of .* of version 2: {why}"):
        lake.execute("SELECT * FROM table_changes('t', 0, 2)")
    with pytest.raises(ProgrammingError, match=f"the changes of version 2 of .* of version 2: {why}"):
        lake.execute("SELECT * FROM table_changes('t', 2, 2)")
    assert lake.execute("SELECT change_type, i, p FROM table_changes('t', 0, 1)").fetchall() == [("insert", 1.6, "a")]


def test_the_rows_of_a_table_that_was_replaced_when_it_was_empty_are_told(connect: Connect, tmp_path: Path) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (i BIGINT) WITH ({MAPPED})")
    lake.execute(f"CREATE OR REPLACE TABLE t (j VARCHAR) WITH ({MAPPED})")
    lake.execute("INSERT INTO t VALUES ('x')")
    assert lake.execute("SELECT change_type, j FROM table_changes('t', 0, 2)").fetchall() == [("insert", "x")]


@pytest.mark.parametrize("properties", [FEED, MAPPED], ids=["", "mapped"])
def test_the_rows_of_altered_tables_are_told_in_their_last_columns(
    connect: Connect, tmp_path: Path, properties: str
) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (i INTEGER, p VARCHAR, l INTEGER[]) PARTITIONED BY (p) WITH ({properties})")
    lake.execute("INSERT INTO t VALUES (1, 'a', [5])")
    lake.execute("ALTER TABLE t SET ('delta.enableTypeWidening' = 'true')")
    lake.execute("ALTER TABLE t ALTER COLUMN i TYPE BIGINT")
    lake.execute("ALTER TABLE t ALTER COLUMN l TYPE BIGINT[]")
    lake.execute("ALTER TABLE t ADD COLUMN n INTEGER")
    if properties == MAPPED:
        lake.execute("ALTER TABLE t RENAME COLUMN i TO k")
        lake.execute("ALTER TABLE t RENAME COLUMN p TO i")
        lake.execute("ALTER TABLE t RENAME COLUMN k TO p")
    [(end,)] = lake.execute("SELECT max(snapshot_id) FROM history('t')").fetchall()
    found = lake.execute(f"SELECT * FROM table_changes('t', 0, {end})").fetchall()
    assert [row[3:] for row in found] == [(1, "a", [5], None)]


def test_rows_that_a_replaced_table_had_with_the_same_columns_are_told(connect: Connect, tmp_path: Path) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute(f"CREATE TABLE t (i INTEGER, p VARCHAR) PARTITIONED BY (p) WITH ({FEED})")
    lake.execute("INSERT INTO t VALUES (1, 'a')")
    lake.execute(f"CREATE OR REPLACE TABLE t (p VARCHAR, I BIGINT) PARTITIONED BY (p) WITH ({FEED})")
    found = lake.execute("SELECT snapshot_id, change_type, i, p FROM table_changes('t', 0, 2) ORDER BY 1").fetchall()
    assert found == [(1, "insert", 1, "a"), (2, "delete", 1, "a")]
