"""Puffin: a container file of named blobs, such as deletion vectors (Iceberg v3, DuckLake).

Magic, the blobs back to back, then the footer: magic, JSON payload, its length (4 bytes little-endian), 4 flag bytes,
magic.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakedbapi.errors import DataError, NotSupportedError

MAGIC = b"PFA1"
DELETION_VECTOR = "deletion-vector-v1"
_TAIL = 12
"""Bytes behind the payload: its length, flags, magic."""
_COMPRESSED = 1


@dataclass(frozen=True)
class Blob:
    type: str
    properties: Mapping[str, str]
    content: bytes


def is_container(data: bytes) -> bool:
    return data[:4] == MAGIC


def blobs(data: bytes, source: str) -> Sequence[Blob]:
    """All blobs of a Puffin file, in order. `source` names it in errors: DataError when it is damaged."""
    footer = _footer(data, source)
    entries = footer.get("blobs") if isinstance(footer, dict) else None
    if not isinstance(entries, list):
        raise _corrupt(source, "its footer lists no blobs")
    return [_blob(data, entry, source) for entry in entries]


def _footer(data: bytes, source: str) -> Any:
    if len(data) < 2 * len(MAGIC) + _TAIL or data[:4] != MAGIC or data[-4:] != MAGIC:
        raise _corrupt(source, f"it does not start and end with {MAGIC.decode()}")
    length, flags = struct.unpack_from("<iB", data, len(data) - _TAIL)
    start = len(data) - _TAIL - length
    if length < 0 or start < 2 * len(MAGIC) or data[start - 4 : start] != MAGIC:
        raise _corrupt(source, f"its footer says that it has {length} bytes")
    if flags & _COMPRESSED:
        raise NotSupportedError(f"The Puffin file {source} has a compressed footer, which cannot be read.")
    try:
        return json.loads(data[start : start + length])
    except ValueError as error:
        raise _corrupt(source, f"its footer is no JSON ({error})") from error


def _blob(data: bytes, entry: Any, source: str) -> Blob:
    try:
        kind, offset, length = str(entry["type"]), int(entry["offset"]), int(entry["length"])
        properties = {str(key): str(value) for key, value in (entry.get("properties") or {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _corrupt(source, f"an entry of its footer is incomplete: {entry!r}") from error
    if entry.get("compression-codec"):
        raise NotSupportedError(f"The Puffin file {source} has compressed blobs, which cannot be read.")
    if offset < len(MAGIC) or length < 0 or offset + length > len(data):
        raise _corrupt(source, f"a blob of {length} bytes at {offset} lies outside of it")
    return Blob(kind, properties, data[offset : offset + length])


def _corrupt(source: str, reason: str) -> DataError:
    return DataError(f"The Puffin file {source} is corrupt: {reason}. Restore the file from a copy.")
