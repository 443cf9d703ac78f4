"""Lakes that DuckDB wrote read here as they read there: rows, deletes, inlined data, history."""

from __future__ import annotations

import json
import sqlite3
import struct
from pathlib import Path

import pytest

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from lakedbapi.deletes import puffin, roaring
from lakedbapi.model.catalog import AsOf
from lakedbapi.model.delete_vector import DeleteVector
from tests.formats.ducklake.reading import as_texts, assert_same_history, count, find, open_lake, texts

SCALARS = {
    "boolean": ["true", "false"],
    "tinyint": ["-128", "127"],
    "smallint": ["-32768", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "utinyint": ["0", "255"],
    "usmallint": ["0", "65535"],
    "uinteger": ["0", "4294967295"],
    "ubigint": ["0", "18446744073709551615"],
    "float": ["1.5", "'nan'", "'-inf'", "1e-20", "0.1"],
    "double": ["1.5", "'nan'", "'inf'", "1e300", "0.1"],
    "decimal(4,1)": ["-3.5", "999.9"],
    "decimal(18,3)": ["-3.5", "999999.125"],
    "decimal(38,10)": ["-3.5", "1234567890123456789.25"],
    "date": ["'2020-02-29'", "'0001-01-01'", "'infinity'", "'-infinity'", "'0044-03-15 (BC)'", "'12020-01-01'"],
    "time": ["'00:00:00'", "'23:59:59.999999'", "'24:00:00'"],
    "timestamp": ["'2020-01-01 00:00:00'", "'1969-12-31 23:59:59.5'", "'infinity'", "'0044-03-15 (BC) 01:02:03'"],
    "timestamp_s": ["'2020-01-01 00:00:01'", "'1969-12-31 23:59:59'"],
    "timestamp_ms": ["'2020-01-01 00:00:00.123'", "'1969-12-31 23:59:59'"],
    "timestamp_ns": ["'2020-01-01 00:00:00.123456789'", "'1969-12-31 23:59:59'"],
    "timestamptz": ["'2020-01-01 00:00:00+05:30'", "'1969-12-31 23:59:59.25+00'", "'infinity'"],
    "varchar": ["'x'", "''", "'it''s \\ é€𝄞'", "'NULL'", "'line' || chr(10)"],
    "json": ["'{\"a\": [1, null]}'", "'null'"],
    "blob": [r"'\xAA\x00b'", "''"],
    "uuid": ["'f79c3e09-677c-4bbd-a479-3f349cb785e7'", "'00000000-0000-0000-0000-000000000000'"],
    "interval": ["'1 year 2 months 3 days 04:05:06.789'", "'0 seconds'"],
    "hugeint": ["-5", "9007199254740992"],
}
NESTED = {
    "struct(a int, b varchar)": ["{'a': 1, 'b': 'x, y'}", "{'a': NULL, 'b': ''}", "{'a': 2, 'b': 'NULL'}"],
    "int[]": ["[1, NULL, 3]", "[]"],
    "varchar[]": ["['a,b', 'it''s', '', NULL, 'null', ' pad ', '[', '}']"],
    "map(varchar, int)": ["MAP {'k': 1, 'l l': NULL}", "MAP {}"],
    "struct(l struct(x int, y double[])[], m map(int, varchar))": [
        "{'l': [{'x': 1, 'y': [0.5]}, NULL], 'm': MAP {1: 'a', 2: NULL}}",
        "{'l': NULL, 'm': MAP {}}",
    ],
    "date[]": ["['2020-01-01', NULL]"],
}


def fill(peer: Peer, types: dict[str, list[str]]) -> None:
    """One column a type, one row a value; shorter lists end in NULL."""
    peer.execute("CREATE TABLE t (" + ", ".join(f"c{i} {type}" for i, type in enumerate(types)) + ")")
    for n in range(max(map(len, types.values())) + 1):
        row = [f"CAST({values[n]} AS {type})" if n < len(values) else "NULL" for type, values in types.items()]
        peer.execute(f"INSERT INTO t VALUES ({', '.join(row)})")


@pytest.mark.parametrize("limit", [0, 10], ids=["files", "inlined"])
@pytest.mark.parametrize("types", [SCALARS, NESTED], ids=["scalars", "nested"])
def test_values_of_every_type_are_the_same(place: Place, peer: Peer, types: dict[str, list[str]], limit: int) -> None:
    peer.attach(place.location, place.data_path, data_inlining_row_limit=limit)
    fill(peer, types)
    catalog = open_lake(place)
    assert texts(catalog, catalog.latest()) == peer.rows(as_texts("lake.t"))


def test_inlined_rows_and_deletes_are_merged(place: Place, peer: Peer) -> None:
    peer.attach(place.location, place.data_path)
    for sql in (
        "CREATE TABLE t(i int, s varchar)",
        "INSERT INTO t SELECT i, 'v' || i FROM range(50) r(i)",
        "INSERT INTO t VALUES (100, 'a')",
        "DELETE FROM t WHERE i IN (3, 100)",
        "UPDATE t SET s = 'u' WHERE i = 5",
        "ALTER TABLE t ADD COLUMN n int DEFAULT 7",
        "INSERT INTO t VALUES (101, 'b', 1)",
    ):
        peer.execute(sql)
    catalog = open_lake(place)
    assert count(catalog.latest()) == 50
    assert_same_history(catalog, peer)


@pytest.mark.parametrize("limit", [0, 10], ids=["files", "inlined"])
def test_every_version_survives_flush_merge_and_rewrite(place: Place, peer: Peer, limit: int) -> None:
    peer.attach(place.location, place.data_path, data_inlining_row_limit=limit)
    for sql in (
        "CREATE TABLE t(i int)",
        "INSERT INTO t SELECT * FROM range(20)",
        "INSERT INTO t SELECT * FROM range(20, 40)",
        "UPDATE t SET i = 1000 WHERE i = 25",
        "DELETE FROM t WHERE i IN (1, 30)",
        "INSERT INTO t VALUES (50), (51)",
        "DELETE FROM t WHERE i IN (2, 50)",
        "CALL ducklake_flush_inlined_data('lake')",
        "INSERT INTO t VALUES (60)",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
        "DELETE FROM t WHERE i = 3",
        "CALL ducklake_merge_adjacent_files('lake')",
    ):
        peer.execute(sql)
    assert_same_history(open_lake(place), peer)


def test_a_replaced_delete_file_keeps_its_history(sqlite_place: Place, peer: Peer) -> None:
    peer.attach(sqlite_place.location, sqlite_place.data_path, data_inlining_row_limit=0)
    peer.execute("CREATE TABLE t(i int)")
    peer.execute("INSERT INTO t SELECT * FROM range(20)")
    for i in (1, 2, 3):
        peer.execute(f"DELETE FROM t WHERE i = {i}")
    catalog = open_lake(sqlite_place)
    assert [count(catalog.as_of(AsOf(version=n))) for n in (2, 3, 4, 5)] == [20, 19, 18, 17]
    assert catalog.latest().delete_files(find(catalog.latest(), "t")).column("delete_count").to_pylist() == [3]


def test_columns_follow_their_ids_through_renames_and_readding(place: Place, peer: Peer) -> None:
    peer.attach(place.location, place.data_path)
    for sql in (
        "CREATE TABLE t(x varchar, y varchar, st struct(a int, b int))",
        "INSERT INTO t VALUES ('in-x', 'in-y', {'a': 1, 'b': 2})",
        "INSERT INTO t SELECT 'X' || i, 'Y' || i, {'a': i, 'b': i} FROM range(20) r(i)",
        "ALTER TABLE t RENAME x TO tmp",
        "ALTER TABLE t RENAME y TO x",
        "ALTER TABLE t RENAME tmp TO y",
        "ALTER TABLE t DROP COLUMN x",
        "ALTER TABLE t ADD COLUMN x varchar DEFAULT 'new'",
        "ALTER TABLE t DROP COLUMN st.a",
        "ALTER TABLE t ADD COLUMN st.a varchar",
        "INSERT INTO t VALUES ('y', {'b': 3, 'a': 'text'}, NULL)",
    ):
        peer.execute(sql)
    assert_same_history(open_lake(place), peer)


def test_widened_columns_are_cast(place: Place, peer: Peer) -> None:
    peer.attach(place.location, place.data_path)
    peer.execute("CREATE TABLE t(a tinyint, b float, c decimal(4,1), d date, e utinyint)")
    peer.execute("INSERT INTO t VALUES (1, 0.5, 2.5, '2020-01-01', 200)")
    peer.execute("INSERT INTO t SELECT 2, 1.5, 3.5, '2021-01-01', 201 FROM range(20)")
    for column, type in (
        ("a", "bigint"),
        ("b", "double"),
        ("c", "decimal(10,1)"),
        ("d", "timestamp"),
        ("e", "smallint"),
    ):
        peer.execute(f"ALTER TABLE t ALTER {column} TYPE {type}")
    assert_same_history(open_lake(place), peer)


def test_a_table_is_found_by_the_name_it_had(sqlite_place: Place, peer: Peer) -> None:
    peer.attach(sqlite_place.location, sqlite_place.data_path)
    peer.execute("CREATE TABLE t(i int)")
    peer.execute("INSERT INTO t SELECT * FROM range(20)")
    peer.execute("ALTER TABLE t RENAME TO renamed")
    peer.execute("DROP TABLE renamed")
    catalog = open_lake(sqlite_place)
    assert catalog.latest().tables() == {}
    assert count(catalog.as_of(AsOf(version=2)), "t") == 20
    assert count(catalog.as_of(AsOf(version=3)), "renamed") == 20


def test_files_without_field_ids_are_read_by_name(sqlite_place: Place, peer: Peer, tmp_path: Path) -> None:
    peer.attach(sqlite_place.location, sqlite_place.data_path)
    (tmp_path / "given").mkdir()
    peer.execute("CREATE TABLE t(i int, s varchar, d int DEFAULT 7)")
    peer.execute("INSERT INTO t SELECT i, 'own', 1 FROM range(20) r(i)")
    peer.execute(f"COPY (SELECT 'given' AS s, 5 AS i) TO '{tmp_path}/given/a.parquet'")
    peer.execute(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/given/a.parquet', allow_missing => true)")
    catalog = open_lake(sqlite_place)
    assert texts(catalog, catalog.latest()) == peer.rows(as_texts("lake.t"))
    assert f"{tmp_path}/given/" in catalog.data_roots()


def test_deletion_vectors_in_puffin_files_are_read(sqlite_place: Place, peer: Peer) -> None:
    peer.attach(sqlite_place.location, sqlite_place.data_path, data_inlining_row_limit=0)
    peer.execute("CALL ducklake_set_option('lake', 'write_deletion_vectors', 'true')")
    peer.execute("CREATE TABLE t(i int)")
    peer.execute("INSERT INTO t SELECT * FROM range(20)")
    peer.execute("DELETE FROM t WHERE i % 3 = 0")
    catalog = open_lake(sqlite_place)
    assert catalog.latest().delete_files(find(catalog.latest(), "t")).column("format").to_pylist() == ["puffin"]
    assert_same_history(catalog, peer)


def test_a_puffin_container_keeps_the_vectors_of_several_snapshots(sqlite_place: Place, peer: Peer) -> None:
    peer.attach(sqlite_place.location, sqlite_place.data_path, data_inlining_row_limit=0)
    peer.execute("CREATE TABLE t(i int)")
    peer.execute("INSERT INTO t SELECT * FROM range(20)")
    peer.execute("DELETE FROM t WHERE i = 1")
    peer.execute("DELETE FROM t WHERE i = 2")
    catalog = open_lake(sqlite_place)
    files = catalog.latest().delete_files(find(catalog.latest(), "t"))
    vectors = {3: roaring.encode(DeleteVector.of([1])), 4: roaring.encode(DeleteVector.of([1, 2]))}
    Path(files.column("path")[0].as_py()).write_bytes(puffin_container(vectors))
    with sqlite3.connect(catalog.backend.name) as connection:
        connection.execute("UPDATE ducklake_delete_file SET format = 'puffin'")
    reread = open_lake(sqlite_place)
    assert [count(reread.as_of(AsOf(version=n))) for n in (2, 3, 4)] == [20, 19, 18]


def puffin_container(vectors: dict[int, bytes]) -> bytes:
    """`deletion-vector-v1` blobs, each tagged with its snapshot."""
    data, blobs = puffin.MAGIC, []
    for snapshot, vector in vectors.items():
        properties = {"ducklake-snapshot-id": str(snapshot)}
        entry = {"type": puffin.DELETION_VECTOR, "offset": len(data), "length": len(vector), "properties": properties}
        blobs.append(entry)
        data += vector
    payload = json.dumps({"blobs": blobs}).encode()
    return data + puffin.MAGIC + payload + struct.pack("<ii", len(payload), 0) + puffin.MAGIC
