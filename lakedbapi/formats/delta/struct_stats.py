"""Statistics of checkpoints as structs (`stats_parsed`), beside JSON or instead of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.formats.delta.stats import bound, has_bounds, json_lines, loaded, storage_type
from lakedbapi.formats.delta.written_stats import dumps
from lakedbapi.model.arrow import arrow_type
from lakedbapi.model.types import Field, Scalar, Struct


def with_json_stats(checkpoint: pa.Table, read: Callable[[], pa.ChunkedArray]) -> pa.Table:
    """`checkpoint` with the `add.stats` that are missing made from the structs that `read` gives, a column `add` with
    the field `stats_parsed` alone."""
    adds = checkpoint["add"].combine_chunks()
    fields = {field.name: adds.field(number) for number, field in enumerate(adds.type)}
    texts = fields.get("stats")
    if texts is not None and texts.null_count == adds.null_count:
        return checkpoint
    known = [None] * len(adds) if texts is None else texts.to_pylist()
    parsed = pc.struct_field(read().combine_chunks(), "stats_parsed").to_pylist()
    made = [text if text is not None else _text(value) for text, value in zip(known, parsed, strict=True)]
    fields["stats"] = pa.array(made, pa.string())
    complete = pa.StructArray.from_arrays(list(fields.values()), names=list(fields), mask=adds.is_null())
    return checkpoint.set_column(checkpoint.schema.get_field_index("add"), "add", complete)


def _text(value: dict[str, Any] | None) -> str | None:
    return None if value is None else dumps(_plain(value))


def _plain(value: Any) -> Any:
    """As the JSON form of statistics has it, without what is unknown."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(timezone.utc).replace(tzinfo=None)
            return value.isoformat(timespec="milliseconds") + "Z"
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, date):
        return value.isoformat()
    return value if not isinstance(value, bytes) else None


def parsed_stats(stats: pa.ChunkedArray, fields: Sequence[Field], names: Mapping[int, str]) -> pa.Array:
    """The statistics of files (JSON) as structs; NULL for a file without. `names` are those of fields in the log.

    What is no value of its column is left out.
    """
    target = _type(fields, names, arrow_type)
    if stats.null_count != len(stats):
        try:
            parsed = _read(stats, _type(fields, names, _in_json))
        except pa.ArrowException:  # Some file has something unusual in its statistics.
            entries = [None if text is None else _entry(loaded(text), fields, names) for text in stats.to_pylist()]
            parsed = pa.array(entries, _type(fields, names, lambda type: storage_type(arrow_type(type))))
        return parsed.cast(target)
    return pa.nulls(len(stats), target)


def _type(fields: Sequence[Field], names: Mapping[int, str], leaf: Callable[[Any], pa.DataType]) -> pa.DataType:
    """Without the parts that no column has: Parquet has no structs without fields."""
    bounds = _struct(fields, names, lambda field: leaf(field.type) if _is_bounded(field) else None)
    counts = _struct(fields, names, lambda field: pa.int64())
    parts = {"numRecords": pa.int64(), "minValues": bounds, "maxValues": bounds, "nullCount": counts}
    return pa.struct([(name, type) for name, type in {**parts, "tightBounds": pa.bool_()}.items() if type is not None])


def _struct(
    fields: Sequence[Field], names: Mapping[int, str], leaf: Callable[[Field], pa.DataType | None]
) -> pa.DataType | None:
    found = []
    for field in fields:
        type = _struct(field.type.fields, names, leaf) if isinstance(field.type, Struct) else leaf(field)
        if type is not None:
            found.append((names.get(field.id, field.name), type))
    return pa.struct(found) if found else None


def _is_bounded(field: Field) -> bool:
    return has_bounds(field) and field.type != Scalar("boolean")


def _in_json(type: Any) -> pa.DataType:
    found = arrow_type(type)
    return pa.string() if pa.types.is_date(found) else found


def _read(stats: pa.ChunkedArray, type: pa.DataType) -> pa.Array:
    parsed = json_lines(stats, pa.schema(list(type)))
    columns = [column.combine_chunks() for column in parsed.select([field.name for field in type]).columns]
    return pa.StructArray.from_arrays(columns, fields=list(type), mask=stats.combine_chunks().is_null())


def _entry(stats: Mapping[str, Any], fields: Sequence[Field], names: Mapping[int, str]) -> dict[str, Any]:
    lower, upper = (
        _values(
            stats.get(part), fields, names, lambda value, field: bound(value, field) if _is_bounded(field) else None
        )
        for part in ("minValues", "maxValues")
    )
    nulls = _values(stats.get("nullCount"), fields, names, lambda value, _: value if _is_count(value) else None)
    count, tight = stats.get("numRecords"), stats.get("tightBounds")
    return {
        "numRecords": count if _is_count(count) else None,
        "minValues": lower,
        "maxValues": upper,
        "nullCount": nulls,
        "tightBounds": tight if isinstance(tight, bool) else None,
    }


def _values(
    values: Any, fields: Sequence[Field], names: Mapping[int, str], leaf: Callable[[Any, Field], Any]
) -> dict[str, Any]:
    known = values if isinstance(values, dict) else {}
    found = {}
    for field in fields:
        name = names.get(field.id, field.name)
        value = known.get(name)
        found[name] = (
            _values(value, field.type.fields, names, leaf) if isinstance(field.type, Struct) else leaf(value, field)
        )
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
