from __future__ import annotations

import pytest
from sqlglot import exp

from lakedbapi import NotSupportedError, ProgrammingError
from lakedbapi.sql import parse, render
from lakedbapi.sql.statements import (
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeAction,
    Name,
    OnConflict,
    Travel,
    Truncate,
    Update,
)


def insert(text: str) -> Insert:
    statement = parse(text).statement
    assert isinstance(statement, Insert)
    return statement


def update(text: str) -> Update:
    statement = parse(text).statement
    assert isinstance(statement, Update)
    return statement


def delete(text: str) -> Delete:
    statement = parse(text).statement
    assert isinstance(statement, Delete)
    return statement


def merge(text: str) -> Merge:
    statement = parse(text).statement
    assert isinstance(statement, Merge)
    return statement


def sql(tree: exp.Expression | None) -> str | None:
    return None if tree is None else render(tree)


def all_sql(trees: tuple[exp.Expression, ...]) -> list[str]:
    return [render(tree) for tree in trees]


def assigned(assignments: tuple[Assignment, ...]) -> list[tuple[str, str | None]]:
    return [(".".join(a.column), sql(a.value)) for a in assignments]


# INSERT


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("INSERT INTO t VALUES (1, 'a'), (2, 'b')", "VALUES (1, 'a'), (2, 'b')"),
        ("INSERT INTO t SELECT * FROM u ORDER BY 1 LIMIT 3", "SELECT * FROM u ORDER BY 1 LIMIT 3"),
        ("INSERT INTO t (SELECT 1)", "(SELECT 1)"),
        ("INSERT INTO t (a) (SELECT 1) UNION ALL (SELECT 2)", "(SELECT 1) UNION ALL (SELECT 2)"),
        ("INSERT INTO t FROM u", "FROM u"),
        ("INSERT INTO t TABLE u", "TABLE u"),
        ("INSERT INTO t WITH c AS (SELECT 1) FROM c", "WITH c AS (SELECT 1) FROM c"),
        (
            "INSERT INTO t SELECT a FROM u JOIN conflict ON conflict = a",
            "SELECT a FROM u JOIN conflict ON conflict = a",
        ),
    ],
)
def test_insert_source_is_the_text_as_written(text: str, source: str) -> None:
    statement = insert(text)
    assert statement.target == Name(("t",))
    assert statement.source is not None
    assert statement.source.text == source


def test_insert_columns_alias_and_by_name() -> None:
    statement = insert('INSERT INTO lake.s."T" AS x (a, "B b") BY NAME SELECT 1 AS a RETURNING x.a + 1 AS y, *')
    assert (statement.target, statement.alias) == (Name(("lake", "s", "T")), "x")
    assert (statement.columns, statement.by_name) == (("a", "B b"), True)
    assert all_sql(statement.returning) == ["x.a + 1 AS y", "*"]


def test_insert_default_items_are_marked_and_null_in_the_source() -> None:
    statement = insert('INSERT INTO t VALUES (1, DEFAULT), (default, "default")')
    assert statement.source is not None
    assert statement.source.text == 'VALUES (1, NULL), (NULL, "default")'
    assert statement.defaults == {(0, 1), (1, 0)}


def test_insert_default_values() -> None:
    statement = insert("INSERT INTO t DEFAULT VALUES RETURNING id")
    assert statement.source is None
    assert all_sql(statement.returning) == ["id"]


def test_insert_identifiers_are_those_of_the_whole_statement() -> None:
    statement = insert(
        "WITH c AS (FROM u) INSERT INTO t SELECT 1 FROM c ON CONFLICT (a) DO UPDATE SET b = (SELECT max(x) FROM w)"
    )
    assert {"u", "t", "c", "w"} <= statement.identifiers
    assert statement.source is not None
    assert statement.source.identifiers == statement.identifiers
    assert sql(statement.ctes) == "WITH c AS (FROM u)"


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("ON CONFLICT DO NOTHING", OnConflict((), ())),
        ("ON CONFLICT (a, b) DO NOTHING", OnConflict(("a", "b"), ())),
    ],
)
def test_insert_on_conflict_do_nothing(clause: str, expected: OnConflict) -> None:
    assert insert(f"INSERT INTO t VALUES (1) {clause} RETURNING *").on_conflict == expected


def test_insert_on_conflict_update() -> None:
    conflict = insert(
        "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = excluded.b, c = DEFAULT "
        "WHERE t.b < excluded.b RETURNING a"
    ).on_conflict
    assert conflict is not None
    assert (conflict.columns, assigned(conflict.update), sql(conflict.where)) == (
        ("a",),
        [("b", "excluded.b"), ("c", None)],
        "t.b < excluded.b",
    )


def test_replace_into_is_insert_or_replace() -> None:
    short, long = insert("REPLACE INTO t (a) VALUES (1)"), insert("INSERT OR REPLACE INTO t (a) VALUES (1)")
    assert short.on_conflict == long.on_conflict == OnConflict((), (), replace=True)
    assert (short.target, short.columns) == (long.target, long.columns)


def test_insert_into_table_is_insert_into() -> None:
    assert insert("INSERT INTO TABLE t VALUES (1)").target == Name(("t",))


def test_insert_overwrite_is_refused_with_the_way_out() -> None:
    with pytest.raises(ProgrammingError, match="INSERT OVERWRITE is not supported: BEGIN, DELETE"):
        parse("INSERT OVERWRITE t SELECT 1")


def test_insert_or_replace_and_or_ignore() -> None:
    assert insert("INSERT OR REPLACE INTO t VALUES (1)").on_conflict == OnConflict((), (), replace=True)
    assert insert("INSERT OR IGNORE INTO t VALUES (1)").on_conflict == OnConflict((), ())


# UPDATE, DELETE, TRUNCATE


def test_update_with_everything() -> None:
    statement = update(
        'UPDATE s.t AS x SET a = a + 1, st.f."G" = DEFAULT, "default" = "default", '
        "c = CASE WHEN a THEN 1 ELSE (SELECT 2) END "
        "FROM u JOIN v ON u.a = v.a, (SELECT 1 AS b) w WHERE x.id = u.id AND w.b IN (1, 2) RETURNING x.*, a AS old"
    )
    assert (statement.target, statement.alias) == (Name(("s", "t")), "x")
    assert assigned(statement.assignments) == [
        ("a", "a + 1"),
        ("st.f.G", None),
        ("default", '"default"'),
        ("c", "CASE WHEN a THEN 1 ELSE (SELECT 2) END"),
    ]
    assert all_sql(statement.source) == ["u JOIN v ON u.a = v.a", "(SELECT 1 AS b) w"]
    assert [len(item.args.get("joins") or ()) for item in statement.source] == [1, 0]
    assert sql(statement.where) == "x.id = u.id AND w.b IN (1, 2)"
    assert all_sql(statement.returning) == ["x.*", "a AS old"]
    assert {"s", "t", "u", "v", "w"} <= statement.identifiers


def test_update_alias_without_as_and_of_a_table_named_set() -> None:
    assert update("UPDATE t x SET a = 1").alias == "x"
    assert update("UPDATE t SET a = 1").alias is None


def test_update_of_a_row_of_columns() -> None:
    assignments = update("UPDATE t SET (a, s.b) = (1, DEFAULT), c = 'x'").assignments
    assert assigned(assignments) == [("a", "1"), ("s.b", None), ("c", "'x'")]
    with pytest.raises(NotSupportedError, match=r"UPDATE … FROM"):
        parse("UPDATE t SET (a, b) = (SELECT 1, 2)")
    with pytest.raises(ProgrammingError, match="2 columns but 1 values"):
        parse("UPDATE t SET (a, b) = (1)")


def test_update_from_a_function_or_lateral_keeps_its_text() -> None:
    assert all_sql(update("UPDATE t SET a = 1 FROM range(3) r(i) CROSS JOIN u, LATERAL (SELECT r.i) l").source) == [
        "range(3) r(i) CROSS JOIN u",
        "LATERAL (SELECT r.i) l",
    ]


def test_delete_with_everything() -> None:
    statement = delete(
        "WITH c AS (SELECT 1 AS k) DELETE FROM t AS x USING c, u FOR VERSION AS OF 2 WHERE x.a = c.k RETURNING a"
    )
    assert (statement.target, statement.alias) == (Name(("t",)), "x")
    assert sql(statement.ctes) == "WITH c AS (SELECT 1 AS k)"
    assert [item.alias_or_name for item in statement.source] == ["c", "u"]
    assert [special.relation.of for special in statement.specials if isinstance(special.relation, Travel)] == [
        Name(("u",))
    ]
    assert sql(statement.where) == "x.a = c.k"
    assert all_sql(statement.returning) == ["a"]


def test_delete_without_a_condition() -> None:
    assert delete("DELETE FROM t") == Delete(Name(("t",)), None, identifiers=frozenset({"delete", "from", "t"}))


def test_truncate() -> None:
    assert parse("TRUNCATE s.t").statement == parse("truncate table s.t;").statement == Truncate(Name(("s", "t")))


# MERGE


def test_merge_with_everything() -> None:
    statement = merge(
        "WITH c AS (SELECT 1 AS k) MERGE INTO t AS x USING (SELECT * FROM c JOIN d ON c.k = d.k) s "
        "ON x.a = s.a AND s.b > 0 "
        "WHEN MATCHED AND CASE WHEN s.b THEN true ELSE false END THEN DELETE "
        "WHEN MATCHED AND s.c = 1 THEN UPDATE SET a = s.a, st.b = DEFAULT "
        "WHEN MATCHED THEN DO NOTHING "
        "WHEN NOT MATCHED BY SOURCE AND x.a > 3 THEN UPDATE SET b = NULL "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE "
        "WHEN NOT MATCHED BY TARGET AND s.a IS NULL THEN ERROR 'no ' || s.b "
        "WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a, DEFAULT) "
        "RETURNING merge_action, *"
    )
    assert (statement.target, statement.alias, statement.using) == (Name(("t",)), "x", ())
    assert sql(statement.source) == "(SELECT * FROM c JOIN d ON c.k = d.k) s"
    assert sql(statement.on) == "x.a = s.a AND s.b > 0"
    assert [
        (a.when, sql(a.condition), a.action, assigned(a.assignments), a.star, sql(a.error)) for a in statement.actions
    ] == [
        ("matched", "CASE WHEN s.b THEN true ELSE false END", "delete", [], None, None),
        ("matched", "s.c = 1", "update", [("a", "s.a"), ("st.b", None)], None, None),
        ("matched", None, "nothing", [], None, None),
        ("not matched by source", "x.a > 3", "update", [("b", "NULL")], None, None),
        ("not matched by source", None, "delete", [], None, None),
        ("not matched", "s.a IS NULL", "error", [], None, "'no ' || s.b"),
        ("not matched", None, "insert", [("a", "s.a"), ("b", None)], None, None),
    ]
    assert all_sql(statement.returning) == ["merge_action", "*"]
    assert sql(statement.ctes) == "WITH c AS (SELECT 1 AS k)"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("MATCHED THEN UPDATE SET *", MergeAction("matched", None, "update", star="*")),
        ("MATCHED THEN UPDATE", MergeAction("matched", None, "update", star="*")),
        ("MATCHED THEN UPDATE BY NAME", MergeAction("matched", None, "update", star="by name")),
        ("MATCHED THEN UPDATE SET * BY NAME", MergeAction("matched", None, "update", star="by name")),
        ("NOT MATCHED THEN INSERT *", MergeAction("not matched", None, "insert", star="*")),
        ("NOT MATCHED THEN INSERT", MergeAction("not matched", None, "insert", star="*")),
        ("NOT MATCHED THEN INSERT BY NAME", MergeAction("not matched", None, "insert", star="by name")),
        ("NOT MATCHED THEN INSERT BY POSITION", MergeAction("not matched", None, "insert", star="by position")),
        ("NOT MATCHED THEN INSERT DEFAULT VALUES", MergeAction("not matched", None, "insert")),
        ("NOT MATCHED THEN ERROR", MergeAction("not matched", None, "error")),
        ("NOT MATCHED BY TARGET THEN DO NOTHING", MergeAction("not matched", None, "nothing")),
    ],
)
def test_merge_actions_without_lists(action: str, expected: MergeAction) -> None:
    assert merge(f"MERGE INTO t USING s USING (id) WHEN {action}").actions == (expected,)


def test_merge_insert_by_position() -> None:
    (action,) = merge("MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.a, DEFAULT)").actions
    assert (action.star, assigned(action.assignments)) == ("by position", [("", "s.a"), ("", None)])


@pytest.mark.parametrize(
    ("source", "rest", "on", "using"),
    [
        ("s", "USING (id, k)", None, ("id", "k")),
        ("s AS x", "ON (t.id = x.id)", "(t.id = x.id)", ()),
        ("(VALUES (1, 2)) AS s (id, b)", "ON t.id = s.id", "t.id = s.id", ()),
        ("a JOIN b USING (k)", "ON t.id = a.id", "t.id = a.id", ()),
        ("range(3) AS s(id)", "ON t.id = s.id", "t.id = s.id", ()),
    ],
)
def test_merge_sources(source: str, rest: str, on: str | None, using: tuple[str, ...]) -> None:
    statement = merge(f"MERGE INTO t USING {source} {rest} WHEN MATCHED THEN DELETE")
    assert (sql(statement.source), sql(statement.on), statement.using) == (source, on, using)


def test_merge_source_may_be_an_older_version() -> None:
    statement = merge("MERGE INTO t USING s FOR VERSION AS OF 3 ON t.a = s.a WHEN MATCHED THEN DELETE")
    assert statement.source.alias_or_name == "s"
    assert len(statement.specials) == 1


# Errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT t VALUES (1)", r"expected INTO, found t \(line 1, column 8\)"),
        ("INSERT INTO t", r"expected a query"),
        ("INSERT INTO t (a,) VALUES (1)", r"expected a column name, found \) \(line 1, column 18\)"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a)", r"expected DO"),
        ("INSERT INTO t VALUES (1) RETURNING", r"expected what to return"),
        ("UPDATE t", r"expected SET"),
        ("UPDATE t SET", r"expected column = value"),
        ("UPDATE t SET a", r"expected ="),
        ("UPDATE t SET a = ", r"expected an expression"),
        ("UPDATE t SET a = 1, WHERE b", r"expected an item"),
        ("UPDATE t SET a = 1 WHERE", r"expected an expression"),
        ("DELETE t WHERE a = 1", r"expected FROM"),
        ("DELETE FROM t WHERE a = (1", r"this \( is never closed \(line 1, column 25\)"),
        ("DELETE FROM t WHERE a) OR (b", r"nothing opens this \)"),
        ("DELETE FROM t WHERE CASE WHEN a THEN b", r"expected END"),
        ("DELETE FROM t LIMIT 3", r"the statement should end here, found LIMIT"),
        ("MERGE INTO t USING s WHEN MATCHED THEN DELETE", r"expected USING source ON condition"),
        ("MERGE INTO t USING s ON a = b", r"expected WHEN MATCHED"),
        (
            "MERGE INTO t USING s ON a = b WHEN MATCHED THEN FLY",
            r"expected UPDATE, INSERT, DELETE, DO NOTHING or ERROR",
        ),
        ("MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", r"2 columns but 1 values"),
        ("DELETE FROM select", r"expected the name of a table"),
    ],
)
def test_errors_name_what_is_expected_and_where(text: str, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message) as caught:
        parse(text)
    assert caught.value.statement == text
