"""Column statistics of files (protocol, "Per-file Statistics")."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING, ROUND_FLOOR
from decimal import Decimal as PyDecimal
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from lakedbapi.formats.delta.texts import EXACT, day, instant
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.scan import ColumnBounds
from lakedbapi.model.types import Decimal, Field, Scalar

_INTEGERS = frozenset({"int8", "int16", "int32", "int64"})
_TIMES = frozenset({"timestamp", "timestamptz"})
_BOUNDED = _INTEGERS | _TIMES | {"float32", "float64", "varchar", "boolean", "date"}
_MIN_BLOCK = 1 << 20
_FEW = 64
"""Up to so many files their statistics are read one by one: the reader of many costs as much as that to start."""
_CUT = 999
"""Microseconds that writers cut off the time of a bound."""
_DIGITS = 15
"""Digits of a decimal that survive a writer's detour through floating point."""
_LOST = 1 << 50
"""Of what does not survive it, less than this part of the number is lost."""
_AWAY = {"minValues": ROUND_FLOOR, "maxValues": ROUND_CEILING}


def has_bounds(field: Field) -> bool:
    return isinstance(field.type, Decimal) or (isinstance(field.type, Scalar) and field.type.name in _BOUNDED)


def record_counts(stats: pa.ChunkedArray) -> pa.Array:
    """Physical rows of each file, deleted ones among them; NULL where the statistics do not tell."""
    texts = stats.combine_chunks()
    found = pc.struct_field(pc.extract_regex(texts, r'^\s*\{\s*"numRecords"\s*:\s*(?P<n>\d{1,18})\s*[,}]'), "n")
    rest = np.flatnonzero(pc.and_(found.is_null(), texts.is_valid()).to_numpy(zero_copy_only=False))
    counts = found.cast(pa.int64())
    if not len(rest):
        return counts
    values = counts.to_pylist()
    for number, text in zip(rest.tolist(), texts.take(pa.array(rest)).to_pylist(), strict=True):
        count = loaded(text).get("numRecords")
        values[number] = count if isinstance(count, int) and count >= 0 else None
    return pa.array(values, pa.int64())


def are_wide(stats: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Whether the statistics of each file say that its bounds are not tight."""
    wide = pc.match_substring_regex(stats, r'"tightBounds"\s*:\s*false')
    found: npt.NDArray[np.bool_] = pc.fill_null(wide, False).to_numpy()
    return found


def column_bounds(stats: pa.ChunkedArray, counts: pa.Array, field: Field, name: str) -> ColumnBounds:
    """What `stats` tell of a column that is called `name` in them. `counts` are the rows of each file.

    Text that is no JSON, and values of another type, tell nothing.
    """
    lower, upper, nulls = _read(stats, field, name)
    values = pc.if_else(pc.less_equal(nulls, counts), pc.subtract(counts, nulls), None)
    return ColumnBounds(lower, upper, nulls, values, pa.nulls(len(counts), pa.bool_()))


def _read(stats: pa.ChunkedArray, field: Field, name: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    target = arrow_type(field.type)
    kind = _json_type(field)
    if kind is not None and len(stats) > _FEW:
        try:
            parsed = _parsed(stats, name, kind)
            lower, upper, nulls = (_member(parsed, part) for part in ("minValues", "maxValues", "nullCount"))
            if kind != target:
                lower, upper = pc.cast(lower, target), pc.cast(upper, target)
            return lower, _widened(upper), nulls
        except pa.ArrowException:
            pass  # Some file has something unusual in its statistics.
    entries = [loaded(text) for text in stats.to_pylist()]
    lower, upper = (
        pa.array([_value(entry, part, name, field) for entry in entries], storage_type(target)).cast(target)
        for part in ("minValues", "maxValues")
    )
    return lower, _widened(upper), pa.array([_count(entry, name) for entry in entries], pa.int64())


def _json_type(field: Field) -> pa.DataType | None:
    """The type to read bounds as from JSON in one go; None = they have to be read one by one."""
    if not isinstance(field.type, Scalar):
        return None
    if field.type.name in _INTEGERS:
        return pa.int64()
    if field.type.name in ("float32", "float64"):
        return pa.float64()
    return pa.bool_() if field.type.name == "boolean" else pa.string()


def _parsed(stats: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.Table:
    inner = pa.struct([pa.field(name, kind)])
    return json_lines(
        stats,
        pa.schema([("minValues", inner), ("maxValues", inner), ("nullCount", pa.struct([pa.field(name, pa.int64())]))]),
    )


def json_lines(stats: pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    """What `schema` names of the statistics of each file; an ArrowException when some file has something else there."""
    lines = pc.fill_null(stats, "{}").combine_chunks()
    all_ = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    text = pc.binary_join(all_, "\n")[0].as_buffer()
    block = max(_MIN_BLOCK, 2 * (pc.max(pc.binary_length(lines)).as_py() or 0))
    parsed = pj.read_json(
        pa.BufferReader(text),
        read_options=pj.ReadOptions(block_size=block),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if parsed.num_rows != len(lines):
        raise pa.ArrowInvalid("statistics with line breaks")
    return parsed


def _member(parsed: pa.Table, part: str) -> pa.Array:
    return pc.struct_field(parsed[part].combine_chunks(), [0])


def _widened(upper: pa.Array) -> pa.Array:
    """Times are cut to milliseconds, also upper bounds."""
    if not pa.types.is_timestamp(upper.type):
        return upper
    micros = upper.cast(pa.int64())
    whole = pc.equal(micros, pc.multiply(pc.divide(micros, 1000), 1000))
    return pc.if_else(whole, pc.add(micros, _CUT), micros).cast(upper.type)


def storage_type(target: pa.DataType) -> pa.DataType:
    """The type of what `bound` gives, which can be cast to `target`."""
    if not pa.types.is_temporal(target):
        return target
    return pa.int32() if pa.types.is_date(target) else pa.int64()


@lru_cache(maxsize=1024)
def loaded(text: str | None) -> dict[str, Any]:
    """The statistics of a file, which nobody may change; nothing from a text that is none.

    The next state of a table has nearly the same files.
    """
    try:
        entry = json.loads(text or "{}", parse_float=PyDecimal)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _part(entry: dict[str, Any], part: str, name: str) -> Any:
    values = entry.get(part)
    return values.get(name) if isinstance(values, dict) else None


def _count(entry: dict[str, Any], name: str) -> int | None:
    count = _part(entry, "nullCount", name)
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def _value(entry: dict[str, Any], part: str, name: str, field: Field) -> Any:
    return bound(_part(entry, part, name), field, _AWAY[part])


def bound(value: Any, field: Field, away: str | None = None) -> Any:
    """A bound, as what its Arrow type is stored as; None for what is no value of the column.

    A decimal whose last digits may be lost is rounded `away`, without a direction it is None.
    """
    try:
        return None if value is None else _typed(value, field, away)
    except (ValueError, OverflowError, ArithmeticError):
        return None


def _typed(value: Any, field: Field, away: str | None) -> Any:
    type = field.type
    is_number = isinstance(value, (int, PyDecimal)) and not isinstance(value, bool)
    if isinstance(type, Decimal):
        return _decimal(value, type, away) if is_number else None
    assert isinstance(type, Scalar)
    if type.name in _INTEGERS:
        limit = 1 << (int(type.name[3:]) - 1)
        return value if isinstance(value, int) and is_number and -limit <= value < limit else None
    if type.name in ("float32", "float64"):
        return float(value) if is_number else None
    if type.name == "boolean":
        return value if isinstance(value, bool) else None
    if not isinstance(value, str):
        return None
    if type.name == "date":
        return day(value)
    if type.name in _TIMES:
        return instant(value)
    value.encode()  # A ValueError for half of a surrogate pair, where some writers cut texts.
    return value


def _decimal(value: int | PyDecimal, type: Decimal, away: str | None) -> PyDecimal | None:
    number = PyDecimal(value)
    exact = not number or number.adjusted() + type.scale < _DIGITS
    if not exact:
        if away is None:
            return None
        lost = EXACT.divide(EXACT.abs(number), PyDecimal(_LOST))
        number = EXACT.subtract(number, lost) if away == ROUND_FLOOR else EXACT.add(number, lost)
    quantum = PyDecimal(1).scaleb(-type.scale, EXACT)
    found = number.quantize(quantum, None if exact else away, EXACT)
    return found if found.adjusted() < type.precision - type.scale else None
