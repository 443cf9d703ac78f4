"""NaN, which pandas and NumPy have for a missing value, is never stored as the text 'nan'."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lakedbapi
from tests.formats.lake import Lake

NAN = float("nan")


def test_nan_is_no_text_in_any_statement(lake: Lake) -> None:
    lake.create("CREATE TABLE t (id INTEGER, name VARCHAR, x DOUBLE)")
    lake("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    before = lake.rows()
    refused = pytest.raises(lakedbapi.DataError, match=r"t\.name: parameter \$.* is NaN, which is no text; pass None")
    for nan in (NAN, np.float32("nan")):
        for statement in (
            "INSERT INTO t VALUES (3, ?, 1)",
            "INSERT INTO t (name, id) VALUES ('x', 3), (?, 4)",
            "UPDATE t SET name = ?",
            "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = ?",
            "MERGE INTO t USING (SELECT 9 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (9, ?, 1)",
        ):
            with refused:
                lake(statement, nan)
    for statement, sets in (
        ("INSERT INTO t VALUES (?, ?, ?)", [(3, "c", 1.0), (4, NAN, 2.0)]),
        ("INSERT INTO t VALUES (?, ?, ?)", [(3, NAN, 1.0), (4, NAN, 2.0)]),
        ("UPDATE t SET name = ?2 WHERE id = ?1", [(1, "c"), (2, NAN)]),
    ):
        with refused:
            lake.many(statement, sets)
    assert lake.rows() == before


def test_nan_stays_a_number(lake: Lake) -> None:
    lake.create("CREATE TABLE t (id INTEGER, name VARCHAR, x DOUBLE)")
    assert lake.many("INSERT INTO t VALUES (?, ?, ?)", [(1, "a", NAN), (2, None, 2.0)]) == 2
    assert lake.many("UPDATE t SET x = ?2, name = ?3 WHERE id = ?1", [(1, 1.0, "b"), (2, NAN, None)]) == 2
    assert [math.isnan(x) for (x,) in lake("SELECT x FROM t ORDER BY id")] == [False, True]
    with pytest.raises(lakedbapi.DataError, match=r"Parameter \$1: NaN among texts is no text"):
        lake("SELECT * FROM t WHERE name IN ?", ["b", NAN])


def test_rows_of_a_pandas_frame(lake: Lake) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, 2], "name": ["a", None], "x": [1.5, None]})
    lake.create("CREATE TABLE t (id INTEGER, name VARCHAR, x DOUBLE)")
    lake.cursor.adbc_ingest("t", frame, mode="append")
    assert lake.rows() == [(1, "a", 1.5), (2, None, None)]
    lake("DELETE FROM t")
    lake.many("INSERT INTO t VALUES (?, ?, ?)", frame.astype(object).where(frame.notna(), None).values.tolist())
    assert lake.rows() == [(1, "a", 1.5), (2, None, None)]
    for names in (frame["name"], frame["name"].astype("string"), frame["name"].astype("category")):
        assert lake("SELECT unnest(?)", names) == [("a",), (None,)]
        assert lake("SELECT id FROM t WHERE name IN ?", names) == [(1,)]
