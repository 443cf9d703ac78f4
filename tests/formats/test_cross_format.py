"""One connection, tables of all formats: they are joined, changed by one script, and filled from each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakedbapi
from tests.formats.hudi.golden import TRIPS, unpack
from tests.formats.kinds import DELTA, DUCKLAKE, KINDS, Kind, connect
from tests.formats.needs import need_pyiceberg


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[lakedbapi.Connection]:
    """With a lake `d` in DuckLake's format and the directory `delta` of Delta tables."""
    with lakedbapi.connect("lake://", allow_attach=True) as connection:
        for kind in (DUCKLAKE, DELTA):
            place = tmp_path / kind.name
            place.mkdir()
            connection.execute(f"ATTACH '{kind.location(place)}' AS {kind.name}")
        yield connection


@pytest.fixture
def cities(tmp_path: Path, connection: lakedbapi.Connection) -> lakedbapi.Connection:
    """With `iceberg.main.cities`, which pyiceberg wrote."""
    need_pyiceberg()
    from pyiceberg.catalog.sql import SqlCatalog

    warehouse = f"file://{tmp_path}/warehouse"
    catalog = SqlCatalog("default", uri=f"sqlite:///{tmp_path}/iceberg.db", warehouse=warehouse)
    catalog.create_namespace("main")
    rows = pa.table({"city": ["san_francisco", "sao_paulo", "chennai"], "country": ["US", "BR", "IN"]})
    catalog.create_table("main.cities", schema=rows.schema).append(rows)
    catalog.close()
    connection.execute(f"ATTACH 'iceberg+sqlite:///{tmp_path}/iceberg.db?warehouse={warehouse}' AS iceberg")
    return connection


@pytest.fixture
def trips(tmp_path: Path, cities: lakedbapi.Connection) -> lakedbapi.Connection:
    """With `hudi.trips`, which Spark wrote."""
    (tmp_path / "hudi").mkdir()
    unpack(TRIPS, tmp_path / "unpacked").rename(tmp_path / "hudi" / "trips")
    cities.execute(f"ATTACH 'hudi:{tmp_path}/hudi' AS hudi")
    return cities


def test_tables_of_four_formats_are_joined(trips: lakedbapi.Connection) -> None:
    trips.execute("CREATE TABLE ducklake.rates AS SELECT DISTINCT rider, 2 AS rate FROM hudi.trips")
    trips.commit()
    trips.execute("CREATE TABLE delta.fares AS SELECT rider, city, fare FROM hudi.trips")
    trips.commit()
    assert trips.execute("DELETE FROM delta.fares WHERE city = 'sao_paulo'").rowcount == 1
    trips.commit()
    rows = trips.execute(
        "SELECT country, count(*), sum(f.fare * rate) = sum(h.fare) * 2 FROM hudi.trips h "
        "JOIN iceberg.cities USING (city) LEFT JOIN delta.fares f ON f.rider = h.rider AND f.city = h.city "
        "LEFT JOIN ducklake.rates r ON r.rider = f.rider GROUP BY country ORDER BY country"
    ).fetchall()
    assert rows == [("BR", 1, None), ("IN", 1, True), ("US", 4, True)]
    shown = trips.execute("SELECT table_catalog, table_name FROM information_schema.tables ORDER BY ALL").fetchall()
    assert shown == [("delta", "fares"), ("ducklake", "rates"), ("hudi", "trips"), ("iceberg", "cities")]


def test_rows_are_changed_by_those_of_another_format(trips: lakedbapi.Connection) -> None:
    for target in ("ducklake", "delta", "iceberg"):
        trips.execute(f"CREATE TABLE {target}.t AS SELECT uuid, rider, city, fare FROM hudi.trips")
        trips.commit()
        cursor = trips.execute(
            f"DELETE FROM {target}.t USING iceberg.cities c WHERE t.city = c.city AND c.country = 'IN'"
        )
        assert cursor.rowcount == 1
        cursor = trips.execute(
            f"MERGE INTO {target}.t USING (SELECT * FROM hudi.trips WHERE city <> 'sao_paulo') h ON t.uuid = h.uuid "
            "WHEN MATCHED THEN UPDATE SET fare = 0 "
            "WHEN NOT MATCHED THEN INSERT VALUES (h.uuid, h.rider, h.city, h.fare) "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE"
        )
        assert cursor.rowcount == 6
        trips.commit()
        assert trips.execute(f"SELECT count(*), sum(fare) = max(fare) FROM {target}.t").fetchone() == (5, True)


def test_rows_go_from_each_format_to_each(trips: lakedbapi.Connection) -> None:
    sources = ["hudi.trips", "iceberg.cities"]
    for target in ("ducklake", "delta", "iceberg"):
        for number, source in enumerate(list(sources)):
            made = f"{target}.copy{number}"
            trips.execute(f"CREATE TABLE {made} AS SELECT * FROM {source}")
            assert trips.execute(f"INSERT INTO {made} SELECT * FROM {source}").rowcount in (3, 6, 12, 24)
            trips.commit()
            same = f"SELECT count(*) FROM (SELECT * FROM {made} EXCEPT SELECT * FROM {source})"
            assert trips.execute(same).fetchone() == (0,)
            twice = f"SELECT (SELECT count(*) FROM {made}) = 2 * (SELECT count(*) FROM {source})"
            assert trips.execute(twice).fetchone() == (True,)
        sources.append(f"{target}.copy0")


def test_a_transaction_reads_all_catalogs_and_changes_one(connection: lakedbapi.Connection) -> None:
    for name in ("ducklake", "delta"):
        connection.execute(f"CREATE TABLE {name}.t AS SELECT i FROM range(10) r(i)")
        connection.commit()
    connection.execute("DELETE FROM delta.t WHERE i IN (SELECT i + 5 FROM ducklake.t)")
    with pytest.raises(lakedbapi.NotSupportedError):
        connection.execute("DELETE FROM ducklake.t")
    connection.commit()
    assert connection.execute(
        "SELECT (SELECT count(*) FROM delta.t), (SELECT count(*) FROM ducklake.t)"
    ).fetchone() == (
        5,
        10,
    )


def test_what_can_only_be_read_says_so(trips: lakedbapi.Connection) -> None:
    for statement in (
        "DELETE FROM hudi.trips",
        "INSERT INTO hudi.trips SELECT * FROM hudi.trips",
        "TRUNCATE hudi.trips",
    ):
        with pytest.raises(lakedbapi.NotSupportedError, match="hudi"):
            trips.execute(statement)


SCRIPT = [
    ("INSERT INTO t SELECT i, 'n' || i % 7, i * 1.5 FROM range(2000) r(i)", 2000),
    ("DELETE FROM t WHERE id % 100 = 3", 20),
    ("UPDATE t SET amount = NULL WHERE name = 'n1' AND id < 1000", 142),
    (
        (
            "MERGE INTO t USING (SELECT i AS id, i % 3 AS kind FROM range(1990, 2020) r(i)) s ON t.id = s.id "
            "WHEN MATCHED AND kind = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'merged' "
            "WHEN NOT MATCHED AND kind < 2 THEN INSERT VALUES (s.id, 'new', 0)"
        ),
        23,
    ),
    ("INSERT INTO t VALUES (0, 'zero', 0), (9999, 'last', 9) ON CONFLICT (id) DO UPDATE SET name = excluded.name", 2),
    ("DELETE FROM t USING (VALUES (5), (6), (6), (NULL)) v(id) WHERE t.id = v.id", 2),
    ("UPDATE t SET amount = v.x FROM (VALUES (7, 70), (8, 80)) v(id, x) WHERE t.id = v.id", 2),
    ("DELETE FROM t WHERE id >= 1000 AND id < 1990", 980),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_one_script_counts_the_same_rows_everywhere(kind: Kind, tmp_path: Path) -> None:
    with connect(kind, tmp_path, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t (id BIGINT, name VARCHAR, amount DOUBLE) {kind.options()}")
        assert [connection.execute(statement).rowcount for statement, _ in SCRIPT] == [count for _, count in SCRIPT]
        row = connection.execute(
            "SELECT count(*), sum(id), count(amount), sum(amount), count(*) FILTER (name = 'merged') FROM t"
        ).fetchone()
    assert row == (1009, 545045, 868, 657610.5, 7)
