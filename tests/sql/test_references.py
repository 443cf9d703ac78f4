from __future__ import annotations

import duckdb
import pytest

from lakedbapi import ProgrammingError
from lakedbapi.sql import parse, render
from lakedbapi.sql.statements import Function, InformationSchema, Name, Select, Special, Travel


def select(text: str) -> Select:
    statement = parse(text).statement
    assert isinstance(statement, Select)
    return statement


def readable(statement: Select) -> str:
    """The text with every special relation as `#1`, `#2`…"""
    text = statement.text
    for number, special in enumerate(statement.specials, 1):
        text = text.replace(f'"{special.name}"', f"#{number}")
    return " ".join(text.split())


def travel(special: Special) -> tuple[str, str, str]:
    assert isinstance(special.relation, Travel)
    return str(special.relation.of), special.relation.kind, render(special.relation.value)


@pytest.mark.parametrize(
    ("clause", "kind", "value"),
    [
        ("AT (VERSION => 3)", "version", "3"),
        ("at (timestamp => now() - interval '1 day')", "timestamp", "now() - interval '1 day'"),
        ("AT (TIMESTAMP => TIMESTAMP '2024-01-01')", "timestamp", "TIMESTAMP '2024-01-01'"),
        ("VERSION AS OF 3", "version", "3"),
        ("VERSION AS OF 'main'", "version", "'main'"),
        ("version as of ?", "version", "$1"),
        ("VERSION AS OF :v", "version", "$v"),
        ("TIMESTAMP AS OF '2024-01-01 00:00:00'", "timestamp", "'2024-01-01 00:00:00'"),
        ("FOR VERSION AS OF 3", "version", "3"),
        ("FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01'", "timestamp", "TIMESTAMP '2024-01-01'"),
        ("FOR SYSTEM_TIME AS OF CAST($1 AS TIMESTAMPTZ)", "timestamp", "CAST($1 AS TIMESTAMPTZ)"),
        ("FOR SYSTEM_VERSION AS OF 3", "version", "3"),
        ("FOR TIMESTAMP AS OF now() - interval '1 day'", "timestamp", "now() - interval '1 day'"),
        ("FOR TIMESTAMP AS OF now() - interval 2 hours", "timestamp", "now() - interval 2 hours"),
        ("FOR TIMESTAMP AS OF current_timestamp", "timestamp", "current_timestamp"),
        (
            "FOR TIMESTAMP AS OF '2024-01-01'::TIMESTAMP AT TIME ZONE 'UTC'",
            "timestamp",
            "'2024-01-01'::TIMESTAMP AT TIME ZONE 'UTC'",
        ),
        ("FOR TIMESTAMP AS OF ?::TIMESTAMP WITH TIME ZONE", "timestamp", "$1::TIMESTAMP WITH TIME ZONE"),
        ("FOR TIMESTAMP AS OF (DATE '2024-01-02' + 1)", "timestamp", "(DATE '2024-01-02' + 1)"),
        ("FOR TIMESTAMP AS OF make_timestamp(2024, 1, 2, 3, 4, 5)", "timestamp", "make_timestamp(2024, 1, 2, 3, 4, 5)"),
        (
            "FOR TIMESTAMP AS OF TIMESTAMP WITH TIME ZONE '2024-01-01 00:00:00+02'",
            "timestamp",
            "TIMESTAMP WITH TIME ZONE '2024-01-01 00:00:00+02'",
        ),
        ("VERSION AS OF -1", "version", "-1"),
    ],
)
def test_every_spelling_of_time_travel(clause: str, kind: str, value: str) -> None:
    for before, after in (("x", ""), ("AS x", ""), ("", "x"), ("", "AS x")):
        statement = select(f"SELECT x.a FROM s.t {before} {clause} {after} WHERE x.a > 1")
        assert [travel(special) for special in statement.specials] == [("s.t", kind, value)]
        assert readable(statement) == f"SELECT x.a FROM #1 {before or after} WHERE x.a > 1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT t.a FROM lake.s.t VERSION AS OF 3", 'SELECT t.a FROM #1 AS "t"'),
        ('SELECT * FROM "My T" AT (VERSION => 3), u', 'SELECT * FROM #1 AS "My T" , u'),
        ("FROM t FOR VERSION AS OF 3", 'FROM #1 AS "t"'),
        (
            "SELECT * FROM t VERSION AS OF 1 JOIN t VERSION AS OF 2 u USING (a)",
            'SELECT * FROM #1 AS "t" JOIN #2 u USING (a)',
        ),
        ("SELECT * FROM a LEFT JOIN b VERSION AS OF 1 ON true", 'SELECT * FROM a LEFT JOIN #1 AS "b" ON true'),
        ("SELECT * FROM (SELECT * FROM t VERSION AS OF 1) x", 'SELECT * FROM (SELECT * FROM #1 AS "t" ) x'),
        ("SELECT * FROM (t VERSION AS OF 1 CROSS JOIN u)", 'SELECT * FROM (#1 AS "t" CROSS JOIN u)'),
        ("WITH c AS (FROM t VERSION AS OF 1) FROM c", 'WITH c AS (FROM #1 AS "t" ) FROM c'),
        ("SELECT (SELECT max(a) FROM t VERSION AS OF 1)", 'SELECT (SELECT max(a) FROM #1 AS "t" )'),
        ("SELECT 1 WHERE EXISTS (FROM t VERSION AS OF 1)", 'SELECT 1 WHERE EXISTS (FROM #1 AS "t" )'),
        ("SELECT * FROM t VERSION AS OF 1 EXCEPT SELECT * FROM t", 'SELECT * FROM #1 AS "t" EXCEPT SELECT * FROM t'),
        ("SELECT * FROM t VERSION AS OF 1 TABLESAMPLE 10%", 'SELECT * FROM #1 AS "t" TABLESAMPLE 10%'),
        ("SELECT * FROM t x(a, b), u FOR VERSION AS OF 2", 'SELECT * FROM t x(a, b), #1 AS "u"'),
        ("SELECT * FROM x: t VERSION AS OF 1", 'SELECT * FROM x: #1 AS "t"'),
    ],
)
def test_references_at_any_depth(text: str, expected: str) -> None:
    assert readable(select(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT version AS of FROM t",
        "SELECT a AS version FROM t",
        "SELECT timestamp FROM version",
        "SELECT * FROM t version",
        "SELECT * FROM t AS timestamp",
        "SELECT * FROM t, version v",
        "SELECT 'FROM t VERSION AS OF 3'",
        "SELECT x.version, 1 AS at FROM t x -- VERSION AS OF 3",
        "SELECT history, files FROM files",
        "WITH files(a, b) AS (SELECT 1, 2) SELECT * FROM files",
        "SELECT information_schema FROM t",
        "SELECT extract(year FROM history) FROM t",
        "SELECT d AT TIME ZONE 'UTC' FROM t",
    ],
)
def test_plain_texts_are_left_alone(text: str) -> None:
    statement = select(text)
    assert not statement.specials
    assert statement.text == text.split(" --")[0]


@pytest.mark.parametrize(
    "clause",
    ["VERSION AS OF x.a", "FOR VERSION AS OF main", "AT (VERSION => a + 1)", "TIMESTAMP AS OF (SELECT max(a) FROM u)"],
)
def test_time_travel_needs_a_constant(clause: str) -> None:
    with pytest.raises(ProgrammingError, match="time travel needs a constant"):
        parse(f"SELECT * FROM t {clause}")


@pytest.mark.parametrize(
    "clause",
    [
        "AT (VERSION 3)",
        "AT (VERSION = 3)",
        "AS OF 3",
        "AS OF ?",
        "AS OF SYSTEM TIME '2026-01-01'",
        "AS OF TIMESTAMP '2026-01-01'",
        "VERSION 3",
        "TIMESTAMP '2026-01-01'",
        "FOR VERSION 3",
        "FOR SYSTEM_TIME BETWEEN '2026-01-01' AND '2026-01-02'",
    ],
)
@pytest.mark.parametrize("alias", ["", " x", " AS x"])
def test_other_spellings_of_time_travel_are_refused_with_the_way_out(clause: str, alias: str) -> None:
    with pytest.raises(ProgrammingError, match=r"time travel is written s\.t FOR VERSION AS OF n, "):
        parse(f"SELECT * FROM s.t{alias} {clause}")


@pytest.mark.parametrize("text", ["FROM t AS of", "FROM t version", "FROM t AS timestamp WHERE timestamp.id = 1"])
def test_words_of_time_travel_can_be_aliases(text: str) -> None:
    assert select(text).specials == ()


def test_at_sign_is_refused_with_the_way_out() -> None:
    with pytest.raises(ProgrammingError, match=r"write s\.t FOR VERSION AS OF 3 \(line 1, column 18\)"):
        parse("SELECT * FROM s.t@v3")


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t VERSION AS OF 3 SET a = 1",
        "DELETE FROM t AT (VERSION => 3)",
        "INSERT INTO t VERSION AS OF 1 VALUES (1)",
    ],
)
def test_an_older_version_cannot_be_changed(text: str) -> None:
    with pytest.raises(ProgrammingError, match="as it is now"):
        parse(text)


def test_lake_functions_with_their_arguments() -> None:
    statement = select("SELECT * FROM table_changes('t', 1, end_snapshot => :e) c, lake.snapshots(), files('s.t')")
    assert readable(statement) == 'SELECT * FROM #1 c, #2 AS "snapshots", #3 AS "files"'
    changes = statement.specials[0].relation
    assert isinstance(changes, Function)
    assert changes.of == Name(("table_changes",))
    assert [render(a) for a in changes.arguments] == ["'t'", "1"]
    assert [(name, render(a)) for name, a in changes.named] == [("end_snapshot", "$e")]
    assert [str(special.relation.of) for special in statement.specials[1:]] == ["lake.snapshots", "files"]


def test_common_names_are_lake_functions_only_when_qualified() -> None:
    assert not select("SELECT * FROM settings('x')").specials
    assert select("SELECT * FROM lake.settings()").specials


def test_tables_may_bear_the_names_of_lake_functions() -> None:
    assert not parse("INSERT INTO history (a, b) VALUES (1, 2)").statement.specials
    parse("CREATE TABLE files (a INT)")


def test_information_schema_in_every_position() -> None:
    statement = select(
        "SELECT information_schema.tables.table_name, c.* FROM information_schema.tables "
        "JOIN lake.INFORMATION_SCHEMA.Columns c ON information_schema.tables.table_name = c.table_name"
    )
    assert (
        readable(statement)
        == 'SELECT tables.table_name, c.* FROM #1 AS "tables" JOIN #2 c ON tables.table_name = c.table_name'
    )
    assert [s.relation for s in statement.specials] == [
        InformationSchema("tables"),
        InformationSchema("columns", "lake"),
    ]


def test_names_of_specials_are_unique_across_texts() -> None:
    names = [select(f"SELECT * FROM t VERSION AS OF {n} JOIN t VERSION AS OF 9 u ON true").specials for n in (1, 2)]
    assert len({special.name for specials in names for special in specials}) == 4


def test_spliced_text_runs() -> None:
    statement = select(
        "SELECT t.a, u.b FROM s.t VERSION AS OF 3 JOIN t FOR VERSION AS OF $1 u ON t.a = u.a WHERE t.b > 0 ORDER BY 1"
    )
    engine = duckdb.connect()
    for special in statement.specials:
        engine.execute(f'CREATE VIEW "{special.name}" AS SELECT 1 AS a, 2 AS b')
    assert engine.execute(statement.text).fetchall() == [(1, 2)]


def test_identifiers_hold_every_name_and_string() -> None:
    statement = select("""SELECT "É", 'Str' FROM Lake.S."T" JOIN u USING (K)""")
    assert {"é", "str", "lake", "s", "t", "u", "k"} <= statement.identifiers


def test_texts_that_only_the_engine_parses_have_no_tree() -> None:
    assert select("SELECT j! FROM t").tree is None
    assert select("SELECT j FROM t").tree is not None
