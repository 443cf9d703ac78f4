"""Expressions keep their meaning when they are printed from their trees, also when every operator is bracketed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from sqlglot import exp

from lakedbapi.sql.expressions import expression, parse_query, render
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.tokens import Canonical, scan


def lines_of(file: str) -> list[str]:
    lines = (Path(__file__).parent / file).read_text("utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("--")]


CORPUS = lines_of("expressions.sql")
COMPARED_WITH_NULL = {
    "i IS NOT DISTINCT FROM NULL": "(i) IS NULL",
    "i IN (1, NULL)": "i IN (1) OR CAST(NULL AS BOOLEAN)",
    "i IS DISTINCT FROM 1 + 0": "(1 + 0) IS DISTINCT FROM i",
}
"""What DuckDB's reader of files cannot compare is said otherwise at once."""

ROWS = """
    SELECT * FROM (VALUES
        (1, 7, 2.5::DOUBLE, 'Hello World', 'h%o', DATE '2024-02-29', TIMESTAMP '2024-02-29 13:14:15.123456', true,
         [3, 1, 2], {'a': 1, 'b': {'c': 'x'}}, MAP {'k': 1, 'l': 2}, '{"a": [1, {"b": "c"}], "d": 5}'::JSON,
         12.34::DECIMAL(9, 2)),
        (-2, 3, -0.5, 'abc', '_bc', DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59', false,
         [], {'a': NULL, 'b': {'c': 'y'}}, MAP {'z': 9}, '[1, 2]'::JSON, -0.05),
        (NULL, 5, NULL, NULL, 'x', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    ) t (i, j, f, s, p, d, ts, b, l, st, m, js, n)
"""


@pytest.fixture(scope="module")
def engine():
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS {ROWS}")
    connection.execute("CREATE VIEW v AS SELECT * FROM (VALUES (7, 'x', 1), (3, 'y', 1), (3, 'x', 2)) v (j, k, g)")
    return connection


def answer(engine, text: str) -> tuple[list[str], list[str]]:
    """Types and values of an expression over all rows, as text, so that NaN equals itself."""
    relation = engine.execute(f"SELECT {text}\n AS x FROM t ORDER BY rowid")
    return [str(column[1]) for column in relation.description], [repr(row) for row in relation.fetchall()]


def expected(engine, text: str) -> tuple[list[str], list[str]]:
    try:
        return answer(engine, text)
    except duckdb.Error:
        if duckdb.__version__ >= "2":
            raise
        pytest.skip(f"DuckDB {duckdb.__version__} does not know this")


def tree_of(text: str) -> exp.Expression:
    return expression(Reader(Canonical(text), scan(text)))


def bracketed(tree: exp.Expression) -> exp.Expression:
    """`tree` with brackets around every operator, so that its printed form does not depend on precedence."""

    def visit(node: exp.Expression) -> exp.Expression:
        is_operator = isinstance(node, (exp.Binary, exp.Unary, exp.Between, exp.In))
        is_syntax = isinstance(
            node, (exp.Paren, exp.Dot, exp.Slice, exp.PropertyEQ, exp.Kwarg, exp.Bracket, exp.JSONExtract)
        )
        return exp.Paren(this=node) if is_operator and not is_syntax and not has_escape(node) else node

    def has_escape(node: exp.Expression) -> bool:
        return isinstance(node.parent, exp.Escape)

    return tree.copy().transform(visit)


def printed(tree: exp.Expression) -> str:
    """From the tree alone: a wrapper node makes `render` forget the text that was parsed."""
    return render(exp.Paren(this=tree.copy()))


@pytest.mark.parametrize("text", CORPUS)
def test_printed_expression_means_the_same(engine, text: str) -> None:
    assert expected(engine, text) == answer(engine, printed(tree_of(text)))


@pytest.mark.parametrize("text", CORPUS)
def test_operators_bind_as_in_the_engine(engine, text: str) -> None:
    assert expected(engine, text) == answer(engine, printed(bracketed(tree_of(text))))


@pytest.mark.parametrize("text", CORPUS)
def test_an_unchanged_tree_is_printed_as_it_was_written(text: str) -> None:
    assert render(tree_of(text)).strip("()\n") == COMPARED_WITH_NULL.get(text, text).strip("()\n")


def test_a_changed_tree_is_printed_anew() -> None:
    tree = tree_of("a  =  1")
    tree.find(exp.Column).replace(exp.column("b"))
    assert render(tree) == "b = 1"
    assert (
        render(tree_of("a  =  1").transform(lambda n: exp.column("c") if isinstance(n, exp.Column) else n)) == "c = 1"
    )


def rows(engine, query: str) -> tuple[list[str], list[tuple[object, ...]]]:
    relation = engine.execute(query)
    return [column[0] for column in relation.description], [tuple(map(repr, row)) for row in relation.fetchall()]


@pytest.mark.parametrize("text", lines_of("queries.sql"))
def test_printed_query_means_the_same(engine, text: str) -> None:
    try:
        original = rows(engine, text)
    except duckdb.Error:
        if duckdb.__version__ >= "2":
            raise
        pytest.skip(f"DuckDB {duckdb.__version__} does not know this")
    tree = parse_query(text)
    assert tree is None or rows(engine, render(tree)) == original
