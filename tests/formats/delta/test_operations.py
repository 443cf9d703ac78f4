"""What commits are called, and what they tell of themselves, as Spark's history has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from tests.formats.delta.committed import info, versions
from tests.formats.delta.conftest import Connect

CREATED = {"isManaged": "false", "description": None, "partitionBy": [], "clusterBy": []}
VECTORS = {"delta.enableDeletionVectors": "true"}
TABLE = ("CREATE TABLE t (i INTEGER, s STRUCT(x INTEGER, n STRUCT(y VARCHAR)), l STRUCT(z INTEGER)[], p VARCHAR)",)
MAPPED = (f"{TABLE[0]} WITH ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')",)
ROWS = "INSERT INTO t (i, p) SELECT i, 'p' FROM range(10) r(i)"

MERGE = (
    "MERGE INTO t USING (VALUES (1), (50)) u(k) ON t.i = u.k WHEN MATCHED AND p = 'p' THEN UPDATE SET p = 'm' "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (i) VALUES (u.k)"
)


def column(name: str, type: str, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "nullable": nullable, "metadata": metadata}


def added(column: dict[str, Any]) -> dict[str, Any]:
    return {"columns": [{"column": column}]}


DEFINITIONS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("CREATE TABLE t (i INTEGER)",), "CREATE TABLE", {**CREATED, "properties": VECTORS}),
    (
        ("CREATE TABLE t (i INTEGER, p VARCHAR) PARTITIONED BY (p) WITH ('x' = 'y') COMMENT 'it is \"mine\"'",),
        "CREATE TABLE",
        {**CREATED, "description": 'it is "mine"', "partitionBy": ["p"], "properties": {**VECTORS, "x": "y"}},
    ),
    (("CREATE TABLE t AS SELECT 1 AS i",), "CREATE TABLE AS SELECT", {**CREATED, "properties": VECTORS}),
    (
        ("CREATE TABLE t AS SELECT 1 AS i", "CREATE OR REPLACE TABLE t (j INTEGER)"),
        "CREATE OR REPLACE TABLE",
        {**CREATED, "properties": VECTORS},
    ),
    (
        ("CREATE TABLE t AS SELECT 1 AS i", "CREATE OR REPLACE TABLE t AS SELECT 2 AS j"),
        "CREATE OR REPLACE TABLE AS SELECT",
        {**CREATED, "properties": VECTORS},
    ),
    ((*TABLE, "COMMENT ON TABLE t IS 'c'"), "SET TBLPROPERTIES", {"properties": {"comment": "c"}}),
    ((*TABLE, "ALTER TABLE t SET ('x' = 'y')"), "SET TBLPROPERTIES", {"properties": {"x": "y"}}),
    (
        (*TABLE, "ALTER TABLE t SET ('x' = 'y')", "ALTER TABLE t RESET ('x')"),
        "UNSET TBLPROPERTIES",
        {"properties": ["x"], "ifExists": "true"},
    ),
    ((*TABLE, "ALTER TABLE t ADD COLUMN c DECIMAL(5, 2)"), "ADD COLUMNS", added(column("c", "decimal(5,2)"))),
    (
        (*TABLE, "ALTER TABLE t ADD COLUMN c STRUCT(a INTEGER)"),
        "ADD COLUMNS",
        added(column("c", "struct")),
    ),
    ((*TABLE, "ALTER TABLE t ADD COLUMN s.n.c DATE[]"), "ADD COLUMNS", added(column("s.n.c", "array"))),
    ((*TABLE, 'ALTER TABLE t ADD COLUMN "a.b" DATE'), "ADD COLUMNS", added(column("`a.b`", "date"))),
    ((*MAPPED, "ALTER TABLE t DROP COLUMN s"), "DROP COLUMNS", {"columns": ["s"]}),
    ((*MAPPED, "ALTER TABLE t DROP COLUMN s.x"), "DROP COLUMNS", {"columns": ["s.x"]}),
    (
        (*MAPPED, "ALTER TABLE t RENAME COLUMN i TO j"),
        "RENAME COLUMN",
        {"oldColumnPath": "i", "newColumnPath": "j"},
    ),
    (
        (*MAPPED, "ALTER TABLE t RENAME COLUMN s.n.y TO w"),
        "RENAME COLUMN",
        {"oldColumnPath": "s.n.y", "newColumnPath": "s.n.w"},
    ),
    (
        (*TABLE, "COMMENT ON COLUMN t.p IS 'c'"),
        "CHANGE COLUMN",
        {"column": column("p", "string", comment="c")},
    ),
    ((*TABLE, "ALTER TABLE t ALTER COLUMN i SET NOT NULL"), "CHANGE COLUMN", {"column": column("i", "integer", False)}),
    (
        (
            "CREATE TABLE t (s STRUCT(x INTEGER, y INTEGER)) WITH ('delta.enableTypeWidening' = 'true')",
            "ALTER TABLE t ALTER COLUMN s.x TYPE BIGINT",
        ),
        "CHANGE COLUMN",
        {"column": column("s.x", "long", **{"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]})},
    ),
    (
        (*TABLE, "ALTER TABLE t ADD CONSTRAINT pos CHECK (i >= 0)"),
        "ADD CONSTRAINT",
        {"name": "pos", "expr": "i >= 0"},
    ),
    (
        (*TABLE, "ALTER TABLE t ADD CONSTRAINT pos CHECK (i >= 0)", "ALTER TABLE t DROP CONSTRAINT pos"),
        "DROP CONSTRAINT",
        {"name": "pos", "expr": "i >= 0", "existed": "true"},
    ),
    (
        (*TABLE, "ALTER TABLE t CLUSTER BY (i)"),
        "CLUSTER BY",
        {"oldClusteringColumns": "", "newClusteringColumns": "i"},
    ),
]
OPERATIONS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    ((*TABLE, ROWS), "WRITE", {"mode": "Append", "partitionBy": []}),
    ((*TABLE, ROWS, "DELETE FROM t WHERE i < 5"), "DELETE", {"predicate": ["i < 5"]}),
    ((*TABLE, ROWS, "DELETE FROM t"), "DELETE", {"predicate": ["true"]}),
    ((*TABLE, ROWS, "UPDATE t SET p = 'q' WHERE i = 1"), "UPDATE", {"predicate": ["i = 1"]}),
    ((*TABLE, ROWS, "TRUNCATE t"), "TRUNCATE", {}),
    ((*TABLE, ROWS, "RESTORE TABLE t TO VERSION AS OF 0"), "RESTORE", {"version": "0", "timestamp": None}),
    (
        (*TABLE, ROWS, ROWS, "OPTIMIZE t"),
        "OPTIMIZE",
        {"predicate": [], "zOrderBy": [], "clusterBy": [], "auto": "false"},
    ),
    (
        (*TABLE, ROWS, ROWS, "OPTIMIZE t ZORDER BY (i, p)"),
        "OPTIMIZE",
        {"predicate": [], "zOrderBy": ["i", "p"], "clusterBy": [], "auto": "false"},
    ),
    (
        (*TABLE, ROWS, "DELETE FROM t WHERE i = 1", "REORG TABLE t APPLY (PURGE)"),
        "REORG",
        {"predicate": [], "applyPurge": "true"},
    ),
    (
        (
            *TABLE,
            ROWS,
            MERGE,
        ),
        "MERGE",
        {
            "predicate": ["t.i = u.k"],
            "matchedPredicates": [{"predicate": "p = 'p'", "actionType": "update"}, {"actionType": "delete"}],
            "notMatchedPredicates": [{"actionType": "insert"}],
            "notMatchedBySourcePredicates": [],
        },
    ),
]


@pytest.mark.parametrize(
    ("statements", "operation", "parameters"),
    [*DEFINITIONS, *OPERATIONS],
    ids=[statements[-1][:60] for statements, _, _ in (*DEFINITIONS, *OPERATIONS)],
)
def test_a_commit_tells_what_it_is(
    tmp_path: Path, connect: Connect, statements: tuple[str, ...], operation: str, parameters: dict[str, Any]
) -> None:
    lake = connect(tmp_path, autocommit=True)
    for statement in statements:
        lake.execute(statement)
    told = info(tmp_path / "t")
    found = told["operationParameters"]
    assert all(value is None or isinstance(value, str) for value in found.values())
    read = {
        name: json.loads(value) if isinstance(parameters.get(name), (list, dict)) else value
        for name, value in found.items()
    }
    assert (told["operation"], read) == (operation, parameters)
    assert told.get("readVersion") == (versions(tmp_path / "t")[-2] if len(statements) > 1 else None)


def test_columns_that_are_mapped_are_told_of_with_what_they_are_called_in_files(
    tmp_path: Path, connect: Connect
) -> None:
    lake: lakedbapi.Connection = connect(tmp_path, autocommit=True)
    lake.execute(MAPPED[0])
    lake.execute("ALTER TABLE t ADD COLUMN l.element.w INTEGER")
    (found,) = json.loads(info(tmp_path / "t")["operationParameters"]["columns"])
    metadata = found["column"].pop("metadata")
    assert found == {"column": {"name": "l.element.w", "type": "integer", "nullable": True}}
    assert metadata["delta.columnMapping.physicalName"].startswith("col-")
