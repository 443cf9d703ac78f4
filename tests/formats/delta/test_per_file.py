"""What is known of the files of a table is kept when it changes, and is that of the files that are there then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakedbapi
from lakedbapi import formats
from lakedbapi.formats.delta import pieces
from lakedbapi.formats.delta.snapshot import DeltaSnapshot

SIZES = st.lists(st.integers(0, 4), min_size=1, max_size=8)


def in_pieces(sizes: list[int]) -> pa.Table:
    """A table of such pieces, whose rows are numbered."""
    ends = np.cumsum([0, *sizes])
    parts = [
        pa.table(
            {"n": pa.array(range(start, end), pa.int64()), "s": pa.array(map(str, range(start, end)), pa.string())}
        )
        for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]
    return pa.concat_tables(parts)


@given(SIZES, st.data())
def test_rows_are_taken_from_pieces_in_the_order_that_was_asked_for(sizes: list[int], data: st.DataObject) -> None:
    rows = in_pieces(sizes)
    numbers = data.draw(st.lists(st.integers(0, rows.num_rows - 1), max_size=12)) if rows.num_rows else []
    found = pieces.taken(rows, np.array(numbers, np.int64))
    assert found.schema == rows.schema
    assert found.to_pydict() == {"n": numbers, "s": [str(number) for number in numbers]}


@given(SIZES, st.data(), st.booleans())
def test_rows_that_go_leave_the_others(sizes: list[int], data: st.DataObject, is_long: bool) -> None:
    rows = in_pieces([*sizes, *([2000] if is_long else [])])
    gone = sorted(data.draw(st.sets(st.integers(0, max(rows.num_rows - 1, 0)), max_size=12))) if rows.num_rows else []
    left = [number for number in range(rows.num_rows) if number not in gone]
    found = pieces.without(rows, np.array(gone, np.int64))
    assert found.column("n").to_pylist() == left
    assert pieces.without(rows["n"], np.array(gone, np.int64)).to_pylist() == left


def test_a_list_that_grows_stays_in_few_pieces() -> None:
    rows = in_pieces([5000])
    for _ in range(200):
        rows = pieces.joined(pieces.without(rows, np.array([10, 2000])), in_pieces([2]))
        assert rows["n"].num_chunks <= pieces._PIECES
    assert rows.num_rows == 5000
    assert pieces.joined(in_pieces([3, 4]), in_pieces([2]))["n"].num_chunks == 1


def what_is_known(snapshot: DeltaSnapshot) -> list[object]:
    table = snapshot.find_table(next(iter(snapshot.schemas().values())), "t")
    assert table is not None
    files = snapshot.files(table)
    known: list[object] = [files.sort_by("path").drop_columns(["file_id", "row_id_start"]).to_pydict()]
    order = np.argsort(files["path"].to_numpy())
    for field in table.schema.fields:
        bounds = snapshot.bounds(table, files, field.id)
        if bounds is not None:
            known.append([field.name, *(part.take(pa.array(order)).to_pylist() for part in vars(bounds).values())])
            later = snapshot.bounds(table, files.slice(1), field.id)
            assert later is not None
            assert vars(later) == {name: part.slice(1) for name, part in vars(bounds).items()}
    for key, column in snapshot.partition_values(table, files).items():
        known.append((key, column.values.take(pa.array(order)).to_pylist()))
    return known


CHANGES = [
    "INSERT INTO t SELECT i, i * 10, 'p' || i % 3 FROM range(20) r(i)",
    "DELETE FROM t WHERE i = 4",
    "UPDATE t SET v = -1 WHERE i IN (5, 6)",
    "INSERT INTO t VALUES (100, NULL, NULL), (101, 7, 'p1')",
    "DELETE FROM t WHERE p = 'p2'",
    "ALTER TABLE t RENAME COLUMN v TO w",
    "INSERT INTO t VALUES (102, 8, 'p1')",
    "ALTER TABLE t ALTER COLUMN i TYPE BIGINT",
    "INSERT INTO t VALUES (9000000000, 8, 'p0')",
    "MERGE INTO t USING (VALUES (102)) AS s(i) ON t.i = s.i WHEN MATCHED THEN DELETE",
    "OPTIMIZE t",
    "ALTER TABLE t DROP COLUMN w",
    "INSERT INTO t VALUES (104, 'p0')",
    "TRUNCATE t",
    "INSERT INTO t VALUES (1, 'p0')",
]


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("partitioned", [False, True])
def test_what_is_known_of_files_is_as_if_read_anew_after_each_change(
    tmp_path: Path, partitioned: bool, timed: bool
) -> None:
    place = f"{tmp_path}/lake"
    catalog = formats.get("delta").open(place, {}, read_only=False, create=True)
    by = " PARTITIONED BY (p)" if partitioned else ""
    options = "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"
    options += f", 'delta.enableInCommitTimestamps' = '{str(timed).lower()}'"
    with lakedbapi.connect(f"delta:///{place}", autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t (i INTEGER, v INTEGER, p VARCHAR){by} WITH ({options})")
        for sql in CHANGES:
            connection.execute(sql)
            kept = what_is_known(catalog.latest())
            fresh = formats.get("delta").open(place, {}, read_only=True, create=False)
            assert kept == what_is_known(fresh.latest()), sql
