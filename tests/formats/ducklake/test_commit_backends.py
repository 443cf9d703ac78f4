"""The same commits on every database that can hold a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timezone
from decimal import Decimal as PyDecimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compliance.peers.lakes import Place, on_backend
from lakedbapi.engine.base import ROW_ID, Query, RelationName, ScanRelation
from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.errors import ConflictError
from lakedbapi.model.catalog import AsOf
from lakedbapi.model.changes import Changes, RowChanges, StagedRows
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.types import Decimal, Field, List, Scalar, Schema, Struct
from lakedbapi.transaction import Contents
from tests.formats.ducklake.writing import Lake, arrow, column, open_catalog, row_changes

_VALUES: dict[str, Any] = {
    "boolean": True,
    "int8": -8,
    "int64": -(2**63),
    "uint32": 2**32 - 1,
    "uint64": 2**64 - 1,
    "float32": 0.5,
    "float64": 1e300,
    "date": date(2020, 2, 29),
    "time": time(12, 34, 56, 500_000),
    "timestamp": datetime(2020, 1, 1, 1, 2, 3, 4),
    "timestamptz": datetime(2020, 1, 1, tzinfo=timezone.utc),
    "interval": pa.MonthDayNano([14, 3, 3_723_500_000_000]),
    "varchar": "it's \\ é\n",
    "json": '{"a": [1]}',
    "blob": b"\xaa\x00'b",
    "uuid": "75a50b21-1eca-46a4-b2cd-cbe0707125cb",
}


@pytest.fixture(params=["sqlite", "postgresql", "mysql", "duckdb"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with on_backend(request.param, tmp_path) as place:
        yield place


def rows(lake: Lake, name: str = "t") -> list[tuple[Any, ...]]:
    """The live rows with their row ids first, in order."""
    table = lake.table(name)
    scan, _ = Contents(table, lake.base, RowChanges()).scan()
    query = Query(
        "SELECT row_id, * EXCLUDE (row_id) FROM lake.main.t ORDER BY ALL",
        {RelationName("lake", "main", "t"): ScanRelation(scan, {ROW_ID: "row_id"})},
    )
    return [tuple(row.values()) for row in lake.engine.fetch(query).to_pylist()]


def test_files_and_deletes(lake: Lake) -> None:
    lake.create("t", column("i", "int32"), column("s", "varchar"))
    lake.insert("t", *((i, f"é{i}") for i in range(20)))
    lake.delete("t", {0: [1]})
    lake.delete("t", {0: [2, 3]})
    lake.commit(lake.update("t", {0: [4]}, [(40, "x", 4)]))
    lake.commit(row_changes(lake.table("t"), removed=frozenset({0})))
    assert rows(lake) == [(4, 40, "x")]
    past = Lake(lake.catalog, lake.engine)
    past.base = lake.catalog.as_of(AsOf(version=4))
    assert past.count() == 17


def test_rows_of_every_type_in_the_catalog(inlining: Lake) -> None:
    lake = inlining
    fields = [
        *(column(f"c_{name}", name) for name in _VALUES),
        column("c_decimal", Decimal(10, 2)),
        column("c_list", List(Field("element", Scalar("varchar")))),
        column("c_struct", Struct((Field("a", Scalar("int32")), Field("b", Scalar("varchar"))))),
        column('odd "name" %s :x', "int32"),
    ]
    table = lake.create("t", *fields)
    values = (*_VALUES.values(), PyDecimal("3.50"), ["a,b", None, "it's \\ NULL"], {"a": 1, "b": "x'y"}, 5)
    row = arrow(table, [values])
    empty = pa.table([pa.nulls(1, field.type) for field in row.schema], names=row.column_names)
    lake.commit(row_changes(table, rows=(StagedRows(pa.concat_tables([row, empty])),)))
    if not lake.catalog.keeps_rows(table, 2):
        pytest.skip("this backend keeps no nested rows")
    (group,) = lake.base.row_groups(table)
    for name in row.column_names:
        assert group.rows.column(name).to_pylist() == [row.column(name)[0].as_py(), None], name


def test_rows_in_the_catalog_change(inlining: Lake) -> None:
    lake = inlining
    table = lake.create("t", column("i", "int32"))
    lake.insert_inlined("t", (1,), (2,), (3,))
    (group,) = lake.base.row_groups(table)
    new = StagedRows(arrow(table, [(20,)]), pa.array([1]))
    base = lake.base
    update = row_changes(table, deleted_rows={group.key: DeleteVector.of([1])}, rows=(new,))
    lake.commit(update)
    assert rows(lake) == [(0, 1), (1, 20), (2, 3)]
    with pytest.raises(ConflictError):
        lake.catalog.commit(base, update)
    lake.insert("t", *((i,) for i in range(100, 120)))
    lake.delete("t", {next(iter(lake.base.files(table).column("file_id").to_pylist())): [0, 19]})
    assert len(rows(lake)) == 3 + 18
    assert lake.last_changes() == "inlined_delete:1"


def test_tables_change(inlining: Lake) -> None:
    lake = inlining
    table = lake.create("t", column("i", "int32"), comment="c")
    lake.insert_inlined("t", (1,))
    lake.alter("t", schema=Schema((*table.schema.fields, column("n", "int32", initial_default="7"))), comment="d")
    lake.insert_inlined("t", (2, 3))
    assert rows(lake) == [(0, 1, 7), (1, 2, 3)]
    new = lake.new_table("t", column("a", "varchar"))
    lake.commit(
        Changes(
            tables={table.id: None, new.id: new},
            rows={new.id: RowChanges(rows=(StagedRows(arrow(new, [("x",)])),))},
        )
    )
    assert rows(lake) == [(0, "x")]
    assert lake.last_changes() == 'dropped_table:1,created_table:"main"."t",inlined_insert:2'


def test_concurrent_commits_of_two_clients(lake: Lake, place: Place, engine: DuckDBEngine) -> None:
    lake.create("t", column("i", "int32"))
    other = Lake(open_catalog(place, data_inlining_row_limit="0"), engine)
    table = lake.table("t")
    mine = row_changes(table, files=lake.written(table, arrow(table, [(1,)])))
    other.insert("t", (2,))
    lake.commit(mine)
    assert rows(lake) == [(0, 2), (1, 1)]
    delete = lake.deletion("t", {0: [0]})
    other.pin()
    other.commit(delete)
    with pytest.raises(ConflictError):
        lake.commit(delete)
