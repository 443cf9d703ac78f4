"""Queries run over exactly the relations they are given, stream, and can be stopped."""

from __future__ import annotations

import gc
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakedbapi import errors
from lakedbapi.engine.base import Query, RelationName, ScanRelation, View, WriteOptions
from lakedbapi.engine.duckdb import DuckDBEngine, pool
from lakedbapi.model.arrow import arrow_schema
from lakedbapi.model.scan import RowGroup, Scan
from lakedbapi.model.sql_types import sql_type
from lakedbapi.model.types import Field, Scalar, Schema
from tests.effort import interrupted

from .conftest import SCHEMA, Ask, T, group, rows, write

LAKE = ("lake", "main")
ENDLESS = "select count(*) from range(1000000000) a, range(1000000) b where a.range % 7 = b.range % 11"


def table(**columns: list[object]) -> pa.Table:
    return pa.table(columns)


def test_columns_and_types_are_known_before_reading(engine: DuckDBEngine) -> None:
    result = engine.query(Query("select 1::decimal(9,2) as d, {'a': [1]} as s, 'x' as d"))
    assert [(c.name, c.type) for c in result.columns] == [
        ("d", "DECIMAL(9,2)"),
        ("s", "STRUCT(a INTEGER[])"),
        ("d", "VARCHAR"),
    ]
    result.close()


def test_a_null_is_an_integer(engine: DuckDBEngine) -> None:
    assert engine.query(Query("select null as n")).columns[0].type == "INTEGER"


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("170141183460469231731687303715884105727::hugeint", "170141183460469231731687303715884105727"),
        ("340282366920938463463374607431768211455::uhugeint", "340282366920938463463374607431768211455"),
        ("'10:00:00+02'::timetz", "10:00:00+02"),
        ("'0101'::bit", "0101"),
        ("['10:00:00+02'::timetz]", "['10:00:00+02']"),
        ("'f79c3e09-677c-4bbd-a479-3f349cb785e7'::uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("'a'::enum('a', 'b')", "a"),
        ("""'{"a": 1}'::json""", '{"a": 1}'),
    ],
)
def test_values_survive_arrow(engine: DuckDBEngine, sql: str, value: str) -> None:
    assert str(engine.fetch(Query(f"select {sql} as v")).column("v")[0].as_py()) == value


def test_types_stay_those_of_the_query_where_arrow_holds_text(engine: DuckDBEngine) -> None:
    result = engine.query(Query("select 1::uhugeint as a, '10:00:00+02'::timetz as b"))
    assert [c.type for c in result.columns] == ["UHUGEINT", "TIME WITH TIME ZONE"]
    result.close()


def test_the_session_runs_in_utc(engine: DuckDBEngine) -> None:
    assert engine.fetch(Query("select current_setting('TimeZone') as z, now() as n")).schema.field("n").type.tz == "UTC"


def test_names_resolve_along_the_search_path(engine: DuckDBEngine) -> None:
    relations = {RelationName("lake", "s 1", "T"): table(a=[1]), RelationName("lake", "main", "u"): table(a=[2])}
    assert rows(engine.fetch(Query("select * from t", relations, {}, ("lake", "s 1")))) == [(1,)]
    assert rows(engine.fetch(Query('select * from u, lake."s 1".t', relations, {}, LAKE))) == [(2, 1)]


def test_a_relation_that_is_not_given_does_not_exist(engine: DuckDBEngine) -> None:
    engine.fetch(Query("select * from t", {T: table(a=[1])}, {}, LAKE))
    with pytest.raises(errors.ProgrammingError, match="does not exist"):
        engine.fetch(Query("select * from t", {}, {}, LAKE))


def test_a_relation_that_changed_is_read_anew(engine: DuckDBEngine) -> None:
    for value in (1, 2):
        assert rows(engine.fetch(Query("select * from t", {T: table(a=[value])}, {}, LAKE))) == [(value,)]


def test_common_table_expressions_shadow_relations(engine: DuckDBEngine) -> None:
    query = Query("with t as (select 5 as a) select * from t, lake.main.t u", {T: table(a=[1])}, {}, LAKE)
    assert rows(engine.fetch(query)) == [(5, 1)]


def test_views_may_refer_to_each_other_in_any_order(engine: DuckDBEngine) -> None:
    relations = {
        RelationName("lake", "main", "top"): View("select x + 1 from middle", ("y",)),
        RelationName("lake", "main", "middle"): View("select a * 10 from t", ("x",)),
        T: table(a=[4]),
    }
    assert rows(engine.fetch(Query("select y from top", relations, {}, LAKE))) == [(41,)]


def test_views_follow_tables_that_changed(engine: DuckDBEngine) -> None:
    views = {
        RelationName("lake", "main", "top"): View("select * from middle"),
        RelationName("lake", "main", "middle"): View("select * from t"),
    }
    for held in (table(a=[1]), table(a=["x"], b=[2])):
        found = engine.fetch(Query("select * from top", {**views, T: held}, {}, LAKE))
        assert found.to_pydict() == held.to_pydict()


def test_names_in_a_view_belong_to_its_own_schema(engine: DuckDBEngine) -> None:
    relations = {
        RelationName("lake", "other", "v"): View("select * from t"),
        RelationName("lake", "other", "t"): table(a=[1]),
        T: table(a=[2]),
    }
    assert rows(engine.fetch(Query("select * from other.v", relations, {}, LAKE))) == [(1,)]


def test_a_broken_view_tells_why(engine: DuckDBEngine) -> None:
    relations = {RelationName("lake", "main", "v"): View("select nope from t"), T: table(a=[2])}
    with pytest.raises(errors.ProgrammingError, match="nope"):
        engine.fetch(Query("select * from v", relations, {}, LAKE))


def test_a_stream_of_batches_is_a_relation(engine: DuckDBEngine) -> None:
    reader = table(a=[1, 2]).to_reader()
    assert rows(engine.fetch(Query("select sum(a)::int from t", {T: reader}, {}, LAKE))) == [(3,)]


@pytest.mark.parametrize("alias", ["memory", "TEMP", "system"])
def test_names_of_the_engine_are_no_aliases(alias: str) -> None:
    with pytest.raises(errors.ProgrammingError, match="alias"):
        DuckDBEngine([], [], [alias])


def test_any_other_alias_will_do() -> None:
    engine = DuckDBEngine([], [], ['ü "x" 🦆'])
    name = RelationName('ü "x" 🦆', "main", "t")
    assert rows(engine.fetch(Query("select * from t", {name: table(a=[1])}, {}, ('ü "x" 🦆', "main")))) == [(1,)]
    engine.close()


def test_results_of_one_engine_stream_side_by_side(engine: DuckDBEngine) -> None:
    first = engine.query(Query("select * from range(1000000)")).reader()
    second = engine.query(Query("select * from range(1000000)")).reader()
    taken = [first.read_next_batch(), second.read_next_batch(), first.read_next_batch()]
    assert all(batch.num_rows for batch in taken)
    assert sum(b.num_rows for b in first) + taken[0].num_rows + taken[2].num_rows == 1_000_000


def test_a_running_stream_survives_new_definitions(engine: DuckDBEngine, directory: str) -> None:
    files = write(engine, directory, "select i, 'old' from range(2000000) r(i)")
    stream = engine.query(
        Query("select * from t", {T: ScanRelation(Scan(SCHEMA, (group(files, {0: [1]}),)))}, {}, LAKE)
    ).reader()
    count = stream.read_next_batch().num_rows
    for relations in ({T: table(a=["new"])}, {}):
        engine.fetch(Query("select 1", relations, {}, LAKE))
    for batch in stream:
        count += batch.num_rows
        assert batch.column("name")[0].as_py() == "old"
    assert count == 1_999_999


def test_a_result_is_not_computed_before_it_is_read(engine: DuckDBEngine) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    reader = engine.query(Query("select i, i * 2 from range(10000000000) r(i)")).reader()
    assert reader.read_next_batch().num_rows > 0
    assert time.process_time() - started < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


def test_an_error_in_a_stream_is_of_the_right_class(engine: DuckDBEngine) -> None:
    result = engine.query(Query("select if(i = 4000000, error('boo'), i) from range(5000000) r(i)"))
    with pytest.raises(errors.DataError, match="boo"):
        result.reader().read_all()


@pytest.mark.parametrize("good", [0, 1, 200])
def test_a_source_that_fails_is_of_one_class_whenever_it_does(engine: DuckDBEngine, good: int) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(good):
            yield pa.record_batch({"a": list(range(5000))})
        raise RuntimeError("the source died")

    source = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    with pytest.raises(errors.DataError, match=r"the source died$"):
        engine.query(Query("select a from t", {T: source}, {}, LAKE)).reader().read_all()


def test_a_closed_result_cannot_be_read(engine: DuckDBEngine) -> None:
    result = engine.query(Query("select 1"))
    result.close()
    with pytest.raises(errors.InterfaceError):
        result.reader()


def test_a_result_that_is_closed_while_it_is_read_fails(engine: DuckDBEngine) -> None:
    result = engine.query(Query("select * from range(10000000)"))
    reader = result.reader()
    reader.read_next_batch()
    result.close()
    with pytest.raises(errors.InterfaceError):
        reader.read_all()


def test_a_forgotten_result_frees_its_cursor(engine: DuckDBEngine) -> None:
    engine.query(Query("select * from range(10000000)"))
    engine.query(Query("select * from range(10000000)")).reader().read_next_batch()
    gc.collect()
    assert len(engine._running) == 0


def test_a_closed_engine_cannot_be_used() -> None:
    engine = DuckDBEngine([], [], [])
    engine.close()
    engine.close()
    with pytest.raises(errors.InterfaceError):
        engine.query(Query("select 1"))


def test_interrupt_ends_a_statement_soon(engine: DuckDBEngine) -> None:
    with pytest.raises(errors.OperationalError, match="cancelled"), interrupted(engine.interrupt):
        engine.fetch(Query(ENDLESS))
    assert rows(engine.fetch(Query("select 1"))) == [(1,)]


def test_interrupt_ends_a_running_write_and_leaves_no_file(engine: DuckDBEngine, directory: str) -> None:
    with pytest.raises(errors.OperationalError, match="cancelled"), interrupted(engine.interrupt):
        write(engine, directory, "select i, repeat('x', 100) from range(10000000000) r(i)")
    assert list(Path(directory).rglob("*.parquet")) == []


def test_interrupt_of_an_idle_engine_does_nothing(engine: DuckDBEngine) -> None:
    engine.interrupt()
    assert rows(engine.fetch(Query("select 1"))) == [(1,)]


def test_threads_with_different_snapshots_do_not_mix(engine: DuckDBEngine) -> None:
    wrong: list[object] = []

    def work(value: int) -> None:
        for _ in range(15):
            found = rows(engine.fetch(Query("select * from t", {T: table(a=[value])}, {}, LAKE)))
            if found != [(value,)]:
                wrong.append((value, found))

    threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_instances_are_reused_without_what_was_in_them(directory: str) -> None:
    first = DuckDBEngine([directory], [], ["lake"])
    first.fetch(Query("select * from t", {T: table(a=[1])}, {}, LAKE))
    instance = first._instance
    first.close()
    second = DuckDBEngine([directory], [], ["other"])
    assert second._instance is instance
    with pytest.raises(errors.ProgrammingError):
        second.fetch(Query("select * from lake.main.t"))
    second.close()


def test_an_instance_is_not_shared_between_different_roots(tmp_path: Path) -> None:
    first = DuckDBEngine([f"{tmp_path}/a/"], [], [])
    instance = first._instance
    first.close()
    second = DuckDBEngine([f"{tmp_path}/b/"], [], [])
    assert second._instance is not instance
    second.close()


def test_idle_instances_are_few() -> None:
    engines = [DuckDBEngine([], [], []) for _ in range(7)]
    for engine in engines:
        engine.close()
    assert len(pool._idle) <= 4


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from read_text('/etc/hostname')",
        "copy (select 1) to '/tmp/out.parquet'",
        "attach '/tmp/x.db' as x",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set allowed_directories = ['/']",
        "create secret (type s3)",
        "select * from sniff_csv('/etc/passwd')",
        "export database '/tmp/x'",
    ],
)
def test_nothing_outside_the_data_paths_is_reachable(engine: DuckDBEngine, sql: str) -> None:
    with pytest.raises(errors.DatabaseError):
        engine.fetch(Query(sql))


def test_python_variables_are_no_tables(engine: DuckDBEngine) -> None:
    secret = table(a=[1])
    with pytest.raises(errors.ProgrammingError):
        engine.fetch(Query("select * from secret"))
    assert secret.num_rows == 1


def test_links_out_of_the_data_path_are_not_followed(
    engine: DuckDBEngine, directory: str, tmp_path: Path, ask: Ask
) -> None:
    (file,) = write(engine, directory, "select 1, 'a'")
    outside = tmp_path / "outside.parquet"
    pq.write_table(pa.table({"id": [42]}), outside)
    link = Path(file.path)
    link.unlink()
    link.symlink_to(outside)
    with pytest.raises(errors.ProgrammingError):
        ask("select * from t", Scan(SCHEMA, (group([file]),)))


def test_a_data_path_that_is_a_link_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    directory = f"{tmp_path}/link/"
    engine = DuckDBEngine([directory], [], ["lake"])
    files = write(engine, f"{directory}t/", "select 1, 'a'")
    assert files[0].path.startswith(directory)
    query = Query("select id from t", {T: ScanRelation(Scan(SCHEMA, (group(files),)))}, {}, LAKE)
    assert rows(engine.fetch(query)) == [(1,)]
    engine.close()


def test_trusted_programs_may_reach_outside(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [5]}), tmp_path / "x.parquet")
    engine = DuckDBEngine([], [], [], allow_external=True)
    assert rows(engine.fetch(Query(f"select * from '{tmp_path}/x.parquet'"))) == [(5,)]
    engine.close()


def test_files_behind_fsspec_are_read_and_written() -> None:
    engine = DuckDBEngine(["memory://lake/data/"], [fsspec.filesystem("memory")], ["lake"])
    files = write(engine, "memory://lake/data/main/t/", "select i, 'a' from range(5) r(i)")
    scan = Scan(SCHEMA, (group(files, {0: [2]}),))
    assert rows(engine.fetch(Query("select sum(id)::int from t", {T: ScanRelation(scan)}, {}, LAKE))) == [(8,)]
    with pytest.raises(errors.DatabaseError):
        engine.fetch(Query("select * from read_parquet('memory://elsewhere/x.parquet')"))
    engine.close()


def test_a_missing_data_file_is_named(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    (file,) = write(engine, directory, "select 1, 'a'")
    Path(file.path).unlink()
    with pytest.raises(errors.OperationalError, match=file.path) as raised:
        ask("select * from t", Scan(SCHEMA, (group([file]),)))
    assert "_lake_" not in str(raised.value)
    assert "read_parquet" not in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"nonsense that is no parquet file", b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_a_corrupt_data_file_is_named(engine: DuckDBEngine, directory: str, ask: Ask, content: bytes) -> None:
    (file,) = write(engine, directory, "select 1, 'a'")
    Path(file.path).write_bytes(content)
    with pytest.raises(errors.DataError, match=file.path) as raised:
        ask("select * from t", Scan(SCHEMA, (group([file]),)))
    assert "read_parquet" not in str(raised.value)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("select * from nope", errors.ProgrammingError),
        ("select nope", errors.ProgrammingError),
        ("selec 1", errors.ProgrammingError),
        ("select nofunction(1)", errors.ProgrammingError),
        ("select 'x'::int", errors.DataError),
        ("select 300::tinyint", errors.DataError),
        ("select 9223372036854775807 + i from range(1, 3) r(i)", errors.DataError),
        ("select error('x')", errors.DataError),
        ("select '2020-13-01'::date", errors.DataError),
    ],
)
def test_errors_have_the_classes_of_pep_249(engine: DuckDBEngine, sql: str, kind: type[errors.Error]) -> None:
    with pytest.raises(kind):
        engine.fetch(Query(sql))


ALL: list[tuple[str, object]] = [
    ("boolean", True),
    ("int8", 1),
    ("int128", 2**126),
    ("uint64", 2**64 - 1),
    ("uint128", 2**128 - 1),
    ("float32", 1.5),
    ("date", "2020-01-02"),
    ("time", "10:00:00.5"),
    ("timetz", "10:00:00+02"),
    ("timestamp", "2020-01-02 03:04:05.5"),
    ("timestamp_s", "2020-01-02 03:04:05"),
    ("timestamp_ms", "2020-01-02 03:04:05.5"),
    ("timestamp_ns", "2020-01-02 03:04:05.123456"),
    ("timestamptz", "2020-01-02 03:04:05+00"),
    ("interval", "1 year 2 days"),
    ("varchar", "a\0b 🦆"),
    ("json", '{"a":[1]}'),
    ("blob", b"\0\xff"),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
]


@pytest.mark.parametrize(("name", "value"), ALL, ids=[name for name, _ in ALL])
def test_every_type_survives_memory_and_files(
    engine: DuckDBEngine, directory: str, ask: Ask, name: str, value: object
) -> None:
    """But that Parquet keeps times in UTC, and 128-bit integers as doubles."""
    schema = Schema((Field("v", Scalar(name), 1),))
    raw = pa.table({"v": [str(value) if isinstance(value, int) else value, None]})
    cast = f"select cast(v as {sql_type(Scalar(name))}) as v from t"
    held = engine.fetch(Query(cast, {T: raw}, {}, LAKE)).cast(arrow_schema(schema))
    in_memory = ask("select v, typeof(v) from t", Scan(schema, (), (RowGroup("staged:0", held),)))
    assert [row[0] for row in in_memory] == held.column("v").to_pylist()
    files = engine.write(held, schema, WriteOptions(directory))
    if name not in ("uint128", "timetz"):
        assert ask("select v, typeof(v) from t", Scan(schema, (group(files),))) == in_memory


MINE = RelationName.local("mine")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM {mine} ORDER BY id",
        "WITH q AS (SELECT id FROM {mine}) SELECT id FROM q ORDER BY id",
        "with /* two */ q as (select id from {mine}) select id from q order by id",
        "WITH -- words\nRECURSIVE q(id) AS (SELECT min(id) FROM {mine} UNION ALL SELECT 2 FROM q WHERE id = 1) FROM q",
    ],
)
def test_local_relations_are_there_beside_common_tables_of_the_text(engine: DuckDBEngine, sql: str) -> None:
    query = Query(sql.format(mine=MINE.sql), {MINE: table(id=[2, 1])}, {}, LAKE)
    assert rows(engine.fetch(query)) == [(1,), (2,)]


def test_views_do_not_see_local_relations(engine: DuckDBEngine) -> None:
    view = RelationName("lake", "main", "v")
    relations = {MINE: table(id=[1]), view: View(f"SELECT id FROM {MINE.sql}")}
    with pytest.raises(errors.ProgrammingError, match="mine"):
        engine.fetch(Query(f"SELECT v.id FROM v, {MINE.sql}", relations, {}, LAKE))


def test_local_relations_are_gone_in_the_next_query(engine: DuckDBEngine) -> None:
    sql = f"SELECT id FROM {MINE.sql}"
    engine.fetch(Query(sql, {MINE: table(id=[1])}, {}, LAKE))
    with pytest.raises(errors.ProgrammingError, match="mine"):
        engine.fetch(Query(sql, {}, {}, LAKE))
