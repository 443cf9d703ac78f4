from __future__ import annotations

import datetime

import pytest

from lakedbapi.errors import IntegrityError, NotSupportedError, ProgrammingError
from tests.dml.conftest import Lake


@pytest.fixture
def t(lake: Lake) -> Lake:
    """`t(a INTEGER, b VARCHAR, s STRUCT(x INTEGER, y VARCHAR))`: 20 rows in a file, and 1 row that is staged."""
    lake("CREATE TABLE t (a INTEGER, b VARCHAR, s STRUCT(x INTEGER, y VARCHAR))")
    lake("INSERT INTO t SELECT i, 'b' || i, {'x': i, 'y': 'y' || i} FROM range(20) r(i)")
    lake.commit()
    lake("INSERT INTO t VALUES (100, 'staged', {'x': 100, 'y': 'why'})")
    return lake


def both(lake: Lake, columns: str) -> list[tuple[object, ...]]:
    """Two rows, one from a file and one that was staged, before and after the commit."""
    query = f"SELECT {columns} FROM t WHERE a IN (7, 100) ORDER BY a"
    before = lake(query)
    lake.commit()
    after = lake(query)
    assert before == after
    return after


def test_an_added_column_is_null_or_the_default_in_rows_that_exist(t: Lake) -> None:
    t("ALTER TABLE t ADD COLUMN n DATE")
    t("ALTER TABLE t ADD COLUMN d DATE DEFAULT '2024-01-01'")
    t("ALTER TABLE t ADD COLUMN k INTEGER NOT NULL DEFAULT 1 + 1")
    assert both(t, "n, d, k") == [(None, datetime.date(2024, 1, 1), 2)] * 2
    t("ALTER TABLE t ALTER COLUMN d SET DEFAULT '2025-05-05'")
    t("INSERT INTO t (a) VALUES (200)")
    assert t("SELECT DISTINCT d FROM t ORDER BY d") == [(datetime.date(2024, 1, 1),), (datetime.date(2025, 5, 5),)]


def test_a_default_without_one_value_cannot_be_added(t: Lake) -> None:
    with pytest.raises(NotSupportedError, match="add it without default, UPDATE it, then"):
        t("ALTER TABLE t ADD COLUMN n TIMESTAMP DEFAULT now()")


def test_a_not_null_column_needs_a_default_unless_the_table_is_empty(t: Lake) -> None:
    with pytest.raises(NotSupportedError, match="cannot be added as NOT NULL"):
        t("ALTER TABLE t ADD COLUMN n INTEGER NOT NULL")
    t("DELETE FROM t")
    t("ALTER TABLE t ADD COLUMN n INTEGER NOT NULL")
    assert t("DESCRIBE t")[-1][:3] == ("n", "INTEGER", "NO")


def test_a_column_is_added_once(t: Lake) -> None:
    t("ALTER TABLE t ADD COLUMN IF NOT EXISTS A INTEGER")
    with pytest.raises(ProgrammingError, match="'A' already"):
        t("ALTER TABLE t ADD COLUMN A INTEGER")


def test_a_dropped_column_does_not_come_back_with_its_name(t: Lake) -> None:
    t("ALTER TABLE t DROP COLUMN b")
    t("ALTER TABLE t ADD COLUMN b VARCHAR")
    assert both(t, "a, b") == [(7, None), (100, None)]


def test_a_renamed_column_keeps_its_values(t: Lake) -> None:
    t("ALTER TABLE t RENAME COLUMN b TO text")
    assert both(t, "text") == [("b7",), ("staged",)]
    with pytest.raises(ProgrammingError, match="'A' already"):
        t("ALTER TABLE t RENAME COLUMN text TO A")


def test_a_column_can_change_the_case_of_its_name(t: Lake) -> None:
    t("ALTER TABLE t RENAME COLUMN b TO B")
    assert t("DESCRIBE t")[1][0] == "B"


def test_columns_can_swap_names(t: Lake) -> None:
    t("ALTER TABLE t ADD COLUMN c VARCHAR")
    t("UPDATE t SET c = 'c'")
    t("ALTER TABLE t RENAME COLUMN b TO tmp")
    t("ALTER TABLE t RENAME COLUMN c TO b")
    t("ALTER TABLE t RENAME COLUMN tmp TO c")
    assert both(t, "b, c") == [("c", "b7"), ("c", "staged")]


def test_a_widened_column_keeps_its_values(t: Lake) -> None:
    t("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    t("INSERT INTO t (a) VALUES (5000000000)")
    assert both(t, "a, typeof(a)") == [(7, "BIGINT"), (100, "BIGINT")]
    assert t("SELECT max(a) FROM t") == [(5000000000,)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SMALLINT", "DOUBLE"),
        ("UTINYINT", "SMALLINT"),
        ("FLOAT", "DOUBLE"),
        ("DATE", "TIMESTAMP"),
        ("TIMESTAMP", "TIMESTAMP_NS"),
        ("DECIMAL(4, 1)", "DECIMAL(10, 1)"),
        ("STRUCT(x INTEGER)", "STRUCT(x BIGINT)"),
        ("INTEGER[]", "BIGINT[]"),
    ],
)
def test_types_that_hold_more_are_allowed(lake: Lake, old: str, new: str) -> None:
    lake(f"CREATE TABLE t (a {old})")
    lake(f"ALTER TABLE t ALTER COLUMN a TYPE {new}")
    assert lake("DESCRIBE t")[0][1].replace('"', "").replace(", ", ",") == new.replace(", ", ",")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BIGINT", "INTEGER"),
        ("INTEGER", "VARCHAR"),
        ("INTEGER", "UINTEGER"),
        ("BIGINT", "DOUBLE"),
        ("TIMESTAMP", "TIMESTAMPTZ"),
        ("DECIMAL(4, 1)", "DECIMAL(10, 2)"),
        ("STRUCT(x INTEGER)", "STRUCT(z INTEGER)"),
        ("INTEGER", "INTEGER[]"),
    ],
)
def test_types_that_lose_something_are_refused(lake: Lake, old: str, new: str) -> None:
    lake(f"CREATE TABLE t (a {old})")
    with pytest.raises(NotSupportedError, match="'a'"):
        lake(f"ALTER TABLE t ALTER COLUMN a TYPE {new}")


def test_fields_of_structs_are_added_renamed_widened_and_dropped(t: Lake) -> None:
    t("ALTER TABLE t ADD COLUMN s.z INTEGER DEFAULT 9")
    t("ALTER TABLE t RENAME COLUMN s.x TO first")
    t("ALTER TABLE t ALTER COLUMN s.first TYPE BIGINT")
    t("ALTER TABLE t DROP COLUMN s.y")
    assert both(t, "s") == [({"first": 7, "z": 9},), ({"first": 100, "z": 9},)]
    t("ALTER TABLE t DROP COLUMN s.z")
    with pytest.raises(ProgrammingError, match="last one of 's'"):
        t("ALTER TABLE t DROP COLUMN s.first")


def test_fields_inside_lists_and_maps_change_too(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER, l STRUCT(x INTEGER)[], m MAP(VARCHAR, STRUCT(x INTEGER)))")
    rows = "(1, [{'x': 1}, NULL], MAP {'k': {'x': 1}}), (2, NULL, NULL), (3, [], MAP {})"
    lake(f"INSERT INTO t VALUES {rows}")
    lake("ALTER TABLE t ADD COLUMN l.element.y VARCHAR")
    lake("ALTER TABLE t ALTER COLUMN m.value.x TYPE BIGINT")
    lake("ALTER TABLE t RENAME COLUMN m.value.x TO z")
    expected = [(1, [{"x": 1, "y": None}, None], {"k": {"z": 1}}), (2, None, None), (3, [], {})]
    assert lake("SELECT * FROM t ORDER BY a") == expected
    lake.commit()
    assert lake("SELECT * FROM t ORDER BY a") == expected


def test_the_last_column_and_keys_of_files_cannot_be_dropped(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER) PARTITIONED BY (a) SORTED BY (b + 1)")
    with pytest.raises(ProgrammingError, match="partitioned by it"):
        lake("ALTER TABLE t DROP COLUMN a")
    with pytest.raises(ProgrammingError, match="sorted by it"):
        lake("ALTER TABLE t DROP COLUMN b")
    lake("ALTER TABLE t RENAME COLUMN b TO b2")
    lake("ALTER TABLE t RESET PARTITIONED BY")
    lake("ALTER TABLE t RESET SORTED BY")
    lake("ALTER TABLE t DROP COLUMN a")
    lake("ALTER TABLE t DROP COLUMN b2")
    lake("ALTER TABLE t DROP COLUMN IF EXISTS nosuch")
    with pytest.raises(ProgrammingError, match="last one of 't'"):
        lake("ALTER TABLE t DROP COLUMN c")


def test_not_null_is_set_only_where_no_row_contradicts(t: Lake) -> None:
    t("ALTER TABLE t ALTER COLUMN a SET NOT NULL")
    with pytest.raises(IntegrityError, match=r"t\.a"):
        t("INSERT INTO t (b) VALUES ('x')")
    t("INSERT INTO t (a) VALUES (300)")
    with pytest.raises(IntegrityError, match="1 rows have NULL in it"):
        t("ALTER TABLE t ALTER COLUMN b SET NOT NULL")
    t("ALTER TABLE t ALTER COLUMN a DROP NOT NULL")
    assert t("INSERT INTO t (b) VALUES ('x')") == 1


def test_a_primary_key_column_stays_not_null(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    with pytest.raises(ProgrammingError, match="part of the primary key"):
        lake("ALTER TABLE t ALTER COLUMN a DROP NOT NULL")


def test_constraints_are_checked_when_they_are_added(t: Lake) -> None:
    with pytest.raises(IntegrityError, match="violated by 3 rows of t"):
        t("ALTER TABLE t ADD CONSTRAINT small CHECK (a BETWEEN 2 AND 99)")
    t("ALTER TABLE t ADD CONSTRAINT small CHECK (a < 1000)")
    t("ALTER TABLE t ADD PRIMARY KEY (a)")
    t.commit()
    with pytest.raises(IntegrityError, match="small"):
        t("INSERT INTO t (a) VALUES (1000)")
    t("ALTER TABLE t DROP CONSTRAINT small")
    assert t("INSERT INTO t (a) VALUES (1000)") == 1
    with pytest.raises(ProgrammingError, match="no constraint 'small'; it has: t_pkey"):
        t("ALTER TABLE t DROP CONSTRAINT small")
    t("ALTER TABLE t DROP CONSTRAINT IF EXISTS small")


def test_checks_follow_renamed_and_dropped_columns(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER CHECK (a > 0), b INTEGER UNIQUE)")
    lake("ALTER TABLE t RENAME COLUMN a TO positive")
    lake.commit()
    with pytest.raises(IntegrityError, match="CHECK"):
        lake("INSERT INTO t VALUES (-1, 1)")
    lake("ALTER TABLE t ADD COLUMN c INTEGER")
    lake("ALTER TABLE t DROP COLUMN positive")
    lake("ALTER TABLE t DROP COLUMN b")
    assert lake("SELECT * FROM information_schema.table_constraints") == []


def test_identity_values_go_on_after_a_rename(lake: Lake) -> None:
    lake("CREATE TABLE t (id INTEGER GENERATED BY DEFAULT AS IDENTITY, v VARCHAR)")
    lake("INSERT INTO t (v) VALUES ('a'), ('b')")
    lake("ALTER TABLE t RENAME COLUMN id TO key")
    lake("INSERT INTO t (v) VALUES ('c')")
    lake.commit()
    lake("INSERT INTO t (v) VALUES ('d')")
    assert lake("SELECT key FROM t ORDER BY v") == [(1,), (2,), (3,), (4,)]


def test_a_renamed_table_keeps_its_rows_and_frees_its_name(t: Lake) -> None:
    t("ALTER TABLE t RENAME TO u")
    t("CREATE TABLE t (other INTEGER)")
    t.commit()
    assert t("SELECT count(*) FROM u") == [(21,)]
    with pytest.raises(ProgrammingError, match=r"main\.T exists already"):
        t("ALTER TABLE u RENAME TO T")


def test_several_actions_run_in_order(t: Lake) -> None:
    t("ALTER TABLE t ADD COLUMN c INTEGER, RENAME COLUMN c TO d, DROP COLUMN b")
    assert [row[0] for row in t("DESCRIBE t")] == ["a", "s", "d"]


def test_a_failed_action_undoes_the_whole_statement(t: Lake) -> None:
    with pytest.raises(ProgrammingError, match="nosuch"):
        t("ALTER TABLE t ADD COLUMN c INTEGER, DROP COLUMN nosuch")
    assert [row[0] for row in t("DESCRIBE t")] == ["a", "b", "s"]


def test_partitioning_can_change_when_files_wait_for_the_commit(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER, g INTEGER) PARTITIONED BY (g)")
    lake("INSERT INTO t SELECT i, i % 2 FROM range(200000) r(i)")
    lake("ALTER TABLE t SET PARTITIONED BY (bucket(2, a))")
    lake("INSERT INTO t VALUES (-1, -1)")
    lake.commit()
    assert lake("SELECT count(*), count(*) FILTER (g = 1), min(a) FROM t") == [(200001, 100000, -1)]
    assert lake("SELECT count(*) FROM t WHERE a = 17") == [(1,)]


def test_a_type_with_other_buckets_is_refused(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER, b INTEGER, d DATE) PARTITIONED BY (bucket(4, a), bucket(4, b), bucket(4, d))")
    lake("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    for change in ("b TYPE DOUBLE", "d TYPE TIMESTAMP"):
        with pytest.raises(NotSupportedError, match="values of that type are in other buckets"):
            lake(f"ALTER TABLE t ALTER COLUMN {change}")


def test_properties_are_set_and_reset(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER)")
    lake("ALTER TABLE t SET ('lake.write_mode' = 'copy-on-write', color = 'red')")
    lake.commit()
    lake("ALTER TABLE t RESET (color)")
    table = lake.connection.session.context().transaction.view("lake").table("main", "t")
    assert table is not None
    assert table.properties == {"lake.write_mode": "copy-on-write"}


def test_alter_if_exists_forgives_a_missing_table(lake: Lake) -> None:
    lake("ALTER TABLE IF EXISTS nosuch ADD COLUMN a INTEGER")
    with pytest.raises(ProgrammingError, match="nosuch does not exist"):
        lake("ALTER TABLE nosuch ADD COLUMN a INTEGER")


def test_the_default_of_a_struct_follows_its_fields(t: Lake) -> None:
    default = "{'x': 1, 'y': {'z': 'it''s'}}"
    t("ALTER TABLE t ADD COLUMN d STRUCT(x INTEGER, y STRUCT(z VARCHAR))")
    t(f"UPDATE t SET d = {default}")
    t(f"ALTER TABLE t ALTER COLUMN d SET DEFAULT {default}")
    t("ALTER TABLE t RENAME COLUMN d.x TO first")
    t("ALTER TABLE t RENAME COLUMN d.y.z TO text")
    t("ALTER TABLE t ADD COLUMN d.n INTEGER DEFAULT 5")
    expected = {"first": 1, "y": {"text": "it's"}, "n": 5}
    assert both(t, "d") == [(expected,)] * 2
    t("INSERT INTO t (a) VALUES (200)")
    t("ALTER TABLE t DROP COLUMN d.first")
    t("INSERT INTO t (a) VALUES (201)")
    del expected["first"]
    assert t("SELECT DISTINCT d FROM t") == [(expected,)]
    t.commit()
    assert t("SELECT DISTINCT d FROM t") == [(expected,)]


@pytest.mark.parametrize(
    "column",
    [
        "d INTEGER[] DEFAULT [1]",
        "d STRUCT(x INTEGER) DEFAULT {'x': 1}",
        "d MAP(VARCHAR, INTEGER) DEFAULT MAP {'k': 1}",
    ],
)
def test_rows_get_no_default_with_parts_that_duckdb_does_not_give_them(t: Lake, column: str) -> None:
    with pytest.raises(NotSupportedError, match=r"add it without default, UPDATE it"):
        t(f"ALTER TABLE t ADD COLUMN {column}")
    t("CREATE TABLE u (a INTEGER)")
    t(f"ALTER TABLE u ADD COLUMN {column}")
    t("INSERT INTO u (a) VALUES (1)")
    assert t("SELECT count(d) FROM u") == [(1,)]


def test_fields_do_not_change_under_a_default_that_varies(lake: Lake) -> None:
    lake("CREATE TABLE t (a INTEGER, d STRUCT(x INTEGER, y TIMESTAMP) DEFAULT {'x': 1, 'y': now()})")
    with pytest.raises(NotSupportedError, match="ALTER COLUMN … DROP DEFAULT"):
        lake("ALTER TABLE t RENAME COLUMN d.x TO first")
