"""Which tables a query reads from end to end, in any order."""

from __future__ import annotations

import pytest
import sqlglot

from lakedbapi.model.types import Decimal, Field, Scalar, Schema
from lakedbapi.query.exhaustive import aggregated, cuts_unsorted, fixed_width, reads_all


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t",
        "SELECT count(*), sum(x) AS s FROM s.t AS a",
        "SELECT x, round(avg(y), 2) FROM t GROUP BY x ORDER BY 2 DESC LIMIT 10",
        "SELECT DISTINCT x FROM t",
        "WITH c AS (SELECT x, max(y) AS m FROM t GROUP BY ALL) SELECT * FROM c ORDER BY m",
    ],
)
def test_aggregates_of_all_rows_are_exhaustive(sql: str) -> None:
    assert set(aggregated(sqlglot.parse_one(sql, dialect="duckdb"))) == {"t"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t",
        "SELECT x FROM t ORDER BY x LIMIT 3",
        "SELECT count(*) FROM t WHERE x = 1",
        "SELECT x, count(*) FROM t GROUP BY x HAVING x = 1",
        "SELECT * FROM (SELECT x, count(*) FROM t GROUP BY x) WHERE x = 1",
        "SELECT count(*) FROM t JOIN u ON t.x = u.x",
        "SELECT count(*) FROM (SELECT * FROM t LIMIT 10)",
        "SELECT sum(x) OVER (ORDER BY y) FROM t",
        "SELECT (SELECT max(y) FROM u LIMIT 1), x FROM t",
        "SELECT count(*) FROM t TABLESAMPLE 10 PERCENT",
        "SELECT DISTINCT * FROM t",
        "SELECT max(COLUMNS(*)) FROM t",
        "SELECT count(*) FROM t UNION ALL SELECT x FROM t",
        "SELECT x, (SELECT max(y) FROM t) FROM u",
        "SELECT x, (SELECT max(y) FROM t) FROM read_parquet('u.parquet')",
    ],
)
def test_rows_in_order_and_some_rows_are_not_exhaustive(sql: str) -> None:
    assert "t" not in aggregated(sqlglot.parse_one(sql, dialect="duckdb"))


SCHEMA = Schema((Field("ID", Scalar("int64")), Field("price", Decimal(9, 2)), Field("name", Scalar("varchar"))))


def test_the_columns_that_are_read_are_known() -> None:
    (columns,) = aggregated(sqlglot.parse_one("SELECT count(*), max(a.Id) FROM t a", dialect="duckdb")).values()
    assert columns == {"id"}


def test_only_columns_that_are_read_have_to_be_of_fixed_width() -> None:
    assert fixed_width(SCHEMA, frozenset({"id", "price"}))
    assert not fixed_width(SCHEMA, frozenset({"id", "name"}))


@pytest.mark.parametrize(
    ("condition", "all_rows"),
    [
        ("id % 20 = 7", True),
        ("id % 20 = 7 AND (price * 2) > 3.5", True),
        ("id = 7", False),
        ("7 < (id)", False),
        ("id % 20 = 7 AND price IS NULL", False),
        ("price BETWEEN 1 AND 2", False),
        ("id % 20 IN (SELECT 7)", False),
        ("length(name) % 2 = 1", False),
    ],
)
def test_a_condition_on_a_column_itself_lets_engines_skip_rows(condition: str, all_rows: bool) -> None:
    assert reads_all(SCHEMA, sqlglot.parse_one(condition, dialect="duckdb")) is all_rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t LIMIT 10",
        "SELECT x FROM t WHERE y > 1 OFFSET 5",
        "SELECT x FROM t FETCH FIRST 3 ROWS ONLY",
        "SELECT max(x) FROM (SELECT * FROM t LIMIT 10)",
        "SELECT x FROM t UNION ALL SELECT x FROM t LIMIT 10",
        "SELECT * FROM (SELECT * FROM t ORDER BY x LIMIT 10) LIMIT 5",
    ],
)
def test_pages_of_what_nothing_sorts_are_wanted_in_order(sql: str) -> None:
    assert cuts_unsorted(sqlglot.parse_one(sql, dialect="duckdb"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t",
        "SELECT * FROM t ORDER BY x LIMIT 10",
        "SELECT count(*) FROM t LIMIT 10",
        "SELECT x, sum(y) FROM t GROUP BY x LIMIT 10",
        "SELECT DISTINCT x FROM t LIMIT 10",
        "SELECT x FROM t UNION SELECT x FROM t LIMIT 10",
    ],
)
def test_other_queries_take_rows_as_they_come(sql: str) -> None:
    assert not cuts_unsorted(sqlglot.parse_one(sql, dialect="duckdb"))
