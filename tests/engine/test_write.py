"""Data files have the field ids, names, statistics and partitions of the format."""

from __future__ import annotations

import errno
import os
import re
import urllib.parse
import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakedbapi import OperationalError, errors
from lakedbapi.engine.base import Query, ScanRelation, WriteOptions
from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.model.catalog import PartitionField, PartitionSpec
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.layout import FileLayout
from lakedbapi.model.scan import RowGroup, Scan
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Schema, Struct, Type
from tests.thorough import quick

from .conftest import SCHEMA, T, group, write

INT, TEXT = Scalar("int32"), Scalar("varchar")
EVENTS = Schema((Field("id", Scalar("int64"), 1), Field("kind", TEXT, 2), Field("at", Scalar("timestamp"), 3)))


def spec(*fields: tuple[int, str]) -> PartitionSpec:
    return PartitionSpec(7, tuple(PartitionField(id, transform) for id, transform in fields))


def test_file_names_have_the_prefix_and_a_time_ordered_uuid(engine: DuckDBEngine, directory: str) -> None:
    (file,) = write(engine, f"{directory}main/t/", "select 1, 'a'", layout=FileLayout(prefix="x-"))
    name = Path(file.path).name
    assert file.path == f"{directory}main/t/{name}"
    assert uuid.UUID(re.fullmatch(r"x-(.*)\.parquet", name).group(1)).version == 7  # type: ignore[union-attr]


def test_columns_have_their_field_ids_at_every_level(engine: DuckDBEngine, directory: str) -> None:
    schema = Schema(
        (
            Field("s", Struct((Field("a b", INT, 2), Field("l", List(Field("element", INT, 4)), 3))), 1),
            Field("m", Map(Field("key", TEXT, 6), Field("value", INT, 7)), 5),
        )
    )
    (file,) = write(engine, directory, "select {'a b': 1, 'l': [2]}, map {'k': 3}", schema)
    text = str(pq.ParquetFile(file.path).schema)
    ids = dict(re.findall(r"field_id=(\d+) (.+?)(?: \(|;| \{)", text))
    assert ids == {"1": "s", "2": "a b", "3": "l", "4": "element", "5": "m", "6": "key", "7": "value"}


def test_statistics_are_those_of_the_leaves(engine: DuckDBEngine, directory: str) -> None:
    schema = Schema((Field("i", INT, 1), Field("s", Struct((Field("d", Scalar("float64"), 3),)), 2)))
    (file,) = write(
        engine, directory, "select if(i = 0, null, i), {'d': if(i = 1, 'nan'::double, i)} from range(4) r(i)", schema
    )
    assert set(file.stats) == {1, 3}
    stats = file.stats[1]
    assert (stats.lower, stats.upper, stats.null_count, stats.value_count) == ("1", "3", 1, 3)
    assert (file.stats[3].lower, file.stats[3].upper, file.stats[3].has_nan) == ("0.0", "3.0", True)
    assert file.record_count == 4


def test_sizes_are_those_of_the_file(engine: DuckDBEngine, directory: str) -> None:
    (file,) = write(engine, directory, "select 1, 'a'")
    data = Path(file.path).read_bytes()
    assert file.file_size_bytes == len(data)
    assert file.footer_size == int.from_bytes(data[-8:-4], "little")


def test_bounds_with_nul_bytes_are_unknown(engine: DuckDBEngine, directory: str) -> None:
    (file,) = write(engine, directory, "select 1, 'a' || chr(0)")
    assert (file.stats[2].lower, file.stats[2].upper) == (None, None)


def test_an_all_null_column_has_no_values(engine: DuckDBEngine, directory: str) -> None:
    (file,) = write(engine, directory, "select 1, null")
    assert (file.stats[2].value_count, file.stats[2].null_count, file.stats[2].lower) == (0, 1, None)


@pytest.mark.parametrize("options", [{}, {"target_file_size": 1000}, {"partitioning": spec((1, "identity"))}])
def test_no_rows_make_no_file(engine: DuckDBEngine, directory: str, options: dict[str, object]) -> None:
    assert write(engine, directory, "select 1, 'a' where false", **options) == ()
    assert list(Path(directory).rglob("*.parquet")) == []


def test_no_rows_in_memory_make_no_file(engine: DuckDBEngine, directory: str) -> None:
    empty = pa.table({"id": pa.array([], pa.int64()), "name": pa.array([], pa.string())})
    assert engine.write(empty, SCHEMA, WriteOptions(directory)) == ()


@pytest.mark.parametrize(
    "options",
    [{}, {"target_file_size": 1000}, {"partitioning": spec((2, "identity"))}, {"partitioning": spec((2, "bucket(4)"))}],
)
def test_a_failed_write_leaves_no_file(engine: DuckDBEngine, directory: str, options: dict[str, object]) -> None:
    kept = write(engine, directory, "select 1, 'a'")
    with pytest.raises(errors.DataError, match="boo"):
        write(
            engine, directory, "select i, if(i = 499999, error('boo'), 'x' || i % 3) from range(500000) r(i)", **options
        )
    assert [str(path) for path in Path(directory).rglob("*.parquet")] == [kept[0].path]


def test_a_value_that_does_not_fit_is_a_data_error(engine: DuckDBEngine, directory: str) -> None:
    with pytest.raises(errors.DataError, match="x"):
        write(engine, directory, "select 'x', 'a'")


def test_parameters_in_a_source_query(engine: DuckDBEngine, directory: str) -> None:
    (file,) = engine.write(
        Query("select $1, $2", parameters={"1": 5, "2": "a", "3": 0}), SCHEMA, WriteOptions(directory)
    )
    assert pq.read_table(file.path).to_pylist() == [{"id": 5, "name": "a"}]


def test_files_roll_at_the_target_size(engine: DuckDBEngine, directory: str) -> None:
    files = write(
        engine, directory, "select i, repeat('x', 20) || hash(i) from range(500000) r(i)", target_file_size=2_000_000
    )
    assert len(files) > 2
    assert sum(file.record_count for file in files) == 500_000
    assert all(Path(file.path).stat().st_size == file.file_size_bytes for file in files)


def test_rows_are_sorted(engine: DuckDBEngine, directory: str) -> None:
    (file,) = write(engine, directory, "select i, 'a' from range(5) r(i)", sort_by=("id DESC",))
    assert pq.read_table(file.path).column("id").to_pylist() == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("size", [None, 1 << 40, 1 << 20])
def test_new_rows_keep_their_order(engine: DuckDBEngine, directory: str, size: int | None) -> None:
    table = pa.table({"id": np.arange(600_000), "name": pa.nulls(600_000, pa.string())})
    options = WriteOptions(directory, row_group_size=2048, target_file_size=size)
    files = engine.write(table.to_reader(10_000), SCHEMA, options)  # type: ignore[arg-type]
    ids = [pq.read_table(file.path).column("id").to_numpy() for file in files]
    assert len(files) == 1 or size == 1 << 20
    assert (np.concatenate(sorted(ids, key=lambda part: part[0])) == np.arange(600_000)).all()


@pytest.mark.parametrize("size", [None, 1 << 40, 1 << 20])
def test_many_rows_are_sorted(engine: DuckDBEngine, directory: str, size: int | None) -> None:
    sql = "select i * 7919 % 600000, null from range(600000) r(i)"
    files = write(engine, directory, sql, sort_by=("id",), row_group_size=2048, target_file_size=size)
    ids = [pq.read_table(file.path).column("id").to_numpy() for file in files]
    assert (np.concatenate(sorted(ids, key=lambda part: part[0])) == np.arange(600_000)).all()


def test_format_options(engine: DuckDBEngine, directory: str) -> None:
    (file,) = write(
        engine, directory, "select i, 'a' from range(10000) r(i)",
        compression="zstd", compression_level=5, row_group_size=2048, parquet_version="V2",
    )  # fmt: skip
    metadata = pq.ParquetFile(file.path).metadata
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert metadata.num_row_groups == 5


def test_row_ids_are_embedded_under_their_field_id(engine: DuckDBEngine, directory: str) -> None:
    held = pa.table({"id": [1, 2], "name": ["a", "b"], "_lake_row_id": [10, 11]})
    (file,) = engine.write(held, SCHEMA, WriteOptions(directory), row_ids=True)
    schema = pq.read_schema(file.path)
    assert schema.field("_ducklake_internal_row_id").metadata[b"PARQUET:field_id"] == b"2147483540"
    assert pq.read_table(file.path).column(2).to_pylist() == [10, 11]
    assert file.has_row_ids
    assert set(file.stats) == {1, 2}


@pytest.mark.parametrize("threads", quick(1, [8, 2, 1]))
@pytest.mark.parametrize("groups", [{}, {"row_group_size": 2048}, {"row_group_size_bytes": 20_000}], ids=str)
@pytest.mark.parametrize("counts", [[1], [30_000, 7], [5, 130_000, 5], [2500] * 40, [3] * 1000], ids=len)
def test_rows_of_files_that_are_read_alike_keep_their_order(
    directory: str, monkeypatch: pytest.MonkeyPatch, counts: list[int], groups: dict[str, int], threads: int
) -> None:
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda path, config: connect(path, config={**config, "threads": threads}))
    scan = Scan(SCHEMA, (group(numbered(directory, counts)),))
    query = Query("SELECT * FROM t", {T: ScanRelation(scan)}, search_path=("lake", "main"))
    with closing(DuckDBEngine([directory], [], ["lake"])) as engine:
        assert engine.keeps_order(scan)
        (file,) = engine.write(query, SCHEMA, WriteOptions(directory, **groups))
    assert pq.read_table(file.path).column("id").to_pylist() == list(range(sum(counts)))


def numbered(directory: str, counts: Sequence[int]) -> list[WrittenFile]:
    """Files of row groups of 2,048 rows whose rows are counted through."""
    Path(directory).mkdir()
    schema = pa.schema(
        [pa.field("id", pa.int64(), metadata=_field_id(1)), pa.field("name", pa.string(), metadata=_field_id(2))]
    )
    files, start = [], 0
    for number, count in enumerate(counts):
        ids = np.arange(start, start + count)
        path = f"{directory}{number}.parquet"
        pq.write_table(pa.table([ids, ids.astype(str)], schema=schema), path, row_group_size=2048)
        files.append(WrittenFile(path, count, os.path.getsize(path), None, {}))
        start += count
    return files


def _field_id(id: int) -> dict[str, str]:
    return {"PARQUET:field_id": str(id)}


def test_order_is_not_promised_of_files_that_are_read_one_by_one(engine: DuckDBEngine, directory: str) -> None:
    files = numbered(directory, [2, 3])
    structs = Schema((Field("s", Struct((Field("x", Scalar("int64"), 2),)), 1),))
    for scan in (
        Scan(SCHEMA, (group(files[:1]), group(files[1:]))),
        Scan(SCHEMA, (group(files, {1: [0]}),)),
        Scan(SCHEMA, (group(files, encryption_keys={0: "k"}),)),
        Scan(SCHEMA, (group(files),), (RowGroup("r", pa.table({"id": [1], "name": ["a"]})),)),
        Scan(structs, (group(files),)),
    ):
        assert not engine.keeps_order(scan)


def test_partition_values_are_catalog_text(engine: DuckDBEngine, directory: str) -> None:
    sql = "select i, case i when 0 then '' when 1 then null else 'a b/c=%é' end, null from range(4) r(i)"
    files = write(engine, directory, sql, EVENTS, partitioning=spec((2, "identity")))
    assert {(f.partition_values, f.record_count) for f in files} == {(("",), 1), ((None,), 1), (("a b/c=%é",), 2)}
    assert {f.partition_id for f in files} == {7}
    assert f"{directory}kind=a%20b%2Fc%3D%25%C3%A9/" in {f.path.rsplit("/", 1)[0] + "/" for f in files}
    for file in files:
        assert pq.ParquetFile(file.path).schema_arrow.names == ["id", "kind", "at"]


@pytest.mark.parametrize(
    ("fields", "values", "folder"),
    [
        (
            [(3, "year"), (3, "month"), (3, "day"), (3, "hour")],
            ("2020", "2", "3", "4"),
            "year=2020/month=2/day=3/hour=4",
        ),
        ([(3, "epoch_year"), (3, "epoch_month")], ("50", "601"), "epoch_year=50/epoch_month=601"),
        ([(3, "epoch_day"), (3, "epoch_hour")], ("18295", "439084"), "epoch_day=18295/epoch_hour=439084"),
        ([(1, "bucket(8)"), (2, "bucket(4)")], None, r"bucket=\d/bucket_kind=\d"),
        ([(3, "year"), (1, "identity")], ("2020", "5"), "year=2020/id_1=5"),
    ],
)
def test_transforms(
    engine: DuckDBEngine, directory: str, fields: list[tuple[int, str]], values: tuple[str, ...] | None, folder: str
) -> None:
    sql = "select 5, 'x', timestamp '2020-02-03 04:05:06'"
    (file,) = write(engine, directory, sql, EVENTS, partitioning=spec(*fields))
    assert values is None or file.partition_values == values
    assert re.fullmatch(re.escape(directory) + folder, file.path.rsplit("/", 1)[0])
    assert pq.ParquetFile(file.path).schema_arrow.names == ["id", "kind", "at"]
    assert pq.read_table(file.path, partitioning=None).num_rows == 1


def test_flat_layout(engine: DuckDBEngine, directory: str) -> None:
    files = write(
        engine, directory, "select i, 'a' from range(3) r(i)", partitioning=spec((1, "identity")), hive_layout=False
    )
    assert {str(Path(file.path).parent) + "/" for file in files} == {directory}
    assert sorted(file.partition_values for file in files) == [("0",), ("1",), ("2",)]


def test_unknown_transforms_are_refused(engine: DuckDBEngine, directory: str) -> None:
    with pytest.raises(errors.NotSupportedError, match="zorder"):
        write(engine, directory, "select 1, 'a'", partitioning=spec((2, "zorder(3)")))


@pytest.mark.parametrize(
    ("type", "values", "width", "truncated"),
    [
        (INT, "-1, 5, 15", 10, ["-10", "0", "10"]),
        (TEXT, "'wörld', 'wo', NULL", 3, ["wo", "wör", None]),
        (Decimal(9, 2), "-1.37, 1.37", 50, ["-1.50", "1.00"]),
        (Decimal(38, 2), "99999999999999999999999999999999999.99", 50, ["99999999999999999999999999999999999.50"]),
    ],
)
def test_truncated_keys(
    engine: DuckDBEngine, directory: str, type: Type, values: str, width: int, truncated: list[str | None]
) -> None:
    schema = Schema((Field("x", type, 1),))
    files = write(engine, directory, f"SELECT unnest([{values}])", schema, partitioning=spec((1, f"truncate({width})")))
    assert sorted((file.partition_values[0] for file in files), key=str) == sorted(truncated, key=str)


def test_types_that_arrow_lacks_beside_buckets(engine: DuckDBEngine, directory: str) -> None:
    """Bucket numbers are computed in Arrow."""
    schema = Schema((Field("id", INT, 1), Field("u", Scalar("uuid"), 2)))
    sql = "SELECT 1, UUID 'f79c3e09-677c-4bbd-a479-3f349cb785e7'"
    (file,) = write(engine, directory, sql, schema, partitioning=spec((1, "bucket(8)")))
    stored = pq.ParquetFile(file.path).schema.column(1)
    assert (stored.physical_type, stored.logical_type.type) == ("FIXED_LEN_BYTE_ARRAY", "UUID")


PLAIN = FileLayout(
    prefix="part-00000-", suffix="-c000.snappy", field_ids=False, partition_columns=False, row_id_column=None
)


def test_a_layout_names_files_and_columns_at_every_level(engine: DuckDBEngine, directory: str) -> None:
    inner, other = (Struct((Field("x", INT, id), Field("y", TEXT, id + 1))) for id in (4, 10))
    schema = Schema(
        (
            Field("a", INT, 1),
            Field("l", List(Field("element", inner, 3)), 2),
            Field("b", INT, 6),
            Field("m", Map(Field("key", TEXT, 8), Field("value", other, 9)), 7),
        )
    )
    layout = FileLayout(
        "part-", "-c000", names={1: "b", 6: "a", 4: "c-4", 5: "x", 10: "c-4", 11: "x"}, row_id_column=None
    )
    sql = "select 1, [{'x': 2, 'y': 'z'}, null], 3, map {'k': {'x': 4, 'y': null}} union all select null, null, 0, null"
    (file,) = engine.write(Query(sql), schema, WriteOptions(directory, layout=layout, sort_by=("a NULLS FIRST",)))
    assert re.fullmatch(r"part-.*-c000\.parquet", Path(file.path).name)
    assert pq.read_table(file.path).to_pylist() == [
        {"b": None, "l": None, "a": 0, "m": None},
        {"b": 1, "l": [{"c-4": 2, "x": "z"}, None], "a": 3, "m": [("k", {"c-4": 4, "x": None})]},
    ]
    assert {"1", "3", "4", "5", "6"} <= set(re.findall(r"field_id=(\d+)", str(pq.ParquetFile(file.path).schema)))
    assert (file.stats[1].upper, file.stats[6].upper, file.stats[4].upper) == ("1", "3", "2")


def test_columns_that_the_path_tells_are_left_out(engine: DuckDBEngine, directory: str) -> None:
    schema = Schema((Field("p", TEXT, 1), Field("i", INT, 2)))
    options = WriteOptions(directory, layout=replace(PLAIN, names={1: "q r"}), partitioning=spec((1, "identity")))
    values = ["a b", "x=y", "p%q", "a/b", "é", "#", "?", "+", "..", "'\"", "", None]
    files = engine.write(pa.table({"p": values, "i": range(len(values))}), schema, options)
    found = {pq.read_table(f.path, partitioning=None).to_pydict()["i"][0]: f for f in files}
    for i, value in enumerate(values[:-2]):
        folder = Path(found[i].path).parent.name
        assert found[i].partition_values == (value,)
        assert urllib.parse.unquote(folder) == f"q r={value}"
        assert pq.ParquetFile(found[i].path).schema.names == ["i"]
        assert "field_id=-1" in str(pq.ParquetFile(found[i].path).schema) or "field_id" not in str(
            pq.ParquetFile(found[i].path).schema
        )
    (without,) = [f for f in files if f.partition_values == (None,)]
    assert (without.record_count, Path(without.path).parent.name) == (2, "q%20r=__HIVE_DEFAULT_PARTITION__")


@pytest.mark.parametrize(
    ("type", "sql", "text"),
    [
        ("timestamptz", "'2021-05-06 07:08:09.123456+02'", "2021-05-06T05:08:09.123456Z"),
        ("timestamptz", "'0001-01-01 00:00:00+00'", "0001-01-01T00:00:00.000000Z"),
        ("timestamp", "'9999-12-31 23:59:59.999999'", "9999-12-31 23:59:59.999999"),
        ("date", "'0099-01-02'", "0099-01-02"),
        ("float64", "'nan'", "NaN"),
        ("float64", "'-inf'", "-Infinity"),
        ("float32", "1.5", "1.5"),
        ("boolean", "true", "true"),
        ("int64", "-5", "-5"),
    ],
)
def test_values_in_paths_have_one_spelling(
    engine: DuckDBEngine, directory: str, type: str, sql: str, text: str
) -> None:
    schema = Schema((Field("p", Scalar(type), 1), Field("i", INT, 2)))
    options = WriteOptions(directory, layout=PLAIN, partitioning=spec((1, "identity")))
    (file,) = engine.write(Query(f"select {sql}, 1"), schema, options)
    assert file.partition_values == (text,)
    assert urllib.parse.unquote(Path(file.path).parent.name) == f"p={text}"


@pytest.mark.parametrize("partitioned", [False, True])
def test_files_are_on_disk_before_a_commit_can_name_them(
    engine: DuckDBEngine, directory: str, monkeypatch: pytest.MonkeyPatch, partitioned: bool
) -> None:
    """DuckDB leaves that to the system: after a power cut the files of a commit that was reported could be empty."""
    synced: set[tuple[int, int]] = set()
    sync = os.fsync

    def recorded(descriptor: int) -> None:
        sync(descriptor)
        status = os.fstat(descriptor)
        synced.add((status.st_ino, status.st_size))

    monkeypatch.setattr(os, "fsync", recorded)
    schema = Schema((Field("p", INT, 1), Field("i", INT, 2)))
    options = WriteOptions(directory, partitioning=spec((1, "identity")) if partitioned else None)
    files = engine.write(Query("SELECT i % 20, i FROM range(100) r(i)"), schema, options)
    assert len(files) == (20 if partitioned else 1)
    for path in (Path(file.path) for file in files):
        assert (path.stat().st_ino, path.stat().st_size) in synced
        assert path.parent.stat().st_ino in {inode for inode, _ in synced}


def test_a_disk_that_does_not_take_a_file_is_told(
    engine: DuckDBEngine, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OperationalError, match=r"parquet: writing failed: No space left on device"):
        engine.write(Query("SELECT 1"), Schema((Field("i", INT, 1),)), WriteOptions(directory))
    assert list(Path(directory).iterdir()) == []
