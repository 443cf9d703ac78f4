"""Rows are found by many ids at once."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, select

from lakedbapi.formats.ducklake.id_lists import among

ALL = range(3000)
CHOSEN = {
    "none": [],
    "one": [5],
    "a run": range(10, 900),
    "some runs": [*range(700), 800, *range(900, 2000)],
    "in any order": random.Random(1).sample(range(100, 1200), 1100),
    "scattered": random.Random(2).sample(ALL, 1200),
    "at the ends": [0, 2999],
}


@pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN)
def test_each_row_with_one_of_the_ids_meets_one_condition(chosen: list[int]) -> None:
    table = Table("t", MetaData(), Column("id", Integer))
    with create_engine("sqlite://").begin() as connection:
        table.create(connection)
        connection.execute(insert(table), [{"id": id} for id in ALL])
        found = [
            id
            for condition in among(table.c.id, list(chosen))
            for id in connection.execute(select(table.c.id).where(condition)).scalars()
        ]
    assert sorted(found) == sorted(chosen)
