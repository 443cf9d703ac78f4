from __future__ import annotations

import pytest

from lakedbapi.sql.expressions import parse_query
from lakedbapi.sql.tokens import scan
from lakedbapi.sql.values import read_plain_values


@pytest.mark.parametrize(
    "text",
    [
        "VALUES (1)",
        "VALUES (1, 'it''s', 2.5, -3, NULL), ($1, $name, true, FALSE, 1e5)",
        "values ( 1 ,\n'a' ) , -- comment\n (2, 'b')",
    ],
)
def test_plain_rows_give_the_tree_of_the_general_parser(text: str) -> None:
    plain = read_plain_values(text, scan(text))
    assert plain is not None
    assert plain.tree == parse_query(text)


def test_default_is_null_in_the_tree_and_marked() -> None:
    text = "VALUES (1, DEFAULT), (default, 2)"
    plain = read_plain_values(text, scan(text))
    assert plain is not None
    assert plain.tree == parse_query("VALUES (1, NULL), (NULL, 2)")
    assert {place: text[token.start : token.end] for place, token in plain.defaults.items()} == {
        (0, 1): "DEFAULT",
        (1, 0): "default",
    }


@pytest.mark.parametrize(
    "text",
    [
        "VALUES (1 + 1)",
        "VALUES (f(1))",
        "VALUES (e'a')",
        "VALUES (x'41')",
        "VALUES (- 'a')",
        'VALUES ("default")',
        "VALUES (1::INT)",
        "VALUES ()",
        "VALUES (1,)",
        "VALUES (1),",
        "VALUES (1) LIMIT 1",
        "VALUES (1) UNION ALL SELECT 2",
        "VALUES (1",
        "VALUES (1,",
        "VALUES",
        "VALUES ((1))",
        "VALUES (DATE '2024-01-01')",
    ],
)
def test_anything_else_is_left_to_the_general_parser(text: str) -> None:
    assert read_plain_values(text, scan(text)) is None
