"""pandas, through a SQLAlchemy engine and through ADBC."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from compliance.consumers.conftest import tool

pd = tool("pandas")
ROWS = 100_000


@pytest.fixture
def frame() -> Any:
    numbers = range(ROWS)
    return pd.DataFrame(
        {
            "id": numbers,
            "name": [f"n{n}" for n in numbers],
            "share": [n / 7 for n in numbers],
            "at": pd.date_range("2026-01-01", periods=ROWS, freq="s", tz="UTC"),
            "even": [n % 2 == 0 for n in numbers],
        }
    )


def test_a_frame_goes_to_the_lake_and_back(engine: sa.engine.Engine, frame: Any, snapshots: Any) -> None:
    before = snapshots()
    start = time.process_time()
    assert frame.to_sql("big", engine, index=False) == ROWS
    assert snapshots() == before + 1
    back = pd.read_sql_table("big", engine)
    assert time.process_time() - start < 30
    pd.testing.assert_frame_equal(back, frame, check_dtype=False)


@pytest.mark.parametrize("how", [{}, {"chunksize": 1000}, {"method": "multi"}])
def test_counts_are_right_however_it_is_sent(engine: sa.engine.Engine, frame: Any, how: dict[str, Any]) -> None:
    some = frame.head(3000)
    assert some.to_sql("part", engine, index=False, **how) == 3000
    assert some.to_sql("part", engine, index=False, if_exists="append", **how) == 3000
    assert pd.read_sql("SELECT count(*) AS n FROM part", engine)["n"].item() == 6000
    assert some.to_sql("part", engine, index=False, if_exists="replace", **how) == 3000
    with pytest.raises(ValueError, match="already exists"):
        some.to_sql("part", engine, index=False, **how)


def test_queries_take_parameters_and_come_in_chunks(engine: sa.engine.Engine) -> None:
    query = sa.text("SELECT name FROM customer WHERE id = :id")
    assert pd.read_sql(query, engine, params={"id": 2})["name"].tolist() == ["Bob"]
    with engine.connect().execution_options(stream_results=True) as connection:
        chunks = pd.read_sql(sa.text("SELECT range FROM range(2500)"), connection, chunksize=1000)
        assert [len(chunk) for chunk in chunks] == [1000, 1000, 500]


def test_the_past_is_read_with_an_execution_option(engine: sa.engine.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM customer"))
    assert len(pd.read_sql_table("customer", engine)) == 0
    assert len(pd.read_sql_table("customer", engine.execution_options(lake_as_of=1))) == 2


def test_frames_go_as_arrow_through_adbc(shop: Path, frame: Any) -> None:
    dbapi = tool("adbc_driver_lake.dbapi")
    with dbapi.connect(shop) as connection:
        assert frame.to_sql("big", connection, index=False) == ROWS
        assert frame.to_sql("big", connection, index=False, if_exists="append") == ROWS
        assert pd.read_sql("SELECT count(*) AS n, sum(id) AS s FROM big", connection).values.tolist() == [
            [2 * ROWS, ROWS * (ROWS - 1)]
        ]
        assert frame.to_sql("big", connection, index=False, if_exists="replace") == ROWS
        with pytest.raises(ValueError, match="already exists"):
            frame.to_sql("big", connection, index=False)
