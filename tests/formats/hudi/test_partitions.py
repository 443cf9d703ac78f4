"""Files are skipped by partition paths, hive-style or not, and only where a path tells the column's value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakedbapi.formats.hudi.partitions import partition_columns
from lakedbapi.formats.hudi.properties import Properties
from lakedbapi.model.types import Field, Scalar, Schema
from tests.formats.hudi import golden as g
from tests.formats.hudi.conftest import Connect


@pytest.mark.parametrize(
    ("name", "condition", "read", "count"),
    [
        (g.TRANSACTIONS, "region = 'eu'", "2 of 5 data files read, 3 pruned", 3),
        (g.TRANSACTIONS, "region IN ('apac', 'us')", "3 of 5 data files read, 2 pruned", 9),
        (g.MOR_TRANSACTIONS, "region > 'eu'", "2 of 5 data files read, 3 pruned", 5),
        (g.TRIPS, "city = 'sao_paulo'", "1 of 3 data files read, 2 pruned", 1),
        (g.OVERWRITTEN, "byteField = 30", "1 of 1 data files read", 1),
        (g.OVERWRITTEN, "byteField < 30", "0 of 1 data files read, 1 pruned", 0),
        (g.TIME_BASED, "ts_str < '2024'", "7 of 7 data files read", 0),
    ],
)
def test_files_are_skipped(
    name: str, condition: str, read: str, count: int, golden: Callable[[str], Path], connect: Connect
) -> None:
    connection = connect(golden(name))
    query = f"SELECT * FROM t WHERE {condition}"
    assert read in connection.execute(f"EXPLAIN {query}").fetchall()[0][0]
    assert len(connection.execute(query).fetchall()) == count


def test_log_files_of_skipped_partitions_are_not_read(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.TRIPS)
    log = g.log_file(table, "city=sao_paulo/.*_20251220210130911.log.*")
    log.write_bytes(b"x" * log.stat().st_size)
    assert connect(table).execute("SELECT count(*) FROM t WHERE city = 'chennai'").fetchone() == (1,)


_SCHEMA = Schema(
    tuple(
        Field(name, Scalar(type), id)
        for id, (name, type) in enumerate(
            {"s": "varchar", "i": "int32", "l": "int64", "b": "boolean", "d": "date"}.items(), 1
        )
    )
)


@pytest.mark.parametrize(
    ("fields", "path", "values"),
    [
        ("s", "x y%2F", {"s": "x y%2F"}),
        ("s", "s=x", {"s": "s=x"}),
        ("s", "a/b", {"s": None}),
        ("s", "__HIVE_DEFAULT_PARTITION__", {"s": None}),
        ("s", "default", {"s": None}),
        ("i", "-7", {"i": -7}),
        ("i", "007", {"i": None}),
        ("i", "+7", {"i": None}),
        ("i", "2147483648", {"i": None}),
        ("l", "2147483648", {"l": 2147483648}),
        ("i", "٧", {"i": None}),
        ("b", "true", {"b": True}),
        ("b", "False", {"b": None}),
        ("d", "2024-01-01", {}),
        ("s,i", "x/7", {"s": "x", "i": 7}),
        ("s,i", "x", {"s": None, "i": None}),
        ("missing", "x", {}),
    ],
)
def test_values_of_plain_paths(fields: str, path: str, values: Mapping[str, Any]) -> None:
    assert _values(path, {"hoodie.table.partition.fields": fields}) == values


@pytest.mark.parametrize(
    ("path", "encoded", "values"),
    [
        ("s=x/i=7", "false", {"s": "x", "i": 7}),
        ("s=a%2Fb%3D/i=7", "true", {"s": "a/b=", "i": 7}),
        ("s=a%2Fb/i=7", "false", {"s": "a%2Fb", "i": 7}),
        ("i=7/s=x", "false", {"s": None, "i": None}),
        ("s=a=b/i=7", "false", {"s": "a=b", "i": 7}),
        ("x/7", "false", {"s": None, "i": None}),
    ],
)
def test_values_of_hive_style_paths(path: str, encoded: str, values: Mapping[str, Any]) -> None:
    properties = {
        "hoodie.table.partition.fields": "s,i",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": encoded,
    }
    assert _values(path, properties) == values


@pytest.mark.parametrize(
    ("generator", "is_plain"),
    [
        ({"hoodie.table.keygenerator.type": "COMPLEX_AVRO"}, True),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}, True),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleAvroKeyGenerator"}, True),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}, False),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}, False),
        ({"hoodie.table.keygenerator.class": "com.example.MySimpleKeyGenerator"}, False),
        ({"hoodie.table.keygenerator.type": "TIMESTAMP"}, False),
        ({}, False),
    ],
)
def test_only_some_key_generators_make_plain_paths(generator: Mapping[str, str], is_plain: bool) -> None:
    properties = Properties("/t/", {"hoodie.table.partition.fields": "s", **generator})
    assert properties.has_plain_partitions == is_plain


def _values(path: str, values: Mapping[str, str]) -> dict[str, Any]:
    """By column; None = not known."""
    properties = Properties("/t/", {"hoodie.table.keygenerator.type": "COMPLEX", **values})
    found = partition_columns(properties, _SCHEMA, pa.chunked_array([[path], [path]]))
    names = {field.id: field.name for field in _SCHEMA.fields}
    for column in found.values():
        assert column.values.is_valid().equals(column.known)
    return {names[id]: column.values[1].as_py() for (id, _), column in found.items()}
