"""Statistics of new rows, and how they widen those of a table.

DuckDB drops filters and answers min() and max() from the table-level bounds: they may be too wide, never too narrow.
Unknown bounds are said by having no row for the column: DuckDB would take NULL bounds for those of the next file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.formats.ducklake.text import to_text
from lakedbapi.formats.ducklake.values import parse_text
from lakedbapi.model.changes import FileStats
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Schema, Struct, Type, children


@dataclass(frozen=True)
class ColumnStats:
    """One row of `ducklake_table_column_stats`."""

    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None


def leaves(fields: Iterable[Field]) -> Iterator[Field]:
    """The fields that have no fields of their own, depth first."""
    for field in fields:
        inside = children(field.type)
        if inside:
            yield from leaves(inside)
        else:
            yield field


def widen(
    known: Mapping[int, ColumnStats] | None, added: Sequence[Mapping[int, FileStats]], schema: Schema
) -> dict[int, ColumnStats | None]:
    """The new table-level statistics by leaf field id, only those that change; None = the row must go.

    `known` None means that the table never had rows. `added` are the statistics of the new files or row groups.
    A column that has no row stays without one: its bounds are unknown for the rows that were there before.
    """
    changed: dict[int, ColumnStats | None] = {}
    for leaf in leaves(schema.fields):
        if known is not None and leaf.id not in known:
            continue
        old = None if known is None else known[leaf.id]
        new = _widened(old, [stats.get(leaf.id) for stats in added], leaf.type)
        if new != old:
            changed[leaf.id] = new
    return changed


def _widened(old: ColumnStats | None, added: Sequence[FileStats | None], type: Type) -> ColumnStats | None:
    lows: list[str | None] = []
    highs: list[str | None] = []
    nulls: list[bool | None] = []
    nans: list[bool | None] = []
    if old is not None:
        nulls.append(old.contains_null)
        nans.append(old.contains_nan)
        if old.min_value is not None and old.max_value is not None:
            lows.append(old.min_value)
            highs.append(old.max_value)
        elif any(stats is None or stats.value_count != 0 for stats in added):
            # NULL bounds mean "no values yet" to one writer and "unknown" to another.
            return None
    for stats in added:
        if stats is None:
            return None
        nulls.append(None if stats.null_count is None else stats.null_count > 0)
        if stats.value_count != 0:
            nans.append(stats.has_nan)
            lows.append(stats.lower)
            highs.append(stats.upper)
    contains_null, contains_nan = _any(nulls), _any(nans) if is_float(type) else None
    if not lows:
        return ColumnStats(contains_null, contains_nan, None, None)
    low, high = _extreme(lows, type, least=True), _extreme(highs, type, least=False)
    if low is None or high is None:
        return None
    return ColumnStats(contains_null, contains_nan, low, high)


def _extreme(texts: Sequence[str | None], type: Type, *, least: bool) -> str | None:
    """The text of the least or greatest value; None if one of them is unknown or cannot be compared."""
    if not _is_tracked(type) or None in texts:
        return None
    values = parse_text(texts, type)
    if values.null_count:
        return None
    if is_float(type):
        values = values.fill_null(0.0).to_numpy()
        # NaN, which rows in the catalog may have as a bound, is the greatest value in DuckDB.
        keys = np.where(np.isnan(values), np.inf, values)
        order = np.lexsort((np.isnan(values), keys))
        return texts[int(order[0 if least else -1])]
    extreme = pc.min_max(values)["min" if least else "max"]
    index: int = pc.index(values, extreme).as_py()
    return texts[index]


def _any(flags: Sequence[bool | None]) -> bool | None:
    """Three-valued OR; None = unknown."""
    if any(flags):
        return True
    return None if None in flags else False


def is_float(type: Type) -> bool:
    return isinstance(type, Scalar) and type.name in ("float32", "float64")


def fits(bounds: Iterable[str | None], type: Type) -> bool:
    """Whether texts of bounds are values of the type."""
    texts = [bound for bound in bounds if bound is not None]
    return not _is_tracked(type) or parse_text(texts, type).null_count == 0


def row_stats(rows: pa.Table, schema: Schema) -> dict[int, FileStats]:
    """The statistics of rows in memory by leaf field id; `rows` has the columns of `schema` in order."""
    found: dict[int, FileStats] = {}
    for number, field in enumerate(schema.fields):
        column = rows.column(number)
        for leaf, values in _leaf_values(field, column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)):
            found[leaf.id] = _array_stats(values, leaf.type, missing=len(values) < rows.num_rows)
    return found


def _leaf_values(field: Field, array: pa.Array) -> Iterator[tuple[Field, pa.Array]]:
    if isinstance(field.type, Struct):
        for child, values in zip(field.type.fields, array.flatten(), strict=True):
            yield from _leaf_values(child, values)
    elif isinstance(field.type, List):
        yield from _leaf_values(field.type.element, array.flatten())
    elif isinstance(field.type, Map):
        valid = array.filter(array.is_valid())
        yield from _leaf_values(field.type.key, valid.keys)
        yield from _leaf_values(field.type.value, valid.items)
    else:
        yield field, array


def _array_stats(values: pa.Array, type: Type, *, missing: bool) -> FileStats:
    """`missing`: whether there are rows without any value, such as empty lists; they count as nulls."""
    nulls = values.null_count + int(missing)
    count = len(values) - values.null_count
    if not _is_tracked(type) or count == 0:
        return FileStats(None, None, nulls, count, None, None)
    has_nan: bool | None = None
    if is_float(type):
        values = values.drop_null()
        nan = pc.is_nan(values)
        has_nan = bool(pc.any(nan).as_py())
        values = values.filter(pc.invert(nan)) if has_nan else values
        if not len(values):
            return FileStats(None, None, nulls, count, has_nan, None)
    lower, upper = _extremes(values, type)
    return FileStats(lower, upper, nulls, count, has_nan, None, (True, True))


def _extremes(values: pa.Array, type: Type) -> tuple[str | None, str | None]:
    """Text of the least and the greatest value; (None, None) where one has a NUL, which not every catalog can hold."""
    extremes = pc.min_max(values)
    low, high = to_text(pa.concat_arrays([pa.repeat(extremes["min"], 1), pa.repeat(extremes["max"], 1)]), type)
    if "\0" in (low or "") or "\0" in (high or ""):
        return None, None
    return low, high


def _is_tracked(type: Type) -> bool:
    """Whether bounds are kept at all.

    Not for types whose texts come in two encodings (blob) or are ordered otherwise than their values (timetz, interval,
    json), or that DuckDB itself stores with loss (int128).
    """
    return isinstance(type, Decimal) or (isinstance(type, Scalar) and type.name in _TRACKED)


_TRACKED = frozenset(
    {
        *("boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"),
        *("date", "time", "time_ns", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"),
        *("timestamptz", "timestamptz_ns", "varchar", "uuid"),
    }
)
