"""`VectorCache`: deletion vectors that were read or written before. Their files never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import pyarrow as pa

from lakedbapi.formats.delta.columns import DELETION_VECTOR
from lakedbapi.formats.delta.deletion_vectors import Descriptor, read_vectors
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage

_KEPT = 10_000


class VectorCache:
    """Safe to share by threads."""

    def __init__(self) -> None:
        self._vectors: OrderedDict[tuple[object, ...], DeleteVector] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, storage: Storage, root: str, descriptors: Sequence[Descriptor]) -> list[DeleteVector]:
        """As `read_vectors`."""
        keys = [_key(root, descriptor) for descriptor in descriptors]
        with self._lock:
            found = {key: self._vectors[key] for key in keys if key in self._vectors}
        missing = [number for number, key in enumerate(keys) if key not in found]
        if missing:
            read = read_vectors(storage, root, [descriptors[number] for number in missing])
            found |= dict(zip((keys[number] for number in missing), read, strict=True))
            self._keep({keys[number]: vector for number, vector in zip(missing, read, strict=True)})
        return [found[key] for key in keys]

    def of(self, storage: Storage, root: str, files: pa.Table) -> list[DeleteVector]:
        """The vector of each of `files` (with the column `deletion_vector` of `columns.FILES`), empty where it has
        none."""
        descriptors = files["deletion_vector"].to_pylist()
        read = iter(self.read(storage, root, [found for found in descriptors if found is not None]))
        return [DeleteVector() if found is None else next(read) for found in descriptors]

    def keep(self, root: str, descriptors: Sequence[Descriptor], vectors: Sequence[DeleteVector]) -> None:
        """Know vectors that were just written."""
        self._keep({_key(root, found): vector for found, vector in zip(descriptors, vectors, strict=True)})

    def _keep(self, vectors: dict[tuple[object, ...], DeleteVector]) -> None:
        with self._lock:
            self._vectors.update(vectors)
            while len(self._vectors) > _KEPT:
                self._vectors.popitem(last=False)


def _key(root: str, descriptor: Descriptor) -> tuple[object, ...]:
    return (root, *(descriptor.get(field.name) for field in DELETION_VECTOR))
