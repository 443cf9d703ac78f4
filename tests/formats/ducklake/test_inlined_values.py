"""Rows in the catalog come back as they went in, on every database: values of all types, updates, several schemas."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakedbapi
from compliance.peers.lakes import on_postgresql
from lakedbapi import url
from tests.engines import needs_duckdb_2
from tests.formats.ducklake.test_read_open import MYSQL

SCALARS = {
    "boolean": ["true", "false"],
    "tinyint": ["-128", "127"],
    "ubigint": ["18446744073709551615", "0"],
    "hugeint": ["-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"],
    "uhugeint": ["340282366920938463463374607431768211455"],
    "float": ["'nan'", "'-inf'", "1e-20", "'-0.0'", "0.1"],
    "double": ["'nan'", "'inf'", "1e300", "'-0.0'", "0.1"],
    "decimal(38,10)": ["-1234567890123456789.25", "0"],
    "date": ["'0001-01-01'", "'infinity'", "'-infinity'", "'0044-03-15 (BC)'", "'12020-01-01'"],
    "time": ["'24:00:00'", "'23:59:59.999999'", "'00:00:00'"],
    "timetz": ["'10:00:00.123456+05:30'", "'00:00:00-15:59'"],
    "timestamp": ["'1969-12-31 23:59:59.5'", "'infinity'", "'-infinity'", "'0044-03-15 (BC) 01:02:03'"],
    "timestamp_s": ["'2020-01-01 00:00:01'"],
    "timestamp_ms": ["'2020-01-01 00:00:00.123'"],
    "timestamp_ns": ["'2020-01-01 00:00:00.123456789'"],
    "timestamptz": ["'2020-01-01 00:00:00+05:30'", "'infinity'", "'0044-03-15 (BC) 01:02:03+00'"],
    "interval": ["'1 year 2 months 3 days 04:05:06.789012'", "'0 seconds'", "'-1 month 1 microsecond'", "'-3 days'"],
    "varchar": ["''", "'it''s \\ \"é€𝄞\"'", "'NULL'", "'line' || chr(10) || chr(9)", "'nul' || chr(0) || 'x'"],
    "json": ["'{\"a\": [1, null, \"it''s\"]}'", "'null'"],
    "blob": [r"'\xAA\x00b'", "''", r"'\x27\x5C'"],
    "uuid": ["'f79c3e09-677c-4bbd-a479-3f349cb785e7'", "'00000000-0000-0000-0000-000000000000'"],
}
NESTED = {
    "struct(a integer, b varchar)": ["{'a': 1, 'b': 'x, y''\"\\z'}", "{'a': NULL, 'b': 'NULL'}", "{'a': 2, 'b': ''}"],
    "varchar[]": ["['a,b', 'it''s', '', NULL, 'null', ' pad ', '[', '}', '\\', 'a=b']", "[]", "[NULL]"],
    "integer[][]": ["[[1], [], NULL, [NULL, 2]]"],
    "map(varchar, integer)": ["MAP {'k': 1, 'l l': NULL, '=': 2, '''': 3}", "MAP {}"],
    "map(integer, struct(l varchar[]))": ["MAP {1: {'l': ['a''b', NULL]}, 2: NULL}"],
    "struct(h hugeint, f double, d decimal(9,2), u uuid)": [
        "{'h': 9007199254740993, 'f': 'nan'::double, 'd': -1.50, 'u': 'f79c3e09-677c-4bbd-a479-3f349cb785e7'}"
    ],
}
HARD = {
    "struct(a date, b timestamptz, c interval, d timetz)": [
        "{'a': 'infinity', 'b': '2020-01-01 00:00:00+05:30', 'c': '1 month 1 microsecond', 'd': '10:00:00+01'}"
    ],
    "json[]": ["['{\"a\": 1}', NULL, '[\"it''s\"]']"],
    "blob[]": [r"['\xAA\x00b'::blob, ''::blob]"],
}
"""Types that some databases' rows cannot have: where they cannot, rows go to files."""


@pytest.fixture(params=["sqlite", "postgresql", "mysql", "duckdb"])
def lake_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty place for a lake."""
    if request.param == "sqlite":
        yield f"ducklake:///{tmp_path}/catalog.sqlite"
    elif request.param == "duckdb":
        yield f"ducklake+duckdb:///{tmp_path}/{uuid.uuid4().hex}.ducklake"
    elif request.param == "postgresql":
        with on_postgresql(tmp_path) as place:
            yield place.url
    else:
        pymysql = pytest.importorskip("pymysql")
        name, login = f"lake_{uuid.uuid4().hex[:12]}", url.urlsplit(MYSQL)
        server = pymysql.connect(
            host=login.hostname, port=login.port or 3306, user=login.username, password=login.password or ""
        )
        with server, server.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            try:
                yield f"ducklake+{MYSQL}/{name}?data_path={tmp_path}/data/"
            finally:
                cursor.execute(f"DROP DATABASE {name}")


class Session:
    def __init__(self, place: str, **options: str) -> None:
        self.connection = lakedbapi.connect(place, autocommit=True, alias="lake", **options)
        self("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '1000')")

    def __call__(self, sql: str) -> list[tuple[object, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def texts(self, table: str = "t") -> list[tuple[object, ...]]:
        return self(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (SELECT rowid AS id, * FROM {table}) ORDER BY ALL")


@pytest.fixture
def lake(lake_url: str) -> Iterator[Session]:
    session = Session(lake_url)
    yield session
    session.connection.close()


def literals(types: dict[str, list[str]]) -> list[list[str]]:
    """Rows of SQL literals: one column a type; shorter lists end in NULL."""
    count = max(map(len, types.values())) + 1
    return [
        [f"CAST({values[n]} AS {type})" if n < len(values) else f"NULL::{type}" for type, values in types.items()]
        for n in range(count)
    ]


def fill(lake: Session, table: str, types: dict[str, list[str]]) -> list[list[str | None]]:
    """A table with a column for each type; the values that it must have, column by column."""
    rows = literals(types)
    lake(f"CREATE TABLE {table} (" + ", ".join(f"c{n} {type}" for n, type in enumerate(types)) + ")")
    lake(f"INSERT INTO {table} VALUES " + ", ".join(f"({', '.join(row)})" for row in rows))
    columns = ("[" + ", ".join(f"CAST({row[n]} AS VARCHAR)" for row in rows) + "]" for n in range(len(types)))
    return list(lake(f"SELECT {', '.join(columns)}")[0])  # type: ignore[arg-type]


def values(lake: Session, table: str) -> list[list[str | None]]:
    return [list(column) for column in zip(*lake.texts(table), strict=True)][1:]  # type: ignore[arg-type]


@pytest.mark.parametrize("types", [SCALARS, NESTED], ids=["scalars", "nested"])
def test_values_stay_what_they_are(lake: Session, types: dict[str, list[str]]) -> None:
    expected = fill(lake, "t", types)
    assert lake("SELECT count(*) FROM files('t')") == [(0,)]
    assert dict(zip(types, values(lake, "t"), strict=True)) == dict(zip(types, expected, strict=True))
    lake("CALL ducklake_flush_inlined_data('lake')")
    assert lake("SELECT count(*) FROM files('t')") == [(1,)]
    assert dict(zip(types, values(lake, "t"), strict=True)) == dict(zip(types, expected, strict=True))


def test_hard_values_stay_what_they_are_wherever_they_go(lake: Session) -> None:
    expected = {}
    for number, (type, texts) in enumerate(HARD.items()):
        expected[type] = fill(lake, f"t{number}", {type: texts})
    for _ in range(2):
        assert {type: values(lake, f"t{number}") for number, type in enumerate(HARD)} == expected
        lake("CALL ducklake_flush_inlined_data('lake')")


def test_updates_and_schemas_follow_each_other(lake: Session) -> None:
    """At every snapshot the same, before and after the rows move to files."""
    for sql in (
        "CREATE TABLE t (k INTEGER, s VARCHAR, n TINYINT)",
        "INSERT INTO t SELECT i, 'v' || i, i FROM range(8) r(i)",
        "DELETE FROM t WHERE k = 1",
        "UPDATE t SET s = 'it''s ' || k WHERE k IN (2, 3)",
        "ALTER TABLE t ADD COLUMN added VARCHAR DEFAULT 'a,''b'",
        "INSERT INTO t VALUES (10, 'x', 1, 'own')",
        "UPDATE t SET added = NULL, k = k + 100 WHERE k IN (3, 4)",
        "ALTER TABLE t RENAME COLUMN s TO label",
        "ALTER TABLE t ALTER COLUMN n TYPE BIGINT",
        "INSERT INTO t VALUES (11, 'y', 9000000000, 'big')",
        "UPDATE t SET label = 'again' WHERE k IN (2, 10, 11)",
        "ALTER TABLE t DROP COLUMN added",
        "DELETE FROM t WHERE k IN (11, 5)",
        "INSERT INTO t VALUES (12, NULL, NULL)",
    ):
        lake(sql)
    ((last,),) = lake("SELECT max(snapshot_id) FROM snapshots()")
    assert isinstance(last, int)

    def everything() -> list[object]:
        snapshots = [lake.texts(f"t AT (VERSION => {id})") for id in range(1, last + 1)]
        return [*snapshots, sorted(map(str, lake(f"SELECT * FROM table_changes('t', 1, {last})")))]

    before = everything()
    assert lake("SELECT count(*) FROM files('t')") == [(0,)]
    assert lake("SELECT * FROM t WHERE k IN (2, 12, 103) ORDER BY k") == [
        (2, "again", 2),
        (12, None, None),
        (103, "it's 3", 3),
    ]
    lake("CALL ducklake_flush_inlined_data('lake')")
    assert lake("SELECT count(*) > 0 FROM files('t')") == [(True,)]
    assert everything() == before
    lake("UPDATE t SET label = 'file' WHERE k = 12")
    lake("DELETE FROM t WHERE k = 0")
    assert everything() == before
    lake("CALL ducklake_flush_inlined_data('lake')")
    assert everything() == before


@needs_duckdb_2("has no Arrow form of VARIANT")
def test_what_the_catalog_cannot_hold_goes_to_files(lake: Session) -> None:
    lake("CREATE TABLE v (v VARIANT)")
    lake("INSERT INTO v VALUES ({'a': 1, 'b': ['x', NULL]}), (42), (NULL)")
    lake("CREATE TABLE g (g GEOMETRY)")
    lake("INSERT INTO g VALUES ('POINT (1 2)'), ('LINESTRING (0 0, 1 1)'), (NULL)")
    for table in ("v", "g"):
        assert lake(f"SELECT count(*) FROM files('{table}')") == [(1,)]
    assert lake("SELECT CAST(v AS VARCHAR) FROM v") == [("{'a': 1, 'b': [x, NULL]}",), ("42",), (None,)]
    assert lake("SELECT CAST(g AS VARCHAR) FROM g") == [("POINT (1 2)",), ("LINESTRING (0 0, 1 1)",), (None,)]
    lake("DELETE FROM g WHERE CAST(g AS VARCHAR) LIKE 'POINT%'")
    lake("UPDATE v SET v = 'new'::VARIANT WHERE CAST(v AS VARCHAR) = '42'")
    assert lake("SELECT count(*) FROM g") == [(2,)]
    assert ("new",) in lake("SELECT CAST(v AS VARCHAR) FROM v")


SOME = ["nl\n", "nl", "e", "é", "é\u0301", "ctid", "xmin", "😀", "end ", "\x0b"]
NAMES = [*SOME, "x" * 70 + "a", "x" * 70 + "b", "ü" * 40]


def test_columns_of_any_name_hold_rows(lake: Session) -> None:
    """Databases cut, fold or refuse some names: what a table of theirs cannot be called goes to files."""
    for number, names in enumerate([NAMES, ["nl\n"], ["é", "e"], ["x" * 70], ["ctid"]]):
        columns = ['"' + name + '"' for name in names]
        lake(f"CREATE TABLE t{number} ({', '.join(f'{column} INTEGER' for column in columns)})")
        lake(f"INSERT INTO t{number} VALUES ({', '.join(map(str, range(len(names))))})")
        assert lake(f"SELECT * FROM t{number}") == [tuple(range(len(names)))]
    lake("CALL ducklake_flush_inlined_data('lake')")
    assert lake("SELECT * FROM t0") == [tuple(range(len(NAMES)))]


@pytest.mark.parametrize("count", [190, 400])
def test_any_number_of_columns_holds_rows(lake: Session, count: int) -> None:
    """With as much in each as counts against the size of a page."""
    lake(f"CREATE TABLE t ({', '.join(f'c{n} VARCHAR' for n in range(count))})")
    text = "'" + "a" * 39 + "'"
    lake(f"INSERT INTO t VALUES ({', '.join([text] * count)})")
    assert lake(f"SELECT c0, c{count - 1} FROM t") == [("a" * 39, "a" * 39)]
    lake(f"CREATE TABLE wide ({', '.join(f'c{n} INTEGER' for n in range(2_000))})")


def test_columns_that_postgresql_cut_are_found(tmp_path: Path) -> None:
    """Writers that let it cut the names of the columns of inlined tables read them all the same, and so do we."""
    psycopg = pytest.importorskip("psycopg")
    long, cut = "ü" * 40, "ü" * 31
    with on_postgresql(tmp_path) as place:
        lake = Session(place.url)
        lake(f"CREATE TABLE t (v INTEGER, {cut} INTEGER)")
        lake("INSERT INTO t VALUES (1, 2)")
        with psycopg.connect(place.location.removeprefix("ducklake:postgres:"), autocommit=True) as database:
            database.execute("UPDATE ducklake_column SET column_name = %s WHERE column_name = %s", [long, cut])
        again = Session(f"{place.url}&alias=again")
        assert again(f"SELECT {long} FROM t") == [(2,)]
        again("INSERT INTO t VALUES (3, 4)")
        assert again("SELECT * FROM t ORDER BY v") == [(1, 2), (3, 4)]
