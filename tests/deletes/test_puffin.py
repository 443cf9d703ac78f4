"""Puffin containers: what they hold, and that damage is noticed."""

from __future__ import annotations

import json
import struct

import pytest

from lakedbapi.deletes import puffin
from lakedbapi.errors import DataError, NotSupportedError


def container(*contents: bytes, flags: int = 0, **changed: object) -> bytes:
    data, entries = puffin.MAGIC, []
    for number, content in enumerate(contents):
        entry = {"type": "x", "offset": len(data), "length": len(content), "properties": {"n": str(number)}}
        entries.append({**entry, **changed})
        data += content
    payload = json.dumps({"blobs": entries}).encode()
    return data + puffin.MAGIC + payload + struct.pack("<iBxxx", len(payload), flags) + puffin.MAGIC


def test_blobs_come_in_order_with_their_properties() -> None:
    found = puffin.blobs(container(b"one", b"", b"three"), "f.puffin")
    assert [(blob.content, blob.properties) for blob in found] == [
        (b"one", {"n": "0"}),
        (b"", {"n": "1"}),
        (b"three", {"n": "2"}),
    ]


def test_a_file_without_blobs_is_fine() -> None:
    assert puffin.blobs(container(), "f.puffin") == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PFA1",
        container(b"one")[:-1],
        b"PFA2" + container(b"one")[4:],
        container(b"one", offset=1_000_000),
        container(b"one", length=-1),
        container(b"one", offset=0),
        container(b"one").replace(b'"offset"', b'"offzet"'),
        container(b"one").replace(b'{"blobs"', b'["blobs"'),
        container()[:-12] + struct.pack("<iBxxx", 1_000_000, 0) + puffin.MAGIC,
    ],
)
def test_damage_is_an_error_that_names_the_file(data: bytes) -> None:
    with pytest.raises(DataError, match=r"f\.puffin"):
        puffin.blobs(data, "f.puffin")


def test_compression_is_refused() -> None:
    for data in (container(b"one", flags=1), container(b"one", **{"compression-codec": "zstd"})):
        with pytest.raises(NotSupportedError, match=r"f\.puffin"):
            puffin.blobs(data, "f.puffin")
