"""Puffin containers: what they hold, that their bytes are the specification's, and that damage is noticed."""

from __future__ import annotations

import json
import struct

import pytest

from lakedbapi.deletes import puffin, roaring
from lakedbapi.deletes.puffin import Blob
from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.model.delete_vector import DeleteVector


def container(*contents: bytes, flags: int = 0, **changed: object) -> bytes:
    data, entries = puffin.MAGIC, []
    for number, content in enumerate(contents):
        entry = {"type": "x", "offset": len(data), "length": len(content), "properties": {"n": str(number)}}
        entries.append({**entry, **changed})
        data += content
    payload = json.dumps({"blobs": entries}).encode()
    return data + puffin.MAGIC + payload + struct.pack("<iBxxx", len(payload), flags) + puffin.MAGIC


def test_blobs_come_in_order_with_their_properties() -> None:
    found = puffin.blobs(container(b"one", b"", b"three"), "f.puffin", "x")
    assert [(blob.content, blob.properties) for blob in found] == [
        (b"one", {"n": "0"}),
        (b"", {"n": "1"}),
        (b"three", {"n": "2"}),
    ]


def test_other_blobs_are_left_aside_however_they_are_stored() -> None:
    data = container(b"one", **{"compression-codec": "zstd"})
    assert puffin.blobs(data, "f.puffin", "y") == []


def test_a_file_has_the_bytes_of_the_specification() -> None:
    written = puffin.encode([Blob("x", b"one", {"n": "0"}, (7,), 5, 6), Blob("y", b"", {})], {"created-by": "me"})
    payload = (
        b'{"blobs":[{"type":"x","fields":[7],"snapshot-id":5,"sequence-number":6,"offset":4,"length":3,'
        b'"properties":{"n":"0"}},{"type":"y","fields":[],"snapshot-id":-1,"sequence-number":-1,"offset":7,"length":0,'
        b'"properties":{}}],"properties":{"created-by":"me"}}'
    )
    footer = b"PFA1" + payload + struct.pack("<i", len(payload)) + b"\0\0\0\0PFA1"
    assert written.data == b"PFA1one" + footer
    assert written.footer_size == len(footer)
    assert written.extents == [(4, 3), (7, 0)]


def test_what_is_written_is_read() -> None:
    blobs = [Blob("x", b"one", {"n": "é"}, [7], 5, 6), Blob("x", b"", {}, [])]
    assert puffin.blobs(puffin.encode(blobs).data, "f.puffin", "x") == blobs


def test_vectors_of_several_files_share_a_container() -> None:
    vectors = {"a.parquet": DeleteVector.of([1, 5]), "b.parquet": DeleteVector.of([(1 << 32) + 1])}
    written = puffin.encode(
        [puffin.deletion_vector(v, path, fields=[2147483645], properties={"k": "v"}) for path, v in vectors.items()]
    )
    found = puffin.blobs(written.data, "f.puffin", puffin.DELETION_VECTOR)
    assert [blob.properties for blob in found] == [
        {"referenced-data-file": "a.parquet", "cardinality": "2", "k": "v"},
        {"referenced-data-file": "b.parquet", "cardinality": "1", "k": "v"},
    ]
    contents = [written.data[offset : offset + length] for offset, length in written.extents]
    assert [roaring.decode(content, "f.puffin") for content in contents] == list(vectors.values())


def test_a_file_without_blobs_is_fine() -> None:
    assert puffin.blobs(container(), "f.puffin", "x") == []


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
        puffin.blobs(data, "f.puffin", "x")


def test_compression_is_refused() -> None:
    for data in (container(b"one", flags=1), container(b"one", **{"compression-codec": "zstd"})):
        with pytest.raises(NotSupportedError, match=r"f\.puffin"):
            puffin.blobs(data, "f.puffin", "x")
