"""Writes Delta tables with deltalake, and what deltalake itself reads of each version: run in the peers' environment.

    python deltalake_writer.py <directory>

makes `<directory>/tables/<name>` and `<directory>/expected/<name>.<version>.arrow`, and for tables with a change feed
`<directory>/expected/<name>.feed.arrow`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

UTC = timezone.utc
FEED = {"delta.enableChangeDataFeed": "true"}


def rows(start: int, count: int, **columns: object) -> pa.Table:
    numbers = range(start, start + count)
    plain = {
        "id": pa.array(numbers, pa.int64()),
        "name": pa.array([None if i % 7 == 0 else f"name {i}" for i in numbers], pa.string()),
    }
    return pa.table({**plain, **columns})


def appends(path: str) -> None:
    for number in range(12):  # A checkpoint is among them.
        write_deltalake(path, rows(number * 10, 10), mode="append")
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, rows(1000, 5), mode="append")


def partitions(path: str) -> None:
    texts = ["a b", "x=y", "p%q", "a/b", "é", "#", "?", "+", "..", "'", None]
    count = len(texts)
    write_deltalake(
        path,
        rows(
            0,
            count,
            text=pa.array(texts, pa.string()),
            day=pa.array([date(2020, 1, 1 + i) for i in range(count)], pa.date32()),
            at=pa.array(
                [datetime(2020, 1, 1, 1, 2, 3, 456_789 + i, UTC) for i in range(count)], pa.timestamp("us", "UTC")
            ),
            number=pa.array([None if i == 3 else i - 5 for i in range(count)], pa.int32()),
            flag=pa.array([i % 2 == 0 for i in range(count)]),
        ),
        partition_by=["text", "day", "at", "number", "flag"],
    )
    DeltaTable(path).delete("number > 3")
    write_deltalake(path, DeltaTable(path).to_pyarrow_table().slice(0, 3), mode="append")


def types(path: str) -> None:
    nested = pa.array([{"a": 1, "b": ["x", None]}, None, {"a": None, "b": None}])
    table = pa.table(
        {
            "byte": pa.array([-128, None, 127], pa.int8()),
            "float": pa.array([1.5, float("nan"), None], pa.float32()),
            "double": pa.array([float("-inf"), 0.1, None]),
            "money": pa.array([Decimal("12345678.90"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
            "wide": pa.array([Decimal("1.2"), None, Decimal("-3.4")], pa.decimal128(38, 18)),
            "data": pa.array([b"\x00\xff", b"", None]),
            "at": pa.array([datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), None], pa.timestamp("us")),
            "nested": nested,
            "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    write_deltalake(path, table)


def evolution(path: str) -> None:
    write_deltalake(path, rows(0, 5))
    write_deltalake(path, rows(5, 5, extra=pa.array(range(5), pa.int64())), mode="append", schema_mode="merge")
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, pa.table({"name": ["only a name"]}), mode="append", schema_mode="merge")
    write_deltalake(path, pa.table({"id": ["now", "text"]}), mode="overwrite", schema_mode="overwrite")


def row_changes(path: str) -> None:
    write_deltalake(path, rows(0, 50), configuration=FEED)
    DeltaTable(path).delete("id >= 40")
    DeltaTable(path).update(updates={"name": "'changed'"}, predicate="id < 5")
    source = rows(30, 20, name=pa.array([f"merged {i}" for i in range(20)]))
    merge = DeltaTable(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().when_not_matched_by_source_delete(
        predicate="t.id = 7"
    ).execute()
    write_deltalake(path, rows(100, 10), mode="append")
    DeltaTable(path).optimize.compact()
    DeltaTable(path).restore(1)
    write_deltalake(path, rows(0, 3), mode="overwrite", predicate="id < 10")


TABLES: dict[str, Callable[[str], None]] = {
    made.__name__: made for made in (appends, partitions, types, evolution, row_changes)
}


def write(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)


def expected(path: str, name: str, directory: Path) -> None:
    newest = DeltaTable(path)
    for version in range(newest.version() + 1):
        query = QueryBuilder().register("t", DeltaTable(path, version=version)).execute("SELECT * FROM t")
        write(pa.table(query.read_all()), directory / f"{name}.{version}.arrow")
    if newest.metadata().configuration.get("delta.enableChangeDataFeed") == "true":
        write(pa.table(newest.load_cdf(starting_version=0).read_all()), directory / f"{name}.feed.arrow")


def main(directory: Path) -> None:
    (directory / "expected").mkdir(parents=True)
    for name, make in TABLES.items():
        path = str(directory / "tables" / name)
        make(path)
        expected(path, name, directory / "expected")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
