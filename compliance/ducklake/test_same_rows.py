"""What one program writes, both read the same: types, partitions, row-level changes, evolution, history."""

from __future__ import annotations

import pytest

from compliance.ducklake.lakes import Program, Shared, assert_same_rows, changes, columns, script, texts
from compliance.peers.peer import PeerError
from lakedbapi.errors import ProgrammingError

VALUES = {
    "boolean": ["true", "false"],
    "tinyint": ["-128", "127"],
    "smallint": ["-32768", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "utinyint": ["0", "255"],
    "usmallint": ["0", "65535"],
    "uinteger": ["0", "4294967295"],
    "ubigint": ["0", "18446744073709551615"],
    "float": ["-1.5", "'inf'", "'nan'", "3.4e38"],
    "double": ["-0.1", "'-inf'", "'nan'", "1e-300", "123456789.123456789"],
    "decimal(4,1)": ["-999.9", "0.1"],
    "decimal(18,3)": ["-999999999999999.999", "1"],
    "decimal(38,10)": ["1234567890123456789012345678.0123456789", "-0.0000000001"],
    "date": ["'0001-01-01'", "'1969-12-31'", "'9999-12-31'"],
    "time": ["'00:00:00'", "'23:59:59.999999'"],
    "timestamp": ["'0001-01-01 00:00:00'", "'2020-02-29 12:34:56.789012'", "'9999-12-31 23:59:59'"],
    "timestamp_s": ["'2020-02-29 12:34:56'"],
    "timestamp_ms": ["'2020-02-29 12:34:56.789'"],
    "timestamp_ns": ["'2020-02-29 12:34:56.789012345'"],
    "timestamptz": ["'2020-02-29 12:34:56.5+05:30'", "'1969-12-31 23:59:59-08'"],
    "interval": ["'1 month 2 days 03:04:05'"],
    "varchar": ["''", "'NULL'", "'it''s \"quoted\" \\ back'", "'tab\tline\n'", "'日本語 🙂'", "repeat('x', 3000)"],
    "json": ["'{\"a\": [1, null, \"x''y\"]}'", "'null'"],
    "blob": ["''::blob", "'\\x00\\xFF\\x27'::blob", "'plain'::blob"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'", "'f79c3e09-677c-4bbd-a479-3f349cb785e7'"],
    "integer[]": ["[]", "[1, NULL, 3]"],
    "varchar[]": ["['a,b', 'NULL', NULL, '', 'it''s', '\"', '[x]']"],
    "integer[][]": ["[[1], [], NULL, [NULL, 2]]"],
    "map(varchar, integer)": ["map {'k k': 1, 'x=y': NULL}", "map {}"],
    "struct(a integer, b struct(c varchar))": ["{'a': 1, 'b': {'c': 'in'}}", "{'a': NULL, 'b': NULL}"],
    "struct(a integer)[]": ["[{'a': 1}, NULL, {'a': NULL}]"],
}
"""SQL type -> values; NULL comes on top."""


def test_all_types(shared: Shared, writer: Program) -> None:
    names = {f"c{i}": sql_type for i, sql_type in enumerate(VALUES)}
    writer.execute(f"CREATE TABLE t(id int, {', '.join(f'{name} {sql_type}' for name, sql_type in names.items())})")
    for row in range(max(map(len, VALUES.values())) + 1):
        values = [str(row), *(given[row] if row < len(given) else "NULL" for given in VALUES.values())]
        writer.execute(f"INSERT INTO t VALUES ({', '.join(values)})")
    assert columns(shared.ours, "t") == columns(shared.theirs, "t")
    for name, sql_type in names.items():
        query = f"(SELECT id, {name} FROM t)"
        assert texts(shared.ours, query) == texts(shared.theirs, query), sql_type
        query = f"(SELECT count({name}) AS n FROM t)"
        assert shared.ours.rows(f"FROM {query}") == shared.theirs.rows(f"FROM {query}"), sql_type


PREDICATES = {
    "tinyint": "c > 100",
    "bigint": "c < 0",
    "float": "c > 1e30",
    "double": "c <= 0",
    "decimal(18,3)": "c < 0",
    "date": "c >= '1970-01-01'",
    "timestamp": "c BETWEEN '2020-01-01' AND '2021-01-01'",
    "timestamptz": "c < '2020-02-29 07:05:00+00'",
    "varchar": "c > 'z'",
    "blob": "c > '\\x01'::blob",
    "uuid": "c > '10000000-0000-0000-0000-000000000000'",
    "boolean": "c",
}


@pytest.mark.parametrize("sql_type", PREDICATES)
def test_statistics_of_a_type_do_not_hide_rows(shared: Shared, writer: Program, sql_type: str) -> None:
    predicate = PREDICATES[sql_type]
    writer.execute(f"CREATE TABLE t(c {sql_type})")
    for value in [*VALUES[sql_type], "NULL"]:
        writer.execute(f"INSERT INTO t VALUES ({value})")
    writer.execute("CREATE TABLE whole AS SELECT * FROM t")
    for reader in shared.both:
        held = [str(row) for row in reader.rows("SELECT c::varchar FROM t WHERE c IS NOT NULL")]
        assert len(held) == len(VALUES[sql_type])
        filtered = reader.value(f"SELECT count(*) FROM t WHERE {predicate}")
        assert filtered == reader.value(f"SELECT count(*) FILTER ({predicate}) FROM t")
        assert filtered == reader.value(f"SELECT count(*) FROM whole WHERE {predicate}")
        assert 0 < filtered < len(held) + 1
        assert reader.value("SELECT count(*) FROM t WHERE c IS NULL") == 1
        extremes = "SELECT min(c)::varchar, max(c)::varchar FROM "
        assert reader.rows(extremes + "t") == reader.rows(extremes + "(SELECT c FROM t LIMIT 1000)")


@pytest.mark.parametrize(
    "transform",
    ["k", "name", "year(ts)", "month(ts)", "day(ts)", "hour(ts)", "bucket(3, k)", "bucket(3, name)", "k, month(ts)"],
)
def test_partitions(shared: Shared, writer: Program, transform: str) -> None:
    script(
        writer,
        f"""
        CREATE TABLE p(k int, name varchar, ts timestamp);
        ALTER TABLE p SET PARTITIONED BY ({transform});
        INSERT INTO p SELECT i % 5, 'n ' || (i % 3), timestamp '2019-12-30 22:00:00' + i * interval 13 hour
            FROM range(40) r(i);
        INSERT INTO p VALUES (NULL, NULL, NULL), (7, '', '2020-01-31 23:59:59');
        DELETE FROM p WHERE k = 2;
        UPDATE p SET k = 50, name = 'moved' WHERE ts < '2020-01-03'
        """,
    )
    assert_same_rows(shared, "p")
    for predicate in ("k = 3", "k IS NULL", "k IN (1, 50)", "name = 'moved'", "name = ''", "ts >= '2020-01-10'"):
        counts = [reader.value(f"SELECT count(*) FROM p WHERE {predicate}") for reader in shared.both]
        assert counts[0] == counts[1], predicate
        unpruned = shared.ours.value(f"SELECT count(*) FILTER ({predicate}) FROM p")
        assert counts[0] == unpruned, predicate


def test_row_level_changes(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE t(k int, v int, s varchar);
        INSERT INTO t SELECT i, i * 10, 's' || i FROM range(100) r(i);
        INSERT INTO t VALUES (100, NULL, 'few'), (101, 1, NULL);
        DELETE FROM t WHERE k % 10 = 3;
        DELETE FROM t WHERE v IS NULL;
        UPDATE t SET s = 'even' WHERE k % 2 = 0;
        UPDATE t SET v = v + 1 WHERE k = 101;
        MERGE INTO t USING (SELECT i AS k, -i AS v FROM range(90, 130) r(i)) AS s ON t.k = s.k
            WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, 'merged');
        DELETE FROM t USING (SELECT i FROM range(5) r(i)) AS u WHERE t.k = u.i;
        DELETE FROM t WHERE k >= 120;
        CREATE TABLE emptied AS SELECT * FROM t;
        DELETE FROM emptied
        """,
    )
    assert_same_rows(shared, "t", "emptied")
    for reader in shared.both:
        assert reader.rows("SELECT rowid, k FROM t ORDER BY ALL") == shared.ours.rows(
            "SELECT rowid, k FROM t ORDER BY ALL"
        )


def test_the_change_feed(shared: Shared) -> None:
    script(
        shared.ours,
        """
        CREATE TABLE t(k int, v int);
        INSERT INTO t SELECT i, 0 FROM range(40) r(i);
        UPDATE t SET v = 1 WHERE k < 20;
        UPDATE t SET v = 2 WHERE k = 21;
        DELETE FROM t WHERE k IN (1, 21);
        INSERT INTO t VALUES (50, 5);
        DELETE FROM t WHERE k >= 30
        """,
    )
    last = shared.last()
    assert changes(shared.ours, "t", 1, last) == changes(shared.theirs, "t", 1, last)
    for snapshot in range(2, last + 1):
        assert changes(shared.ours, "t", snapshot, snapshot) == changes(shared.theirs, "t", snapshot, snapshot)


def test_the_change_feed_begins_at_a_snapshot_that_exists(shared: Shared) -> None:
    shared.theirs.execute("CREATE TABLE t AS SELECT * FROM range(20) r(i)")
    shared.theirs.execute("DELETE FROM t WHERE i < 5")
    shared.theirs.execute("INSERT INTO t SELECT * FROM range(20)")
    shared.theirs.execute("CALL ducklake_expire_snapshots('lake', versions => [2])")
    for program in shared.both:
        for start in (-1, 2):
            with pytest.raises((PeerError, ProgrammingError)):
                changes(program, "t", start, 3)
        assert len(changes(program, "t", 3, 3)) == 20
        assert changes(program, "t", 3, 1) == []


def test_the_change_feed_of_truncate(shared: Shared) -> None:
    script(
        shared.ours,
        """
        CREATE TABLE t(k int);
        INSERT INTO t SELECT * FROM range(40);
        DELETE FROM t WHERE k = 3;
        INSERT INTO t VALUES (50);
        TRUNCATE t
        """,
    )
    last = shared.last()
    expected = sorted((str(last), "delete", str(k)) for k in [*range(3), *range(4, 40), 50])
    assert sorted((row[0], row[2], row[3]) for row in changes(shared.ours, "t", last, last)) == expected
    if not shared.inlined:  # DuckDB reports what an inlined delete had taken once more
        assert changes(shared.theirs, "t", last, last) == changes(shared.ours, "t", last, last)


def test_schema_evolution(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE TABLE t(a int NOT NULL, b float DEFAULT 1.5, st struct(x int, y struct(z varchar)), l int[]);
        INSERT INTO t SELECT i, i / 2, {'x': i, 'y': {'z': 'z' || i}}, [i, NULL] FROM range(20) r(i);
        INSERT INTO t VALUES (100, NULL, NULL, NULL);
        ALTER TABLE t ALTER a TYPE bigint;
        ALTER TABLE t ALTER b TYPE double;
        INSERT INTO t(a) VALUES (5000000000);
        ALTER TABLE t ADD COLUMN d date DEFAULT '2020-01-01';
        ALTER TABLE t ALTER d SET DEFAULT '2021-01-01';
        INSERT INTO t(a) VALUES (6);
        ALTER TABLE t ALTER d DROP DEFAULT;
        INSERT INTO t(a) VALUES (7);
        ALTER TABLE t ADD COLUMN st.w varchar DEFAULT 'added';
        ALTER TABLE t RENAME st.x TO renamed;
        ALTER TABLE t RENAME b TO bb;
        ALTER TABLE t DROP COLUMN l;
        UPDATE t SET bb = 9 WHERE a = 3;
        ALTER TABLE t ALTER a DROP NOT NULL;
        INSERT INTO t(a) VALUES (NULL);
        ALTER TABLE t RENAME TO u
        """,
    )
    assert_same_rows(shared, "u")
    assert_same_history_of_old_name(shared, "t")


def assert_same_history_of_old_name(shared: Shared, name: str) -> None:
    for snapshot in range(2, shared.last()):
        reference = f"{name} AT (VERSION => {snapshot})"
        assert texts(shared.ours, reference) == texts(shared.theirs, reference), reference


def test_views_comments_and_schemas(shared: Shared, writer: Program) -> None:
    script(
        writer,
        """
        CREATE SCHEMA s;
        CREATE TABLE s.t(a int, b varchar);
        INSERT INTO s.t VALUES (1, 'x'), (2, 'y');
        CREATE VIEW v AS SELECT a * 2 AS twice FROM lake.s.t WHERE b <> 'x';
        CREATE VIEW s.nested AS SELECT twice + 1 AS more FROM lake.main.v;
        COMMENT ON TABLE s.t IS 'it''s a comment';
        COMMENT ON COLUMN s.t.b IS 'of a column';
        COMMENT ON VIEW v IS 'of a view';
        CREATE OR REPLACE VIEW v AS SELECT a * 3 AS twice FROM lake.s.t
        """,
    )
    assert_same_rows(shared, "s.t")
    for reader in shared.both:
        assert reader.rows("SELECT * FROM v ORDER BY ALL") == [(3,), (6,)]
        assert reader.rows("SELECT * FROM s.nested ORDER BY ALL") == [(4,), (7,)]
    assert shared.theirs.rows("SELECT comment FROM duckdb_tables() WHERE table_name = 't'") == [("it's a comment",)]
    assert shared.theirs.rows("SELECT comment FROM duckdb_columns() WHERE table_name = 't' AND column_name = 'b'") == [
        ("of a column",)
    ]


def test_transactions_become_one_snapshot(shared: Shared, writer: Program) -> None:
    before = shared.last()
    script(
        writer,
        """
        BEGIN;
        CREATE TABLE a(i int);
        INSERT INTO a SELECT * FROM range(30);
        CREATE TABLE b AS SELECT i * 2 AS j FROM a;
        DELETE FROM a WHERE i < 10;
        ALTER TABLE b ADD COLUMN k int DEFAULT 4;
        UPDATE b SET k = 5 WHERE j = 20;
        COMMIT;
        BEGIN;
        INSERT INTO a VALUES (1);
        DELETE FROM b;
        ROLLBACK
        """,
    )
    assert shared.last() == before + 1
    assert_same_rows(shared, "a", "b")


def test_snapshots_are_listed_alike(shared: Shared) -> None:
    script(
        shared.ours,
        """
        CREATE TABLE t(i int);
        INSERT INTO t SELECT * FROM range(20);
        UPDATE t SET i = 100 WHERE i = 1;
        DELETE FROM t WHERE i = 2;
        ALTER TABLE t ADD COLUMN n int;
        CREATE VIEW v AS SELECT 1 AS one;
        DROP VIEW v;
        ALTER TABLE t RENAME TO u;
        DROP TABLE u
        """,
    )
    listed = shared.theirs.rows("SELECT snapshot_id, schema_version, changes::varchar FROM ducklake_snapshots('lake')")
    assert shared.ours.rows("SELECT snapshot_id, schema_version, changes::varchar FROM snapshots()") == listed
