from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakedbapi import ProgrammingError
from lakedbapi.sql import bind, parse
from lakedbapi.sql.statements import Parameters, Select


def text_of(text: str) -> str:
    statement = parse(text).statement
    assert isinstance(statement, Select)
    return statement.text


def test_question_marks_are_numbered() -> None:
    parsed = parse("select ?, '?', \"?\" -- ?\n, ? /* ? */, $$?$$")
    assert parsed.parameters == Parameters(positional=2)
    assert text_of(parsed.text) == "select $1, '?', \"?\" -- ?\n, $2 /* ? */, $$?$$"


def test_numbered_parameters_are_positional() -> None:
    assert parse("select $2 + $1, $2").parameters == Parameters(positional=2)
    assert parse("select ?2 + ?1").parameters == Parameters(positional=2)
    assert text_of("select ?2 + ?1") == "select $2 + $1"


def test_names_are_kept_in_order_of_appearance() -> None:
    assert parse("select :b, $a, :b").parameters == Parameters(named=("b", "a"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select :a", "select $a"),
        ("select x::int, :a::int", "select x::int, $a::int"),
        ("select a where b = :b and c in (:c,:d)", "select a where b = $b and c in ($c,$d)"),
        ("select [:a, :b], {'k': :v, 'l':w}", "select [$a, $b], {'k': $v, 'l':w}"),
        ("select a[1:n], a[:n], a[m:n], a[f(x):n]", "select a[1:n], a[:n], a[m:n], a[f(x):n]"),
        ("select a[1 + :i]", "select a[1 + $i]"),
        ("select map {k:v, 1:v, (2):v, 'x':v, null:v}", "select map {k:v, 1:v, (2):v, 'x':v, null:v}"),
        ("select {first:x, values:y}", "select {first:x, values:y}"),
        ("select alias:x from b:t", "select alias:x from b:t"),
        ("select lambda x:x + :n", "select lambda x:x + $n"),
        ("select case when :a then :b else :c end", "select case when $a then $b else $c end"),
        ("select x between :a and :b limit :n offset :m", "select x between $a and $b limit $n offset $m"),
        ("select x like :p or x ilike :q or not :r", "select x like $p or x ilike $q or not $r"),
        ("select extract(year from :d), -:x, :y||:z", "select extract(year from $d), -$x, $y||$z"),
        ("select 'thi%s :may ca%(u)se? troub:1e', \"c?d :e\"", "select 'thi%s :may ca%(u)se? troub:1e', \"c?d :e\""),
        ("select 5 % 3, 'a%s ? :x', \"c?d\" -- what? :y", "select 5 % 3, 'a%s ? :x', \"c?d\""),
        ("from t select t.a:b", "from t select t.a:b"),
    ],
)
def test_colon_is_a_parameter_only_where_an_operand_is_due(text: str, expected: str) -> None:
    assert text_of(text) == expected


def test_names_that_differ_only_in_case_are_refused() -> None:
    with pytest.raises(ProgrammingError, match="'A' and 'a' differ only in case"):
        parse("select :A, :a")


def test_a_name_may_look_like_a_digit() -> None:
    assert parse("select $²").parameters == Parameters(named=("²",))


@pytest.mark.parametrize("text", ["select ?, :a", "select ?, $1", "select $1, $a"])
def test_styles_do_not_mix(text: str) -> None:
    with pytest.raises(ProgrammingError, match="different styles"):
        parse(text)


def test_parameters_stand_everywhere_in_dml() -> None:
    assert parse("update t set a = ? where b = ? returning c + ?").parameters.positional == 3
    assert parse("insert into t values (:a, :b) on conflict (c) do update set d = :d").parameters.named == (
        "a",
        "b",
        "d",
    )


@pytest.mark.parametrize(
    "text", ["create view v as select ?", "create table t (a int default ?)", "create table t (a int check (a > :b))"]
)
def test_stored_definitions_refuse_parameters(text: str) -> None:
    with pytest.raises(ProgrammingError, match="cannot hold parameters"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "select * from t where a = %s and b = ?",
        "select * from t where a in (%(a)s, %(b)s)",
        "select %s",
        "delete from t where a like %(a)s",
        "insert into t values (%s, %s)",
    ],
)
def test_placeholders_of_other_drivers_are_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(ProgrammingError, match=r"%s and %\(name\)s are no parameters here: write \? .* :name"):
        parse(text)


@pytest.mark.parametrize("text", ["select a %s", "select a % s", "select a %(b)s", "select (a)%(b) s"])
def test_a_remainder_is_no_placeholder(text: str) -> None:
    assert text_of(text) == text


@pytest.mark.parametrize("text", ["select %s", "select :1"])
def test_other_placeholders_are_told_from_ours(text: str) -> None:
    with pytest.raises(ProgrammingError, match=r"write \? for each value"):
        bind(parse(text).parameters, [1])


PROTECTED = st.one_of(
    st.text().map(lambda s: "'" + s.replace("'", "''") + "'"),
    st.text(st.characters(exclude_characters="\0")).map(lambda s: '"' + (s.replace('"', '""') or "x") + '"'),
    st.text().map(lambda s: "/*" + s.replace("/", "").replace("*", "") + "*/ 1"),
    st.text().map(lambda s: "$q$" + s.replace("$", "") + "$q$"),
    st.text().map(lambda s: "e'" + s.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    st.text().map(lambda s: "2 --" + s.replace("\n", "").replace("\r", "") + "\n"),
)


@given(st.lists(PROTECTED, min_size=1, max_size=5))
def test_literals_identifiers_and_comments_are_never_touched(items: list[str]) -> None:
    text = "select ? , " + " , ? , ".join(items) + " , ?"
    assert text_of(text) == "select $1 , " + "".join(
        item + (f" , ${n + 2} , " if n < len(items) - 1 else f" , ${n + 2}") for n, item in enumerate(items)
    )
