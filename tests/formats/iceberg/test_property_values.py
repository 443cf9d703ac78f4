"""Properties that other programs set to what they cannot be, or to the largest number that there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lakedbapi
from lakedbapi.engine.duckdb import driver
from tests.formats.iceberg.writing import Lake, values

LONGEST = str((1 << 63) - 1)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Lake]:
    place = Lake(tmp_path)
    yield place
    place.close()


@pytest.fixture
def lake(place: Lake) -> lakedbapi.Connection:
    connection = place.connect()
    place.create(connection)
    connection.execute("INSERT INTO t VALUES (1, 'x')")
    connection.execute("INSERT INTO t VALUES (2, 'y')")
    return connection


def put(place: Lake, name: str, value: str) -> None:
    with place.table().transaction() as transaction:
        transaction.set_properties({name: value})


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("history.expire.min-snapshots-to-keep", "VACUUM t RETAIN 0 HOURS"),
        ("history.expire.max-snapshot-age-ms", "VACUUM t"),
        ("write.metadata.metrics.max-inferred-column-defaults", "INSERT INTO t VALUES (3, 'z')"),
        ("commit.manifest.min-count-to-merge", "INSERT INTO t VALUES (3, 'z')"),
        ("commit.manifest.target-size-bytes", "INSERT INTO t VALUES (3, 'z')"),
        ("write.target-file-size-bytes", "INSERT INTO t VALUES (3, 'z')"),
        ("write.target-file-size-bytes", "OPTIMIZE t"),
    ],
)
def test_what_is_no_number_is_named(place: Lake, lake: lakedbapi.Connection, name: str, statement: str) -> None:
    for value in ("many", ""):
        put(place, name, value)
        wanted = "target_file_size" if name == "write.target-file-size-bytes" else name
        with pytest.raises(lakedbapi.ProgrammingError, match=f"{wanted}.*'{value}'"):
            lake.execute(statement)
    put(place, name, "5")
    lake.execute(statement)


@pytest.mark.parametrize(
    "name",
    ["history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep", "write.target-file-size-bytes"],
)
def test_the_largest_number(place: Lake, lake: lakedbapi.Connection, name: str) -> None:
    put(place, name, LONGEST)
    lake.execute("INSERT INTO t VALUES (3, 'z')")
    lake.execute("OPTIMIZE t")
    before = place.snapshots()
    lake.execute("VACUUM t")
    assert len(place.snapshots()) == len(before)
    assert values(lake, "SELECT a FROM t ORDER BY a") == [1, 2, 3]


def encodings(place: Lake, column: str) -> set[str]:
    """Of the values of a column in all data files."""
    files = [pq.ParquetFile(path).metadata for path in place.root.glob("warehouse/**/data/data-*.parquet")]
    groups = [file.row_group(number) for file in files for number in range(file.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    return {name for chunk in chunks if chunk.path_in_schema == column for name in chunk.encodings}


def test_the_page_version_chooses_the_encodings_of_new_files(place: Lake) -> None:
    lake = place.connect()
    place.create(lake)
    lake.execute("INSERT INTO t SELECT i, 'x' FROM range(5000) r(i)")
    assert "DELTA_BINARY_PACKED" not in encodings(place, "a")
    lake.execute("ALTER TABLE t SET ('write.parquet.page-version' = '2')")
    lake.execute("INSERT INTO t SELECT i, 'x' FROM range(5000, 10000) r(i)")
    assert "DELTA_BINARY_PACKED" in encodings(place, "a")
    assert values(lake, "SELECT sum(a) FROM t") == [49995000]
    with pytest.raises(lakedbapi.ProgrammingError, match="page-version cannot be '3': set it to 1 or 2"):
        lake.execute("ALTER TABLE t SET ('write.parquet.page-version' = '3')")
    put(place, "write.parquet.page-version", "latest")
    with pytest.raises(lakedbapi.ProgrammingError, match="parquet_version cannot be 'latest'"):
        lake.execute("INSERT INTO t VALUES (1, 'x')")


def test_row_groups_have_the_bytes_that_the_table_says(place: Lake) -> None:
    lake = place.connect()
    place.create(lake, **{"write.parquet.row-group-size-bytes": "500000"})
    lake.execute("INSERT INTO t SELECT i, md5(i::VARCHAR) FROM range(100000) r(i)")
    (path,) = place.root.glob("warehouse/**/data/data-*.parquet")
    groups = pq.ParquetFile(path).metadata.num_row_groups
    assert groups > 1 if driver.MAJOR >= 2 else groups == 1
    assert values(lake, "SELECT count(DISTINCT s) FROM t") == [100000]
