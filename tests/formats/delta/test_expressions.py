"""Checks, invariants, generated columns and defaults, which a Delta table keeps in Spark's SQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakedbapi
from lakedbapi.errors import IntegrityError, NotSupportedError, ProgrammingError
from tests.formats.delta.committed import commit, of_kind, rows, values, versions
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import Table

CHECKED = {"minReaderVersion": 1, "minWriterVersion": 3}
GENERATED = {"minReaderVersion": 1, "minWriterVersion": 4}


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> lakedbapi.Connection:
    return connect(tmp_path, autocommit=True)


def foreign(path: Path, columns: list[tuple[str, Any]], protocol: dict[str, int], **checks: str) -> Table:
    """A table as another writer made it."""
    table = Table(path)
    table.create([(name, type) for name, type in columns], protocol=protocol)
    first = table.log / f"{0:020}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    lines[1]["metaData"]["configuration"] = {f"delta.constraints.{name}": text for name, text in checks.items()}
    first.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return table


def with_metadata(table: Table, **fields: dict[str, Any]) -> None:
    """Give fields metadata, before anything is read."""
    first = table.log / f"{0:020}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    schema = json.loads(lines[1]["metaData"]["schemaString"])
    for field in schema["fields"]:
        field["metadata"] = fields.get(field["name"], {})
    lines[1]["metaData"]["schemaString"] = json.dumps(schema)
    first.write_text("".join(json.dumps(line) + "\n" for line in lines))


def newest(path: Path) -> dict[str, Any]:
    found = [of_kind(commit(path, version), "metaData") for version in versions(path)]
    return [metadata for each in found for metadata in each][-1]


def fields(path: Path) -> dict[str, dict[str, Any]]:
    return {field["name"]: field["metadata"] for field in json.loads(newest(path)["schemaString"])["fields"]}


def test_checks_of_spark_are_enforced_in_its_sense(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    foreign(
        tmp_path / "t",
        [("the end", "long"), ("s", "string"), ("x", "double")],
        CHECKED,
        quoted="`the end` > 0",
        words="s IN (\"a\", 'b\\'c')",
        cut="CAST(x AS INT) = 2",
    )
    lake.execute("INSERT INTO t VALUES (1, 'a', 2.9), (2, 'b''c', 2.0)")
    for sql, name in (
        ("INSERT INTO t VALUES (0, 'a', 2)", "quoted"),
        ("INSERT INTO t VALUES (1, 'c', 2)", "words"),
        ("INSERT INTO t VALUES (1, 'a', 3.1)", "cut"),
        ("UPDATE t SET s = NULL", "words"),
        ('MERGE INTO t USING (SELECT 1 AS i) u ON t."the end" = u.i WHEN MATCHED THEN UPDATE SET x = 1', "cut"),
    ):
        with pytest.raises(IntegrityError, match=name):
            lake.execute(sql)
    lake.execute('UPDATE t SET x = 2.5 WHERE "the end" = 1')
    assert rows(lake, "SELECT * FROM t ORDER BY 1") == [(1, "a", 2.5), (2, "b'c", 2.0)]


def test_rows_are_deleted_whatever_the_expressions_are(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    """Rows that are only copied are not verified: not by DELETE, OPTIMIZE or PURGE."""
    table = foreign(tmp_path / "t", [("i", "long"), ("g", "long")], GENERATED, odd="spark_thing(i)")
    with_metadata(
        table,
        i={"delta.invariants": json.dumps({"expression": {"expression": "other_thing(i)"}})},
        g={"delta.generationExpression": "third_thing(i)"},
    )
    table.commit(table.file("f.parquet", pa.table({"i": pa.array(range(6)), "g": pa.array(range(6))})))
    table.commit(table.file("h.parquet", pa.table({"i": pa.array(range(6, 9)), "g": pa.array(range(6, 9))})))
    for sql in ("INSERT INTO t (i) VALUES (1)", "UPDATE t SET i = 1"):
        with pytest.raises(NotSupportedError, match=r"thing.*cannot be computed here"):
            lake.execute(sql)
    lake.execute("DELETE FROM t WHERE i = 3")
    lake.execute("OPTIMIZE t")
    lake.execute("PURGE FROM t WHERE i = 4")
    assert values(lake, "SELECT i FROM t ORDER BY i") == [0, 1, 2, 5, 6, 7, 8]


def test_invariants_of_old_writers_are_enforced(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    table = foreign(tmp_path / "t", [("i", "long"), ("s", "string")], {"minReaderVersion": 1, "minWriterVersion": 2})
    with_metadata(table, i={"delta.invariants": json.dumps({"expression": {"expression": "i > 3"}})})
    lake.execute("INSERT INTO t VALUES (5, 'x')")
    for sql in ("INSERT INTO t VALUES (3, 'x')", "INSERT INTO t (s) VALUES ('x')", "UPDATE t SET i = 1"):
        with pytest.raises(IntegrityError, match=r"i invariant.*i > 3"):
            lake.execute(sql)
    lake.execute("ALTER TABLE t ADD COLUMN n INTEGER")
    assert "delta.invariants" in fields(tmp_path / "t")["i"]
    assert newest(tmp_path / "t")["configuration"] == {}
    with pytest.raises(NotSupportedError, match="invariant"):
        lake.execute('ALTER TABLE t DROP CONSTRAINT "i invariant"')
    lake.execute("UPDATE t SET n = 1")
    assert rows(lake, "SELECT * FROM t") == [(5, "x", 1)]
    shown = rows(lake, "SELECT constraint_name, check_clause FROM information_schema.check_constraints")
    assert shown == [("i invariant", "i > 3")]


def test_generated_columns_of_spark_are_computed_in_its_sense(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    table = foreign(tmp_path / "t", [("ts", "timestamp"), ("d", "date"), ("m", "string"), ("h", "integer")], GENERATED)
    with_metadata(
        table,
        d={"delta.generationExpression": "CAST(ts AS DATE)"},
        m={"delta.generationExpression": "DATE_FORMAT(ts, 'yyyy-MM')"},
        h={"delta.generationExpression": "HOUR(`ts`)"},
    )
    lake.execute("INSERT INTO t (ts) VALUES (TIMESTAMPTZ '2024-02-29 23:10:00+00'), (NULL)")
    shown = "SELECT CAST(d AS VARCHAR), m, h FROM t ORDER BY ts NULLS LAST"
    assert rows(lake, shown) == [("2024-02-29", "2024-02", 23), (None, None, None)]
    lake.execute("UPDATE t SET ts = TIMESTAMPTZ '2025-01-01 00:00:00+00' WHERE ts IS NULL")
    assert rows(lake, shown) == [("2024-02-29", "2024-02", 23), ("2025-01-01", "2025-01", 0)]
    with pytest.raises(IntegrityError, match="generated as HOUR"):
        lake.execute("INSERT INTO t (ts, h) VALUES (TIMESTAMPTZ '2024-02-29 23:10:00+00', 5)")


def test_columns_of_databricks_are_generated(golden: Callable[[str], Path], tmp_path: Path, connect: Connect) -> None:
    source = golden("s-dbr_8_1_generated_columns") / "_delta_log" / f"{0:020}.json"
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log" / source.name).write_bytes(source.read_bytes())
    lake = connect(tmp_path, autocommit=True)
    lake.execute("INSERT INTO t (c1) VALUES (1), (41)")
    assert rows(lake, "SELECT * FROM t ORDER BY c1") == [(1, 2), (41, 42)]


def test_generated_columns_can_be_declared(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute(
        'CREATE TABLE t ("the day" DATE, n INTEGER GENERATED ALWAYS AS (year("the day") * 100 + month("the day")), '
        "s VARCHAR GENERATED ALWAYS AS (CASE WHEN n2 > 1 THEN 'many' ELSE 'it''s one' END), n2 INTEGER) "
        "PARTITIONED BY (n)"
    )
    assert fields(tmp_path / "t")["n"] == {"delta.generationExpression": "year(`the day`) * 100 + month(`the day`)"}
    assert "generatedColumns" in of_kind(commit(tmp_path / "t", 0), "protocol")[0]["writerFeatures"]
    lake.execute("INSERT INTO t (\"the day\", n2) VALUES (DATE '2024-05-01', 1)")
    lake.execute("UPDATE t SET n2 = 2, \"the day\" = DATE '2025-06-01'")
    assert rows(lake, "SELECT n, s FROM t") == [(202506, "many")]
    described = {row[0]: row[5] for row in rows(lake, "DESCRIBE t")}
    assert described["n"] == "GENERATED ALWAYS AS (year(`the day`) * 100 + month(`the day`))"
    shown = rows(lake, "SELECT is_generated FROM information_schema.columns WHERE column_name = 'n'")
    assert shown == [("ALWAYS",)]
    lake.execute("CREATE TABLE again (LIKE t)")
    lake.execute("INSERT INTO again (\"the day\") VALUES (DATE '2024-05-01')")
    assert rows(lake, "SELECT n, s FROM again") == [(202405, "it's one")]
    for sql, error, match in (
        (
            "CREATE TABLE u (a INTEGER, b VARCHAR GENERATED ALWAYS AS (upper(a::VARCHAR)))",
            NotSupportedError,
            "other programs",
        ),
        ("CREATE TABLE u (a INTEGER GENERATED ALWAYS AS (missing))", ProgrammingError, "missing"),
        (
            "CREATE TABLE u (a INTEGER GENERATED ALWAYS AS (b), b INTEGER GENERATED ALWAYS AS (1))",
            ProgrammingError,
            "itself",
        ),
        ("CREATE TABLE u (a INTEGER GENERATED ALWAYS AS (1) DEFAULT 2)", ProgrammingError, "default as well"),
        ("ALTER TABLE t ADD COLUMN x INTEGER GENERATED ALWAYS AS (n2)", NotSupportedError, "make a new table"),
    ):
        with pytest.raises(error, match=match):
            lake.execute(sql)


def test_checks_are_kept_as_other_programs_read_them(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    lake.execute("""CREATE TABLE t ("end" INTEGER, s VARCHAR, CONSTRAINT c CHECK ("end" > 0 AND s <> 'it''s'))""")
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    assert newest(tmp_path / "t")["configuration"]["delta.constraints.c"] == "`end` > 0 AND s <> 'it\\'s'"
    with pytest.raises(IntegrityError, match="'c'"):
        lake.execute("INSERT INTO t VALUES (1, 'it''s')")
    with pytest.raises(NotSupportedError, match="other programs"):
        lake.execute("ALTER TABLE t ADD CONSTRAINT r CHECK (regexp_matches(s, 'x'))")
    with pytest.raises(IntegrityError, match="violated by 1 rows"):
        lake.execute('ALTER TABLE t ADD CONSTRAINT d CHECK ("end" > 1)')
    lake.execute('ALTER TABLE t ADD CONSTRAINT d CHECK ("end" < 10)')
    with pytest.raises(IntegrityError, match="'d'"):
        lake.execute('UPDATE t SET "end" = 10')
    lake.execute("ALTER TABLE t SET ('delta.columnMapping.mode' = 'name')")
    for sql in ('ALTER TABLE t RENAME COLUMN "end" TO e', "ALTER TABLE t DROP COLUMN s"):
        with pytest.raises(NotSupportedError, match="DROP CONSTRAINT first"):
            lake.execute(sql)
    for name in ("c", "d"):
        lake.execute(f"ALTER TABLE t DROP CONSTRAINT {name}")
    lake.execute('ALTER TABLE t RENAME COLUMN "end" TO e')
    assert rows(lake, "SELECT e, s FROM t") == [(1, "x")]


def test_defaults_are_those_of_spark(lake: lakedbapi.Connection, tmp_path: Path) -> None:
    table = foreign(
        tmp_path / "t",
        [("i", "long"), ("s", "string"), ("d", "date"), ("ts", "timestamp")],
        {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["allowColumnDefaults"]},  # type: ignore[dict-item]
    )
    with_metadata(
        table,
        s={"CURRENT_DEFAULT": '"a\\\\b"'},
        d={"CURRENT_DEFAULT": "current_date()"},
        ts={"CURRENT_DEFAULT": "current_timestamp()"},
    )
    lake.execute("INSERT INTO t (i) VALUES (1)")
    assert rows(lake, "SELECT s, d = CAST(ts AS DATE) FROM t") == [("a\\b", True)]
    lake.execute("CREATE TABLE u (i INTEGER, s VARCHAR DEFAULT 'a\\b', l INTEGER[] DEFAULT [1, 2])")
    assert fields(tmp_path / "u")["s"] == {"CURRENT_DEFAULT": "'a\\\\b'"}
    lake.execute("INSERT INTO u (i) VALUES (1)")
    lake.execute("ALTER TABLE u ALTER COLUMN s SET DEFAULT 'it''s'")
    lake.execute("INSERT INTO u (i) VALUES (2)")
    assert rows(lake, "SELECT s, l FROM u ORDER BY i") == [("a\\b", [1, 2]), ("it's", [1, 2])]
