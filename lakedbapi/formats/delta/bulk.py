"""Many file actions of commits, read into columns at once.

What runs over all bytes or lines is NumPy's and Arrow's work, which other threads can do beside.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from lakedbapi.formats.delta.columns import TEXT_MAP, log_name, map_offsets

_MIN_BLOCK = 4 << 20
_NEWLINE = 10
_STARTS = {kind: np.frombuffer(f'{{"{kind}":'.encode(), np.uint8) for kind in ("add", "remove")}
"""What lines begin with that are read at once."""


@dataclass(frozen=True)
class Lines:
    """Lines of one kind: their text, the number of the content that each is from, and the first of them."""

    text: bytes
    contents: npt.NDArray[np.int64]
    first: bytes = b""
    longest: int = 0


def split_lines(contents: Sequence[bytes]) -> tuple[Mapping[str, Lines], Sequence[bytes]]:
    """The lines of `add` and `remove` actions in all of `contents`, and the other lines of each."""
    text = b"\n".join([*contents, bytes(max(map(len, _STARTS.values())))])  # So that all lines are long enough.
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = np.fromiter(map(len, contents), np.int64, len(contents))
    content_of = np.searchsorted(np.cumsum(lengths + 1), starts, side="right")
    rest = np.ones(len(starts), np.bool_)
    found: dict[str, Lines] = {}
    for kind, prefix in _STARTS.items():
        chosen = np.logical_and.reduce([data[starts + number] == byte for number, byte in enumerate(prefix.tolist())])
        rest &= ~chosen
        found[kind] = _chosen(text, starts, ends, chosen, content_of)
    others: list[list[bytes]] = [[] for _ in contents]
    for number in np.flatnonzero(rest).tolist():
        others[content_of[number]].append(text[starts[number] : ends[number]])
    return found, [b"\n".join(lines) for lines in others]


def _chosen(
    text: bytes,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.bool_],
    content_of: npt.NDArray[np.int64],
) -> Lines:
    numbers = np.flatnonzero(chosen)
    if not len(numbers):
        return Lines(b"", numbers)
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    heads = starts[numbers[np.concatenate([[0], breaks + 1])]].tolist()
    tails = ends[numbers[np.concatenate([breaks, [len(numbers) - 1]])]].tolist()
    runs = [text[head:tail] for head, tail in zip(heads, tails, strict=True)]
    first = text[starts[numbers[0]] : ends[numbers[0]]]
    return Lines(b"\n".join(runs), content_of[numbers], first, int((ends - starts)[numbers].max()))


def read_lines(kind: str, lines: Lines, versions: Sequence[int], schema: pa.Schema) -> pa.Table | None:
    """The actions `{"<kind>": {…}}` of `lines` in the columns of `schema`, with the version of each content; None when
    some line is unusual: it has a field that others do not have, a value of another type, or is damaged. Those have to
    be read one by one."""
    if not len(lines.contents):
        return schema.empty_table()
    try:
        first = json.loads(lines.first)[kind]
        known = {log_name(column.name): _json_type(column, first) for column in schema if column.name != "version"}
        # Allowed, and of no use here.
        known = {"stats": pa.string(), "tags": _text_struct(first.get("tags") or {}), **known}
        parsed = pj.read_json(
            io.BytesIO(lines.text),
            read_options=pj.ReadOptions(block_size=max(_MIN_BLOCK, 2 * lines.longest)),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([pa.field(kind, pa.struct(list(known.items())))]),
                unexpected_field_behavior="error",
            ),
        )
    except (ValueError, KeyError, AttributeError, pa.ArrowException):
        return None
    if parsed.num_rows != len(lines.contents):
        return None
    chunks = parsed[kind].chunks
    columns = [
        pa.array(np.array(versions, np.int64)[lines.contents])
        if column.name == "version"
        else pa.chunked_array([_column(chunk.field(log_name(column.name)), column) for chunk in chunks], column.type)
        for column in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _json_type(column: pa.Field, first: dict[str, Any]) -> pa.DataType:
    """Maps are read as structs, with the keys that the first action has."""
    return _text_struct(first.get(log_name(column.name)) or {}) if column.type == TEXT_MAP else column.type


def _text_struct(keys: dict[str, Any]) -> pa.DataType:
    return pa.struct([pa.field(key, pa.string()) for key in keys])


def _column(array: pa.Array, column: pa.Field) -> pa.Array:
    return _map(array, with_nulls=column.name == "partition_values") if column.type == TEXT_MAP else array


def _map(structs: pa.StructArray, *, with_nulls: bool) -> pa.MapArray:
    """Structs of texts as maps; a NULL field is a NULL value, or without `with_nulls` no entry."""
    count, width = len(structs), structs.type.num_fields
    valid = structs.is_valid().to_numpy(zero_copy_only=False)
    entries = np.repeat(valid, width)
    names = pa.array([field.name for field in structs.type], pa.string())
    if width:
        order = np.arange(count * width).reshape(width, count).T.ravel()
        values = pa.concat_arrays([structs.field(number) for number in range(width)]).take(pa.array(order))
        if not with_nulls:
            entries &= values.is_valid().to_numpy(zero_copy_only=False)
    else:
        values = pa.array([], pa.string())
    keys = names.take(pa.array(np.tile(np.arange(width), count)))
    lengths = entries.reshape(count, width).sum(axis=1) if width else np.zeros(count, np.int64)
    mask = pa.array(entries)
    return pa.MapArray.from_arrays(map_offsets(lengths, ~valid), keys.filter(mask), values.filter(mask))
