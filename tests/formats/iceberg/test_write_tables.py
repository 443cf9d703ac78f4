"""Definitions of tables as the metadata has them."""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType
from pyiceberg.utils.datetime import time_to_micros

import lakedbapi
from lakedbapi import NotSupportedError, ProgrammingError
from tests.formats.iceberg.writing import Lake, rows, values


def test_a_new_table(place: Lake, lake: lakedbapi.Connection) -> None:
    columns = "a BIGINT NOT NULL, s STRUCT(x INTEGER, y VARCHAR[]), m MAP(VARCHAR, DECIMAL(9, 2)), n SMALLINT"
    place.create(lake, columns=columns)
    lake.execute("COMMENT ON TABLE t IS 'of things'")
    lake.execute("COMMENT ON COLUMN t.a IS 'its key'")
    metadata = place.table().metadata
    assert metadata.format_version == place.version
    assert metadata.properties == {"comment": "of things"}
    schema = metadata.schema()
    assert [(f.field_id, f.name, str(f.field_type), f.required) for f in schema.fields] == [
        (1, "a", "long", True),
        (2, "s", "struct<5: x: optional int, 6: y: optional list<string>>", False),
        (3, "m", "map<string, decimal(9, 2)>", False),
        (4, "n", "int", False),
    ]
    assert schema.find_field("a").doc == "its key"
    assert metadata.last_column_id == schema.highest_field_id
    assert metadata.current_snapshot_id is None
    lake.execute("INSERT INTO t VALUES (1, {'x': 2, 'y': ['z']}, MAP {'k': 1.5}, 7)")
    assert place.table().scan().to_arrow().to_pylist()[0]["s"] == {"x": 2, "y": ["z"]}


def test_create_table_as_is_one_commit(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute(f"CREATE TABLE t WITH ('format-version' = '{place.version}') AS SELECT i AS a FROM range(5) r(i)")
    assert len(place.snapshots()) == 1
    assert place.table().metadata_location.rsplit("/", 1)[1].startswith("00000-")
    assert values(lake, "SELECT a FROM t") == [0, 1, 2, 3, 4]


def test_columns_come_and_go_by_id(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake)
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    lake.execute("ALTER TABLE t RENAME COLUMN s TO r")
    lake.execute("ALTER TABLE t ADD COLUMN s INTEGER")
    lake.execute("INSERT INTO t VALUES (2, 'y', 5)")
    lake.execute("ALTER TABLE t DROP COLUMN r")
    lake.execute("ALTER TABLE t ADD COLUMN r VARCHAR")
    assert rows(lake) == [(1, None, None), (2, 5, None)]
    seen = place.table().scan().to_arrow().to_pylist()
    assert sorted((row["a"], row["s"], row["r"]) for row in seen) == [(1, None, None), (2, 5, None)]
    ids = [field.field_id for field in place.table().schema().fields]
    assert ids == [1, 3, 4]
    assert place.table().metadata.last_column_id == 4


def test_widening(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake, columns="a INTEGER, f FLOAT, d DECIMAL(5, 2), i INTEGER")
    lake.execute("INSERT INTO t VALUES (1, 1.5, 2.25, 3)")
    for column, type in (("a", "BIGINT"), ("f", "DOUBLE"), ("d", "DECIMAL(9, 2)")):
        lake.execute(f"ALTER TABLE t ALTER COLUMN {column} TYPE {type}")
    lake.execute("INSERT INTO t VALUES (5000000000, 2.5, 1234567.25, 4)")
    assert isinstance(place.table().schema().find_field("a").field_type, LongType)
    assert values(lake, "SELECT a FROM t WHERE a > 0") == [1, 5_000_000_000]
    with pytest.raises(lakedbapi.NotSupportedError, match="INTEGER becomes BIGINT"):
        lake.execute("ALTER TABLE t ALTER COLUMN i TYPE DOUBLE")


def test_not_null(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake, columns="a BIGINT NOT NULL, s VARCHAR")
    with pytest.raises(lakedbapi.IntegrityError):
        lake.execute("INSERT INTO t VALUES (NULL, 'x')")
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    way_out = r"CREATE TABLE another with it as NOT NULL \(SHOW CREATE TABLE t has the rest\), and INSERT INTO that"
    with pytest.raises(lakedbapi.NotSupportedError, match=way_out):
        lake.execute("ALTER TABLE t ALTER COLUMN s SET NOT NULL")
    with pytest.raises(lakedbapi.NotSupportedError, match="make a new table"):
        lake.execute("ALTER TABLE t ADD COLUMN z INTEGER NOT NULL")
    ((text,),) = rows(lake, "SHOW CREATE TABLE t")
    lake.execute(text.replace('"t"', '"another"').replace('"s" VARCHAR', '"s" VARCHAR NOT NULL'))
    lake.execute("INSERT INTO another SELECT * FROM t")
    assert [column[2] for column in rows(lake, "DESCRIBE another")] == ["NO", "NO"]
    lake.execute("ALTER TABLE t ALTER COLUMN a DROP NOT NULL")
    lake.execute("INSERT INTO t VALUES (NULL, 'y')")
    assert len(rows(lake)) == 2


def test_partitions_evolve(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake, columns="a BIGINT, t TIMESTAMP")
    insert = "INSERT INTO t SELECT i, TIMESTAMP '1969-12-31 23:59:59.999999' + to_days(i::INTEGER) FROM range(3) r(i)"
    lake.execute(insert)
    for keys in ("day(t)", "bucket(4, a), month(t)", "truncate(10, a)", "day(t)"):
        lake.execute(f"ALTER TABLE t SET PARTITIONED BY ({keys})")
        lake.execute(insert)
    lake.execute("ALTER TABLE t RESET PARTITIONED BY")
    lake.execute(insert)
    metadata = place.table().metadata
    assert [len(spec.fields) for spec in metadata.partition_specs] == [0, 1, 2, 1]
    assert metadata.default_spec_id == 0
    days = [f["partition"][0] for f in place.files(0) if len(f["partition"]) == 1]
    assert -1 in days
    assert len(rows(lake)) == 18
    assert place.table().scan().to_arrow().num_rows == 18
    assert values(lake, "SELECT count(*) FROM t WHERE t < TIMESTAMP '1970-01-01'") == [6]
    lake.execute("DELETE FROM t WHERE a = 1")
    assert place.table().scan().to_arrow().num_rows == 12


PARTITIONED = [
    ("truncate(10, a)", ["(-1, 's')", "(-10, 's')", "(-11, 's')", "(9, 's')"], [-20, -10, -10, 0]),
    ("truncate(2, s)", ["(1, 'äöü')", "(2, '🙂🙃x')", "(3, 'a')"], ["a", "äö", "🙂🙃"]),
    ("a", ["(NULL, 's')", "(-5, 's')"], [-5, None]),
    ("hour(t)", ["(1, 's', TIMESTAMP '1969-12-31 23:59:59.999999')", "(1, 's', TIMESTAMP '1970-01-01')"], [-1, 0]),
    ("month(t)", ["(1, 's', TIMESTAMP '1969-12-31 23:59:59')", "(1, 's', TIMESTAMP '1970-02-01')"], [-1, 1]),
    ("year(z)", ["(1, 's', NULL, TIMESTAMPTZ '1970-01-01 00:30:00+01')", "(1, 's', NULL, NULL)"], [-1, None]),
]


@pytest.mark.parametrize(("key", "inserted", "expected"), PARTITIONED, ids=[key for key, _, _ in PARTITIONED])
def test_partition_values(
    place: Lake, lake: lakedbapi.Connection, key: str, inserted: list[str], expected: list[object]
) -> None:
    place.create(lake, columns="a BIGINT, s VARCHAR, t TIMESTAMP, z TIMESTAMPTZ")
    lake.execute(f"ALTER TABLE t SET PARTITIONED BY ({key})")
    for row in inserted:
        width = row.count(", ") + 1
        lake.execute(f"INSERT INTO t ({', '.join('astz'[:width])}) VALUES {row}")
    found = [file["partition"][0] for file in place.files(0)]
    assert sorted(value for value in found if value is not None) == [value for value in expected if value is not None]
    assert found.count(None) == expected.count(None)
    assert place.table().scan().to_arrow().num_rows == len(inserted)


BUCKETED: dict[str, list[Any]] = {
    "INTEGER": [34, -1],
    "DECIMAL(9, 2)": [Decimal(text) for text in ("14.20", "0", "1.27", "1.28", "-1.28", "-1.29", "327.68", "-0.01")],
    "DECIMAL(38, 3)": [Decimal("12345678901234567890123456789012345.678"), Decimal("-5.125"), Decimal("0.255")],
    "DATE": [date(2017, 11, 16), date(1969, 12, 31)],
    "TIME": [time(22, 31, 8), time(0, 0, 0, 1)],
    "TIMESTAMP": [datetime(2017, 11, 16, 22, 31, 8), datetime(1969, 12, 31, 23, 59, 59, 999999)],
    "TIMESTAMPTZ": [datetime(2017, 11, 16, 22, 31, 8, tzinfo=timezone.utc)],
    "VARCHAR": ["iceberg", "", "f79c3e09-677c-4bbd-a479-3f349cb785e7"],
    "UUID": [UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), UUID(int=0)],
    "BLOB": [b"\x00\x01", b""],
}


@pytest.mark.parametrize("type", BUCKETED)
def test_buckets_are_those_of_other_programs(place: Lake, lake: lakedbapi.Connection, type: str) -> None:
    """The table of values in the specification, "Appendix B: 32-bit Hash Requirements", is pyiceberg's."""
    place.create(lake, columns=f"a {type}")
    lake.execute("ALTER TABLE t SET PARTITIONED BY (bucket(1000, a))")
    lake.execute("INSERT INTO t VALUES (NULL)")
    lake.cursor().executemany("INSERT INTO t VALUES (?)", [(value,) for value in BUCKETED[type]])
    table = place.table()
    hashed = BucketTransform(1000).transform(table.schema().find_type("a"))
    expected = {None, *(hashed(value) for value in _as_pyiceberg_has(BUCKETED[type]))}
    assert {file["partition"][0] for file in place.files(0)} == expected
    for value in BUCKETED[type]:
        assert lake.execute("SELECT count(*) FROM t WHERE a = ?", (value,)).fetchone() == (1,)


def _as_pyiceberg_has(found: list[Any]) -> list[Any]:
    """UUIDs are bytes to its transforms, and times numbers of microseconds."""
    return [
        value.bytes if isinstance(value, UUID) else time_to_micros(value) if isinstance(value, time) else value
        for value in found
    ]


@pytest.mark.parametrize("key", ["bucket(4, a)", "truncate(4, a)"])
@pytest.mark.parametrize("type", ["BOOLEAN", "DOUBLE"])
def test_transforms_that_a_type_does_not_have(lake: lakedbapi.Connection, place: Lake, key: str, type: str) -> None:
    with pytest.raises(NotSupportedError, match=f"by {key[:-6]} of 'a': {type} has none"):
        lake.execute(f"CREATE TABLE t (a {type}) PARTITIONED BY ({key})")


def test_sorting(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake)
    lake.execute("ALTER TABLE t SET SORTED BY (a DESC)")
    (field,) = place.table().sort_order().fields
    assert (field.source_id, str(field.direction)) == (1, "DESC")
    lake.execute("INSERT INTO t SELECT i, 'x' FROM range(5) r(i)")
    assert lake.execute("SELECT a FROM t").fetchone() == (4,)
    with pytest.raises(lakedbapi.NotSupportedError, match="columns"):
        lake.execute("ALTER TABLE t SET SORTED BY (a + 1)")


def test_replacing_a_table(place: Lake, lake: lakedbapi.Connection) -> None:
    """It keeps its history, and no id is used again."""
    place.create(lake)
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    (first,) = (snapshot.snapshot_id for snapshot in place.snapshots())
    uuid = place.table().metadata.table_uuid
    version = f"WITH ('format-version' = '{place.version}')"
    lake.execute(f"CREATE OR REPLACE TABLE t {version} AS SELECT 'only' AS s, 5 AS n")
    assert rows(lake) == [("only", 5)]
    assert rows(lake, f"SELECT * FROM t AT (VERSION => {first})") == [(1, "x")]
    assert place.table().metadata.table_uuid == uuid
    assert [field.field_id for field in place.table().schema().fields] == [3, 4]
    assert len(place.files(0)) == 1


def test_schemas(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE SCHEMA sales")
    lake.execute('CREATE SCHEMA "sales.eu"')
    lake.execute('CREATE TABLE "sales.eu".t (a INTEGER)')
    lake.execute('INSERT INTO "sales.eu".t VALUES (1)')
    assert place.catalog.table_exists(("sales", "eu", "t"))
    with pytest.raises(lakedbapi.ProgrammingError, match="not empty"):
        lake.execute('DROP SCHEMA "sales.eu"')
    lake.execute('DROP TABLE "sales.eu".t')
    lake.execute('DROP SCHEMA "sales.eu"')
    assert ("sales", "eu") not in place.catalog.list_namespaces("sales")


@pytest.mark.parametrize("queried", [False, True], ids=["at once", "after a query"])
def test_rows_go_where_the_table_lies(place: Lake, lake: lakedbapi.Connection, queried: bool) -> None:
    """Outside of the warehouse, too: the place is told when the table is made, and the engine runs by then."""
    lake.execute("CREATE TABLE before (a BIGINT)")
    lake.execute("INSERT INTO before VALUES (1)")
    elsewhere = place.root / "elsewhere"
    place.create(lake, location=f"file://{elsewhere}")
    if queried:
        assert values(lake, "SELECT a FROM t") == []
    lake.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    assert lake.execute("DELETE FROM t WHERE a = 1").rowcount == 1
    assert lake.execute("UPDATE t SET s = 'z'").rowcount == 1
    assert values(lake, "SELECT s FROM t") == ["z"]
    assert all(file.is_relative_to(elsewhere) for file in place.root.rglob("*.parquet") if "before" not in file.parts)


def test_renaming(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake)
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    lake.execute("ALTER TABLE t RENAME TO u")
    lake.execute("INSERT INTO u VALUES (2, 'y')")
    assert values(lake, "SELECT a FROM u") == [1, 2]
    with pytest.raises(lakedbapi.ProgrammingError):
        lake.execute("SELECT * FROM t")


def test_keys_are_kept(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake, columns="a BIGINT PRIMARY KEY, s VARCHAR UNIQUE")
    assert place.table().schema().identifier_field_ids == [1]
    other = place.connect()
    found: list[Any] = other.execute(
        "SELECT constraint_type FROM information_schema.table_constraints WHERE table_name = 't'"
    ).fetchall()
    assert {"PRIMARY KEY", "UNIQUE"} <= {row[0] for row in found}


@pytest.mark.parametrize(
    ("sql", "instead"),
    [
        ("CREATE TABLE x (a HUGEINT)", "DECIMAL"),
        ("CREATE TABLE x (a INTERVAL)", "VARCHAR"),
        ("CREATE TABLE x (a INTEGER CHECK (a > 0))", "CHECK"),
        ("CREATE TABLE x (a INTEGER DEFAULT 5)", "INSERT"),
        ("CREATE TABLE x (a INTEGER) WITH ('format-version' = '1')", "2 or 3"),
        ("CREATE TABLE x (a TIMESTAMP_NS)", "format-version"),
        ("CREATE TABLE x (a INTEGER GENERATED BY DEFAULT AS IDENTITY)", "identity"),
    ],
)
def test_what_no_table_can_be(lake: lakedbapi.Connection, sql: str, instead: str) -> None:
    with pytest.raises(lakedbapi.NotSupportedError, match=instead):
        lake.execute(sql)


def test_columns_of_new_tables_have_defaults(tmp_path: Path) -> None:
    place = Lake(tmp_path, 3)
    lake = place.connect()
    columns = {
        "n": ("INTEGER DEFAULT 3 + 4", 7),
        "s": ("VARCHAR DEFAULT 'new'", "new"),
        "d": ("DATE DEFAULT DATE '2026-02-03'", date(2026, 2, 3)),
        "p": ("DECIMAL(9, 2) DEFAULT 1.25", Decimal("1.25")),
    }
    place.create(lake, columns=", ".join(["a BIGINT", *(f"{name} {type}" for name, (type, _) in columns.items())]))
    lake.execute("INSERT INTO t (a) VALUES (1)")
    lake.execute("INSERT INTO t VALUES (2, 0, NULL, NULL, NULL)")
    row = (1, *(value for _, value in columns.values()))
    assert lake.execute("SELECT * FROM t ORDER BY a").fetchall() == [row, (2, 0, None, None, None)]
    fields = place.table().schema().fields
    assert {f.name: f.write_default for f in fields if f.write_default is not None}.keys() == columns.keys()
    other = place.connect()
    other.execute("ALTER TABLE t ALTER COLUMN n DROP DEFAULT")
    other.execute("INSERT INTO t (a) VALUES (3)")
    assert other.execute("SELECT n, s, d, p FROM t WHERE a = 3").fetchall() == [(None, *row[2:])]
    place.close()


@pytest.mark.parametrize(
    "sql", ["CREATE TABLE x (a INTEGER, f DOUBLE DEFAULT random())", "CREATE TABLE x (a INTEGER DEFAULT 5)"]
)
def test_a_default_without_a_value_or_a_place_is_refused(lake: lakedbapi.Connection, sql: str) -> None:
    version = 3 if "random" in sql else 2
    with pytest.raises(lakedbapi.NotSupportedError, match="format-version 3 have defaults") as refused:
        lake.execute(f"{sql} WITH ('format-version' = '{version}')")
    assert ("make it one" in str(refused.value)) == (version == 2)


@pytest.mark.parametrize(
    "column",
    ["f DOUBLE DEFAULT 'nan'", "f FLOAT DEFAULT '-inf'", "l INTEGER[] DEFAULT [1, NULL]", "s.x FLOAT DEFAULT 'inf'"],
)
def test_a_default_that_metadata_cannot_tell_is_refused(lake: lakedbapi.Connection, column: str) -> None:
    lake.execute("CREATE TABLE t (a BIGINT, s STRUCT(y INTEGER)) WITH ('format-version' = '3')")
    lake.execute("INSERT INTO t VALUES (1, {'y': 2})")
    with pytest.raises(lakedbapi.NotSupportedError, match="finite constants"):
        lake.execute(f"ALTER TABLE t ADD COLUMN {column}")
    assert lake.execute("SELECT * FROM t").fetchall() == [(1, {"y": 2})]


def test_metrics(place: Lake, lake: lakedbapi.Connection) -> None:
    place.create(lake, columns="a BIGINT, s VARCHAR, f DOUBLE, c VARCHAR, d DECIMAL(9, 2)")
    lake.execute("ALTER TABLE t SET ('write.metadata.metrics.column.c' = 'counts')")
    long = "é" * 40
    lake.execute(f"INSERT INTO t VALUES (-1, '{long}', 0.0, 'q', -1.5), (NULL, 'z', 2.0, 'r', 2.5)")
    (file,) = place.files(0)
    assert file["value_counts"] == {1: 2, 2: 2, 3: 2, 4: 2, 5: 2}
    assert file["null_value_counts"] == {1: 1, 2: 0, 3: 0, 4: 0, 5: 0}
    lower, upper = file["lower_bounds"], file["upper_bounds"]
    assert lower[1] == upper[1] == (-1).to_bytes(8, "little", signed=True)
    assert upper[2] == ("é" * 15 + chr(ord("é") + 1)).encode()
    assert lower[2] == b"z"
    assert lower[3] == b"\0" * 7 + b"\x80"  # -0.0
    assert 4 not in lower
    assert (lower[5], upper[5]) == (b"\xff\x6a", b"\x00\xfa")


def test_relative_places_are_those_of_the_time_of_connecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with lakedbapi.connect("iceberg+sqlite:///catalog.db?warehouse=warehouse", autocommit=True) as connection:
        monkeypatch.chdir(elsewhere)
        connection.execute("CREATE TABLE t (i INTEGER)")
        connection.execute("INSERT INTO t VALUES (1)")
    with lakedbapi.connect(f"iceberg+sqlite:///{tmp_path}/catalog.db") as connection:
        assert connection.execute("SELECT i FROM t").fetchall() == [(1,)]
        (path,) = connection.execute("SELECT path FROM files('t')").fetchone() or ("",)
    assert Path(path.removeprefix("file://")).is_relative_to(tmp_path / "warehouse")


def test_without_a_warehouse_new_tables_have_no_place(tmp_path: Path) -> None:
    with (
        lakedbapi.connect(f"iceberg+sqlite:///{tmp_path}/catalog.db", autocommit=True) as connection,
        pytest.raises(NotSupportedError, match="warehouse=…"),
    ):
        connection.execute("CREATE TABLE t (i INTEGER)")


def test_identity_columns_are_refused_with_the_way_out(tmp_path: Path) -> None:
    with (
        lakedbapi.connect(f"iceberg+sqlite:///{tmp_path}/catalog.db?warehouse={tmp_path}/w") as connection,
        pytest.raises(NotSupportedError, match="autoincrement=False"),
    ):
        connection.execute("CREATE TABLE t (i INTEGER AUTOINCREMENT)")


def test_a_missing_directory_has_no_tables(tmp_path: Path) -> None:
    with pytest.raises(ProgrammingError, match="no such directory"):
        lakedbapi.connect(f"iceberg:///{tmp_path}/none").execute("SHOW TABLES")


@pytest.mark.parametrize("autocommit", [True, False])
def test_setting_a_default_holds_for_new_rows_alone(tmp_path: Path, autocommit: bool) -> None:
    """What older rows have without the column stays (spec, Default Values)."""
    place = Lake(tmp_path, 3)
    lake = place.connect()
    place.create(lake)
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    changing = place.connect(autocommit=autocommit)
    changing.execute("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7")
    changing.execute("INSERT INTO t (a) VALUES (2)")
    changing.execute("ALTER TABLE t ALTER COLUMN n SET DEFAULT 2 * 4")
    changing.execute("ALTER TABLE t ALTER COLUMN s SET DEFAULT 'it''s'")
    changing.execute("ALTER TABLE t ADD COLUMN d DATE DEFAULT DATE '2026-02-03'")
    changing.execute("INSERT INTO t (a) VALUES (3)")
    changing.execute("ALTER TABLE t ALTER COLUMN d SET DEFAULT DATE '2026-02-04'")
    changing.execute("ALTER TABLE t ALTER COLUMN n TYPE BIGINT")
    changing.execute("INSERT INTO t (a) VALUES (4)")
    changing.commit()
    first, second = date(2026, 2, 3), date(2026, 2, 4)
    expected = [(1, "x", 7, first), (2, None, 7, first), (3, "it's", 8, first), (4, "it's", 8, second)]
    for each in (changing, place.connect()):
        assert rows(each) == expected
    fields = {field.name: field for field in place.table().schema().fields}
    assert (fields["n"].initial_default, fields["n"].write_default) == (7, 8)
    assert (fields["s"].initial_default, fields["s"].write_default) == (None, "it's")
    lake = place.connect()
    lake.execute("ALTER TABLE t ALTER COLUMN n DROP DEFAULT")
    lake.execute("ALTER TABLE t ALTER COLUMN s SET DEFAULT NULL")
    lake.execute("INSERT INTO t (a) VALUES (5)")
    assert rows(lake) == [*expected, (5, None, None, second)]
    place.close()


@pytest.mark.parametrize(
    ("version", "change"),
    [
        (2, "a SET DEFAULT 5"),
        (3, "a SET DEFAULT (random() * 5)::INTEGER"),
        (3, "f SET DEFAULT 'nan'"),
        (3, "l SET DEFAULT [1]"),
    ],
)
def test_a_default_that_cannot_be_set(lake: lakedbapi.Connection, version: int, change: str) -> None:
    lake.execute(f"CREATE TABLE t (a BIGINT, f DOUBLE, l INTEGER[]) WITH ('format-version' = '{version}')")
    with pytest.raises(lakedbapi.NotSupportedError, match="format-version 3 have defaults"):
        lake.execute(f"ALTER TABLE t ALTER COLUMN {change}")


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("version", [2, 3])
def test_where_columns_stand(tmp_path: Path, version: int, autocommit: bool) -> None:
    place = Lake(tmp_path, version)
    place.create(place.connect(), columns="a BIGINT, s STRUCT(x INTEGER, y INTEGER), b VARCHAR")
    lake = place.connect(autocommit=autocommit)
    lake.execute("INSERT INTO t VALUES (1, {'x': 2, 'y': 3}, 'b')")
    for change in (
        "ADD COLUMN first INTEGER FIRST",
        "ADD COLUMN c VARCHAR AFTER a",
        "ADD COLUMN s.z INTEGER AFTER x",
        "ALTER COLUMN b FIRST",
        "ALTER COLUMN a AFTER s",
        "ALTER COLUMN s.y FIRST",
        "ALTER COLUMN a AFTER s",
    ):
        lake.execute(f"ALTER TABLE t {change}")
    lake.execute("INSERT INTO t VALUES ('b2', 5, 'c2', {'y': 1, 'x': 2, 'z': 3}, 6)")
    lake.execute("UPDATE t SET c = 'c1' WHERE a = 1")
    lake.commit()
    other = place.connect()
    for each in (lake, other):
        cursor = each.execute("SELECT * FROM t ORDER BY a")
        assert [column[0] for column in cursor.description or ()] == ["b", "first", "c", "s", "a"]
        assert cursor.fetchall() == [
            ("b", None, "c1", {"y": 3, "x": 2, "z": None}, 1),
            ("b2", 5, "c2", {"y": 1, "x": 2, "z": 3}, 6),
        ]
    seen = place.table().scan().to_arrow().sort_by("a").to_pylist()
    assert [row["c"] for row in seen] == ["c1", "c2"]
    assert list(seen[0]) == ["b", "first", "c", "s", "a"]
    place.close()


@pytest.mark.parametrize(
    "change", ["ADD COLUMN c INTEGER AFTER nothing", "ALTER COLUMN a AFTER a", "ALTER COLUMN a AFTER nothing"]
)
def test_there_must_be_what_a_column_stands_behind(lake: lakedbapi.Connection, change: str) -> None:
    lake.execute("CREATE TABLE t (a BIGINT, b BIGINT)")
    with pytest.raises(lakedbapi.ProgrammingError, match="cannot be AFTER"):
        lake.execute(f"ALTER TABLE t {change}")


@pytest.mark.parametrize("kind", ["ducklake", "delta"])
@pytest.mark.parametrize(
    "change", ["ADD COLUMN c INTEGER FIRST", "ADD COLUMN c INTEGER DEFAULT 1 AFTER a", "ALTER COLUMN b FIRST"]
)
def test_formats_that_keep_the_order_of_columns(tmp_path: Path, kind: str, change: str) -> None:
    place = {"ducklake": f"{tmp_path}/catalog.sqlite", "delta": f"{tmp_path}/lake"}[kind]
    with lakedbapi.connect(f"{kind}:///{place}", autocommit=True) as lake:
        lake.execute("CREATE TABLE t (a BIGINT, b BIGINT)")
        with pytest.raises(lakedbapi.NotSupportedError, match="cannot be FIRST or AFTER"):
            lake.execute(f"ALTER TABLE t {change}")


def test_times_are_partition_values(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("CREATE TABLE t (a BIGINT, k TIME) PARTITIONED BY (k)")
    lake.execute("INSERT INTO t VALUES (1, '00:00:00'), (2, '12:00:01.5'), (3, '23:59:59.999999'), (4, NULL)")
    assert lake.execute("SELECT a FROM t WHERE k = '12:00:01.5'").fetchall() == [(2,)]
    assert lake.execute("DELETE FROM t WHERE k > '12:00:00'").rowcount == 2
    assert sorted(row["a"] for row in place.table().scan().to_arrow().to_pylist()) == [1, 4]
    assert len(place.table().scan(row_filter="k == '00:00:00'").to_arrow()) == 1


@pytest.mark.parametrize(("type", "value"), [("DATE", "infinity"), ("TIMESTAMP", "-infinity"), ("TIME", "24:00:00")])
def test_what_no_partition_can_have_is_an_error(lake: lakedbapi.Connection, type: str, value: str) -> None:
    lake.execute(f"CREATE TABLE t (a BIGINT, k {type}) PARTITIONED BY (k)")
    with pytest.raises(lakedbapi.DataError, match="partition field 'k'"):
        lake.execute(f"INSERT INTO t VALUES (1, '{value}')")
    assert lake.execute("SELECT count(*) FROM t").fetchone() == (0,)


CHANGES = [
    "INSERT INTO {} VALUES (3, 'z')",
    "DELETE FROM {} WHERE a = 1",
    "UPDATE {} SET s = 'z'",
    "MERGE INTO {} USING (SELECT 1 AS k) ON a = k WHEN MATCHED THEN DELETE",
    "TRUNCATE {}",
]


@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_a_table_change_before_or_after_its_name(place: Lake, lake: lakedbapi.Connection, change: str) -> None:
    """The catalog takes the two apart, so neither of them is in a transaction with the other."""
    place.create(lake)
    lake.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    rename = "ALTER TABLE t RENAME TO u"
    for first, second in ((change.format("t"), rename), (rename, change.format("u"))):
        lake.execute("BEGIN")
        lake.execute(first)
        with pytest.raises(NotSupportedError, match=r"rename it to u, .*: commit before the second of the two"):
            lake.execute(second)
        lake.execute("ROLLBACK")
    assert rows(lake) == [(1, "x"), (2, "y")]
    lake.execute("BEGIN")
    lake.execute(change.format("t"))
    with pytest.raises(NotSupportedError, match="commit before"):
        lake.execute(rename)
    lake.execute("COMMIT")
    changed = rows(lake)
    lake.execute(rename)
    assert rows(lake, "SELECT * FROM u") == changed != [(1, "x"), (2, "y")]


def test_a_new_table_or_one_that_gets_its_name_back_takes_rows(place: Lake, lake: lakedbapi.Connection) -> None:
    lake.execute("BEGIN")
    place.create(lake)
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    lake.execute("ALTER TABLE t RENAME TO u")
    lake.execute("INSERT INTO u VALUES (2, 'y')")
    lake.execute("COMMIT")
    lake.execute("BEGIN")
    lake.execute("ALTER TABLE u RENAME TO t")
    lake.execute("ALTER TABLE t RENAME TO u")
    lake.execute("INSERT INTO u VALUES (3, 'z')")
    lake.execute("COMMIT")
    assert values(lake, "SELECT a FROM u") == [1, 2, 3]
