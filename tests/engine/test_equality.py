"""Equality deletes: rows that a delete file names by value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from lakedbapi.engine.base import PART, POSITION
from lakedbapi.engine.duckdb import DuckDBEngine, perfile
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.scan import EqualityDeletes, Scan
from lakedbapi.model.types import Field, Scalar, Schema

from .conftest import SCHEMA, Ask, group, write

ID, NAME = SCHEMA.fields


def equality(
    files: Sequence[WrittenFile], reach: Sequence[tuple[int | None, int]], data: Sequence[tuple[int, int]], *keys: Field
) -> EqualityDeletes:
    """`reach` and `data`: (scope, sequence number) of each delete file and data file."""
    scopes, numbers = zip(*reach, strict=True)
    deletes = pa.table(
        {
            "path": [file.path for file in files],
            "file_size_bytes": [file.file_size_bytes for file in files],
            "scope": pa.array(scopes, pa.int64()),
            "sequence_number": pa.array(numbers, pa.int64()),
        }
    )
    of_data = [pa.array(column, pa.int64()) for column in zip(*data, strict=True)]
    return EqualityDeletes(keys or (ID,), deletes, *of_data)


def test_only_lower_sequence_numbers_are_reached(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = [*write(engine, directory, "select 1, 'old'"), *write(engine, directory, "select 1, 'new'")]
    deletes = write(engine, directory, "select 1, NULL")
    found = equality(deletes, [(None, 2)], [(0, 1), (0, 2)])
    scan = Scan(SCHEMA, (group(files, equality_deletes=(found,)),))
    assert ask("select name from t", scan) == [("new",)]
    assert ask("select count(*) from t", scan) == [(1,)]


def test_a_scope_is_reached_alone(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = [*write(engine, directory, "select 1, 'a'"), *write(engine, directory, "select 1, 'b'")]
    deletes = write(engine, directory, "select 1, NULL")
    found = equality(deletes, [(7, 2)], [(7, 1), (8, 1)])
    assert ask("select name from t", Scan(SCHEMA, (group(files, equality_deletes=(found,)),))) == [("b",)]


def test_null_and_nan_are_values(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    schema = Schema((ID, Field("x", Scalar("float64"), 2)))
    files = write(engine, directory, "values (1, NULL), (2, 'nan'::double), (3, 0.5)", schema)
    deletes = write(engine, directory, "values (NULL::bigint, NULL::double), (NULL, 'nan'::double)", schema)
    found = equality(deletes, [(None, 2)], [(0, 1)], schema.fields[1])
    assert ask("select id from t", Scan(schema, (group(files, equality_deletes=(found,)),))) == [(3,)]


def test_several_keys_and_several_sets_of_keys(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "values (1, 'a'), (1, 'b'), (2, 'a'), (3, NULL), (4, 'd')")
    pairs, names = write(engine, directory, "values (1, 'b'), (3, NULL)"), write(engine, directory, "select 9, 'd'")
    both = equality(pairs, [(None, 2)], [(0, 1)], NAME, ID), equality(names, [(None, 3)], [(0, 1)], NAME)
    scan = Scan(SCHEMA, (group(files, equality_deletes=both),))
    assert ask("select id, name from t order by id", scan) == [(1, "a"), (2, "a")]


def test_a_key_that_was_dropped_renamed_or_widened(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    narrow = Schema((Field("k", Scalar("int32"), 1), NAME))
    files, deletes = (
        write(engine, directory, "values (1, 'a'), (2, 'b')", narrow),
        write(engine, directory, "select 2, 'x'"),
    )
    found = equality(deletes, [(None, 2)], [(0, 1)], Field("name", Scalar("int64"), 1))
    dropped = Schema((NAME,))  # The dropped key had the name that another column has now.
    assert ask("select * from t", Scan(dropped, (group(files, equality_deletes=(found,)),))) == [("a",)]


def test_a_key_that_is_a_constant_of_the_file(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = [*write(engine, directory, "select 1, 'x'"), *write(engine, directory, "select 2, 'x'")]
    deletes = write(engine, directory, "select 0, 'b'")
    found = equality(deletes, [(None, 2)], [(0, 1), (0, 1)], NAME)
    more = group(files, equality_deletes=(found,), constants=pa.table({"2": ["a", "b"]}))
    assert ask("select id from t", Scan(SCHEMA, (more,))) == [(1,)]


def test_positions_stay_physical_beside_positional_deletes(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    files = write(engine, directory, "select i, 'n' from range(10) r(i)")
    deletes = write(engine, directory, "select i, NULL from range(0, 10, 3) r(i)")
    found = equality(deletes, [(None, 2)], [(0, 1)])
    scan = Scan(SCHEMA, (group(files, {0: [1, 9]}, equality_deletes=(found,)),))
    rows = ask("select id, p from t where id > 1 order by id", scan, {PART: "part", POSITION: "p"})
    assert rows == [(2, 2), (4, 4), (5, 5), (7, 7), (8, 8)]


@pytest.mark.parametrize("leaves", [2, 1000])
def test_every_file_against_every_delete(
    engine: DuckDBEngine, directory: str, ask: Ask, monkeypatch: pytest.MonkeyPatch, leaves: int
) -> None:
    """All scopes and sequence numbers together, with and without a join for values that differ by file."""
    monkeypatch.setattr(perfile, "MAX_LEAVES", leaves)
    data = list(itertools.product((1, 2), (1, 3, 5)))
    reach = [(None, 2), (1, 4), (2, 1), (2, 5)]
    files = [
        file
        for number in range(len(data))
        for file in write(engine, directory, f"select i, '{number}' from range(4) r(i)")
    ]
    deletes = [file for number in range(len(reach)) for file in write(engine, directory, f"select {number}, NULL")]
    found = equality(deletes, reach, data)
    left = {
        (id, str(number))
        for number, (scope, sequence) in enumerate(data)
        for id in range(4)
        if not (sequence < reach[id][1] and reach[id][0] in (None, scope))
    }
    assert set(ask("select id, name from t", Scan(SCHEMA, (group(files, equality_deletes=(found,)),)))) == left
    expected = [any(s < q and r in (None, c) for r, q in reach) for c, s in data]
    np.testing.assert_array_equal(found.reached(), expected)


def test_columns_may_have_short_names(engine: DuckDBEngine, directory: str, ask: Ask) -> None:
    odd = Schema((Field("k0", Scalar("int64"), 1), Field("s", Scalar("varchar"), 2)))
    files, deletes = (
        write(engine, directory, "values (1, 'a'), (2, 'b')", odd),
        write(engine, directory, "select 2, 'x'", odd),
    )
    found = equality(deletes, [(None, 2)], [(0, 1)], odd.fields[0])
    assert ask("select * from t", Scan(odd, (group(files, equality_deletes=(found,)),))) == [(1, "a")]
