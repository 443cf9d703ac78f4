"""Tables, schemas and columns are made, altered and dropped with the same SQL in all formats, as far as these go."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from pathlib import Path

import pytest

import lakedbapi
from tests.formats.kinds import Kind, capabilities
from tests.formats.lake import Lake


def test_a_directory_has_any_name(kind: Kind, tmp_path: Path) -> None:
    directory = tmp_path / "what? [a] *, #1 {%20}"
    directory.mkdir()
    lake = Lake(kind, directory, autocommit=True)
    if kind.setup:
        lake(kind.setup)
    lake.create("CREATE TABLE t (id INTEGER)")
    lake("INSERT INTO t SELECT range FROM range(9)")
    assert lake("DELETE FROM t WHERE id % 3 = 0") == 3
    lake("OPTIMIZE t")
    assert lake.rows() == [(1,), (2,), (4,), (5,), (7,), (8,)]
    lake.connection.close()
    assert {path.suffix for path in directory.rglob("*") if path.is_file()} & {".parquet"}


def test_tables_and_schemas(lake: Lake) -> None:
    lake("CREATE SCHEMA s")
    lake("CREATE SCHEMA IF NOT EXISTS s")
    lake.commit()
    lake.create("CREATE TABLE s.a (i INTEGER NOT NULL, s VARCHAR)")
    lake("CREATE TABLE IF NOT EXISTS s.a (other INTEGER)")
    lake("INSERT INTO s.a VALUES (1, 'x'), (2, 'y')")
    lake.commit()
    lake("CREATE TABLE b AS SELECT i, s FROM s.a WHERE i > 1")
    assert lake.rows("b") == [(2, "y")]
    lake.commit()
    lake("CREATE OR REPLACE TABLE b AS SELECT 'new' AS n")
    lake.commit()
    assert lake.rows("b") == [("new",)]
    lake("CREATE TABLE c AS SELECT * FROM s.a WITH NO DATA")
    lake.commit()
    assert lake.rows("c") == []
    lake("CREATE TABLE d (LIKE s.a)")
    lake.commit()
    with pytest.raises(lakedbapi.IntegrityError):
        lake("INSERT INTO d VALUES (NULL, 'x')")
    assert lake("SHOW TABLES") == [("b",), ("c",), ("d",)]
    assert lake("SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL") == [
        ("main", "b"),
        ("main", "c"),
        ("main", "d"),
        ("s", "a"),
    ]
    lake("DROP TABLE c")
    lake.commit()
    lake("DROP TABLE IF EXISTS c")
    lake.commit()
    with pytest.raises(lakedbapi.ProgrammingError, match="c"):
        lake("DROP TABLE c")
    with pytest.raises(lakedbapi.ProgrammingError, match="c"):
        lake("SELECT * FROM c")
    with pytest.raises(lakedbapi.ProgrammingError, match="b"):
        lake("CREATE TABLE b (i INTEGER)")
    with pytest.raises(lakedbapi.ProgrammingError):
        lake("DROP SCHEMA s")
    lake("DROP TABLE s.a")
    lake.commit()
    lake("DROP SCHEMA s")
    lake.commit()


NAMES = ["_t", ".t", "a=b", "a b", "ü%20", "a%2Fb", "x?y#z", "*", "a'b", "a/b", "../x", "..", ".", "_delta_log"]


def test_names_that_mean_something_to_a_file_system(lake: Lake) -> None:
    """Tables of such names work like others, or are refused before anything is made of them."""
    lake.create("CREATE TABLE keep (i INTEGER)")
    known, refused = {("keep",)}, set()
    for name in NAMES:
        with suppress(lakedbapi.NotSupportedError):
            lake.create(f'CREATE TABLE "{name}" (i INTEGER)')
            known.add((name,))
        if (name,) not in known:
            refused.add(name)
            continue
        lake(f'INSERT INTO "{name}" VALUES (1), (2)')
        lake.commit()
        assert lake(f'DELETE FROM "{name}" WHERE i = 1') == 1
        lake.commit()
        assert lake(f'SELECT * FROM "{name}"') == [(2,)]
    assert set(lake("SHOW TABLES")) == known
    assert refused <= {"_t", ".t", "a=b", "a/b", "../x", "..", ".", "_delta_log"}
    for name in refused:
        with pytest.raises(lakedbapi.NotSupportedError, match=re.escape(repr(name))):
            lake(f'CREATE SCHEMA "{name}"')
    assert {path.name for path in lake.directory.parent.iterdir()} == {"place"}


def test_a_table_is_rolled_back(lake: Lake) -> None:
    lake("CREATE TABLE t (i INTEGER)")
    lake("INSERT INTO t VALUES (1)")
    assert lake.rows() == [(1,)]
    lake.connection.rollback()
    assert lake("SHOW TABLES") == []


def test_columns_evolve(lake: Lake) -> None:
    lake.create("CREATE TABLE t (i INTEGER, s VARCHAR, n STRUCT(a INTEGER))", **lake.kind.evolution)
    lake("INSERT INTO t VALUES (1, 'x', {'a': 1})")
    lake.commit()
    for statement in (
        "ALTER TABLE t ADD COLUMN d DATE",
        "ALTER TABLE t RENAME COLUMN s TO text",
        "ALTER TABLE t ALTER COLUMN i TYPE BIGINT",
        "ALTER TABLE t ADD COLUMN n.b VARCHAR",
        "COMMENT ON TABLE t IS 'things'",
        "COMMENT ON COLUMN t.text IS 'what'",
    ):
        lake(statement)
        lake.commit()
    lake("INSERT INTO t VALUES (5000000000, 'y', {'a': 2, 'b': 'z'}, '2026-01-01')")
    lake.commit()
    assert lake.rows() == [
        (1, "x", {"a": 1, "b": None}, None),
        (5000000000, "y", {"a": 2, "b": "z"}, datetime.date(2026, 1, 1)),
    ]
    lake("ALTER TABLE t DROP COLUMN text")
    lake.commit()
    lake("ALTER TABLE t ADD COLUMN text INTEGER")
    lake.commit()
    assert lake("SELECT i, text FROM t ORDER BY i") == [(1, None), (5000000000, None)]


def test_tables_are_renamed_or_the_way_out_is_told(people: Lake) -> None:
    if people.kind.renames:
        people("ALTER TABLE t RENAME TO u")
    else:
        with pytest.raises(lakedbapi.NotSupportedError, match="CREATE TABLE u AS SELECT") as raised:
            people("ALTER TABLE t RENAME TO u")
        way_out = re.search("CREATE TABLE u AS SELECT [^,]*", str(raised.value))
        assert way_out is not None
        people(way_out[0])
        people.commit()
        people("DROP TABLE t")
    people.commit()
    assert people("SELECT count(*) FROM u") == [(5,)]
    assert people("SHOW TABLES") == [("news",), ("u",)]


def test_not_null_and_checks_hold(lake: Lake) -> None:
    violations = ["INSERT INTO t VALUES (NULL, 1)", "UPDATE t SET i = NULL", "INSERT INTO t (n) VALUES (1)"]
    if lake.kind.checks:
        lake.create("CREATE TABLE t (i INTEGER NOT NULL, n INTEGER CHECK (n > 0))")
        violations += ["INSERT INTO t VALUES (2, -1)", "UPDATE t SET n = 0 WHERE i = 1"]
    else:
        with pytest.raises(lakedbapi.NotSupportedError, match="CHECK"):
            lake("CREATE TABLE t (i INTEGER NOT NULL, n INTEGER CHECK (n > 0))")
        lake.create("CREATE TABLE t (i INTEGER NOT NULL, n INTEGER)")
    lake("INSERT INTO t VALUES (1, 1)")
    for statement in violations:
        with pytest.raises(lakedbapi.IntegrityError):
            lake(statement)
    lake.commit()
    assert lake.rows() == [(1, 1)]
    lake("ALTER TABLE t ALTER COLUMN i DROP NOT NULL")
    lake.commit()
    assert lake("INSERT INTO t VALUES (NULL, 2)") == 1


def test_defaults_are_kept_or_refused(lake: Lake) -> None:
    if not lake.kind.defaults:
        with pytest.raises(lakedbapi.NotSupportedError, match="cannot have the default 'none'"):
            lake("CREATE TABLE t (i INTEGER, s VARCHAR DEFAULT 'none')")
        return
    lake.create("CREATE TABLE t (i INTEGER, s VARCHAR DEFAULT 'none', d DATE DEFAULT DATE '2026-01-01')")
    assert lake("INSERT INTO t (i) VALUES (1)") == 1
    assert lake.many("INSERT INTO t (i, s) VALUES (?, ?)", [(2, "x"), (3, None)]) == 2
    assert lake("INSERT INTO t VALUES (4, DEFAULT, NULL)") == 1
    lake.commit()
    assert lake("UPDATE t SET s = DEFAULT WHERE i = 2") == 1
    lake("ALTER TABLE t ALTER COLUMN s DROP DEFAULT")
    lake("INSERT INTO t (i) VALUES (5)")
    lake.commit()
    day = datetime.date(2026, 1, 1)
    assert lake.rows() == [(1, "none", day), (2, "none", day), (3, None, day), (4, "none", None), (5, None, day)]


def test_identity_columns_count_or_are_refused(lake: Lake) -> None:
    if not capabilities(lake.connection).identity_columns:
        with pytest.raises(lakedbapi.NotSupportedError, match="identity"):
            lake("CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY, s VARCHAR DEFAULT 'none')")
        return
    lake.create("CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY, s VARCHAR DEFAULT 'none')")
    assert lake.returned("INSERT INTO t (s) VALUES ('a'), (DEFAULT) RETURNING id, s") == ([(1, "a"), (2, "none")], 2)
    lake.commit()
    lake("INSERT INTO t (id) VALUES (10)")
    lake.commit()
    lake("INSERT INTO t (s) VALUES ('b')")
    lake.commit()
    assert lake.rows() == [(1, "a"), (10, "none"), (11, "b"), (2, "none")]


def test_partitions(lake: Lake) -> None:
    lake.create("CREATE TABLE t (i INTEGER, p VARCHAR, d DATE) PARTITIONED BY (p, d)")
    lake(
        "INSERT INTO t SELECT i, CASE i % 3 WHEN 0 THEN 'a b/%' WHEN 1 THEN 'ü' END, DATE '2026-01-01' "
        "FROM range(9) r(i)"
    )
    lake.commit()
    assert lake("SELECT p, count(*) FROM t GROUP BY p ORDER BY p NULLS LAST") == [("a b/%", 3), ("ü", 3), (None, 3)]
    assert lake("SELECT count(*) FROM files('t')") == [(3,)]
    assert lake("DELETE FROM t WHERE p = 'ü'") == 3
    assert lake("UPDATE t SET p = 'ü' WHERE i = 0") == 1
    assert lake("UPDATE t SET p = NULL WHERE i = 3") == 1
    lake.commit()
    assert lake("SELECT i, p FROM t ORDER BY i") == [(0, "ü"), (2, None), (3, None), (5, None), (6, "a b/%"), (8, None)]
    plan = str(lake("EXPLAIN SELECT * FROM t WHERE p = 'ü'"))
    assert "1 of 4 data files read, 3 pruned" in plan


def test_show_create_table_gives_a_statement_that_makes_the_same(lake: Lake) -> None:
    bucket = ", bucket(4, k)" if "bucket" in capabilities(lake.connection).partition_transforms else ""
    default = " DEFAULT 3" if lake.kind.defaults else ""
    check = ", CHECK (n > 0), CHECK (k <> 'it''s')" if lake.kind.checks else ""
    lake.create(
        f"CREATE TABLE t (id BIGINT NOT NULL, n DECIMAL(9,2){default} COMMENT 'it''s', \"K y\" VARCHAR, k VARCHAR, "
        f"s STRUCT(a INTEGER, b VARCHAR[]), m MAP(VARCHAR, INTEGER), PRIMARY KEY (id){check}) "
        f"PARTITIONED BY (\"K y\"{bucket}) COMMENT 'all of it'"
    )
    ((text,),) = lake("SHOW CREATE TABLE t")
    parts = ("COMMENT 'it''s'", "COMMENT 'all of it'", "PRIMARY KEY", bucket[:8], default[:8])
    assert all(part in text for part in parts)
    lake("DROP TABLE t")
    lake.commit()
    lake(text)
    lake.commit()
    assert lake("SHOW CREATE TABLE t") == [(text,)]
