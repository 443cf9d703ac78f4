"""What deltalake wrote is read alike by both: every version of each table, its history and its change feed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakedbapi

TABLES = {"appends": 13, "partitions": 3, "types": 1, "evolution": 4, "row_changes": 8}
"""The versions of each table."""


@pytest.fixture
def connection(written: Path) -> Iterator[lakedbapi.Connection]:
    with lakedbapi.connect(f"delta:///{written}/tables", read_only=True) as connection:
        yield connection


def normal(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, dict):
        return {name: normal(inner) for name, inner in value.items()}
    return [normal(item) for item in value] if isinstance(value, list) else value


def rows(table: pa.Table, columns: list[str]) -> list[str]:
    return sorted(repr([normal(row[column]) for column in columns]) for row in table.to_pylist())


def expected(written: Path, name: str) -> pa.Table:
    with pa.ipc.open_file(str(written / "expected" / f"{name}.arrow")) as file:
        return file.read_all()


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_version_has_the_same_rows(name: str, written: Path, connection: lakedbapi.Connection) -> None:
    for version in range(TABLES[name]):
        theirs = expected(written, f"{name}.{version}")
        ours = connection.execute(f"SELECT * FROM {name} VERSION AS OF {version}").fetch_arrow_table()
        assert ours.column_names == theirs.column_names
        assert rows(ours, ours.column_names) == rows(theirs, theirs.column_names), version
    assert not (written / "expected" / f"{name}.{TABLES[name]}.arrow").exists()


@pytest.mark.parametrize(
    "where", ["id < 25", "name IS NULL", "name = 'name 33'", "id BETWEEN 95 AND 1001", "id IN (1, 50, 5000)"]
)
def test_conditions_that_prune_lose_no_rows(where: str, written: Path, connection: lakedbapi.Connection) -> None:
    [(pruned,)] = connection.execute(f"SELECT count(*) FROM appends WHERE {where}").fetchall()
    [(all_,)] = connection.execute(f"SELECT count(*) FILTER (WHERE {where}) FROM appends").fetchall()
    assert pruned == all_ > 0


def test_the_history_is_the_same(connection: lakedbapi.Connection) -> None:
    lines = connection.execute("SELECT snapshot_id, operation FROM history('row_changes')").fetchall()
    assert lines == [
        (0, "WRITE"),
        (1, "DELETE"),
        (2, "UPDATE"),
        (3, "MERGE"),
        (4, "WRITE"),
        (5, "OPTIMIZE"),
        (6, "RESTORE"),
        (7, "WRITE"),
    ]


def test_the_change_feed_is_the_same(written: Path, connection: lakedbapi.Connection) -> None:
    theirs = expected(written, "row_changes.feed").rename_columns(
        {"_commit_version": "snapshot_id", "_change_type": "change_type"}
    )
    ours = connection.execute("SELECT * FROM table_changes('row_changes', 0, 7)").fetch_arrow_table()
    columns = ["snapshot_id", "change_type", "id", "name"]
    assert rows(ours, columns) == rows(theirs, columns)
