"""Puffin: a container file of named blobs, such as deletion vectors (Iceberg v3, DuckLake).

Magic, the blobs back to back, then the footer: magic, JSON payload, its length (4 bytes little-endian), 4 flag bytes,
magic (Iceberg's puffin-spec.md).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakedbapi.deletes import roaring
from lakedbapi.errors import DamagedFileError, NotSupportedError
from lakedbapi.model.delete_vector import DeleteVector

MAGIC = b"PFA1"
DELETION_VECTOR = "deletion-vector-v1"
_TAIL = 12
"""Bytes behind the payload: its length, flags, magic."""
_COMPRESSED = 1
_UNASSIGNED = -1
"""The snapshot and sequence number of a blob that is written before its snapshot is committed."""


@dataclass(frozen=True)
class Blob:
    """`fields` are the ids of the columns that the blob is about."""

    type: str
    content: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    fields: Sequence[int] = ()
    snapshot_id: int = _UNASSIGNED
    sequence_number: int = _UNASSIGNED


@dataclass(frozen=True)
class Container:
    """The bytes of a Puffin file, with what catalogs note of them.

    `extents` has the offset and length of each blob; `footer_size` counts from the footer's first magic to the end.
    """

    data: bytes
    extents: Sequence[tuple[int, int]]
    footer_size: int


def deletion_vector(
    vector: DeleteVector, data_file: str, *, fields: Sequence[int] = (), properties: Mapping[str, str] | None = None
) -> Blob:
    """The blob that says which rows of `data_file` (its path as the table's metadata has it) are gone.

    The Iceberg specification wants `fields` to be the reserved id of row positions; `properties` come on top of the
    two that it requires.
    """
    required = {"referenced-data-file": data_file, "cardinality": str(len(vector))}
    return Blob(DELETION_VECTOR, roaring.encode(vector), {**required, **(properties or {})}, fields)


def encode(blobs: Sequence[Blob], properties: Mapping[str, str] | None = None) -> Container:
    """A file of `blobs`; `properties` are those of the file, such as `created-by`."""
    extents: list[tuple[int, int]] = []
    offset = len(MAGIC)
    for blob in blobs:
        extents.append((offset, len(blob.content)))
        offset += len(blob.content)
    described = [_entry(blob, *extent) for blob, extent in zip(blobs, extents, strict=True)]
    payload = json.dumps({"blobs": described, "properties": dict(properties or {})}, separators=(",", ":")).encode()
    footer = MAGIC + payload + struct.pack("<iI", len(payload), 0) + MAGIC
    return Container(b"".join([MAGIC, *(blob.content for blob in blobs), footer]), extents, len(footer))


def _entry(blob: Blob, offset: int, length: int) -> Mapping[str, Any]:
    return {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": offset,
        "length": length,
        "properties": dict(blob.properties),
    }


def is_container(data: bytes) -> bool:
    return data[:4] == MAGIC


def blobs(data: bytes, source: str, type: str) -> Sequence[Blob]:
    """The blobs of `type` of a Puffin file, in order. `source` names it in DamagedFileError."""
    footer = _footer(data, source)
    entries = footer.get("blobs") if isinstance(footer, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _corrupt(source, "its footer lists no blobs")
    return [_blob(data, entry, source) for entry in entries if entry.get("type") == type]


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
        offset, length = int(entry["offset"]), int(entry["length"])
        properties = {str(key): str(value) for key, value in (entry.get("properties") or {}).items()}
        fields = [int(id) for id in entry.get("fields") or ()]
        snapshot_id, sequence_number = (
            int(entry.get(name, _UNASSIGNED)) for name in ("snapshot-id", "sequence-number")
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _corrupt(source, f"an entry of its footer is incomplete: {entry!r}") from error
    if entry.get("compression-codec"):
        raise NotSupportedError(f"The Puffin file {source} has compressed blobs, which cannot be read.")
    if offset < len(MAGIC) or length < 0 or offset + length > len(data):
        raise _corrupt(source, f"a blob of {length} bytes at {offset} lies outside of it")
    content = data[offset : offset + length]
    return Blob(entry["type"], content, properties, fields, snapshot_id, sequence_number)


def _corrupt(source: str, reason: str) -> DamagedFileError:
    return DamagedFileError(f"The Puffin file {source} is corrupt: {reason}. Restore the file from a copy.")
