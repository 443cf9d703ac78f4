"""DDL leaves the catalog rows that DuckDB itself would write, and DuckDB goes on with the lake."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compliance.peers.lakes import Place
from compliance.peers.peer import Peer
from lakedbapi.model.catalog import (
    CATALOG_PLACEHOLDER,
    Constraint,
    PartitionField,
    PartitionSpec,
    SchemaInfo,
    SortField,
    ViewInfo,
    provisional_id,
)
from lakedbapi.model.changes import Changes, RowChanges, StagedRows
from lakedbapi.model.types import Decimal, Field, Identity, List, Scalar, Schema, Struct
from tests.formats.ducklake.writing import Lake, arrow, column, tables

INT = Scalar("int32")


def with_fields(schema: Schema, *fields: Field) -> Schema:
    return Schema((*schema.fields, *fields))


def test_nested_columns_are_numbered_depth_first(lake: Lake, duckdb: Peer) -> None:
    struct = Struct((Field("a", INT), Field("b", Decimal(10, 2))))
    lake.create("t", column("i", "int32"), column("st", struct), column("l", List(Field("element", struct))))
    assert [(row[0], row[5], row[6], row[10], row[11]) for row in lake.rows_of("column")] == [
        (1, "i", "int32", None, "literal"),
        (2, "st", "struct", None, ""),
        (3, "a", "int32", 2, "literal"),
        (4, "b", "decimal(10,2)", 2, "literal"),
        (5, "l", "list", None, ""),
        (6, "element", "struct", 5, ""),
        (7, "a", "int32", 6, "literal"),
        (8, "b", "decimal(10,2)", 6, "literal"),
    ]
    assert duckdb.rows("SELECT column_type FROM (DESCRIBE t)")[2] == ("STRUCT(a INTEGER, b DECIMAL(10,2))[]",)


@pytest.mark.parametrize(
    ("default", "stored"),
    [
        (None, ("NULL", "literal")),
        ("NULL", ("NULL", "literal")),
        ("'it''s'", ("it's", "literal")),
        ("-1.5", ("-1.5", "literal")),
        ("true", ("true", "literal")),
        ("'NULL'", ("'NULL'", "expression")),
        ("now()", ("now()", "expression")),
        ("1 + 1", ("1 + 1", "expression")),
    ],
)
def test_defaults(lake: Lake, default: str | None, stored: tuple[str, str]) -> None:
    table = lake.create("t", column("c", "varchar", default=default))
    assert (lake.rows_of("column")[0][8], lake.rows_of("column")[0][11]) == stored
    wanted = None if default == "NULL" else default
    assert table.schema.fields[0].default == (wanted if wanted not in ("-1.5", "true") else f"'{wanted}'")


def test_add_rename_widen_and_drop_columns(lake: Lake, duckdb: Peer) -> None:
    table = lake.create("t", column("i", "int32"), column("x", "varchar"))
    lake.insert("t", (1, "a"))
    i, x = table.schema.fields
    lake.alter("t", schema=Schema((i, replace(x, name="y"), column("n", "int32", default="7", initial_default="7"))))
    assert lake.last_changes() == "altered_table:1"
    assert [row[:3] for row in lake.rows_of("column")] == [(1, 1, None), (2, 1, 3), (2, 3, None), (3, 3, None)]
    assert lake.rows_of("schema_versions") == [(1, 1, 1), (3, 2, 1)]
    assert duckdb.rows("SELECT * FROM t") == [(1, "a", 7)]
    fields = lake.table("t").schema.fields
    lake.alter("t", schema=Schema((replace(fields[0], type=Scalar("int64")), fields[2])))
    lake.alter("t", schema=with_fields(lake.table("t").schema, column("y", "varchar")))
    assert lake.table("t").schema.fields[-1].id == 4
    assert duckdb.rows("SELECT i, n, y FROM t") == [(1, 7, None)]
    duckdb.execute("INSERT INTO t VALUES (5000000000, 1, 'z')")
    lake.pin()
    lake.insert("t", (6_000_000_000, 2, "zz"))
    assert duckdb.rows("SELECT max(i), count(*) FROM t WHERE i > 4000000000") == [(6_000_000_000, 2)]
    assert duckdb.rows("SELECT x FROM t AT (VERSION => 2)") == [("a",)]


def test_nested_fields_change_by_their_own_rows(lake: Lake, duckdb: Peer) -> None:
    table = lake.create("t", column("st", Struct((Field("a", INT), Field("b", INT)))))
    lake.insert("t", ({"a": 1, "b": 2},))
    st = table.schema.fields[0]
    assert isinstance(st.type, Struct)
    changed = Struct((replace(st.type.fields[1], name="c"), Field("a", Scalar("varchar"))))
    lake.alter("t", schema=Schema((replace(st, type=changed),)))
    assert [(row[0], row[2], row[5]) for row in lake.rows_of("column")] == [
        (1, None, "st"),
        (2, 3, "a"),
        (3, 3, "b"),
        (3, None, "c"),
        (4, None, "a"),
    ]
    assert duckdb.rows("SELECT st FROM t") == [({"c": 2, "a": None},)]


def test_rename_table(lake: Lake, duckdb: Peer) -> None:
    lake.create("t", column("i", "int32"))
    lake.insert("t", (1,))
    lake.alter("t", name='new "name"')
    assert lake.last_changes() == 'created_table:"main"."new ""name"""'
    old, new = lake.rows_of("table")
    assert (old[0], old[1], old[3], new[0], new[1], new[5:]) == (1, new[1], 3, 1, old[1], ('new "name"', "t/", True))
    lake.insert('new "name"', (2,))
    assert duckdb.rows('SELECT i FROM "new ""name""" ORDER BY i') == [(1,), (2,)]
    assert duckdb.rows("SELECT i FROM t AT (VERSION => 2)") == [(1,)]


def test_comments(lake: Lake, duckdb: Peer) -> None:
    table = lake.create("t", column("i", "int32", comment="the i"), comment="first")
    assert lake.rows_of("tag") == [(1, 1, None, "comment", "first")]
    assert lake.rows_of("column_tag") == [(1, 1, 1, None, "comment", "the i")]
    lake.alter("t", comment="second")
    assert lake.last_changes() == "altered_table:1"
    assert len(lake.rows_of("schema_versions")) == 1
    assert lake.rows_of("snapshot")[-1][2] == 2
    lake.alter("t", comment=None, schema=Schema((replace(table.schema.fields[0], comment="i"),)))
    assert lake.rows_of("tag")[1:] == [(1, 2, 3, "comment", "second"), (1, 3, None, "comment", None)]
    assert lake.table("t").comment is None
    assert duckdb.rows("SELECT comment FROM duckdb_columns() WHERE table_name = 't'") == [("i",)]


def test_constraints_and_identity_columns_are_kept(lake: Lake, duckdb: Peer) -> None:
    key = Constraint("primary key", "pk", ("i",))
    table = lake.create("t", column("i", "int32", nullable=False, identity=Identity()), constraints=(key,))
    assert table.constraints == (key,)
    assert table.schema.fields[0].identity
    assert not table.schema.fields[0].nullable
    lake.alter("t", constraints=())
    assert lake.table("t").constraints == ()
    duckdb.execute("INSERT INTO t VALUES (1)")
    lake.commit(Changes(identities={(1, "i"): 12}, rows={}))
    lake.pin()
    assert lake.catalog.next_identity(lake.base, lake.table("t"), "i") == 13


def test_properties_are_options_of_the_table(lake: Lake) -> None:
    before = lake.base.id
    lake.create("t", column("i", "int32"), properties={"parquet_compression": "zstd"})
    assert lake.catalog.option("parquet_compression", lake.table("t")) == "zstd"
    lake.alter("t", properties={})
    assert lake.catalog.option("parquet_compression", lake.table("t")) == "snappy"
    assert lake.base.id == before + 1


def test_partitioning(lake: Lake, duckdb: Peer) -> None:
    table = lake.create("t", column("i", "int32"), column("k", "varchar"))
    spec = PartitionSpec(provisional_id(), (PartitionField(2, "identity"), PartitionField(1, "bucket(4)")))
    lake.alter("t", partitioning=spec)
    assert lake.rows_of("partition_info") == [(2, 1, 2, None)]
    assert lake.rows_of("partition_column") == [(2, 1, 0, 2, "identity"), (2, 1, 1, 1, "bucket(4)")]
    assert lake.last_changes() == "altered_table:1"
    assert lake.rows_of("schema_versions")[-1] == (2, 2, 1)
    (file,) = lake.written(table, arrow(table, [(34, None), (34, None)]))
    partitioned = replace(file.file, partition_id=2, partition_values=(None, "3"))
    lake.commit(Changes(rows={1: RowChanges(files=(replace(file, file=partitioned),))}))
    assert lake.rows_of("file_partition_value") == [(0, 1, 0, None), (0, 1, 1, "3")]
    assert duckdb.value("SELECT count(*) FROM t WHERE k IS NULL AND i = 34") == 2
    duckdb.execute("INSERT INTO t VALUES (34, 'x')")
    lake.pin()
    lake.alter("t", partitioning=None)
    assert lake.rows_of("partition_info") == [(2, 1, 2, 5), (3, 1, 5, None)]
    duckdb.execute("INSERT INTO t VALUES (35, 'y')")
    assert duckdb.value("SELECT count(*) FROM t") == 4


def test_a_table_is_created_partitioned_and_filled_at_once(lake: Lake, duckdb: Peer) -> None:
    spec = PartitionSpec(provisional_id(), (PartitionField(1, "identity"),))
    table = lake.new_table("t", column("i", "int32"), partitioning=spec)
    (file,) = lake.written(table, arrow(table, [(1,)]))
    file = replace(file, file=replace(file.file, partition_id=spec.id, partition_values=("1",)))
    result = lake.commit(Changes(tables=tables(table), rows={table.id: RowChanges(files=(file,))}))
    assert result.tables == {table.id: 1}
    assert lake.last_changes() == 'created_table:"main"."t",inserted_into_table:1'
    assert lake.rows_of("data_file")[0][12] == lake.rows_of("partition_info")[0][0] == 2
    assert duckdb.rows("SELECT i FROM t WHERE i = 1") == [(1,)]


def test_sorting(lake: Lake, duckdb: Peer) -> None:
    lake.create("t", column("i", "int32"))
    lake.alter("t", sorting=(SortField("i", descending=True, nulls_first=True),))
    assert lake.rows_of("sort_info") == [(2, 1, 2, None)]
    assert lake.rows_of("sort_expression") == [(2, 1, 0, "i", "duckdb", "DESC", "NULLS_FIRST")]
    assert len(lake.rows_of("schema_versions")) == 1
    duckdb.execute("INSERT INTO t SELECT * FROM range(20)")
    assert duckdb.rows("SELECT i FROM t LIMIT 1") == [(19,)]
    lake.pin()
    lake.alter("t", sorting=())
    assert lake.rows_of("sort_info") == [(2, 1, 2, 4)]


def test_drop_ends_everything_and_replace_takes_the_same_folder(lake: Lake, duckdb: Peer) -> None:
    lake.create("t", column("i", "int32", comment="c"), comment="c")
    lake.insert("t", (1,), (2,))
    lake.delete("t", {0: [0]})
    new = lake.new_table("t", column("a", "int32"))
    lake.commit(
        Changes(
            tables={lake.table("t").id: None, new.id: new},
            rows={new.id: RowChanges(files=lake.written(new, arrow(new, [(5,)])))},
        )
    )
    assert lake.last_changes() == 'dropped_table:1,created_table:"main"."t",inserted_into_table:2'
    for kind in ("table", "column", "data_file", "delete_file", "tag", "column_tag"):
        rows = lake.rows_of(kind)
        ended = lake.catalog.backend.tables.__dict__[kind].c.keys().index("end_snapshot")
        assert rows[0][ended] == 4, kind
    assert [row[6] for row in lake.rows_of("table")] == ["t/", "t/"]
    assert duckdb.rows("SELECT a FROM t") == [(5,)]
    assert duckdb.rows("SELECT i FROM t AT (VERSION => 3)") == [(2,)]
    lake.commit(Changes(tables={2: None}))
    assert lake.last_changes() == "dropped_table:2"
    assert duckdb.rows("SHOW TABLES") == []


def test_schemas(lake: Lake, duckdb: Peer) -> None:
    schema = SchemaInfo(provisional_id(), "we ird")
    table = replace(lake.new_table('T"x', column("Sel,ect", "int32")), schema_id=schema.id)
    files = lake.engine_files(table, schema, [(1,)])
    lake.commit(Changes(schemas={schema.id: schema}, tables=tables(table), rows={table.id: RowChanges(files=files)}))
    assert lake.last_changes() == 'created_schema:"we ird",created_table:"we ird"."T""x",inserted_into_table:2'
    assert all(row[6] for row in lake.rows_of("data_file"))
    assert duckdb.rows('SELECT "Sel,ect" FROM "we ird"."T""x"') == [(1,)]
    duckdb.execute('INSERT INTO "we ird"."T""x" SELECT * FROM range(30)')
    lake.pin()
    lake.commit(Changes(schemas={1: None}, tables={2: None}))
    assert lake.last_changes() == "dropped_schema:1,dropped_table:2"
    assert [row[3] for row in lake.rows_of("schema")] == [None, 3]
    assert duckdb.rows("SELECT DISTINCT table_schema FROM information_schema.tables WHERE table_catalog = 'lake'") == []


def test_views(lake: Lake, duckdb: Peer) -> None:
    lake.create("t", column("i", "int32"))
    lake.insert("t", (1,))
    view = ViewInfo(provisional_id(), 0, "v", f"SELECT i FROM {CATALOG_PLACEHOLDER}.main.t", column_aliases=('a"b',))
    lake.commit(Changes(views={view.id: view}))
    assert lake.last_changes() == 'created_view:"main"."v"'
    assert lake.rows_of("view")[0][8] == '"a""b"'
    assert duckdb.rows('SELECT "a""b" FROM v') == [(1,)]
    (view,) = lake.base.views().values()
    lake.commit(Changes(views={view.id: replace(view, comment="c")}))
    assert lake.last_changes() == "altered_view:2"
    lake.commit(Changes(views={view.id: replace(view, comment="c", name="w")}))
    assert lake.last_changes() == 'created_view:"main"."w"'
    assert [row[1] for row in lake.rows_of("view")] == [lake.rows_of("view")[0][1]] * 2
    assert duckdb.rows("FROM w") == [(1,)]
    lake.commit(Changes(views={view.id: None}))
    assert lake.last_changes() == "dropped_view:2"
    assert lake.base.views() == {}


def test_inlined_tables_follow_the_columns(inlining: Lake, place: Place, peer: Peer) -> None:
    lake = inlining
    lake.create("t", column("i", "int32"))
    lake.insert_inlined("t", (1,))
    lake.alter("t", schema=with_fields(lake.table("t").schema, column("n", "int32", initial_default="7")))
    lake.insert_inlined("t", (2, 3))
    lake.alter("t", name="u")
    lake.insert_inlined("u", (4, 5))
    assert [row[1] for row in lake.rows_of("inlined_data_tables")] == [
        f"ducklake_inlined_data_1_{version}" for version in (1, 2, 3)
    ]
    peer.attach(place.location)
    assert peer.rows("SELECT i, n FROM u ORDER BY i") == [(1, 7), (2, 3), (4, 5)]
    peer.execute("INSERT INTO u VALUES (6, 7)")
    lake.pin()
    groups = lake.base.row_groups(lake.table("u"))
    assert sorted(i for group in groups for i in group.rows.column("i").to_pylist()) == [1, 2, 4, 6]


def test_every_type_survives_in_the_catalog(inlining: Lake, place: Place, peer: Peer) -> None:
    lake = inlining
    peer.attach(place.location)
    peer.execute(
        """CREATE TABLE v(b boolean, i8 tinyint, u32 uinteger, u64 ubigint, h hugeint, f float, d double,
        n decimal(10,2), dt date, t time, ts timestamp, ns timestamp_ns, tz timestamptz, iv interval, s varchar,
        bl blob, u uuid, l varchar[], m map(varchar, integer))"""
    )
    values = """(true, -1, 4000000000, 18446744073709551615, -17014118346046923173168730371588410572, 0.1, 'nan', -3.5,
        '0044-03-15 (BC)', '12:34:56.5', '294000-01-01 00:00:00', '2020-01-01 00:00:00.123456789',
        '2020-01-01 00:00:00+05:30', '14 months 3 days 01:02:03.5', E'it''s \\\\ é', '\\xAA\\x00b'::blob,
        '75a50b21-1eca-46a4-b2cd-cbe0707125cb', ['a,b', 'NULL', NULL, '', E'q''\\\\'], map {'k=,': 1, '': NULL}),
        (NULL, NULL, NULL, NULL, NULL, 'inf', '-inf', NULL, 'infinity', '00:00:00', '-infinity', NULL, 'infinity',
        '-5 microseconds', '', ''::blob, NULL, [], map {})"""
    peer.execute(f"INSERT INTO v VALUES {values}")
    lake.pin()
    table = lake.table("v")
    (group,) = lake.base.row_groups(table)
    lake.commit(Changes(rows={table.id: RowChanges(rows=(StagedRows(group.rows),))}))
    everything = peer.rows("SELECT * EXCLUDE (d), d::varchar FROM (SELECT columns(*)::varchar FROM v)")
    assert len(everything) == 4
    assert sorted(everything[:2], key=str) == sorted(everything[2:], key=str)
    lake.pin()
    assert peer.value("SELECT count(*) FROM v WHERE d > 1e308") == 2
    assert peer.value("SELECT count(*) FROM v WHERE ts < '2000-01-01'") == 2
