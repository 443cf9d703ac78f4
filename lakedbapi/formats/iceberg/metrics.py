"""What manifests tell of the values in data files: column bounds, and the values of partitions."""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec

from lakedbapi.formats.iceberg.files import LiveFiles
from lakedbapi.formats.iceberg.schemas import transform_name
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.scan import ColumnBounds, PartitionColumn
from lakedbapi.model.types import Decimal, Field, Scalar, Type

_MICROSECONDS = frozenset({"time", "timestamp", "timestamptz"})
_NANOSECONDS = frozenset({"timestamp_ns", "timestamptz_ns"})
_LIMIT = 2**63
_CALENDAR = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
_CALENDAR_TYPES = {
    "date": "D",
    "timestamp": "us",
    "timestamptz": "us",
    "timestamp_ns": "ns",
    "timestamptz_ns": "ns",
}


def column_bounds(
    field: Field, files: pa.Table, all_files: LiveFiles, specs: Mapping[int, PartitionSpec]
) -> ColumnBounds:
    """Metrics of the column, narrowed by what partitions by a part of it tell."""
    lower, upper = (
        _decoded(_looked_up(files, name, field.id), field.type) for name in ("lower_bounds", "upper_bounds")
    )
    for low, high in _of_partitions(field, files, all_files, specs):
        lower = pc.if_else(pc.coalesce(pc.greater(low, lower), lower.is_null()), low, lower)
        upper = pc.if_else(pc.coalesce(pc.less(high, upper), upper.is_null()), high, upper)
    values, nulls, nans = (_looked_up(files, name, field.id) for name in ("value_counts", "null_counts", "nan_counts"))
    return ColumnBounds(lower, upper, nulls, pc.subtract(values, nulls), pc.greater(nans, 0))


def may_share_keys(keys: Sequence[Field], deletes: pa.Table, data: pa.Table) -> pa.Array:
    """For each equality delete file whether its keys may be among the values of some of the data files (spec, Scan
    Planning). Only bounds of the keys tell: the other columns of a delete file are those of an older row."""
    may = pa.array(np.ones(deletes.num_rows, np.bool_))
    for key in keys:
        if isinstance(key.type, Scalar) and key.type.name in ("float32", "float64"):
            continue  # NaN is in no bounds.
        low, high = (_decoded(_looked_up(deletes, name, key.id), key.type) for name in ("lower_bounds", "upper_bounds"))
        first, last = (_decoded(_looked_up(data, name, key.id), key.type) for name in ("lower_bounds", "upper_bounds"))
        outside = pa.array(np.zeros(deletes.num_rows, np.bool_))
        if not first.null_count:
            outside = pc.or_(outside, pc.fill_null(pc.less(high, pc.min_max(first)["min"]), False))
        if not last.null_count:
            outside = pc.or_(outside, pc.fill_null(pc.greater(low, pc.min_max(last)["max"]), False))
        without_nulls = pc.fill_null(pc.equal(_looked_up(deletes, "null_counts", key.id), 0), False)
        may = pc.and_(may, pc.invert(pc.and_(outside, without_nulls)))
    return may


def partition_columns(
    fields: Sequence[Field], files: pa.Table, all_files: LiveFiles, specs: Mapping[int, PartitionSpec]
) -> Mapping[tuple[int, str], PartitionColumn]:
    """Identity and bucket keys; keys by calendar parts and prefixes are in `column_bounds`."""
    by_id = {field.id: field for field in fields}
    found: dict[tuple[int, str], PartitionColumn] = {}
    for spec, position, source, transform in _keys(specs):
        field = by_id.get(source)
        if field is None or not (transform == "identity" or transform.startswith("bucket(")):
            continue
        is_identity = transform == "identity"
        values = (
            identity_values(field, files, all_files, spec, position)
            if is_identity
            else all_files.partition_values(files.column("scope"), spec, position, pa.int64())
        )
        known = pc.equal(files.column("spec_id"), spec).combine_chunks()
        before = found.get((source, transform))
        if before is not None:
            values = pc.if_else(known, values, before.values)
            known = pc.or_(known, before.known)
        found[source, transform] = PartitionColumn(values, known)
    return found


def identity_values(field: Field, files: pa.Table, all_files: LiveFiles, spec_id: int, position: int) -> pa.Array:
    """The column's value in each file, in its Arrow type; NULL also where the file has another spec."""
    values = [
        plain_value(field.type, partition.values[position]) if partition.spec_id == spec_id else None
        for partition in all_files.partitions
    ]
    return _array(field.type, values).take(files.column("scope").combine_chunks())


def identity_keys(specs: Mapping[int, PartitionSpec], spec_id: int) -> Iterator[tuple[int, int]]:
    """(position in the partition, field id) of the identity keys of a spec."""
    for spec, position, source, transform in _keys(specs):
        if spec == spec_id and transform == "identity":
            yield position, source


def _keys(specs: Mapping[int, PartitionSpec]) -> Iterator[tuple[int, int, int, str]]:
    for spec in specs.values():
        for position, field in enumerate(spec.fields):
            yield spec.spec_id, position, field.source_id, transform_name(field.transform)


def plain_value(type: Type, value: Any) -> Any:
    """A stored partition value as Arrow takes it: dates and times are numbers in manifests."""
    if value is None or not isinstance(type, Scalar):
        return value
    if type.name == "uuid":
        return str(value)
    if type.name == "varchar":
        return str(value)
    return value


def _array(type: Type, values: list[Any]) -> pa.Array:
    target = arrow_type(type)
    if pa.types.is_temporal(target):
        number = pa.int32() if target.bit_width == 32 else pa.int64()
        return pa.array(values, number).cast(target)
    if isinstance(type, Decimal):
        return pa.array([None if v is None else decimal.Decimal(v) for v in values], target)
    return pa.array(values, target)


def _looked_up(files: pa.Table, name: str, field_id: int) -> pa.Array:
    return pc.map_lookup(files.column(name).combine_chunks(), pa.scalar(field_id, pa.int32()), "first")


def _decoded(encoded: pa.Array, type: Type) -> pa.Array:
    """Bounds from their single-value serialization (spec, Appendix D). What was written before the column's type was
    widened is shorter; what has no order that is sure to be the engine's is not known."""
    target = arrow_type(type)
    nothing = pa.nulls(len(encoded), target)
    if isinstance(type, Decimal):
        return pa.array([_decimal(value, type) for value in encoded.to_pylist()], target)
    if not isinstance(type, Scalar):
        return nothing
    if type.name == "varchar":
        return pa.array([_text(value) for value in encoded.to_pylist()], target)
    known = nothing
    for width, dtype in _ENCODINGS.get(type.name, ()):
        fits = pc.fill_null(pc.equal(pc.binary_length(encoded), width), False)
        numbers = np.frombuffer(b"".join(encoded.filter(fits).to_pylist()), dtype)
        known = pc.if_else(fits, _spread(_typed(numbers, type.name, width, target), fits), known)
    return known


_ENCODINGS: Mapping[str, tuple[tuple[int, str], ...]] = {
    "boolean": ((1, "?"),),
    "int32": ((4, "<i4"),),
    "int64": ((8, "<i8"), (4, "<i4")),
    "float32": ((4, "<f4"),),
    "float64": ((8, "<f8"), (4, "<f4")),
    "date": ((4, "<i4"),),
    "time": ((8, "<i8"),),
    "timestamp": ((8, "<i8"), (4, "<i4")),
    "timestamptz": ((8, "<i8"),),
    "timestamp_ns": ((8, "<i8"), (4, "<i4")),
    "timestamptz_ns": ((8, "<i8"),),
}
"""Width in bytes and numpy type; the second is that of a type which the column had before."""


def _typed(numbers: npt.NDArray[Any], name: str, width: int, target: pa.DataType) -> pa.Array:
    if name in _MICROSECONDS | _NANOSECONDS:
        if width == 8:
            return pa.array(numbers, pa.int64()).cast(target)
        days = numbers.astype(np.int64)  # It was a date.
        per_day = 86_400_000_000 if name in _MICROSECONDS else 86_400_000_000_000
        fits = np.abs(days) < _LIMIT // per_day
        return pa.array(np.where(fits, days, 0) * per_day, pa.int64(), mask=~fits).cast(target)
    if name == "date":
        return pa.array(numbers, pa.int32()).cast(target)
    if name in ("float32", "float64"):
        return pa.array(numbers, mask=np.isnan(numbers)).cast(target)
    return pa.array(numbers).cast(target)


def _spread(values: pa.Array, places: pa.Array) -> pa.Array:
    """`values` where `places` is true, NULL elsewhere."""
    mask = places.to_numpy(zero_copy_only=False)
    index = np.cumsum(mask) - 1
    return values.take(pa.array(index, mask=~mask))


def _decimal(value: bytes | None, type: Decimal) -> decimal.Decimal | None:
    if value is None:
        return None
    unscaled = int.from_bytes(value, "big", signed=True)
    found = decimal.Decimal(unscaled).scaleb(-type.scale, decimal.Context(prec=40))
    return found if abs(unscaled) < 10**type.precision else None


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _of_partitions(
    field: Field, files: pa.Table, all_files: LiveFiles, specs: Mapping[int, PartitionSpec]
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Bounds that follow from partition values."""
    for spec, position, source, transform in _keys(specs):
        if source == field.id and isinstance(field.type, Scalar):
            unit = _CALENDAR_TYPES.get(field.type.name)
            if transform in _CALENDAR and unit is not None:
                numbers = all_files.partition_values(files.column("scope"), spec, position, pa.int64())
                yield _span(numbers, _CALENDAR[transform], unit, field.type)


def _span(numbers: pa.Array, part: str, unit: str, type: Type) -> tuple[pa.Array, pa.Array]:
    """The first and last instant of the `part`s since 1970 with these numbers.

    Old writers rounded times before 1970 towards it, so that numbers up to 0 may also stand for the part before.
    """
    missing = numbers.is_null().to_numpy(zero_copy_only=False)
    counts: npt.NDArray[np.int64] = pc.fill_null(numbers, 0).to_numpy()
    if unit == "ns":
        days = np.abs(counts.astype(f"datetime64[{part}]").astype("datetime64[D]").astype(np.int64))
        missing = missing | (days > _LIMIT // 86_400_000_000_000 - 366)  # Nanoseconds end in the year 2262.
        counts = np.where(missing, 0, counts)
    start = (counts - (counts <= 0)).astype(f"datetime64[{part}]").astype(f"datetime64[{unit}]")
    end = (counts + 1).astype(f"datetime64[{part}]").astype(f"datetime64[{unit}]") - np.ones(1, f"timedelta64[{unit}]")
    lower, upper = (pa.array(values.astype(np.int64), mask=missing) for values in (start, end))
    target = arrow_type(type)
    if unit == "D":
        return lower.cast(pa.int32()).cast(target), upper.cast(pa.int32()).cast(target)
    return lower.cast(target), upper.cast(target)
