from __future__ import annotations

import pytest

from lakedbapi import NotSupportedError, ProgrammingError
from lakedbapi.sql import parse, render
from lakedbapi.sql import statements as st
from lakedbapi.sql.statements import (
    Attach,
    Call,
    Delete,
    Describe,
    Detach,
    Explain,
    InformationSchema,
    Name,
    Select,
    Show,
    TransactionControl,
    Use,
)


def test_the_same_text_is_parsed_once() -> None:
    assert parse("SELECT 1 AS cached") is parse("SELECT 1 AS cached")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "FROM t",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) FROM a",
        "WITH a AS MATERIALIZED (SELECT 1), b AS NOT MATERIALIZED (SELECT 2) FROM a, b",
        "VALUES (1), (2)",
        "TABLE t",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "PIVOT t ON a USING sum(b)",
        "UNPIVOT t ON a, b INTO NAME n VALUE v",
        "SELECT * EXCLUDE (a) REPLACE (b + 1 AS b) FROM t QUALIFY row_number() OVER () = 1",
        "SELECT COLUMNS('a.*') FROM t ASOF JOIN u USING (ts) ORDER BY ALL LIMIT 10%",
        "SELECT * FROM t POSITIONAL JOIN u, LATERAL (SELECT t.a) GROUP BY ROLLUP (a)",
        "SELECT j! FROM t",
    ],
)
def test_queries_stay_as_they_are_written(text: str) -> None:
    statement = parse(f"  {text} -- end\n ; ").statement
    assert isinstance(statement, Select)
    assert statement.text == text


@pytest.mark.parametrize("text", ["", " ; ;", "-- nothing", "/* nothing */"])
def test_empty_text(text: str) -> None:
    with pytest.raises(ProgrammingError, match="the statement is empty"):
        parse(text)


def test_several_statements_are_refused_with_the_way_out() -> None:
    with pytest.raises(ProgrammingError, match=r"use executescript \(line 1, column 11\)"):
        parse("SELECT 1; SELECT 2")


def test_unknown_statement() -> None:
    with pytest.raises(ProgrammingError, match=r"expected a statement, found FLY \(line 2, column 2\)"):
        parse("\n FLY away")


@pytest.mark.parametrize(
    ("text", "action", "name"),
    [
        ("BEGIN", "begin", None),
        ("BEGIN TRANSACTION", "begin", None),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE", "begin", None),
        ("START TRANSACTION ISOLATION LEVEL READ COMMITTED", "begin", None),
        ("START TRANSACTION WITH CONSISTENT SNAPSHOT", "begin", None),
        ("begin work", "begin", None),
        ("START TRANSACTION", "begin", None),
        ("COMMIT", "commit", None),
        ("COMMIT WORK", "commit", None),
        ("END TRANSACTION", "commit", None),
        ("ROLLBACK", "rollback", None),
        ("ABORT", "rollback", None),
        ("SAVEPOINT a", "savepoint", "a"),
        ('RELEASE SAVEPOINT "A"', "release", "A"),
        ("RELEASE a", "release", "a"),
        ("ROLLBACK TO SAVEPOINT a", "rollback to", "a"),
        ("ROLLBACK TRANSACTION TO a", "rollback to", "a"),
    ],
)
def test_transaction_control(text: str, action: str, name: str | None) -> None:
    assert parse(text).statement == TransactionControl(action, name)


def test_transaction_options_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="BEGIN does not take READ ONLY"):
        parse("BEGIN TRANSACTION READ ONLY")


def test_attach_and_detach() -> None:
    assert parse(
        "ATTACH 'ducklake:x.db' AS y (DATA_PATH 'd/', READ_ONLY, SNAPSHOT_VERSION 3, encrypted false)"
    ).statement == Attach(
        "ducklake:x.db",
        "y",
        (("data_path", "d/"), ("read_only", "true"), ("snapshot_version", "3"), ("encrypted", "false")),
    )
    assert parse("ATTACH DATABASE IF NOT EXISTS 'x'").statement == Attach("x", None, (), True)
    assert parse("DETACH DATABASE IF EXISTS y").statement == Detach("y", True)
    assert parse("DETACH y").statement == Detach("y")


def test_use() -> None:
    assert parse('USE lake."S 1"').statement == Use(Name(("lake", "S 1")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW TABLES", Show("tables")),
        ("SHOW", Show("tables")),
        ("SHOW CREATE TABLE s.t", Show("create", Name(("s", "t")))),
        ("SHOW CREATE VIEW v", Show("create", Name(("v",)))),
        ("SHOW TABLES FROM lake.s", Show("tables", Name(("lake", "s")))),
        ("SHOW TABLES IN SCHEMA lake.s", Show("tables", Name(("lake", "s")))),
        ("SHOW VIEWS IN schema", Show("views", Name(("schema",)))),
        ("SHOW ALL TABLES", Show("all tables")),
        ("SHOW SCHEMAS", Show("schemas")),
        ("SHOW DATABASES", Show("databases")),
        ("SHOW VIEWS", Show("views")),
        ("DESCRIBE", Show("all tables")),
    ],
)
def test_show(text: str, expected: Show) -> None:
    assert parse(text).statement == expected


@pytest.mark.parametrize(
    ("text", "verb", "query", "name"),
    [
        ("DESCRIBE s.t", "describe", "SELECT * FROM s.t", Name(("s", "t"))),
        ("DESC TABLE t", "describe", "SELECT * FROM t", Name(("t",))),
        ('SHOW "My T"', "describe", 'SELECT * FROM "My T"', Name(("My T",))),
        ("SUMMARIZE t", "summarize", "SELECT * FROM t", Name(("t",))),
        ("SUMMARIZE SELECT ? AS a", "summarize", "SELECT $1 AS a", None),
        ("DESCRIBE (FROM t)", "describe", "(FROM t)", None),
    ],
)
def test_describe(text: str, verb: str, query: str, name: Name | None) -> None:
    statement = parse(text).statement
    assert isinstance(statement, Describe)
    assert (statement.verb, statement.query.text, statement.name) == (verb, query, name)


def test_describe_of_metadata() -> None:
    statement = parse("DESCRIBE information_schema.tables").statement
    assert isinstance(statement, Describe)
    assert [special.relation for special in statement.query.specials] == [InformationSchema("tables")]


def test_explain() -> None:
    statement = parse("EXPLAIN ANALYZE DELETE FROM t WHERE a = ?").statement
    assert isinstance(statement, Explain)
    assert statement.analyze
    assert isinstance(statement.statement, Delete)
    assert isinstance(parse("EXPLAIN SELECT 1").statement, Explain)


def test_call() -> None:
    statement = parse("CALL lake.set_option('k', ?, table_name => 't', schema := 's')").statement
    assert isinstance(statement, Call)
    assert statement.name == Name(("lake", "set_option"))
    assert [render(argument) for argument in statement.arguments] == ["'k'", "$1"]
    assert [(name, render(value)) for name, value in statement.named] == [("table_name", "'t'"), ("schema", "'s'")]
    assert parse("CALL checkpoint()").statement == Call(Name(("checkpoint",)), ())
    with pytest.raises(ProgrammingError, match="positional argument after a named one"):
        parse("CALL f(a => 1, 2)")


def test_errors_carry_the_statement() -> None:
    with pytest.raises(NotSupportedError) as caught:
        parse("CREATE TEMP TABLE t (a INT)")
    assert caught.value.statement == "CREATE TEMP TABLE t (a INT)"


def test_maintenance_statements() -> None:
    assert parse("CHECKPOINT").statement == st.Checkpoint()
    assert parse("CHECKPOINT lake").statement == st.Checkpoint(Name(("lake",)))
    assert parse("CHECKPOINT TABLE s.t").statement == st.Checkpoint(Name(("s", "t")), is_table=True)
    assert parse("OPTIMIZE TABLE a.b").statement == st.Optimize(Name(("a", "b")))
    assert parse("VACUUM").statement == st.Vacuum()
    assert parse("VACUUM dry").statement == st.Vacuum(Name(("dry",)))
    assert parse("VACUUM t DRY RUN").statement == st.Vacuum(Name(("t",)), dry_run=True)
    for unit in ("HOURS", "DAYS", "day"):
        vacuum = parse(f"VACUUM t RETAIN 3 {unit}").statement
        assert isinstance(vacuum, st.Vacuum)
        assert (str(vacuum.age), vacuum.unit) == ("3", "hours" if unit == "HOURS" else "days")
    with pytest.raises(ProgrammingError, match="expected HOURS or DAYS"):
        parse("VACUUM t RETAIN 3 WEEKS")
    assert parse("VACUUM retain").statement == st.Vacuum(Name(("retain",)))
    assert parse("DESC HISTORY s.t").statement == st.DescribeHistory(Name(("s", "t")))
    vacuum = parse("VACUUM RETAIN ? HOURS DRY RUN")
    assert isinstance(vacuum.statement, st.Vacuum)
    assert (vacuum.statement.name, vacuum.statement.dry_run, vacuum.parameters.positional) == (None, True, 1)
    restore = parse("RESTORE t TO TIMESTAMP AS OF now() - INTERVAL 1 DAY").statement
    assert isinstance(restore, st.Restore)
    assert (restore.target, restore.to.kind) == (Name(("t",)), "timestamp")
    optimize = parse("OPTIMIZE t WHERE a > $1 AND b = 'x'").statement
    assert isinstance(optimize, st.Optimize)
    assert optimize.where is not None
    assert render(optimize.where) == "a > $1 AND b = 'x'"
    zorder = parse('OPTIMIZE t WHERE a > 1 ZORDER BY (a, "B c")').statement
    assert isinstance(zorder, st.Optimize)
    assert zorder.order == ("a", "B c")
    assert parse("OPTIMIZE zorder ZORDER BY a, b").statement == st.Optimize(Name(("zorder",)), order=("a", "b"))
    assert parse("REORG TABLE apply APPLY (PURGE)").statement == st.Reorg(Name(("apply",)))


@pytest.mark.parametrize(
    "text",
    [
        "CHECKPOINT a b",
        "OPTIMIZE",
        "OPTIMIZE t WHERE",
        "OPTIMIZE t WHERE k IN (SELECT 1)",
        "VACUUM t RETAIN 5",
        "VACUUM t RETAIN 5 WEEKS",
        "VACUUM t DRY",
        "VACUUM t RETAIN (a) HOURS",
        "RESTORE TABLE t",
        "RESTORE TABLE t TO 5",
        "RESTORE TABLE t TO VERSION AS OF k",
        "DESCRIBE HISTORY t LIMIT",
    ],
)
def test_broken_maintenance_statements(text: str) -> None:
    with pytest.raises(ProgrammingError):
        parse(text)


@pytest.mark.parametrize("text", ['CREATE TABLE "\ud800" (i INTEGER)', "SELECT '\udfff'"])
def test_half_a_character_is_no_text(text: str) -> None:
    with pytest.raises(ProgrammingError, match="no Unicode text"):
        parse(text)
