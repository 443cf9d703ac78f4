"""GENERATED … AS IDENTITY: values for new rows that bring none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.dml.target import Target
from lakedbapi.errors import DataError
from lakedbapi.model.types import Field, Identity

_FAR = 2**62
"""More steps than any column has, and few enough to add to."""


class Identities:
    """The identity columns of a table during one statement. `marks` are the furthest values so far by column name."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._columns = [
            (i, field, field.identity) for i, field in enumerate(target.fields) if field.identity is not None
        ]
        self._start = {field.name: self._mark(field, identity) for _, field, identity in self._columns}
        self._marks = dict(self._start)

    @property
    def raised(self) -> dict[str, int]:
        """The marks that this statement raised."""
        return {column: mark for column, mark in self._marks.items() if mark != self._start[column]}

    def fill(self, rows: pa.Table) -> pa.Table:
        """`rows` (all columns of the table) with a value for every NULL of an identity column, in row order.

        As if the rows came one by one: a row that brings a value raises the mark for the rows after it.
        """
        for i, field, identity in self._columns:
            filled = self._fill(rows.column(i), field, identity)
            rows = rows.set_column(i, rows.schema.field(i), filled)
        return rows

    def _fill(self, column: pa.ChunkedArray, field: Field, identity: Identity) -> pa.ChunkedArray:
        if not len(column):
            return column
        missing = pc.is_null(column).to_numpy()
        mark = self._marks[field.name]
        given = _steps(pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy(), mark, identity.step)
        generated = np.cumsum(missing)
        # In steps from the mark: a row follows the furthest value given before it, plus what was generated since.
        base = np.maximum.accumulate(np.where(missing, 0, given - generated)).clip(0)
        steps = base + generated
        last = mark + int(steps[-1]) * identity.step
        if not -(1 << 63) <= last < 1 << 63:
            raise self._exhausted(field)
        try:
            values = pa.array(_at(steps, mark, identity.step)).cast(column.type)
        except pa.ArrowInvalid as error:
            raise self._exhausted(field) from error
        self._marks[field.name] = last
        return pc.if_else(missing, values, column)

    def _exhausted(self, field: Field) -> DataError:
        return DataError(
            f"identity column {self._target.table.name}.{field.name} has no values left: give it a wider type"
        )

    def _mark(self, field: Field, identity: Identity) -> int:
        target = self._target
        staged = target.view.changes.identities.get((target.table.id, field.name))
        if staged is not None:
            return staged
        return target.catalog.next_identity(target.view.snapshot, target.table, field.name) - identity.step


def _steps(values: npt.NDArray[np.int64], mark: int, step: int) -> npt.NDArray[np.int64]:
    """How many steps of `step` it takes at least from `mark` to each of `values`, 0 where it lies behind; `_FAR` at
    most. Distances need all 64 bits."""
    ends = max(mark, -(1 << 63)), min(mark, (1 << 63) - 1)
    beyond = values > ends[0] if step > 0 else values < ends[1]
    forward = values.view(np.uint64) - np.uint64(mark % (1 << 64))
    distance = np.where(beyond, forward if step > 0 else ~forward + np.uint64(1), np.uint64(0))
    size = np.uint64(abs(step))
    steps = distance // size + (distance % size != 0)
    found: npt.NDArray[np.int64] = np.minimum(steps, np.uint64(_FAR)).astype(np.int64)
    return found


def _at(steps: npt.NDArray[np.int64], mark: int, step: int) -> npt.NDArray[np.int64]:
    """The values so many steps after `mark`, which all are of 64 bits."""
    wrapped = steps.view(np.uint64) * np.uint64(step % (1 << 64)) + np.uint64(mark % (1 << 64))
    found: npt.NDArray[np.int64] = wrapped.view(np.int64)
    return found
