"""Columns with the path of their table before them, and fields of structs behind them: `schema.table.column.field`."""

from __future__ import annotations

import pytest

from tests.formats.lake import Lake

ROWS = [(1, {"n": {"x": 5}, "y": 6}), (2, {"n": {"x": 7}, "y": 8})]


@pytest.fixture
def nested(lake: Lake) -> Lake:
    """`t` with structs in a struct, and another `t` in the schema `b`."""
    lake.create("CREATE TABLE t (id INTEGER, st STRUCT(n STRUCT(x INTEGER), y INTEGER))")
    lake("INSERT INTO t VALUES (1, {'n': {'x': 5}, 'y': 6}), (2, {'n': {'x': 7}, 'y': 8})")
    lake.commit()
    lake("CREATE SCHEMA b")
    lake.commit()
    lake.create("CREATE TABLE b.t (id INTEGER, st STRUCT(y INTEGER))")
    lake("INSERT INTO b.t VALUES (7, {'y': 8})")
    lake.commit()
    return lake


def test_of_the_table_that_a_statement_changes(nested: Lake) -> None:
    for path in ("t", "main.t", "lake.main.t", "lake.t", "MAIN.T"):
        returning = f"RETURNING {path}.st.n.x, {path}.id"
        assert nested(f"SELECT {path}.st.n.x, {path}.st.y FROM t WHERE {path}.id = 1") == [(5, 6)]
        assert nested(f"UPDATE t SET id = {path}.st.n.x WHERE {path}.st.y = 6 {returning}") == [(5, 5)]
        assert nested(f"UPDATE t SET {path}.st.y = 9, {path}.id = {path}.st.y WHERE {path}.st.n.x = 5") == 1
        on = f"(SELECT 5 AS k) s ON {path}.st.n.x = s.k"
        assert nested(f"MERGE INTO t USING {on} WHEN MATCHED THEN UPDATE SET id = {path}.st.y") == 1
        assert nested.rows() == [ROWS[1], (9, {"n": {"x": 5}, "y": 9})]
        assert nested(f"DELETE FROM t WHERE {path}.st.n.x = 5 AND {path}.st.y = 9") == 1
        assert nested(f"INSERT INTO t VALUES (3, NULL) {returning}") == [(None, 3)]
        nested.connection.rollback()


def test_of_a_table_that_is_read_beside_its_namesake(nested: Lake) -> None:
    beside = "EXISTS (SELECT 1 FROM b.t WHERE b.t.id = main.t.st.n.x AND b.t.st.y = main.t.st.y)"
    assert nested(f"UPDATE t SET id = 4 WHERE {beside} AND main.t.st.y > 6 RETURNING main.t.st.n.x") == [(7,)]
    assert nested("DELETE FROM main.t USING b.t WHERE main.t.st.y = b.t.st.y") == 1
    merge = "MERGE INTO main.t USING b.t ON main.t.id = b.t.st.y WHEN NOT MATCHED THEN INSERT VALUES (b.t.st.y, NULL)"
    assert nested(merge) == 1
    assert nested.rows() == [ROWS[0], (8, None)]


def test_of_tables_at_an_earlier_version(nested: Lake) -> None:
    before = nested.connection.snapshot_id if nested.kind.format == "ducklake" else None
    travel = "FOR TIMESTAMP AS OF now()" if before is None else f"FOR VERSION AS OF {before}"
    nested("SELECT 1")
    assert nested(f"SELECT main.t.id, main.t.st.n.x FROM main.t {travel} WHERE main.t.st.y = 6") == [(1, 5)]
    assert nested(f"SELECT lake.main.t.st.y FROM lake.main.t {travel} ORDER BY lake.main.t.id") == [(6,), (8,)]
    assert nested(f"SELECT main.t.st.y, z.st.y FROM main.t, b.t {travel} z WHERE main.t.st.y = z.st.y") == [(8, 8)]


def test_in_a_view_that_is_read_at_an_earlier_version(nested: Lake) -> None:
    if nested.kind.format != "ducklake":
        pytest.skip("the catalog keeps no views")
    nested(
        "CREATE VIEW v AS SELECT main.t.id, main.t.st.n.x, lake.main.t.st.y, o.id AS other FROM main.t, b.t AS o "
        "WHERE main.t.st.n.x = o.id"
    )
    version = nested.commit()
    nested("DELETE FROM t")
    assert nested(f"SELECT * FROM main.v FOR VERSION AS OF {version}") == [(2, 7, 8, 7)]
    assert nested(f"SELECT main.v.x FROM main.v FOR VERSION AS OF {version}") == [(7,)]
