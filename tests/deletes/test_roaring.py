from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakedbapi.deletes import roaring
from lakedbapi.errors import DataError
from lakedbapi.model.delete_vector import DeleteVector

GOLDEN = Path(__file__).parents[3] / "shared" / "golden" / "deletion-vectors"
FILES = {
    "empty-position-index.bin": [],
    "small-alternating-values-position-index.bin": [1, 3, 5, 7, 9],
    "small-and-large-values-position-index.bin": [100, 101, 2147483747, 2147483748],
}


@pytest.mark.parametrize("name", FILES)
def test_reads_and_writes_the_bytes_of_the_java_implementation(name: str) -> None:
    path = GOLDEN / name
    if not path.exists():
        assert not os.environ.get("LAKE_CI"), f"{path} is missing"
        pytest.skip("the golden deletion vectors are not next to the project")
    blob = path.read_bytes()
    vector = roaring.decode(blob, name)
    assert vector.to_numpy().tolist() == FILES[name]
    assert roaring.encode(vector) == blob


@given(st.lists(st.integers(0, 1 << 40), max_size=200))
def test_round_trip(positions: list[int]) -> None:
    vector = DeleteVector.of(positions)
    assert roaring.decode(roaring.encode(vector), "x") == vector


def test_the_body_is_what_stands_in_the_frame() -> None:
    vector = DeleteVector.of([1, 3, 1 << 33])
    body = roaring.encode_body(vector)
    assert roaring.encode(vector)[4:-4] == body
    assert roaring.decode_body(body, "x") == vector


def test_a_body_without_magic_is_damaged() -> None:
    with pytest.raises(DataError, match=r"x is corrupt: it starts with 0100"):
        roaring.decode_body(roaring.encode_body(DeleteVector.of([1]))[4:], "x")


def test_runs_are_stored_as_runs() -> None:
    assert len(roaring.encode(DeleteVector.of(np.arange(1_000_000)))) < 1_000


def test_positions_beyond_32_bits_get_a_bitmap_each() -> None:
    blob = roaring.encode(DeleteVector.of([5, (7 << 32) + 6]))
    assert struct.unpack_from("<Q", blob, 8) == (2,)
    assert struct.unpack_from("<I", blob, 16) == (0,)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda b: b[:-1], "bytes"),
        (lambda b: b + b"\0", "bytes"),
        (lambda b: b"", "bytes"),
        (lambda b: b[:4] + b"XXXX" + b[8:], "58585858"),
        (lambda b: b[:20] + bytes([b[20] ^ 1]) + b[21:], "checksum"),
        (lambda b: b[:-4] + b"\0\0\0\0", "checksum"),
        (lambda b: _framed(roaring.MAGIC + b[8:12] + b"\xff" * 20), "bitmaps cannot be read"),
    ],
)
def test_a_damaged_vector_is_named_with_the_reason(damage: object, reason: str) -> None:
    blob = roaring.encode(DeleteVector.of([1, 2, 3]))
    with pytest.raises(DataError, match=reason) as raised:
        roaring.decode(damage(blob), "dv.puffin")  # type: ignore[operator]
    assert "dv.puffin" in str(raised.value)


def _framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
