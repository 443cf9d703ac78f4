from __future__ import annotations

from collections.abc import Callable

import pytest

from lakedbapi.engine.duckdb import deletions
from lakedbapi.errors import ProgrammingError
from tests.dml.conftest import Lake


def test_snapshots_are_listed_under_every_spelling(numbers: Lake) -> None:
    for call in ("snapshots()", "snapshots('lake')", "lake.snapshots()", "ducklake_snapshots('lake')"):
        assert numbers(f"SELECT snapshot_id FROM {call} ORDER BY 1") == [(0,), (1,), (2,), (3,), (4,)]
    assert numbers("SELECT changes FROM snapshots() WHERE snapshot_id = 4") == [({"tables_deleted_from": ["1"]},)]


def test_the_history_of_a_table_is_that_of_its_changes(numbers: Lake) -> None:
    numbers("CREATE TABLE other (i INTEGER)")
    numbers.commit()
    assert numbers("SELECT snapshot_id FROM history('t') ORDER BY 1") == [(1,), (2,), (3,), (4,)]
    assert numbers("SELECT snapshot_id FROM history('other')") == [(5,)]


def test_the_current_snapshot_is_that_of_the_transaction(numbers: Lake) -> None:
    assert numbers("SELECT * FROM lake.current_snapshot()") == [(4,)]
    assert numbers("SELECT * FROM ducklake_last_committed_snapshot('lake')") == [(4,)]


def test_the_last_committed_snapshot_is_that_of_the_connection(numbers: Lake, connect: Callable[[], Lake]) -> None:
    last = "SELECT * FROM lake.last_committed_snapshot()"
    other = connect()
    other.connection.autocommit = True
    assert other(last) == [(None,)]
    other("DELETE FROM t WHERE false")
    assert other(last) == [(None,)]
    other("INSERT INTO t VALUES (-1, 'other')")
    assert other(last) == [(5,)]
    assert numbers(last) == [(4,)]
    numbers("INSERT INTO t VALUES (-2, 'own')")
    assert numbers(last) == [(4,)]
    numbers.commit()
    assert numbers(last) == [(6,)]
    assert other(last) == [(5,)]
    other("CALL lake.merge_adjacent_files()")
    assert other(last) == [(7,)]
    other("CALL lake.set_option('data_inlining_row_limit', '5')")
    assert other(last) == [(7,)]
    other("INSERT INTO t VALUES (-3, 'inlined')")
    other("CALL ducklake_flush_inlined_data('lake')")
    assert other(last) == [(9,)]
    other("PURGE FROM t WHERE s = 'other'")
    assert other(last) == other("SELECT * FROM lake.current_snapshot()")


def test_files_and_delete_files_are_listed(numbers: Lake) -> None:
    assert numbers("SELECT record_count, deleted_count, snapshot_id FROM files('t') ORDER BY 3") == [
        (100, 10, 2),
        (100, 0, 3),
    ]
    assert numbers("SELECT delete_count, snapshot_id FROM delete_files('t')") == [(10, 4)]
    listed = "SELECT count(*), count(delete_file), sum(data_file_size_bytes) FROM ducklake_list_files('lake', 't')"
    [(data_files, delete_files, size)] = numbers(listed)
    assert (data_files, delete_files) == (2, 1)
    assert numbers("SELECT file_count, file_size_bytes, delete_file_count FROM lake.table_info()") == [(2, size, 1)]


def test_the_files_of_an_older_version_are_listed(numbers: Lake) -> None:
    assert numbers("SELECT count(*) FROM ducklake_list_files('lake', 't', snapshot_version => 2)") == [(1,)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM ducklake_list_files('lake', 't', snapshot_version => 'x²')", "'x²'"),
        ("SELECT * FROM ducklake_list_files('lake', 't', snapshot_version => '²')", "'²'"),
        ("SELECT * FROM ducklake_list_files('lake', 't', snapshot_time => 'x')", "'x' is no timestamp"),
        ("FROM ducklake_list_files('lake', 't', snapshot_version => 2, snapshot_time => now())", "give one of"),
        ("SELECT * FROM t AT (VERSION => '²')", "'²'"),
        ("SELECT * FROM table_changes('t', '²', 2)", "'²'"),
        ("CALL checkpoint()", "no procedure checkpoint"),
        ("CALL lake.main.nothing('t', 1)", "no procedure lake.main.nothing"),
    ],
)
def test_a_wrong_call_is_explained(numbers: Lake, sql: str, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        numbers(sql)


def test_options_and_settings_are_listed(numbers: Lake) -> None:
    numbers("CALL lake.set_option('target_file_size', '1000000')")
    assert numbers("SELECT value FROM ducklake_options('lake') WHERE option_name = 'target_file_size'") == [
        ("1000000",)
    ]
    assert numbers("SELECT data_path FROM lake.settings()")[0][0].endswith("/")


def test_a_size_that_no_file_has_is_refused_when_it_is_set(numbers: Lake) -> None:
    with pytest.raises(ProgrammingError, match="option target_file_size cannot be"):
        numbers("CALL lake.set_option('target_file_size', '100000000000000000000')")
    numbers("CALL lake.set_option('target_file_size', '9000000000000000000')")


def test_functions_work_in_call(numbers: Lake) -> None:
    assert numbers("CALL lake.current_snapshot()") == [(4,)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("files()", "needs the table's name"),
        ("files('nosuch')", "nosuch does not exist"),
        ("files('t', 'main', 3)", "at most"),
        ("files(tabel => 't')", "has no argument 'tabel'"),
        ("ducklake_snapshots()", "needs the catalog's name"),
        ("ducklake_snapshots('nosuch')", "'nosuch' is not attached"),
    ],
)
def test_wrong_calls_say_what_is_wrong(numbers: Lake, call: str, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        numbers(f"SELECT * FROM {call}")


def test_information_schema_lists_tables_views_and_columns(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER NOT NULL DEFAULT 5, b DECIMAL(9, 2), c VARCHAR)")
    lake("CREATE VIEW v AS SELECT a + 1 AS next, c FROM t")
    lake("COMMENT ON TABLE t IS 'hello'")
    tables = "SELECT table_name, table_type, TABLE_COMMENT FROM information_schema.tables ORDER BY 1"
    assert lake(tables) == [("t", "BASE TABLE", "hello"), ("v", "VIEW", None)]
    columns = (
        "SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, numeric_precision "
        "FROM lake.information_schema.columns ORDER BY 1, 3"
    )
    assert lake(columns) == [
        ("t", "a", 1, "5", "NO", "INTEGER", 32),
        ("t", "b", 2, None, "YES", "DECIMAL(9,2)", 9),
        ("t", "c", 3, None, "YES", "VARCHAR", None),
        ("v", "next", 1, None, "YES", "INTEGER", None),
        ("v", "c", 2, None, "YES", "VARCHAR", None),
    ]
    assert "a + 1 AS next" in lake("SELECT view_definition FROM information_schema.views")[0][0]


def test_information_schema_lists_keys(lake: Lake) -> None:
    lake("CREATE TABLE p (a INTEGER, b INTEGER, PRIMARY KEY (a, b))")
    lake("CREATE TABLE c (x INTEGER, y INTEGER, CONSTRAINT link FOREIGN KEY (x, y) REFERENCES p, u INTEGER UNIQUE)")
    constraints = (
        "SELECT table_name, constraint_name, constraint_type FROM information_schema.table_constraints ORDER BY 1, 2"
    )
    assert lake(constraints) == [
        ("c", "c_u_key", "UNIQUE"),
        ("c", "link", "FOREIGN KEY"),
        ("p", "p_pkey", "PRIMARY KEY"),
    ]
    referential = "SELECT constraint_name, unique_constraint_name FROM information_schema.referential_constraints"
    assert lake(referential) == [("link", "p_pkey")]
    usage = (
        "SELECT column_name, ordinal_position FROM information_schema.key_column_usage "
        "WHERE constraint_name = 'link' ORDER BY 2"
    )
    assert lake(usage) == [("x", 1), ("y", 2)]
    referred = (
        "SELECT table_name, column_name FROM information_schema.constraint_column_usage "
        "WHERE constraint_name = 'link' ORDER BY 2"
    )
    assert lake(referred) == [("p", "a"), ("p", "b")]


def test_an_unknown_view_of_information_schema_is_named(lake: Lake) -> None:
    with pytest.raises(ProgrammingError, match=r"information_schema\.routines does not exist; there are: .*columns"):
        lake("SELECT * FROM information_schema.routines")


def test_show_lists_what_is_there(numbers: Lake) -> None:
    numbers("CREATE VIEW v AS SELECT i FROM t")
    numbers("CREATE SCHEMA s")
    numbers("CREATE TABLE s.u (k BIGINT)")
    assert numbers("SHOW TABLES") == [("t",), ("v",)]
    assert numbers("SHOW TABLES FROM s") == [("u",)]
    assert numbers("SHOW TABLES FROM lake") == [("t",), ("u",), ("v",)]
    assert numbers("SHOW VIEWS") == [("v",)]
    assert numbers("SHOW SCHEMAS") == [("lake", "main", True), ("lake", "s", False)]
    assert numbers("SHOW DATABASES") == [("lake",)]
    assert numbers("SHOW ALL TABLES") == [
        ("lake", "main", "t", ["i", "s"], ["INTEGER", "VARCHAR"], False),
        ("lake", "main", "v", ["i"], ["INTEGER"], False),
        ("lake", "s", "u", ["k"], ["BIGINT"], False),
    ]


def test_show_create_gives_a_statement_that_makes_the_same(lake: Lake) -> None:
    lake("CREATE SCHEMA s")
    lake("CREATE TABLE s.parent (k INTEGER UNIQUE)")
    lake(
        "CREATE TABLE s.t (id BIGINT GENERATED BY DEFAULT AS IDENTITY, \"a b\" VARCHAR NOT NULL DEFAULT 'it''s' "
        'COMMENT \'say "it"\', k INTEGER REFERENCES s.parent (k), c STRUCT(x INTEGER, "y z" VARCHAR[]), '
        "ts TIMESTAMPTZ, PRIMARY KEY (id), CONSTRAINT low CHECK (k < 9)) "
        'PARTITIONED BY (year(ts), bucket(4, "a b"), k) SORTED BY (lower("a b") DESC NULLS FIRST, k) '
        "WITH (target_file_size = '10MB') COMMENT 'what''s in it'"
    )
    ((text,),) = lake("SHOW CREATE TABLE s.t")
    described = lake("DESCRIBE s.t")
    lake("DROP TABLE s.t")
    lake(text)
    assert lake("SHOW CREATE TABLE s.t") == [(text,)]
    assert lake("DESCRIBE s.t") == described
    for part in ("COMMENT 'what''s in it'", "target_file_size", 'bucket(4, "a b")', "DESC NULLS FIRST", "low"):
        assert part in text


def test_show_create_of_a_view(numbers: Lake) -> None:
    numbers("CREATE VIEW v (a) AS SELECT i + 1 FROM lake.main.t WHERE i < 3")
    ((text,),) = numbers("SHOW CREATE VIEW v")
    assert numbers("SHOW CREATE TABLE v") == [(text,)]
    numbers("DROP VIEW v")
    numbers(text)
    assert numbers("SELECT a FROM v ORDER BY a") == [(1,), (2,), (3,)]
    with pytest.raises(ProgrammingError, match="table or view missing does not exist"):
        numbers("SHOW CREATE TABLE missing")


def test_describe_tells_the_columns_of_tables_views_and_queries(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR DEFAULT 'x', c BIGINT UNIQUE)")
    lake("CREATE VIEW v AS SELECT b FROM t")
    assert lake("DESCRIBE t") == [
        ("a", "INTEGER", "NO", "PRI", None, None),
        ("b", "VARCHAR", "YES", None, "'x'", None),
        ("c", "BIGINT", "YES", "UNI", None, None),
    ]
    assert lake("DESCRIBE v") == [("b", "VARCHAR", "YES", None, None, None)]
    assert lake("DESCRIBE SELECT a + 1 AS k FROM t") == [("k", "INTEGER", "YES", None, None, None)]


def test_summarize_reads_the_rows(numbers: Lake) -> None:
    [first, _] = numbers("SUMMARIZE t")
    assert first[:4] == ("i", "INTEGER", "0", "199")


def test_explain_tells_which_files_are_read(numbers: Lake) -> None:
    lines = [line for (line,) in numbers("EXPLAIN SELECT * FROM t WHERE i = 55")]
    assert lines[0] == (
        "lake.main.t: 1 of 2 data files read, 1 pruned by statistics and partition values; "
        "10 deleted rows in 1 of them are left out"
    )
    assert lines[1].endswith("10 of 100 rows deleted")
    assert len(lines) > 3


@pytest.mark.parametrize("explain", ["EXPLAIN", "EXPLAIN ANALYZE"])
def test_explain_shows_no_masks_which_take_seconds_to_print(
    numbers: Lake, monkeypatch: pytest.MonkeyPatch, explain: str
) -> None:
    monkeypatch.setattr(deletions, "MASK_TOTAL", 1)
    monkeypatch.setattr(deletions, "MASK_ROWS", 1)
    text = str(numbers(f"{explain} SELECT * FROM t WHERE s <> ''"))
    assert "get_bit" not in text
    assert "ANTI" in text.upper()


def test_explain_names_the_version_that_is_read(numbers: Lake) -> None:
    assert numbers("EXPLAIN SELECT * FROM t FOR VERSION AS OF 2")[0] == ("t at version 2: 1 of 1 data files read",)


def test_explain_counts_rows_that_are_in_no_file(numbers: Lake) -> None:
    numbers("INSERT INTO t VALUES (1000, 'new')")
    assert numbers("EXPLAIN SELECT * FROM t")[0][0].endswith("1 rows that are in no file")
