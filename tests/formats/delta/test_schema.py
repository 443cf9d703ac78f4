"""Schemas of the log: what the model sees of them, and that writing them back loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakedbapi.errors import DataError, IntegrityError, NotSupportedError
from lakedbapi.formats.delta.schema import parse_schema, physical_names, print_schema
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.model.sql_types import sql_type
from lakedbapi.model.types import Decimal, Field, Identity, Scalar, Schema, walk
from lakedbapi.storage.filesystem import Storage
from tests.formats.delta.committed import commit, of_kind
from tests.formats.delta.conftest import Connect
from tests.formats.delta.golden import expected
from tests.formats.delta.writing import Table

STRUCT = {
    "type": "struct",
    "fields": [
        {"name": "a", "type": "integer", "nullable": False, "metadata": {"comment": "inner"}},
        {"name": "b", "type": {"type": "array", "elementType": "string", "containsNull": False}, "nullable": True},
    ],
}
TREE = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {"delta.identity.start": 1, "x": {"y": [1]}}},
        {"name": "g", "type": "double", "nullable": True, "metadata": {"delta.generationExpression": "id * 2"}},
        {"name": "d", "type": "decimal(10, 2)", "nullable": True, "metadata": {"CURRENT_DEFAULT": "0"}},
        {"name": "s", "type": STRUCT, "nullable": True, "metadata": {}},
        {
            "name": "m",
            "type": {"type": "map", "keyType": "string", "valueType": STRUCT, "valueContainsNull": True},
            "nullable": True,
            "metadata": {},
        },
        {"name": "c", "type": "varchar(5)", "nullable": True, "metadata": {"__COLLATIONS": {"c": "ICU.UNICODE"}}},
        {"name": "nothing", "type": "void", "nullable": True, "metadata": {}},
        {"name": "v", "type": "variant", "nullable": True, "metadata": {}},
    ],
}


def normal(tree: Any) -> Any:
    """Missing metadata is empty metadata."""
    if isinstance(tree, dict):
        return {**({"metadata": {}} if "name" in tree else {}), **{key: normal(value) for key, value in tree.items()}}
    return [normal(item) for item in tree] if isinstance(tree, list) else tree


def test_fields_have_their_types_and_facts() -> None:
    schema = parse_schema(json.dumps(TREE))
    assert [sql_type(field.type) for field in schema.fields] == [
        "BIGINT",
        "DOUBLE",
        "DECIMAL(10,2)",
        'STRUCT("a" INTEGER, "b" VARCHAR[])',
        'MAP(VARCHAR, STRUCT("a" INTEGER, "b" VARCHAR[]))',
        "VARCHAR",
        "VARCHAR",
        "VARIANT",
    ]
    assert [field.nullable for field in schema.fields][:2] == [False, True]
    assert (schema.fields[0].identity, schema.fields[2].default) == (Identity(), "0")
    ids = [field.id for field in walk(schema.fields)]
    assert ids == list(range(1, len(ids) + 1))


def test_what_did_not_change_is_written_as_it_was() -> None:
    text = json.dumps(TREE)
    assert json.loads(print_schema(parse_schema(text), text)) == normal(TREE)


def test_changes_touch_nothing_else() -> None:
    text = json.dumps(TREE)
    fields = list(parse_schema(text).fields)
    fields[0] = replace(fields[0], name="key", comment="the key")
    fields[2] = replace(fields[2], type=Decimal(12, 2), default=None)
    added = Field("new", Scalar("date"), id=99)
    printed = json.loads(print_schema(Schema((*fields[:-1], added)), text))["fields"]
    assert printed[0]["name"] == "key"
    assert printed[0]["metadata"] == {"delta.identity.start": 1, "x": {"y": [1]}, "comment": "the key"}
    assert (printed[2]["type"], printed[2]["metadata"]) == ("decimal(12,2)", {})
    assert printed[3:7] == normal(TREE)["fields"][3:7]
    assert printed[7] == {"name": "new", "type": "date", "nullable": True, "metadata": {}}


@pytest.mark.parametrize("name", sorted(name for name, facts in expected().items() if facts["rows"]))
def test_schemas_of_other_writers_survive(name: str, golden: Callable[[str], Path]) -> None:
    root = f"{golden(name)}/"
    text = DeltaTable(Storage.of(root), root).latest().metadata.schema_string
    assert json.loads(print_schema(parse_schema(text), text)) == normal(json.loads(text))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{", DataError),
        ('"string"', DataError),
        ('{"type":"struct","fields":[{"name":"a","type":"geometry"}]}', NotSupportedError),
        ('{"type":"struct","fields":[{"name":"a","type":{"type":"udt"}}]}', NotSupportedError),
    ],
)
def test_text_that_is_no_schema_is_an_error(text: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        parse_schema(text)


MAPPED = {
    "type": "struct",
    "fields": [
        {
            "name": "i",
            "type": "long",
            "nullable": True,
            "metadata": {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "col-i"},
        },
        {
            "name": "s",
            "type": {
                "type": "array",
                "elementType": {
                    "type": "struct",
                    "fields": [
                        {
                            "name": "was_b",
                            "type": "string",
                            "nullable": True,
                            "metadata": {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "b"},
                        }
                    ],
                },
                "containsNull": True,
            },
            "nullable": True,
            "metadata": {"delta.columnMapping.id": 5, "delta.columnMapping.physicalName": "col-s"},
        },
    ],
}


def test_mapped_columns_have_ids_and_physical_names() -> None:
    text = json.dumps(MAPPED)
    assert [(field.name, field.id) for field in walk(parse_schema(text).fields)] == [
        ("i", 4),
        ("s", 5),
        ("element", 8),
        ("was_b", 7),
    ]
    assert physical_names(text) == {4: "col-i", 5: "col-s", 7: "b"}


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_found_at_every_level(connect: Connect, tmp_path: Path, mode: str) -> None:
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
    table = Table(tmp_path / "t").create(protocol=protocol, delta_columnMapping_mode=mode)
    path = table.log / f"{0:020}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["metaData"]["schemaString"] = json.dumps(MAPPED)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    # In mode `id` names do not count, in mode `name` ids do not.
    names = ("col-i", "col-s", "b") if mode == "name" else ("x", "y", "z")
    ids = ("1", "2", "3") if mode == "name" else ("4", "5", "7")
    i, s, b = (
        {"nullable": True, "metadata": {b"PARQUET:field_id": id.encode()}, "name": name}
        for name, id in zip(names, ids, strict=True)
    )
    inner = pa.struct([pa.field(b["name"], pa.string(), metadata=b["metadata"])])
    schema = pa.schema(
        [
            pa.field(i["name"], pa.int64(), metadata=i["metadata"]),
            pa.field(s["name"], pa.list_(inner), metadata=s["metadata"]),
        ]
    )
    rows = pa.table([pa.array([1]), pa.array([[{b["name"]: "x"}, None]], pa.list_(inner))], schema=schema)
    table.commit(
        table.file("a.parquet", rows, stats='{"numRecords":1,"minValues":{"col-i":1},"maxValues":{"col-i":1}}')
    )
    connection = connect(table.path)
    assert connection.execute("SELECT * FROM t").fetchall() == [(1, [{"was_b": "x"}, None])]
    assert "0 of 1" in str(connection.execute("EXPLAIN SELECT * FROM t WHERE i = 2").fetchone())


def test_columns_that_a_file_lacks_are_null(connect: Connect, tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [{"name": name, "type": "long", "nullable": True} for name in ("x", "y")]}
    table = Table(tmp_path / "t").create([("i", "long"), ("s", inner), ("new", "string"), ("nothing", "void")])
    table.commit(table.file("a.parquet", pa.table({"I": [1], "s": [{"X": 2}], "gone": [3]})))
    assert connect(table.path).execute("SELECT * FROM t").fetchall() == [(1, {"x": 2, "y": None}, None, None)]


def test_columns_of_no_type_stay_null(connect: Connect, tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [{"name": name, "type": name, "nullable": True} for name in ("void", "long")]}
    mapped = {"delta_columnMapping_mode": "none", "delta_constraints_positive": "i > 0"}
    columns = [("i", "long"), ("no `thing", "void"), ("s", inner)]
    table = Table(tmp_path / "t").create(columns, protocol={"minReaderVersion": 1, "minWriterVersion": 3}, **mapped)
    lake = connect(tmp_path, autocommit=True)
    lake.execute("INSERT INTO t VALUES (1, NULL, NULL), (2, NULL, {'void': NULL, 'long': 3})")
    for sql in (
        "INSERT INTO t VALUES (3, 'x', NULL)",
        "INSERT INTO t VALUES (3, NULL, {'void': '', 'long': 3})",
        "UPDATE t SET \"no `thing\" = 'x' WHERE i = 1",
        "MERGE INTO t USING (SELECT 2 AS i) u ON t.i = u.i WHEN MATCHED THEN UPDATE SET \"no `thing\" = 'x'",
    ):
        with pytest.raises(IntegrityError, match="is void"):
            lake.execute(sql)
    expected = [(1, None, None), (2, None, {"void": None, "long": 3})]
    assert lake.execute("SELECT * FROM t ORDER BY i").fetchall() == expected
    lake.execute("ALTER TABLE t SET ('delta.columnMapping.mode' = 'name')")
    lake.execute('ALTER TABLE t DROP COLUMN "no `thing"')
    lake.execute("INSERT INTO t VALUES (3, NULL)")
    assert lake.execute("SELECT i FROM t ORDER BY i").fetchall() == [(1,), (2,), (3,)]
    (metadata,) = of_kind(commit(table.path, 2), "metaData")
    assert metadata["configuration"]["delta.constraints.positive"] == "i > 0"


def test_constraints_and_properties_are_shown(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create(delta_constraints_positive="i > 0", delta_appendOnly="true")
    info = connect(table.path).catalog_view().table("main", "t")
    assert info is not None
    [constraint] = info.constraints
    assert (constraint.kind, constraint.name, constraint.expression) == ("check", "positive", "i > 0")
    assert info.properties["delta.appendOnly"] == "true"
