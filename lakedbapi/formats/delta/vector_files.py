"""Deletion vectors into files (protocol, "Deletion Vector Format", "Deletion Vector File Storage Format").

1 byte                  version of the file, 1
for each vector         its framed bitmap (`deletes.roaring`), to which the descriptor's offset points
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from lakedbapi.deletes import roaring
from lakedbapi.formats.delta.deletion_vectors import encode_z85
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage

_VERSION = b"\x01"
_INLINE = 60
"""Bytes of a bitmap up to which it goes into the log itself: hardly longer there than the name of a file."""
_FILE_SIZE = 2 * 2**20
"""Bytes after which the next vector goes to another file."""
_FRAME = 8


class VectorFiles:
    """Writes the vectors of one commit. `written` has the full paths of the files, for the removal after a failure."""

    def __init__(self, storage: Storage, root: str, prefix_length: int = 0) -> None:
        """`prefix_length` > 0: each file goes to a directory with a random name of so many characters."""
        self._storage = storage
        self._root = root
        self._prefix_length = prefix_length
        self.written: list[str] = []

    def write(self, vectors: Sequence[DeleteVector]) -> list[Mapping[str, Any]]:
        """Store the vectors, few files for all of them; returns their descriptors, in order."""
        bodies = [roaring.encode_body(vector) for vector in vectors]
        descriptors: list[dict[str, Any]] = [
            {"sizeInBytes": len(body), "cardinality": len(vector)} for body, vector in zip(bodies, vectors, strict=True)
        ]
        waiting: list[int] = []
        size = len(_VERSION)
        for number, body in enumerate(bodies):
            if len(body) <= _INLINE:
                descriptors[number] = {"storageType": "i", "pathOrInlineDv": encode_z85(body), **descriptors[number]}
                continue
            if waiting and size + len(body) + _FRAME > _FILE_SIZE:
                self._write_file(waiting, bodies, descriptors)
                waiting, size = [], len(_VERSION)
            waiting.append(number)
            size += len(body) + _FRAME
        if waiting:
            self._write_file(waiting, bodies, descriptors)
        return [*descriptors]

    def _write_file(self, numbers: Sequence[int], bodies: Sequence[bytes], descriptors: list[dict[str, Any]]) -> None:
        id = uuid.uuid4()
        prefix = uuid.uuid4().hex[: self._prefix_length]
        content = bytearray(_VERSION)
        for number in numbers:
            descriptors[number] = {
                "storageType": "u",
                "pathOrInlineDv": prefix + encode_z85(id.bytes),
                "offset": len(content),
                **descriptors[number],
            }
            content += roaring.framed(bodies[number])
        path = f"{self._root}{prefix}{'/' if prefix else ''}deletion_vector_{id}.bin"
        self.written.append(path)
        self._storage.write_exclusive(path, bytes(content))
