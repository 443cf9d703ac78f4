"""Values that differ from file to file come out of SQL as they went in."""

from __future__ import annotations

import datetime as dt

import duckdb
import pyarrow as pa
import pytest

from lakedbapi.engine.duckdb.perfile import PerFile
from lakedbapi.engine.duckdb.resources import Resources


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (pa.array([1, None, -(2**63), 2**63 - 1], pa.int64()), "BIGINT"),
        (pa.array([1, 1, None, -128], pa.int8()), "TINYINT"),
        (pa.array(["it's", "", None, "$x ? \\ é\n%", "a\0b"]), "VARCHAR"),
        (pa.array(["it's", "it's", '"', None]), "VARCHAR"),
        (pa.array([dt.date(2020, 1, 31), None, dt.date(1, 1, 1)]), "DATE"),
        (pa.array([b"\x00\xff", None, b""]), "BLOB"),
        (pa.array([None, None], pa.string()), "VARCHAR"),
    ],
    ids=["bigint", "tinyint", "with-nul", "texts", "dates", "blobs", "nulls"],
)
def test_values_of_files(values: pa.Array, type: str) -> None:
    with duckdb.connect() as connection:
        sql = PerFile(Resources(connection)).value(values, type)
        rows = connection.execute(f"SELECT {sql} FROM range({len(values)}) r(file_index) ORDER BY file_index")
        assert [value for (value,) in rows.fetchall()] == values.to_pylist()
