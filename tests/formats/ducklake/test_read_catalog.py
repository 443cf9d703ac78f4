"""What a catalog that DuckDB wrote says: schemas, tables, views, history, statistics, partition values."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.model.catalog import AsOf, PartitionField, SortField
from lakedbapi.model.types import Decimal, List, Map, Scalar, Struct
from tests.formats.ducklake.reading import find, open_lake


@pytest.fixture
def lake(place: Place, peer: Peer) -> Peer:
    peer.attach(place.location, place.data_path, data_inlining_row_limit=0)
    return peer


def test_column_types_are_trees(place: Place, lake: Peer) -> None:
    lake.execute("CREATE TABLE t(a decimal(10,2), b struct(x int, y varchar[]), c map(varchar, date))")
    a, b, c = find(open_lake(place).latest(), "t").schema.fields
    assert a.type == Decimal(10, 2)
    assert isinstance(b.type, Struct)
    assert [(f.name, f.id) for f in b.type.fields] == [("x", 3), ("y", 4)]
    assert isinstance(b.type.fields[1].type, List)
    assert b.type.fields[1].type.element.type == Scalar("varchar")
    assert isinstance(c.type, Map)
    assert (c.type.key.type, c.type.value.type) == (Scalar("varchar"), Scalar("date"))


def test_defaults_are_sql_expressions(place: Place, lake: Peer) -> None:
    lake.execute(
        "CREATE TABLE t(a int DEFAULT 7, b varchar DEFAULT 'it''s', c timestamp DEFAULT now(), d int, "
        "e boolean DEFAULT true, f date DEFAULT '2020-01-01', g double DEFAULT -1.5)"
    )
    fields = find(open_lake(place).latest(), "t").schema.fields
    defaults = [field.default for field in fields]
    assert defaults[:2] == ["7", "'it''s'"]
    assert defaults[2] is not None
    assert "now()" in defaults[2]
    assert defaults[3] is None
    for field, literal in zip(fields[4:], ("true", "DATE '2020-01-01'", "-1.5"), strict=True):
        assert lake.value(f"SELECT {field.default} = {literal}") is True


def test_not_null_comments_partitioning_and_sorting_are_read(place: Place, lake: Peer) -> None:
    for sql in (
        "CREATE TABLE t(i int NOT NULL, ts timestamp)",
        "COMMENT ON TABLE t IS 'about t'",
        "COMMENT ON COLUMN t.i IS 'about i'",
        "ALTER TABLE t SET PARTITIONED BY (month(ts), i)",
        "ALTER TABLE t SET SORTED BY (i DESC NULLS FIRST, ts)",
    ):
        lake.execute(sql)
    table = find(open_lake(place).latest(), "t")
    assert table.comment == "about t"
    assert [(field.nullable, field.comment) for field in table.schema.fields] == [(False, "about i"), (True, None)]
    assert table.partitioning is not None
    assert table.partitioning.fields == (PartitionField(2, "month"), PartitionField(1, "identity"))
    assert table.sorting == (SortField("i", descending=True, nulls_first=True), SortField("ts"))
    lake.execute("ALTER TABLE t RESET PARTITIONED BY")
    lake.execute("ALTER TABLE t RESET SORTED BY")
    table = find(open_lake(place).latest(), "t")
    assert table.partitioning is None
    assert table.sorting == ()


def test_views_and_quoted_names_are_read(place: Place, lake: Peer) -> None:
    lake.execute('CREATE SCHEMA "we ird"')
    lake.execute('CREATE TABLE "we ird"."T""x"("Sel,ect" int)')
    lake.execute('CREATE VIEW vv("a ""b", c) AS SELECT "Sel,ect", 1 FROM lake."we ird"."T""x"')
    snapshot = open_lake(place).latest()
    (view,) = snapshot.views().values()
    assert view.column_aliases == ('a "b', "c")
    assert "{DUCKLAKE_CATALOG}" in view.sql
    table = find(snapshot, 'T"x', "we ird")
    assert table.path is not None
    assert table.uuid is not None
    assert table.path.endswith(f"/{table.uuid}/")


def test_history_speaks_of_the_same_changes(place: Place, lake: Peer) -> None:
    for sql in (
        "CREATE SCHEMA s2",
        'CREATE TABLE s2."w,e.""x"(a int)',
        'INSERT INTO s2."w,e.""x" VALUES (1)',
        'DROP TABLE s2."w,e.""x"',
        "CREATE VIEW v AS SELECT 1 a",
        "CREATE TABLE t(i int)",
        "INSERT INTO t SELECT * FROM range(20)",
        "DELETE FROM t WHERE i < 5",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
        "ALTER TABLE t ADD COLUMN j int",
    ):
        lake.execute(sql)
    ours = [
        (line.id, line.time, line.schema_version, {kind: list(names) for kind, names in line.changes.items()})
        for line in open_lake(place).history()
    ]
    theirs = lake.rows("SELECT snapshot_id, snapshot_time, schema_version, changes FROM ducklake_snapshots('lake')")
    assert ours == [(id, time, version, dict(changes)) for id, time, version, changes in theirs]


def test_a_version_that_is_not_kept_is_an_error(place: Place, lake: Peer) -> None:
    lake.execute("CREATE TABLE t(i int)")
    lake.execute("INSERT INTO t SELECT * FROM range(20)")
    lake.execute("CALL ducklake_expire_snapshots('lake', versions => [1])")
    catalog = open_lake(place)
    for version in (999, -1, 1):
        with pytest.raises(ProgrammingError, match=f"No snapshot found at version {version}.* 0 to 2"):
            catalog.as_of(AsOf(version=version))
    with pytest.raises(NotSupportedError, match="no branches or tags"):
        catalog.as_of(AsOf(ref="main"))


def test_a_timestamp_means_the_newest_snapshot_not_later(place: Place, lake: Peer) -> None:
    lake.execute("CREATE TABLE t(i int)")
    lake.execute("CREATE TABLE u(i int)")
    catalog = open_lake(place)
    times = [line.time for line in catalog.history()]
    assert catalog.as_of(AsOf(timestamp=times[1])).id == 1
    assert catalog.as_of(AsOf(timestamp=times[1] - timedelta(microseconds=1))).id == 0
    assert catalog.as_of(AsOf(timestamp=times[1].astimezone(timezone(timedelta(hours=5, minutes=30))))).id == 1
    assert catalog.as_of(AsOf(timestamp=datetime(2999, 1, 1, tzinfo=timezone.utc))).id == 2
    with pytest.raises(ProgrammingError, match="No snapshot found at timestamp 1999"):
        catalog.as_of(AsOf(timestamp=datetime(1999, 1, 1, tzinfo=timezone.utc)))


def test_the_newest_snapshot_is_the_same_object_until_something_changes(place: Place, lake: Peer) -> None:
    lake.execute("CREATE TABLE t(i int)")
    catalog = open_lake(place)
    before = catalog.latest()
    assert catalog.latest() is before
    lake.execute("INSERT INTO t SELECT * FROM range(20)")
    after = catalog.latest()
    assert after is not before
    assert before.files(find(before, "t")).num_rows == 0
    assert after.files(find(after, "t")).num_rows == 1


def test_options_are_looked_up_from_table_to_default(place: Place, lake: Peer) -> None:
    lake.execute("CREATE TABLE t(i int)")
    lake.execute("CREATE TABLE u(i int)")
    lake.execute("CALL ducklake_set_option('lake', 'target_file_size', '10MB')")
    lake.execute("CALL ducklake_set_option('lake', 'target_file_size', '5MB', table_name => 't')")
    catalog = open_lake(place, data_inlining_row_limit="3")
    table = find(catalog.latest(), "t")
    assert table.properties == {"target_file_size": "5000000"}
    assert catalog.option("target_file_size", table) == "5000000"
    assert catalog.option("target_file_size", find(catalog.latest(), "u")) == "10000000"
    assert catalog.option("data_inlining_row_limit", table) == "3"
    assert catalog.option("parquet_compression", table) == "snappy"
    assert catalog.option("parquet_compression_level", table) is None


def test_an_option_that_is_set_here_is_seen_there(place: Place, lake: Peer) -> None:
    lake.execute("CREATE TABLE t(i int)")
    catalog = open_lake(place)
    table = find(catalog.latest(), "t")
    catalog.set_option("parquet_compression", "zstd", table=table)
    catalog.set_option("parquet_compression", "gzip", table=table)
    options = "SELECT value, scope FROM ducklake_options('lake') WHERE option_name = 'parquet_compression'"
    assert lake.rows(options) == [("gzip", "TABLE")]
    assert find(catalog.latest(), "t").properties == {"parquet_compression": "gzip"}
    catalog.set_option("parquet_compression", None, table=table)
    assert catalog.option("parquet_compression", table) == "snappy"
    with pytest.raises(ProgrammingError, match="describes the catalog"):
        catalog.set_option("data_path", "/elsewhere/")


def test_an_option_that_only_duckdb_follows_is_kept_with_a_warning(place: Place, lake: Peer) -> None:
    catalog = open_lake(place)
    with pytest.warns(UserWarning, match="per_thread_output has an effect in DuckDB only"):
        catalog.set_option("per_thread_output", "yes")
    catalog.set_option("sort_on_insert", "true")
    assert lake.value("SELECT value FROM ducklake_options('lake') WHERE option_name = 'per_thread_output'") == "true"


def test_bounds_have_the_columns_type(place: Place, lake: Peer) -> None:
    lake.execute("CREATE TABLE t(i int, d decimal(10,2), ts timestamptz, s varchar, f double, b blob)")
    lake.execute(
        "INSERT INTO t VALUES (9, -3.5, '2020-01-01 00:00:00+05:30', 'x', 1.5, 'abc'), (10, 1, NULL, 'y', 'nan', 'x')"
    )
    lake.execute("INSERT INTO t VALUES (NULL, NULL, NULL, NULL, NULL, NULL)")
    snapshot = open_lake(place).latest()
    table = find(snapshot, "t")
    files = snapshot.files(table)
    found = [snapshot.bounds(table, files, field.id) for field in table.schema.fields]
    i, d, ts, s, f, b = (bounds for bounds in found if bounds is not None)
    assert i.lower.to_pylist() == [9, None]
    assert i.upper.to_pylist() == [10, None]
    assert (i.null_count.to_pylist(), i.value_count.to_pylist()) == ([0, 1], [2, 0])
    assert str(d.lower[0]) == "-3.50"
    assert ts.lower[0].as_py() == datetime(2019, 12, 31, 18, 30, tzinfo=timezone.utc)
    assert s.upper.to_pylist() == ["y", None]
    assert f.has_nan[0].as_py() is True
    assert f.upper[0].as_py() == 1.5
    assert b.lower.null_count == 2


def test_bounds_from_before_a_change_of_type_are_unknown(sqlite_place: Place, peer: Peer) -> None:
    peer.attach(sqlite_place.location, sqlite_place.data_path, data_inlining_row_limit=0)
    peer.execute("CREATE TABLE t(f float)")
    peer.execute("INSERT INTO t VALUES (0.1)")
    peer.execute("ALTER TABLE t ALTER f TYPE double")
    peer.execute("INSERT INTO t VALUES (0.1)")
    snapshot = open_lake(sqlite_place).latest()
    table = find(snapshot, "t")
    bounds = snapshot.bounds(table, snapshot.files(table), 1)
    assert bounds is not None
    assert bounds.lower.to_pylist() == [None, 0.1]


def test_partition_values_are_typed_and_know_their_partitioning(place: Place, lake: Peer) -> None:
    for sql in (
        "CREATE TABLE t(k varchar, ts timestamp, x int, z timestamptz)",
        "INSERT INTO t VALUES ('old', '2020-05-05', 0, NULL)",
        "ALTER TABLE t SET PARTITIONED BY (k, month(ts), bucket(4, x), year(z))",
        "INSERT INTO t VALUES (NULL, '2020-01-31', 1, '2020-01-01 00:00:00+00')",
        "INSERT INTO t VALUES ('', '2021-12-01', NULL, NULL)",
        "INSERT INTO t VALUES ('a b/c=%é', '2020-12-31', 3, NULL)",
    ):
        lake.execute(sql)
    snapshot = open_lake(place).latest()
    table = find(snapshot, "t")
    values = snapshot.partition_values(table, snapshot.files(table))
    assert set(values) == {(1, "identity"), (2, "month"), (3, "bucket(4)")}
    assert values[1, "identity"].known.to_pylist() == [False, True, True, True]
    assert values[1, "identity"].values.to_pylist()[1:] == [None, "", "a b/c=%é"]
    assert values[2, "month"].values.to_pylist()[1:] == [1, 12, 12]
