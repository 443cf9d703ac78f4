"""Deletion vectors: where a descriptor says that they are (protocol, "Deletion Vectors")."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from lakedbapi.deletes import roaring
from lakedbapi.errors import DamagedFileError, NotSupportedError
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {character: value for value, character in enumerate(_Z85)}
_UUID_LENGTH = 20
_FRAME = 8
"""Bytes around a vector in a file: its length before, its checksum behind."""
_FIRST = 1
"""Where the first vector of a file lies, behind the byte with the file's version; some writers leave that out."""

Descriptor = Mapping[str, Any]
"""`storageType`, `pathOrInlineDv`, `offset`, `sizeInBytes`, `cardinality`."""


def decode_z85(text: str) -> bytes:
    """ZeroMQ's base 85; ValueError for a text that is none."""
    if len(text) % 5:
        raise ValueError(f"its length {len(text)} is no multiple of 5")
    data = bytearray()
    for start in range(0, len(text), 5):
        value = 0
        for character in text[start : start + 5]:
            if character not in _VALUES:
                raise ValueError(f"it has the character {character!r}")
            value = value * 85 + _VALUES[character]
        if value >= 1 << 32:
            raise ValueError(f"{text[start : start + 5]!r} is too large")
        data += value.to_bytes(4, "big")
    return bytes(data)


def encode_z85(data: bytes) -> str:
    """The text of `data`, padded with zero bytes to a multiple of 4."""
    padded = data + bytes(-len(data) % 4)
    text = []
    for start in range(0, len(padded), 4):
        value = int.from_bytes(padded[start : start + 4], "big")
        text.append("".join(_Z85[value // 85**power % 85] for power in (4, 3, 2, 1, 0)))
    return "".join(text)


def file_path(root: str, descriptor: Descriptor) -> str | None:
    """The full path of the file that a vector lies in; None for an inline one."""
    kind, text = descriptor["storageType"], descriptor["pathOrInlineDv"]
    if kind == "i":
        return None
    if kind == "p":
        parts = urlsplit(text)
        return unquote(parts.path) if parts.scheme == "file" else unquote(text)
    if kind != "u":
        raise NotSupportedError(f"a deletion vector of table {root} has the storage type {kind!r}, which is unknown")
    prefix, encoded = text[:-_UUID_LENGTH], text[-_UUID_LENGTH:]
    try:
        name = uuid.UUID(bytes=decode_z85(encoded))
    except ValueError as error:
        raise DamagedFileError(
            f"table {root} names a deletion vector {text!r}, which is no such name: {error}"
        ) from error
    return f"{root}{prefix}{'/' if prefix else ''}deletion_vector_{name}.bin"


def read_vectors(storage: Storage, root: str, descriptors: Sequence[Descriptor]) -> list[DeleteVector]:
    """The vectors of `descriptors`, in their order; DamagedFileError, which names the file, for a damaged one."""
    paths = [file_path(root, descriptor) for descriptor in descriptors]
    stored = [number for number, path in enumerate(paths) if path is not None]
    ranges = [(str(paths[number]), *_range(str(paths[number]), descriptors[number])) for number in stored]
    blobs = dict(zip(stored, storage.read_ranges(ranges), strict=True))
    vectors = []
    for number, (path, descriptor) in enumerate(zip(paths, descriptors, strict=True)):
        found = _inline(descriptor, root) if path is None else roaring.decode(blobs[number], _source(path, descriptor))
        vectors.append(_checked(found, descriptor, path or f"the log of table {root}"))
    return vectors


def _range(path: str, descriptor: Descriptor) -> tuple[int, int]:
    offset = descriptor.get("offset")
    start = _FIRST if offset is None else int(offset)
    if start < _FIRST:
        raise DamagedFileError(
            f"the deletion vector in {path} is said to lie at {start}, where the version of the file is"
        )
    return start, start + int(descriptor["sizeInBytes"]) + _FRAME


def _source(path: str, descriptor: Descriptor) -> str:
    offset = descriptor.get("offset")
    return f"{path} at offset {_FIRST if offset is None else offset}"


def _inline(descriptor: Descriptor, root: str) -> DeleteVector:
    source = f"the log of table {root}"
    try:
        data = decode_z85(descriptor["pathOrInlineDv"])
    except ValueError as error:
        raise DamagedFileError(f"The deletion vector in {source} is corrupt: it is no Z85 text, {error}.") from error
    size = int(descriptor["sizeInBytes"])
    if len(data) < size:
        raise DamagedFileError(
            f"The deletion vector in {source} is corrupt: it has {len(data)} bytes instead of {size}."
        )
    return roaring.decode_body(data[:size], source)


def _checked(vector: DeleteVector, descriptor: Descriptor, source: str) -> DeleteVector:
    if len(vector) != descriptor["cardinality"]:
        raise DamagedFileError(
            f"The deletion vector in {source} is corrupt: it has {len(vector)} rows, the log says "
            f"{descriptor['cardinality']}. Restore the file from a copy."
        )
    return vector
