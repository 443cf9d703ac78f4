"""Catalogs, and tables that pyiceberg wrote through them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType, TimestampType, TimestamptzType

import lakedbapi


@dataclass
class Place:
    catalog: Catalog
    url: str

    def connect(self, **options: Any) -> lakedbapi.Connection:
        return lakedbapi.connect(self.url, **options)

    @cached_property
    def _connection(self) -> lakedbapi.Connection:
        return self.connect(autocommit=True)

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Sorted, as of now."""
        cursor = self._connection.cursor()
        cursor.execute(sql, parameters)
        return sorted(cursor.fetchall(), key=str)

    def close(self) -> None:
        self._connection.close()
        self.catalog.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A catalog in SQLite."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    catalog = load_catalog(
        "default", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{warehouse}"
    )
    catalog.create_namespace("ns")
    place = Place(catalog, f"iceberg+sqlite:///{tmp_path}/catalog.db?warehouse=file://{warehouse}")
    yield place
    place.close()


SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
)


def arrow(table: Table, **columns: Any) -> pa.Table:
    schema = table.schema().as_arrow()
    return pa.table({name: pa.array(columns.get(name), schema.field(name).type) for name in schema.names}, schema)


def test_append_overwrite_and_delete(place: Place) -> None:
    table = place.catalog.create_table("ns.t", SCHEMA)
    assert place.rows("SELECT * FROM ns.t") == []
    table.append(arrow(table, id=[1, 2, 3], name=["a", None, "c"]))
    assert place.rows("SELECT * FROM ns.t") == [(1, "a"), (2, None), (3, "c")]
    table.delete("id = 2")
    assert place.rows("SELECT * FROM ns.t") == [(1, "a"), (3, "c")]
    table.overwrite(arrow(table, id=[9], name=["z"]))
    assert place.rows("SELECT * FROM ns.t") == [(9, "z")]
    first = table.history()[0].snapshot_id
    assert place.rows(f"SELECT id FROM ns.t FOR VERSION AS OF {first}") == [(1,), (2,), (3,)]


def test_a_transaction_pins_a_table_when_it_is_first_read(place: Place) -> None:
    table = place.catalog.create_table("ns.t", SCHEMA)
    table.append(arrow(table, id=[1], name=["a"]))
    with place.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM ns.t")
        assert cursor.fetchall() == [(1,)]
        table.append(arrow(table, id=[2], name=["b"]))
        cursor.execute("SELECT count(*) FROM ns.t")
        assert cursor.fetchall() == [(1,)]
        connection.commit()
        cursor.execute("SELECT count(*) FROM ns.t")
        assert cursor.fetchall() == [(2,)]


def test_schema_evolution(place: Place) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "name", StringType(), required=False),
        NestedField(3, "amount", DecimalType(9, 2), required=False),
    )
    table = place.catalog.create_table("ns.t", schema)
    table.append(arrow(table, id=[1], name=["a"], amount=[Decimal("1.50")]))
    with table.update_schema() as update:
        update.rename_column("name", "label")
        update.delete_column("id")
        update.update_column("amount", DecimalType(12, 2))
    with table.update_schema() as update:
        update.add_column("id", StringType())
    table.append(arrow(table, label=["b"], amount=[Decimal("1234567890.25")], id=["new"]))
    expected = [("a", Decimal("1.50"), None), ("b", Decimal("1234567890.25"), "new")]
    assert place.rows("SELECT * FROM ns.t") == expected
    assert place.rows("SELECT label FROM ns.t WHERE amount > 1000000000") == [("b",)]
    assert place.rows("SELECT label FROM ns.t WHERE amount = 1.5") == [("a",)]
    assert place.rows("SELECT label FROM ns.t WHERE id IS NULL") == [("a",)]
    first = table.history()[0].snapshot_id
    old = "SELECT id, name FROM ns.t FOR VERSION AS OF {} WHERE name = 'a'"
    assert place.rows(old.format(first)) == [(1, "a")]


TIMES = [
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(1970, 1, 1),
    datetime.datetime(2024, 2, 29, 13, 0),
    datetime.datetime(2024, 2, 29, 13, 59, 59),
    datetime.datetime(2024, 3, 1),
    None,
]


def partitioned(catalog: Catalog, name: str, source: NestedField, transform: Transform[Any, Any]) -> Table:
    schema = Schema(NestedField(1, "id", LongType(), required=False), source)
    spec = PartitionSpec(PartitionField(source.field_id, 1000, transform, "part"))
    return catalog.create_table(f"ns.{name}", schema, partition_spec=spec)


@pytest.mark.parametrize("transform", [YearTransform(), MonthTransform(), DayTransform(), HourTransform()], ids=str)
@pytest.mark.parametrize("type", [TimestampType(), TimestamptzType()], ids=str)
def test_calendar_partitions_prune_rightly(
    place: Place, transform: Transform[Any, Any], type: TimestampType | TimestamptzType
) -> None:
    table = partitioned(place.catalog, "t", NestedField(2, "moment", type, required=False), transform)
    zone = datetime.timezone.utc if isinstance(type, TimestamptzType) else None
    times = [None if time is None else time.replace(tzinfo=zone) for time in TIMES]
    table.append(arrow(table, id=list(range(len(times))), moment=times))
    for time in times[:-1]:
        assert time is not None
        for operator, wanted in (("=", time.__eq__), ("<", time.__gt__), (">=", time.__le__)):
            expected = [(i,) for i, other in enumerate(times) if other is not None and wanted(other) is True]
            assert place.rows(f"SELECT id FROM ns.t WHERE moment {operator} ?", time) == expected
    assert place.rows("SELECT id FROM ns.t WHERE moment IS NULL") == [(5,)]


def test_buckets_prune_rightly(place: Place) -> None:
    table = partitioned(place.catalog, "t", NestedField(2, "k", StringType(), required=False), BucketTransform(8))
    keys = [f"key {i}" for i in range(40)]
    table.append(arrow(table, id=list(range(40)), k=keys))
    with place.connect() as connection:
        cursor = connection.cursor()
        for i, key in enumerate(keys):
            cursor.execute("SELECT id FROM ns.t WHERE k = ?", (key,))
            assert cursor.fetchall() == [(i,)]
        cursor.execute("EXPLAIN SELECT id FROM ns.t WHERE k = 'key 1'")
        assert "1 of " in "\n".join(row[0] for row in cursor.fetchall())


def test_partition_evolution(place: Place) -> None:
    table = place.catalog.create_table(
        "ns.t", Schema(*SCHEMA.fields, NestedField(3, "day", DateType(), required=False))
    )
    day = datetime.date(2024, 5, 1)
    table.append(arrow(table, id=[1], name=["a"], day=[day]))
    with table.update_spec() as update:
        update.add_field("name", IdentityTransform(), "name_part")
    table.append(arrow(table, id=[2, 3], name=["a", "b"], day=[day, day]))
    with table.update_spec() as update:
        update.remove_field("name_part")
    table.append(arrow(table, id=[4], name=["b"], day=[day]))
    assert place.rows("SELECT id, name FROM ns.t") == [(1, "a"), (2, "a"), (3, "b"), (4, "b")]
    assert place.rows("SELECT id FROM ns.t WHERE name = 'b'") == [(3,), (4,)]
    assert place.rows("SELECT id FROM ns.t WHERE name <> 'b'") == [(1,), (2,)]


def test_nested_namespaces_and_reflection(place: Place) -> None:
    place.catalog.create_namespace(("a", "b"))
    table = place.catalog.create_table(("a", "b", "t"), SCHEMA)
    table.append(arrow(table, id=[1], name=["x"]))
    assert place.rows('SELECT * FROM "a.b".t') == [(1, "x")]
    found = place.rows("SELECT table_schema, table_name FROM information_schema.tables")
    assert ("a.b", "t") in found


def test_unknown_names_are_told(place: Place) -> None:
    place.catalog.create_table("ns.orders", SCHEMA)
    with pytest.raises(lakedbapi.ProgrammingError, match="did you mean orders"):
        place.rows("SELECT * FROM ns.order")


def test_branches_tags_and_times(place: Place) -> None:
    table = place.catalog.create_table("ns.t", SCHEMA)
    table.append(arrow(table, id=[1], name=["a"]))
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "v1").create_branch(first.snapshot_id, "dev").commit()
    with table.update_schema() as update:
        update.rename_column("name", "label")
    table.append(arrow(table, id=[2], label=["b"]))
    assert place.rows("SELECT name FROM ns.t FOR VERSION AS OF 'v1'") == [("a",)]
    assert place.rows("SELECT label FROM ns.t FOR VERSION AS OF 'dev'") == [("a",)]
    assert place.rows("SELECT label FROM ns.t FOR VERSION AS OF 'main'") == [("a",), ("b",)]
    at = datetime.datetime.fromtimestamp(first.timestamp_ms / 1000, datetime.timezone.utc)
    assert place.rows(f"SELECT name FROM ns.t FOR TIMESTAMP AS OF '{at.isoformat()}'") == [("a",)]
    with pytest.raises(lakedbapi.ProgrammingError, match="no snapshot at"):
        place.rows("SELECT 1 FROM ns.t FOR TIMESTAMP AS OF '2001-01-01'")
    with pytest.raises(lakedbapi.ProgrammingError, match="no branch or tag 'nope'; it has: dev, main, v1"):
        place.rows("SELECT 1 FROM ns.t FOR VERSION AS OF 'nope'")
    with pytest.raises(lakedbapi.ProgrammingError, match="no snapshot 7"):
        place.rows("SELECT 1 FROM ns.t FOR VERSION AS OF 7")
    with place.connect(as_of="v1") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT name FROM ns.t")
        assert cursor.fetchall() == [("a",)]


def test_a_rolled_back_table(place: Place) -> None:
    table = place.catalog.create_table("ns.t", SCHEMA)
    table.append(arrow(table, id=[1], name=["a"]))
    first = table.current_snapshot()
    table.append(arrow(table, id=[2], name=["b"]))
    second = table.current_snapshot()
    assert first is not None
    assert second is not None
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    assert place.rows("SELECT id FROM ns.t") == [(1,)]
    at = datetime.datetime.fromtimestamp(second.timestamp_ms / 1000, datetime.timezone.utc)
    assert place.rows(f"SELECT id FROM ns.t FOR TIMESTAMP AS OF '{at.isoformat()}'") == [(1,), (2,)]


def test_changing_tables_without_a_catalog_is_refused(place: Place) -> None:
    metadata = place.catalog.create_table("ns.t", SCHEMA).metadata_location.removeprefix("file://")
    with lakedbapi.connect(f"iceberg:///{metadata}") as connection:
        for sql in ("DELETE FROM t", "INSERT INTO t VALUES (1, 'a')", "DROP TABLE t", "CREATE TABLE u (a INTEGER)"):
            with pytest.raises(lakedbapi.NotSupportedError, match="catalog"):
                connection.execute(sql)


def test_sqlalchemy_reflects_columns_and_identifier_fields(place: Place) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "name", StringType(), required=False, doc="as it is on the invoice"),
        identifier_field_ids=[1],
    )
    table = place.catalog.create_table("ns.t", schema)
    table.append(pa.table({"id": pa.array([1], pa.int64()), "name": ["a"]}, schema=table.schema().as_arrow()))
    engine = sqlalchemy.create_engine(f"{place.url}&schema=ns")
    reflected = sqlalchemy.Table("t", sqlalchemy.MetaData(), autoload_with=engine)
    assert [(c.name, c.nullable, c.primary_key, c.comment) for c in reflected.columns] == [
        ("id", False, True, None),
        ("name", True, False, "as it is on the invoice"),
    ]
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.select(reflected)).all() == [(1, "a")]
    engine.dispose()


def test_the_directory_of_a_new_catalog_is_made(tmp_path: Path) -> None:
    url = f"iceberg+sqlite:///{tmp_path}/new/deep/catalog.db?warehouse={tmp_path}/warehouse"
    with pytest.raises(lakedbapi.ProgrammingError, match="no such file, so there is no Iceberg catalog"):
        lakedbapi.connect(url, read_only=True)
    assert not (tmp_path / "new").exists()
    with lakedbapi.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a INT)")
    with lakedbapi.connect(url, read_only=True) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == []


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(lakedbapi.OperationalError, match="file/deep: making the directory failed"):
        lakedbapi.connect(f"iceberg+sqlite:///{tmp_path}/file/deep/catalog.db?warehouse={tmp_path}/warehouse")
