from __future__ import annotations

import pytest

from lakedbapi import ProgrammingError
from lakedbapi.sql import parse
from lakedbapi.sql.guard import check, check_stored


def refused(text: str) -> str:
    with pytest.raises(ProgrammingError) as caught:
        check(parse(text), allow_external=False)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "COPY t TO 'x.csv'",
        "COPY (SELECT 1) TO 'x.csv'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "FORCE INSTALL httpfs",
        "PRAGMA database_list",
        "SET memory_limit = '1GB'",
        "SET TimeZone = 'UTC'",
        "RESET memory_limit",
        "EXPORT DATABASE 'x'",
        "IMPORT DATABASE 'x'",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "DEALLOCATE p",
        "CREATE SECRET s (TYPE s3)",
        "DROP SECRET s",
        "CREATE SEQUENCE s",
        "CREATE INDEX i ON t (a)",
        "EXPLAIN COPY t TO 'x'",
    ],
)
@pytest.mark.parametrize("allow_external", [False, True])
def test_statements_that_never_run(text: str, allow_external: bool) -> None:
    with pytest.raises(ProgrammingError):
        check(parse(text), allow_external)


@pytest.mark.parametrize(
    "call",
    [
        "read_csv('x')",
        "READ_CSV_AUTO('x')",
        "\"read_parquet\"('x')",
        "system.main.read_json('x')",
        "read_text /* */ ('x')",
        "read_blob(?)",
        "parquet_scan('x')",
        "parquet_metadata('x')",
        "glob('*')",
        "sniff_csv('x')",
        "sqlite_scan('x', 'y')",
        "postgres_query('x', 'y')",
        "iceberg_scan('x')",
        "delta_scan('x')",
        "st_read('x')",
        "duckdb_secrets()",
        "duckdb_settings()",
        "which_secret('x', 'y')",
        "query('SELECT 1')",
        "query_table('t')",
        "pragma_version()",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM {}",
        "FROM t, {} x",
        "SELECT (SELECT max(a) FROM {})",
        "WITH c AS (FROM {}) FROM c",
        "INSERT INTO t FROM {}",
        "DELETE FROM t USING {} x",
        "UPDATE t SET a = (SELECT 1 FROM {})",
        "MERGE INTO t USING {} s ON t.a = s.a WHEN MATCHED THEN DELETE",
        "CREATE TABLE t AS FROM {}",
        "CREATE VIEW v AS SELECT j! FROM {}",
        "EXPLAIN FROM {}",
        "DESCRIBE FROM {}",
    ],
)
def test_functions_that_reach_outside(text: str, call: str) -> None:
    if "VIEW" in text and "?" in call:
        pytest.skip("a view holds no parameters")
    assert "is not allowed, it reaches outside the attached catalogs" in refused(text.format(call))


@pytest.mark.parametrize("call", ["getenv('HOME')", "current_setting('x')", "getvariable('x')", "'x'.getenv()"])
def test_functions_that_read_the_environment(call: str) -> None:
    assert "is not allowed" in refused(f"SELECT {call}")
    assert "is not allowed" in refused(f"UPDATE t SET a = {call}")


@pytest.mark.parametrize("relation", ["pg_settings", "pg_catalog.pg_settings", 'system."pg_catalog"."PG_Settings"'])
@pytest.mark.parametrize(
    "text", ["FROM {}", "SELECT (SELECT max(setting) FROM {})", "SELECT 1 FROM t, {} x", "TABLE {}"]
)
def test_settings_as_relations(text: str, relation: str) -> None:
    assert "is not allowed, it shows the settings" in refused(text.format(relation))


@pytest.mark.parametrize(
    ("relation", "is_name"),
    [
        ("'/etc/passwd'", False),
        ("'s3://b/x.parquet'", False),
        ('"x/y.parquet"', True),
        ('"file.parquet"', True),
        ("'t'", False),
        ('"a*"', True),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM {}",
        "FROM {}",
        "SELECT 1 FROM t, {} x",
        "SELECT 1 FROM t JOIN {} USING (a)",
        "SELECT 1 FROM (t CROSS JOIN {})",
        "SELECT 1 FROM x: {}",
        "SELECT 1 UNION ALL FROM {}",
        "SELECT ARRAY(SELECT 1 FROM {})",
        "SELECT j! FROM {}",
        "DELETE FROM t USING {} u",
        "UPDATE t SET a = 1 FROM {} u",
        "MERGE INTO t USING {} s ON true WHEN MATCHED THEN DELETE",
        "DESCRIBE FROM {}",
        "TABLE {}",
        "PIVOT {} ON a USING sum(b)",
    ],
)
def test_files_as_relations(text: str, relation: str, is_name: bool) -> None:
    """A quoted name is that of a file only where the lake has no relation of the name."""
    parsed = parse(text.format(relation))
    errors = [str(file.error) for file in parsed.file_names] if is_name else [refused(text.format(relation))]
    assert len(errors) == 1
    assert "is a file, and reading files is not allowed" in errors[0]


@pytest.mark.parametrize(
    "text",
    [
        'CREATE TABLE "a/b" (i INT)',
        'CREATE OR REPLACE TABLE "a/b" AS SELECT 1 AS i',
        'CREATE TABLE IF NOT EXISTS "a/b" (i INT)',
        'DROP TABLE IF EXISTS "a/b"',
    ],
)
def test_what_a_statement_defines_may_be_called_like_a_file(text: str) -> None:
    assert not parse(text).file_names


@pytest.mark.parametrize("text", ["read_text('/etc/passwd')", '(SELECT 1 FROM "x.parquet")', "getenv('HOME')"])
def test_stored_text_reaches_no_further_than_statements(text: str) -> None:
    with pytest.raises(ProgrammingError, match=r"the default of column 'a' is not run: .* is"):
        check_stored(text, "the default of column 'a'")
    check_stored("upper('read_text(1)') || now()", "the default of column 'a'")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'read_csv(x)' FROM t WHERE s IN ('/etc/passwd', 'a') AND b = 's3://x'",
        "SELECT trim(BOTH 'x' FROM 'y'), substring('a' FROM 'b'), extract('year' FROM d)",
        "SELECT a IS DISTINCT FROM 'x', b IS NOT DISTINCT FROM 'y' FROM t",
        "SELECT read_csv, getenv FROM glob",
        "INSERT INTO read_log (a) VALUES ('x'), ('y')",
        "CREATE TABLE read_log (a INT)",
        "SELECT * FROM t PIVOT (sum(a) FOR b IN ('x', 'y'))",
        "SELECT * FROM unnest(['a', 'b']) u(x) WHERE x = 'a'",
        "SELECT a FROM t ORDER BY a DESC, 'x'",
        "SELECT a FROM t GROUP BY a, 'x' HAVING 'y' = a",
        "SELECT * FROM (VALUES ('a', 'b'), ('c', 'd')) v(x, y)",
        'SELECT "a/b" FROM "My Table"',
        "SELECT * FROM raw.json",
        "FROM range(3), generate_series(1, 2) g(x)",
        "SELECT * FROM duckdb_functions()",
        "ATTACH 'ducklake:x' AS y",
        "SELECT * FROM table_changes('t', 1, 2)",
        "CALL ducklake_expire_snapshots('lake', older_than => now())",
    ],
)
def test_harmless_statements_pass(text: str) -> None:
    check(parse(text), allow_external=False)


def test_trusted_programs_may_read_files() -> None:
    check(parse("SELECT * FROM read_csv('x'), 'y.parquet'"), allow_external=True)


def test_the_place_is_named() -> None:
    assert refused("SELECT 1\nFROM read_csv('x')").endswith("(line 2, column 6)")
