"""Columns are found in files that were written under other names, types and shapes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakedbapi.engine.base import FILENAME, PART, ROW_ID, ROW_SNAPSHOT, Query, WriteOptions
from lakedbapi.engine.duckdb import DuckDBEngine, footers
from lakedbapi.model.scan import NAME, POSITION, FileGroup, Scan
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Schema, Struct, Type

from .conftest import SCHEMA, Ask, group, write

INT, BIG, TEXT = Scalar("int32"), Scalar("int64"), Scalar("varchar")


def test_a_renamed_column_is_found_by_its_field_id(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "select 1, 'a'")
    renamed = Schema((Field("label", TEXT, 2), Field("key", BIG, 1)))
    assert ask("select label, key from t", Scan(renamed, (group(files),))) == [("a", 1)]


def test_swapped_names_do_not_confuse(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "select 1, 'a'")
    swapped = Schema((Field("name", BIG, 1), Field("id", TEXT, 2)))
    assert ask("select name, id from t", Scan(swapped, (group(files),))) == [(1, "a")]


def test_an_absent_column_has_its_initial_default(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "select 1, 'a'")
    fields = (*SCHEMA.fields, Field("n", INT, 3, initial_default="42"), Field("x", TEXT, 4))
    assert ask("select n, x from t", Scan(Schema(fields), (group(files),))) == [(42, None)]


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        (Scalar("json"), '{"a":1}', '{"a":1}'),
        (Scalar("blob"), r"\xAA", b"\xaa"),
        (Scalar("date"), "2020-01-02", "2020-01-02"),
        (List(Field("element", INT, 9)), "[1, 2]", [1, 2]),
        (Decimal(9, 2), "1.50", "1.50"),
        (TEXT, "it's", "it's"),
    ],
)
def test_initial_defaults_of_all_kinds(
    engine: DuckDBEngine, directory: str, ask: Ask, type: Type, text: str, value: object
) -> None:
    files = write(engine, directory, "select 1, 'a'")
    fields = (*SCHEMA.fields, Field("n", type, 3, initial_default=text))
    (row,) = ask("select n from t", Scan(Schema(fields), (group(files),)))
    assert row == (value,) or str(row[0]) == value


def test_types_are_widened(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    narrow = Schema((Field("i", Scalar("int8"), 1), Field("f", Scalar("float32"), 2), Field("d", Decimal(4, 1), 3)))
    wide = Schema((Field("i", BIG, 1), Field("f", Scalar("float64"), 2), Field("d", Decimal(12, 3), 3)))
    files = write(engine, directory, "select 100, 1.5, 2.5", narrow)
    found = ask(
        "select typeof(i), typeof(f), typeof(d), i, f, d::varchar from t where i > 99", Scan(wide, (group(files),))
    )
    assert found == [("BIGINT", "DOUBLE", "DECIMAL(12,3)", 100, 1.5, "2.500")]


def test_columns_may_have_the_names_of_virtual_ones(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    odd = Schema((Field("file_row_number", BIG, 1), Field("FILENAME", TEXT, 2), Field("file_index", BIG, 3)))
    files = write(engine, directory, "select 7, 'x', 9", odd)
    assert ask("select * from t", Scan(odd, (group(files),)), {ROW_ID: "row id"}) == [(7, "x", 9, 0)]


def test_names_with_quotes_and_emoji(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    odd = Schema((Field('a"b', BIG, 1), Field("it's 🦆", TEXT, 2)))
    files = write(engine, directory, "select 7, 'x'", odd)
    assert ask("""select "a""b", "it's 🦆" from t""", Scan(odd, (group(files),))) == [(7, "x")]


def test_paths_are_taken_literally(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, f"{directory}k=[a]*?'/", "select 1, 'a'")
    assert ask("select id from t", Scan(SCHEMA, (group(files),))) == [(1,)]


def test_row_ids_and_snapshots(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "select i, 'a' from range(3) r(i)") + write(engine, directory, "select 9, 'b'")
    extra = {ROW_ID: "r", ROW_SNAPSHOT: "s", PART: "p", FILENAME: "f"}
    found = ask("select id, r, s, p, f from t order by r", Scan(SCHEMA, (group(files),)), extra)
    a, b = files[0].path, files[1].path
    assert found == [(0, 0, 1, 0, a), (1, 1, 1, 0, a), (2, 2, 1, 0, a), (9, 3, 2, 1, b)]


def test_embedded_row_ids_win(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    rows = Query("select 1, 'a', 100 union all select 2, 'b', NULL")
    files = engine.write(rows, SCHEMA, WriteOptions(directory), row_ids=True)
    assert files[0].has_row_ids
    assert ask("select id, r from t order by id", Scan(SCHEMA, (group(files),)), {ROW_ID: "r"}) == [(1, 100), (2, 1)]


def test_embedded_snapshots_filter_rows(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    embedded = Schema((*SCHEMA.fields, Field("_ducklake_internal_snapshot_id", BIG, 2147483539)))
    files = write(engine, directory, "select i, 'a', if(i < 3, 10 + i, null) from range(4) r(i)", embedded)
    scan = Scan(SCHEMA, (group(files, max_row_snapshot=11),))
    assert ask("select id, s from t order by id", scan, {ROW_SNAPSHOT: "s"}) == [(0, 10), (1, 11), (3, 1)]


def test_constants_stand_in_for_partition_columns(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = [
        *write(engine, directory, "select 1, 'x'"),
        *write(engine, directory, "select 2, 'x'"),
        *write(engine, directory, "select 3, 'x'"),
    ]
    constants = pa.table({"2": pa.array(["a", None, "it's"])})
    scan = Scan(SCHEMA, (group(files, constants=constants),))
    assert ask("select id, name from t order by id", scan) == [(1, "a"), (2, None), (3, "it's")]
    assert ask("select id from t where name = 'a'", scan) == [(1,)]


def test_many_files_with_different_constants(
    engine: DuckDBEngine, directory: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakedbapi.engine.duckdb.perfile.MAX_LEAVES", 2)
    files = [file for n in range(4) for file in write(engine, directory, f"select {n}, 'x'")]
    constants = pa.table({"2": pa.array(["a", None, "c", "d"])})
    scan = Scan(SCHEMA, (group(files, {1: [0]}, constants=constants),))
    extra = {PART: "p", ROW_ID: "r"}
    assert ask("select * from t order by id", scan, extra) == [(0, "a", 0, 0), (2, "c", 2, 2), (3, "d", 3, 3)]


def test_files_matched_by_name(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "select 1, 'a'")
    renamed = Schema((Field("key", BIG, 11), Field("label", TEXT, 12)))
    scan = Scan(renamed, (group(files, match=NAME, names={11: "id", 12: "name"}),))
    assert ask("select key, label from t", scan) == [(1, "a")]


def test_files_matched_by_position(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "select 1, 'a'")
    other = Schema((Field("key", BIG, 1), Field("label", TEXT, 2), Field("more", TEXT, 3)))
    assert ask("select key, label, more from t", Scan(other, (group(files, match=POSITION),))) == [(1, "a", None)]


def test_more_paths_than_fit_into_the_text(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "select 1, 'a'") * 300
    scan = Scan(SCHEMA, (group(files, {250: [0]}),))
    assert ask("select count(*), max(p) from t", scan, {PART: "p"}) == [(299, 299)]


def test_an_empty_scan_has_the_right_types(ask: Ask) -> None:
    empty = Schema((Field("d", Decimal(9, 2), 1), Field("l", List(Field("element", INT, 3)), 2)))
    assert ask("select count(*), any_value(typeof(d)) from t", Scan(empty)) == [(0, None)]
    assert ask("select typeof(d), typeof(l) from (select 1) left join t on true", Scan(empty)) == [
        ("DECIMAL(9,2)", "INTEGER[]")
    ]


def struct(*fields: Field) -> Struct:
    return Struct(fields)


OLD = Schema(
    (
        Field("s", struct(Field("a", INT, 2), Field("b", struct(Field("x", INT, 4), Field("y", TEXT, 5)), 3)), 1),
        Field("l", List(Field("element", struct(Field("p", INT, 8)), 7)), 6),
        Field("m", Map(Field("key", TEXT, 10), Field("value", struct(Field("q", INT, 12)), 11)), 9),
    )
)
OLD_ROWS = """
    select {'a': 1, 'b': {'x': 2, 'y': 'z'}}, [{'p': 3}, NULL], map {'k': {'q': 4}}
    union all select {'a': 1, 'b': NULL}, [], map {}
    union all select NULL, NULL, NULL
"""


def test_fields_of_structs_are_renamed_added_dropped_and_widened(
    engine: DuckDBEngine, directory: str, ask: Ask
) -> None:
    new = Schema(
        (
            Field(
                "s",
                struct(
                    Field(
                        "b",
                        struct(Field("x", TEXT, 5), Field("n", INT, 20, initial_default="9"), Field("w", BIG, 4)),
                        3,
                    ),
                    Field("c", TEXT, 21),
                ),
                1,
            ),
            Field("l", List(Field("element", struct(Field("r", BIG, 8), Field("p", TEXT, 22)), 7)), 6),
            Field("m", Map(Field("key", TEXT, 10), Field("value", struct(Field("r", BIG, 12)), 11)), 9),
        )
    )
    files = write(engine, directory, OLD_ROWS, OLD)
    assert ask("select s, l, m from t", Scan(new, (group(files),))) == [
        ({"b": {"x": "z", "n": 9, "w": 2}, "c": None}, [{"r": 3, "p": None}, None], [("k", {"r": 4})]),
        ({"b": None, "c": None}, [], []),
        (None, None, None),
    ]


def test_files_of_different_nested_shapes_in_one_group(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    old = Schema((Field("s", struct(Field("a", INT, 2)), 1),))
    new = Schema((Field("s", struct(Field("b", BIG, 2), Field("a", TEXT, 3)), 1),))
    files = [
        *write(engine, directory, "select {'a': 1}", old),
        *write(engine, directory, "select {'b': 2, 'a': 'x'}", new),
    ]
    found = ask("select s, p from t order by s.b", Scan(new, (group(files),)), {PART: "p"})
    assert found == [({"b": 1, "a": None}, 0), ({"b": 2, "a": "x"}, 1)]


def test_more_files_than_the_cache_of_their_schemas_keeps(
    engine: DuckDBEngine, directory: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footers, "_CACHED_FILES", 1)
    schema = Schema((Field("s", struct(Field("a", INT, 2)), 1),))
    files = [file for number in range(3) for file in write(engine, directory, f"select {{'a': {number}}}", schema)]
    for _ in range(2):
        assert ask("select s from t order by s.a", Scan(schema, (group(files),))) == [({"a": i},) for i in range(3)]


def test_a_struct_that_only_grew(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    old = Schema((Field("s", struct(Field("a", INT, 2)), 1),))
    new = Schema((Field("s", struct(Field("b", TEXT, 3), Field("a", BIG, 2)), 1),))
    files = write(engine, directory, "select {'a': 1} union all select NULL", old)
    assert ask("select s from t", Scan(new, (group(files),))) == [({"b": None, "a": 1},), (None,)]


def test_a_nested_column_that_a_file_lacks(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "select 1, 'a'")
    fields = (*SCHEMA.fields, Field("s", struct(Field("a", INT, 4)), 3))
    assert ask("select s from t", Scan(Schema(fields), (group(files),))) == [(None,)]


def test_a_filter_on_a_renamed_struct_field(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    old = Schema((Field("s", struct(Field("a", INT, 2)), 1),))
    new = Schema((Field("s", struct(Field("z", INT, 2)), 1),))
    files = write(engine, directory, "select {'a': i} from range(10) r(i)", old)
    assert ask("select s.z from t where s.z > 7 order by 1", Scan(new, (group(files),))) == [(8,), (9,)]


def test_a_group_without_files(ask: Ask) -> None:
    assert ask("select * from t", Scan(SCHEMA, (group([]),))) == []
    assert isinstance(group([]), FileGroup)
