"""Which tables a query reads from end to end, in any order."""

from __future__ import annotations

import pytest
import sqlglot

from lakedbapi.query.exhaustive import exhaustive


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
    assert exhaustive(sqlglot.parse_one(sql, dialect="duckdb")) == {"t"}


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
        "SELECT count(*) FROM t UNION ALL SELECT x FROM t",
    ],
)
def test_rows_in_order_and_some_rows_are_not_exhaustive(sql: str) -> None:
    assert "t" not in exhaustive(sqlglot.parse_one(sql, dialect="duckdb"))
