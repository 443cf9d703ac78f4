"""Properties that other programs set to what they cannot be, or to the largest number that there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakedbapi
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
