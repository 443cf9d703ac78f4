"""Long lists of keys in conditions choose the same rows as short ones."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from lakedbapi.dml import key_lists
from tests.dml.conftest import Lake

KEYS = list(range(0, 400, 4))
"""A quarter of the ids 0 to 399, of which every tenth is NULL."""


@pytest.fixture
def t(lake: Lake) -> Lake:
    lake("CREATE TABLE t AS SELECT CASE WHEN i % 10 > 0 THEN i::INTEGER END AS id, i AS n FROM range(400) r(i)")
    lake.commit()
    return lake


def listed(keys: list[int]) -> str:
    return ", ".join(map(str, keys))


CONDITIONS: dict[str, Callable[[int | None], bool]] = {
    "id IN ({})": lambda id: id in KEYS,
    "t.id IN ({})": lambda id: id in KEYS,
    "(n > 100) AND (id IN ({}) AND n < 300)": lambda id: id is not None and id in KEYS and 100 < id < 300,
    "id IN ({}, NULL)": lambda id: id in KEYS,
    "id IN ({}, -4)": lambda id: id in KEYS,
    "id IN ({}, 99999999999)": lambda id: id in KEYS,
    "id IN ({}, '5')": lambda id: id in KEYS or id == 5,
    "id IN ({}, n)": lambda id: id is not None,
    "id NOT IN ({})": lambda id: id is not None and id not in KEYS,
    "NOT (id IN ({}))": lambda id: id is not None and id not in KEYS,
    "id IN ({}) OR n = 10": lambda id: id in KEYS,
    "id IN ({}) IS NULL": lambda id: id is None,
    "id + 0 IN ({})": lambda id: id in KEYS,
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("statement", ["DELETE FROM t", "UPDATE t SET n = -1"])
def test_conditions_choose_the_rows_that_they_say(t: Lake, statement: str, condition: str) -> None:
    ids = [None if i % 10 == 0 else i for i in range(400)]
    extra = 1 if "n = 10" in condition else 0
    expected = sum(CONDITIONS[condition](id) for id in ids) + extra
    assert t(f"{statement} WHERE {condition.format(listed(KEYS))}") == expected
    gone = "400 - count(*)" if statement.startswith("DELETE") else "count(*) FILTER (n = -1)"
    assert t(f"SELECT {gone} FROM t") == [(expected,)]


def test_keys_may_be_parameters(t: Lake) -> None:
    marks = ", ".join("?" * len(KEYS))
    assert t(f"DELETE FROM t WHERE id IN ({marks}) AND n < ?", *KEYS, 100) == sum(k % 10 > 0 for k in KEYS if k < 100)
    assert t(f"UPDATE t SET n = 0 WHERE id IN ({marks})", *map(str, KEYS)) == sum(k % 10 > 0 for k in KEYS if k > 99)


def test_a_column_of_another_relation_is_its_own(t: Lake) -> None:
    t("CREATE TABLE u AS SELECT 1 AS other")
    t.commit()
    assert t(f"DELETE FROM t USING u WHERE t.id IN ({listed(KEYS)}) AND u.other = 1") == sum(k % 10 > 0 for k in KEYS)


@pytest.mark.parametrize(("condition", "is_joined"), [("id IN ({})", True), ("id NOT IN ({})", False)])
def test_the_engine_gets_a_join(t: Lake, condition: str, is_joined: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = key_lists.condition_sql

    def spied(*arguments: object) -> str:
        made.append(real(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(sys.modules["lakedbapi.dml.delete"], "condition_sql", spied)
    t(f"DELETE FROM t WHERE {condition.format(listed(KEYS))}")
    assert ("unnest" in made[0]) is is_joined
