"""What is known of the values of one column in each file of a list, and what follows for comparisons with constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.scan import ColumnBounds, PartitionColumn
from lakedbapi.model.types import Decimal, Field, Scalar, Type
from lakedbapi.query.truth import Mask, Truth

_ORDERED = frozenset(
    [
        "boolean",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "date",
        "time",
        "time_ns",
        "timestamp",
        "timestamp_s",
        "timestamp_ms",
        "timestamp_ns",
        "timestamptz",
        "timestamptz_ns",
        "varchar",
        "uuid",
    ]
)
"""Scalar types whose bounds in Arrow have the engine's order."""


_INVERSE = {"<>": "=", ">": "<="}


def is_comparable(type: Type) -> bool:
    """Whether files can be told apart by a column of this type."""
    return isinstance(type, Decimal) or (isinstance(type, Scalar) and type.name in _ORDERED)


@dataclass(frozen=True)
class Evidence:
    """Per file: every non-NULL value but NaN lies in [`lower`, `upper`] where these are known (not null).

    `nulls`, `values`, `nans`: whether there may be NULLs, non-NULL values, NaNs. `parts` are calendar parts and
    buckets of the values, by transform; null = not known.
    """

    lower: pa.Array
    upper: pa.Array
    nulls: Mask
    values: Mask
    nans: Mask
    parts: Mapping[str, pa.Array]

    @property
    def count(self) -> int:
        return len(self.nulls)

    def compare(self, operator: str, constant: pa.Scalar, parts: Mapping[str, int | None]) -> Truth:
        """The truth of `column <operator> constant`; `parts`: the constant under the transforms of `self.parts`."""
        if not constant.is_valid:
            return Truth.always(None, self.count)
        if _is_nan(constant):
            return Truth(self.values, self.values, self.nulls)
        if operator in _INVERSE:
            return ~self.compare(_INVERSE[operator], constant, parts)
        return Truth(*self._compare(operator, constant, parts), self.nulls)

    def _compare(self, operator: str, constant: pa.Scalar, parts: Mapping[str, int | None]) -> tuple[Mask, Mask]:
        """(can be true, can be false) of `=`, `<`, `<=` and `>=`."""
        below = self._or_unknown(pc.less(self.lower, constant))
        if operator == "<":
            return self._some(below), self._some(self._or_unknown(pc.greater_equal(self.upper, constant)) | self.nans)
        if operator == ">=":
            true, false = self._compare("<", constant, parts)
            return false, true
        at_most = self._or_unknown(pc.less_equal(self.lower, constant))
        if operator == "<=":
            return self._some(at_most), self._some(self._or_unknown(pc.greater(self.upper, constant)) | self.nans)
        true = at_most & self._or_unknown(pc.greater_equal(self.upper, constant))
        for transform, value in parts.items():
            if value is not None:
                true &= self._or_unknown(pc.equal(self.parts[transform], value))
        return self._some(true), self._some(~self._all_equal(constant) | self.nans)

    def is_in(self, constants: pa.Array, with_null: bool) -> Truth:
        """The truth of `column IN (constants…)`, none of them NULL or NaN; `with_null`: and a NULL.

        With a NULL, `IN (…)` is NULL where `IN […]` is FALSE, and trees do not tell the two apart.
        """
        values = np.unique(_sortable(constants))
        known = _mask(pc.and_(self.lower.is_valid(), self.upper.is_valid()), unknown=False)
        first = np.zeros(self.count, np.int64)
        after = np.full(self.count, len(values), np.int64)
        first[known] = np.searchsorted(values, _sortable(self.lower.filter(pa.array(known))), side="left")
        after[known] = np.searchsorted(values, _sortable(self.upper.filter(pa.array(known))), side="right")
        some_equal = first < after
        true = self._some(some_equal)
        false = self._some(~(self._single & some_equal) | self.nans)
        if with_null:
            return Truth(true, false, self.nulls | false)
        return Truth(true, false, self.nulls)

    def starts_with(self, prefix: str, is_whole: bool) -> Truth:
        """The truth of `column LIKE '<prefix>…'`; `is_whole`: the pattern is the prefix and nothing but `%`."""
        reaches = self._or_unknown(pc.greater_equal(self.upper, prefix))
        lower_has = pc.starts_with(self.lower, prefix)
        starts = self._or_unknown(pc.or_(pc.less_equal(self.lower, prefix), lower_has))
        inside = _mask(pc.and_(lower_has, pc.starts_with(self.upper, prefix)), unknown=False)
        false = ~inside if is_whole else np.ones(self.count, np.bool_)
        return Truth(self._some(reaches & starts), self._some(false), self.nulls)

    def is_null(self) -> Truth:
        return Truth(self.nulls, self.values, np.zeros(self.count, np.bool_))

    @cached_property
    def _single(self) -> Mask:
        return _mask(pc.equal(self.lower, self.upper), unknown=False)

    def _all_equal(self, constant: pa.Scalar) -> Mask:
        return self._single & _mask(pc.equal(self.lower, constant), unknown=False)

    def _some(self, mask: Mask) -> Mask:
        """Only files that have values can have one for which a comparison is TRUE or FALSE."""
        return mask & self.values

    @staticmethod
    def _or_unknown(mask: pa.Array) -> Mask:
        return _mask(mask, unknown=True)


def evidence(
    field: Field, count: int, bounds: ColumnBounds | None, partitions: Mapping[str, PartitionColumn]
) -> Evidence:
    """What column statistics and partition values (by transform) tell of `field` in each of `count` files."""
    known = _of_bounds(field, count, bounds)
    identity = partitions.get("identity")
    if identity is not None:
        known = _with_identity(known, identity)
    parts = {
        transform: pc.if_else(column.known, column.values, pa.scalar(None, column.values.type))
        for transform, column in partitions.items()
        if transform != "identity"
    }
    if "year" in parts and isinstance(field.type, Scalar) and field.type.name in ("date", "timestamp"):
        known = _with_calendar(known, parts)
    return replace(known, parts=parts)


def _of_bounds(field: Field, count: int, bounds: ColumnBounds | None) -> Evidence:
    type = arrow_type(field.type)
    may = np.ones(count, np.bool_)
    is_float = pa.types.is_floating(type)
    if bounds is None:
        return Evidence(pa.nulls(count, type), pa.nulls(count, type), may, may, may & is_float, {})
    return Evidence(
        bounds.lower,
        bounds.upper,
        _mask(pc.not_equal(bounds.null_count, 0), unknown=True),
        _mask(pc.not_equal(bounds.value_count, 0), unknown=True),
        _mask(bounds.has_nan, unknown=True) if is_float else np.zeros(count, np.bool_),
        {},
    )


def _with_identity(known: Evidence, identity: PartitionColumn) -> Evidence:
    """Every row of a file has the file's partition value."""
    has = _mask(identity.known, unknown=False)
    is_null = _mask(identity.values.is_null(), unknown=False)
    is_nan = (
        _mask(pc.is_nan(identity.values), unknown=False)
        if pa.types.is_floating(identity.values.type)
        else np.zeros_like(has)
    )
    exact = has & ~is_null & ~is_nan
    return replace(
        known,
        lower=pc.if_else(pa.array(exact), identity.values, known.lower),
        upper=pc.if_else(pa.array(exact), identity.values, known.upper),
        nulls=np.where(has, is_null, known.nulls),
        values=np.where(has, ~is_null, known.values),
        nans=np.where(has & ~is_null, is_nan, known.nans),
    )


def _with_calendar(known: Evidence, parts: Mapping[str, pa.Array]) -> Evidence:
    """Bounds narrowed to the year, or the month, day, hour in it, of a file."""
    year = parts["year"]
    has = _mask(year.is_valid(), unknown=False)
    start = (_integers(year) - 1970).astype("datetime64[Y]")
    end = (start + np.timedelta64(1, "Y")).astype("datetime64[us]")
    start = start.astype("datetime64[us]")
    inside = has
    for transform, unit in (("month", "M"), ("day", "D"), ("hour", "h")):
        if transform not in parts:
            break
        inside = inside & _mask(parts[transform].is_valid(), unknown=False)
        offset = _integers(parts[transform]) - (transform != "hour")
        finer = start.astype(f"datetime64[{unit}]") + offset.astype(f"timedelta64[{unit}]")
        start = np.where(inside, finer.astype("datetime64[us]"), start)
        end = np.where(inside, (finer + np.ones(1, f"timedelta64[{unit}]")).astype("datetime64[us]"), end)
    last = end - np.timedelta64(1, "us")
    lower = pa.array(start, mask=~has).cast(known.lower.type, safe=False)
    upper = pa.array(last, mask=~has).cast(known.upper.type, safe=False)
    return replace(
        known,
        lower=pc.max_element_wise(known.lower, lower),
        upper=pc.min_element_wise(known.upper, upper),
    )


def _integers(array: pa.Array) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = pc.fill_null(array, 1970).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return values


def _sortable(array: pa.Array) -> npt.NDArray[Any]:
    """The values of an array without nulls in a form that sorts as they do."""
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        return np.asarray(array.to_numpy())
    return np.array(array.to_pylist(), dtype=object)


def _is_nan(constant: pa.Scalar) -> bool:
    return pa.types.is_floating(constant.type) and bool(pc.is_nan(constant).as_py())


def _mask(array: pa.Array | pa.ChunkedArray, *, unknown: bool) -> Mask:
    filled = pc.fill_null(array, unknown)
    mask: Mask = filled.to_numpy(zero_copy_only=False) if isinstance(filled, pa.Array) else filled.to_numpy()
    return np.asarray(mask, dtype=np.bool_)
