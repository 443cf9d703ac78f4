"""Deletion vectors as files: what descriptors point to is there, framed and checked, and small ones need no file."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from lakedbapi.deletes.roaring import MAGIC
from lakedbapi.formats.delta import vector_files
from lakedbapi.formats.delta.deletion_vectors import read_vectors
from lakedbapi.formats.delta.vector_files import VectorFiles
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.of(str(tmp_path))


def scattered(seed: int, count: int = 1000) -> DeleteVector:
    return DeleteVector.of(np.random.default_rng(seed).integers(0, 1_000_000, count))


def test_several_vectors_share_a_file(storage: Storage) -> None:
    vectors = [scattered(seed) for seed in range(3)]
    files = VectorFiles(storage, storage.root)
    descriptors = files.write(vectors)
    (path,) = files.written
    data = Path(path).read_bytes()
    assert data[0] == 1
    end = 1
    for descriptor, vector in zip(descriptors, vectors, strict=True):
        assert (descriptor["storageType"], descriptor["offset"]) == ("u", end)
        assert descriptor["cardinality"] == len(vector)
        size = descriptor["sizeInBytes"]
        assert struct.unpack_from(">I", data, end) == (size,)
        body = data[end + 4 : end + 4 + size]
        assert body[:4] == MAGIC
        assert struct.unpack_from(">I", data, end + 4 + size) == (zlib.crc32(body),)
        end += size + 8
    assert end == len(data)
    assert read_vectors(storage, storage.root, descriptors) == vectors


def test_small_vectors_lie_in_the_log(storage: Storage) -> None:
    vectors = [DeleteVector.of([3]), scattered(1), DeleteVector.of([0, 7, 2**40])]
    files = VectorFiles(storage, storage.root)
    descriptors = files.write(vectors)
    assert [d["storageType"] for d in descriptors] == ["i", "u", "i"]
    assert "offset" not in descriptors[0]
    assert read_vectors(storage, storage.root, descriptors) == vectors


def test_a_file_has_an_end(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_files, "_FILE_SIZE", 3000)
    vectors = [scattered(seed) for seed in range(5)]
    files = VectorFiles(storage, storage.root, prefix_length=2)
    descriptors = files.write(vectors)
    assert len(files.written) == 5
    sizes = [descriptor["sizeInBytes"] for descriptor in descriptors]
    assert [Path(path).stat().st_size for path in files.written] == [1 + 4 + size + 4 for size in sizes]
    assert all(len(descriptor["pathOrInlineDv"]) == 22 for descriptor in descriptors)
    assert {Path(path).parent.name for path in files.written} == {d["pathOrInlineDv"][:2] for d in descriptors}
    assert read_vectors(storage, storage.root, descriptors) == vectors


def test_no_vectors_need_no_file(storage: Storage) -> None:
    files = VectorFiles(storage, storage.root)
    assert files.write([]) == []
    assert files.written == []
