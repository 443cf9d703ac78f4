"""Expressions that differ from file to file of one `read_parquet`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.model.sql_types import quote_literal

MAX_LEAVES = 1000
"""Planning costs about 50 us for each leaf of a tree; a join costs 7 ns a row whatever the number of files."""


def case_tree(conditions: Sequence[str], leaves: Sequence[str]) -> str:
    """Binary search as nested CASE: `conditions[i]` is true in everything before leaf `i` (the first is not used).

    `file_index` is the same in a whole vector of rows, so that DuckDB decides once a vector and not once a row.
    """
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    left, right = case_tree(conditions[:middle], leaves[:middle]), case_tree(conditions[middle:], leaves[middle:])
    return f"CASE WHEN {conditions[middle]} THEN {left} ELSE {right} END"


class PerFile:
    """Values that are the same in all rows of a file, of one `read_parquet` of `count` files.

    Literals where files agree, else chosen by a CASE tree, and where there are too many different ones by a join.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._joined: list[pa.Array] = []

    def value(self, values: pa.Array, type: str) -> str:
        """SQL for the value of the current row's file; `values` has one for each file."""
        starts = _run_starts(values)
        if len(starts) > MAX_LEAVES:
            self._joined.append(values)
            return f"CAST(_lake_v{len(self._joined) - 1} AS {type})"
        heads = values.take(pa.array(starts))
        leaves = _literals(heads) or self._resources.constants(heads, type)
        return f"CAST({case_tree([f'file_index < {start}' for start in starts], leaves)} AS {type})"

    def join(self) -> str:
        """What has to follow the `read_parquet` in FROM."""
        if not self._joined:
            return ""
        index = pa.array(np.arange(len(self._joined[0]), dtype=np.uint64))
        table = pa.table([index, *self._joined], names=["_lake_f", *(f"_lake_v{i}" for i in range(len(self._joined)))])
        return f" JOIN {self._resources.register(table)} ON _lake_f = file_index"


def _literals(values: pa.Array) -> Sequence[str]:
    """Values that SQL's text has exactly; none if it is not sure of these."""
    if pa.types.is_integer(values.type):
        return ["NULL" if value is None else str(value) for value in values.to_pylist()]
    if pa.types.is_string(values.type) and not pc.any(pc.match_substring(values, "\0")).as_py():
        return ["NULL" if value is None else quote_literal(value) for value in values.to_pylist()]
    return ()


def _run_starts(values: pa.Array) -> list[int]:
    """Where a value differs from the one before it."""
    if len(values) < 2:
        return [0]
    before, after = values.slice(0, len(values) - 1), values.slice(1)
    same: Callable[[pa.Array, pa.Array], pa.Array] = pc.equal
    equal = pc.fill_null(same(before, after), False)
    both_null = pc.and_(before.is_null(), after.is_null())
    changed = pc.invert(pc.or_(equal, both_null)).to_numpy(zero_copy_only=False)
    return [0, *(np.flatnonzero(changed) + 1).tolist()]
