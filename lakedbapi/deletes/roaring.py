"""Deletion vectors as 64-bit Roaring bitmaps (Iceberg v3 and DuckLake `deletion-vector-v1`, Delta).

The body:
4 bytes                 magic D1 D3 39 64
8 bytes little-endian   number of 32-bit bitmaps
for each                key (the positions' high 32 bits, 4 bytes little-endian, ascending), portable Roaring bitmap

Inside of files it stands in a frame:
4 bytes big-endian      length of the body
the body
4 bytes big-endian      its CRC-32
"""

from __future__ import annotations

import struct
import zlib

from pyroaring import BitMap64

from lakedbapi.errors import DamagedFileError
from lakedbapi.model.delete_vector import DeleteVector

MAGIC = b"\xd1\xd3\x39\x64"
_FRAME = 12
"""Bytes around the bitmaps: length, magic, checksum."""


def encode(vector: DeleteVector) -> bytes:
    """Framed."""
    return framed(encode_body(vector))


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def encode_body(vector: DeleteVector) -> bytes:
    # The portable 64-bit serialization of CRoaring is this layout exactly.
    return MAGIC + _optimized(vector.bitmap).serialize()


def decode(blob: bytes, source: str) -> DeleteVector:
    """`source` names the blob in errors: DamagedFileError when it is not exactly one intact framed vector."""
    if len(blob) < _FRAME + 8:
        raise _corrupt(source, f"it has {len(blob)} bytes, a deletion vector has at least {_FRAME + 8}")
    (length,) = struct.unpack_from(">I", blob, 0)
    if length + 8 != len(blob):
        raise _corrupt(source, f"it has {len(blob)} bytes, but says that it has {length + 8}")
    body = blob[4 : 4 + length]
    _check_magic(body, source)
    (checksum,) = struct.unpack_from(">I", blob, 4 + length)
    if checksum != zlib.crc32(body):
        raise _corrupt(source, "its checksum does not match")
    return decode_body(body, source)


def decode_body(body: bytes, source: str) -> DeleteVector:
    """As `decode`, of a vector without its frame."""
    _check_magic(body, source)
    return DeleteVector(_bitmap(body[4:], source))


def _check_magic(body: bytes, source: str) -> None:
    if body[:4] != MAGIC:
        raise _corrupt(source, f"it starts with {body[:4].hex()} instead of {MAGIC.hex()}")


def _bitmap(data: bytes, source: str) -> BitMap64:
    try:
        bitmap = BitMap64.deserialize(data)
    except Exception as error:  # pyroaring raises different classes in different versions
        raise _corrupt(source, f"its bitmaps cannot be read ({error})") from error
    if bitmap and bitmap.max() >= 1 << 63:
        raise _corrupt(source, f"it has the position {bitmap.max()}, which no row can have")
    return bitmap


def _optimized(bitmap: BitMap64) -> BitMap64:
    copy = bitmap.copy()
    copy.run_optimize()
    return copy


def _corrupt(source: str, reason: str) -> DamagedFileError:
    return DamagedFileError(f"The deletion vector in {source} is corrupt: {reason}. Restore the file from a copy.")
