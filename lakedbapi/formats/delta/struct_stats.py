"""Statistics of checkpoints that have them as structs (`stats_parsed`) instead of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


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
    return None if value is None else json.dumps(_plain(value), separators=(",", ":"))


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
    if isinstance(value, Decimal):
        return float(value)
    return value if not isinstance(value, bytes) else None
