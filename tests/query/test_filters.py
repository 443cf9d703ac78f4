"""Which tables of a query are pruned by its WHERE."""

from __future__ import annotations

import pytest

from lakedbapi.query.filters import filters
from lakedbapi.sql.expressions import parse_query


def pruned(text: str) -> set[str]:
    tree = parse_query(text)
    assert tree is not None
    return set(filters(tree))


@pytest.mark.parametrize(
    "text",
    [
        "FROM t WHERE x = 1",
        "SELECT * FROM t AS a WHERE a.x = 1",
        "SELECT * FROM u LEFT JOIN v ON true, t WHERE x = 1",
        "SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE x = 1",
        "SELECT * FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.a = u.a AND x = 1)",
        "WITH c AS (SELECT * FROM t WHERE x = 1) SELECT * FROM c",
        "SELECT x FROM t WHERE x = 1 UNION ALL SELECT 2",
    ],
)
def test_a_table_is_pruned_where_its_rows_stand_for_themselves(text: str) -> None:
    assert "t" in pruned(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM u LEFT JOIN t ON t.a = u.a WHERE x IS NULL",
        "SELECT * FROM t RIGHT JOIN u ON t.a = u.a WHERE x IS NULL",
        "SELECT * FROM t FULL JOIN u ON t.a = u.a WHERE x = 1",
        "SELECT * FROM u ANTI JOIN t ON t.a = u.a WHERE x = 1",
        "SELECT * FROM u SEMI JOIN t ON t.a = u.a WHERE x = 1",
        "SELECT * FROM u ASOF JOIN t ON t.a >= u.a WHERE x = 1",
        "SELECT * FROM u POSITIONAL JOIN t WHERE x = 1",
        "SELECT * FROM u NATURAL JOIN t WHERE x = 1",
        "SELECT * FROM u JOIN t USING (x) WHERE x = 1",
        "SELECT * FROM t TABLESAMPLE 10% WHERE x = 1",
        "SELECT * FROM t WHERE x = 1 USING SAMPLE 3",
        "SELECT * FROM t AS a(y, x) WHERE x = 1",
        "SELECT * FROM t PIVOT (sum(a) FOR b IN (1, 2)) WHERE x = 1",
        "SELECT * FROM t WHERE x = 1 UNION ALL SELECT * FROM t",
        "SELECT * FROM t WHERE x = 1 UNION ALL FROM 't'",
        "SELECT * FROM t WHERE x = (SELECT max(x) FROM main.T)",
        "SELECT * FROM t, query('SELECT * FROM t') WHERE x = 1",
        "SELECT * FROM t GROUP BY x HAVING x = 1",
        "SELECT * FROM t QUALIFY x = 1",
    ],
)
def test_a_table_is_not_pruned_where_other_rows_depend_on_it(text: str) -> None:
    assert "t" not in pruned(text)
