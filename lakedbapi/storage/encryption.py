"""Encrypted Parquet files, as DuckDB writes and reads them: Parquet's modular encryption with one key a file.

A module is a page's header, a page or the footer: its length, a random nonce, AES-GCM's ciphertext and tag. As in
DuckDB's files no further data is authenticated with a module. A plain file becomes an encrypted one while it is
written: its plain bytes are in memory only, a page at a time.
"""

from __future__ import annotations

import base64
import io
import os
import secrets
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from lakedbapi.errors import DamagedFileError, DataError, NotSupportedError
from lakedbapi.storage import thrift
from lakedbapi.storage.thrift import Struct

_MAGIC, _PLAIN_MAGIC = b"PARE", b"PAR1"
_KEY_BYTES, _NONCE_BYTES, _LENGTH_BYTES, _TAIL_BYTES = 16, 12, 4, 8
_READ_KEY_BYTES = frozenset({16, 24, 32})
_ALGORITHM: Struct = {1: (thrift.STRUCT, {1: (thrift.STRUCT, {})})}
"""What stands before an encrypted footer: AES-GCM for all modules, without data that is authenticated with them."""

# Numbers of fields in Parquet's structs.
_PAGE_BYTES = 3
_SCHEMA, _ROW_GROUPS = 2, 4
_ELEMENT = {"name": 4, "num_children": 5, "kind": 6, "field_id": 9}
_KINDS = {1: "MAP", 2: "MAP_KEY_VALUE", 3: "LIST"}
_CHUNKS, _GROUP_OFFSET, _GROUP_BYTES, _GROUP_NUMBER = 1, 5, 6, 7
_CHUNK_OFFSET, _CHUNK_METADATA, _INDEXES = 2, 3, (4, 5, 6, 7)
_CHUNK_BYTES, _DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER = 7, 9, 10, 11, (14, 15)


def check_available() -> None:
    """NotSupportedError where the package that encrypts is not installed."""
    _cipher(bytes(_KEY_BYTES))


def new_key() -> str:
    """A random key in base64, as catalogs keep it."""
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def key_bytes(key: str, path: str) -> bytes:
    """The key of the file `path`, as its catalog keeps it."""
    try:
        found = base64.b64decode(key, validate=True)
    except ValueError:
        found = b""
    if len(found) not in _READ_KEY_BYTES:
        raise _unreadable(path, "what its catalog has as its key is no AES key in base64")
    return found


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise NotSupportedError(
            "files of an encrypted lake need the package cryptography; pip install 'lakedbapi[encryption]'"
        ) from None
    return AESGCM(key)


@dataclass(frozen=True)
class EncryptedFile:
    """A file that was written whole: its key in base64, and the bytes of the file and of its footer."""

    key: str
    size: int
    footer_size: int


def encrypt(plain: bytes) -> tuple[bytes, EncryptedFile]:
    """A plain Parquet file that is in memory, encrypted with a new key."""
    sink = io.BytesIO()
    writer = EncryptedWriter(sink)
    writer.write(plain)
    file = writer.finish()
    return sink.getvalue(), file


class EncryptedWriter:
    """Takes the bytes of a plain Parquet file, in any pieces, and writes the file to `sink`, encrypted with a new key.

    Bloom filters and page indexes are left out: readers without them read more, and find the same.
    """

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink, self._key = sink, new_key()
        self._aes = _cipher(base64.b64decode(self._key))
        self._pending = bytearray()
        self._wanted = 0
        """Bytes that must be pending before another step is worth it."""
        self._taken = self._size = 0
        """Bytes of the plain file that are done with, and of the encrypted one so far."""
        self._moved: dict[int, int] = {}
        """Where pages begin and end in the encrypted file, by where they do in the plain one."""
        self._pages: list[int] = []
        """Where pages begin in the plain file."""
        self._footer: Struct | None = None
        self._tail = b""
        """What a plain file has after its footer."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._pending += data
        while len(self._pending) >= self._wanted and self._step():
            pass

    def finish(self) -> EncryptedFile:
        """Write the footer; DataError when the plain file is not whole."""
        while self._step():
            pass
        if self._footer is None or self._pending != self._tail:
            raise DataError("a Parquet file that was to be encrypted is not whole")
        start = self._size
        self._put(thrift.serialize(_ALGORITHM))
        self._check_dictionaries(self._footer)
        self._put_module(thrift.serialize(_relocated(self._footer, self._moved)))
        footer_size = self._size - start
        self._put(footer_size.to_bytes(4, "little") + _MAGIC)
        return EncryptedFile(self._key, self._size, footer_size)

    def _step(self) -> bool:
        """Deal with what begins the pending bytes; whether that was possible."""
        if self._footer is not None:
            return False
        if not self._taken:
            return self._take(len(_PLAIN_MAGIC)) and self._put(_MAGIC)
        try:
            head, length = thrift.parse(self._pending)
        except thrift.Incomplete:
            self._wanted = 2 * len(self._pending)  # So that all tries together take linear time.
            return False
        kinds = [head.get(number, (0, None))[0] for number in (1, 2, 3)]
        if kinds == [thrift.I32, thrift.I32, thrift.I32]:
            return self._page(length, head[_PAGE_BYTES][1])
        if kinds[:2] == [thrift.I32, thrift.STRUCT]:
            return self._take(length + head[1][1])  # A Bloom filter: its header, and as many bytes as that says.
        if kinds == [thrift.I32, thrift.LIST, thrift.I64]:
            self._footer, self._tail = head, length.to_bytes(4, "little") + _PLAIN_MAGIC
        return self._take(length)  # The footer, a copy of a column's metadata, or an index.

    def _page(self, head: int, body: int) -> bool:
        if len(self._pending) < head + body:
            self._wanted = head + body
            return False
        self._pages.append(self._taken)
        self._moved[self._taken] = self._size
        with memoryview(self._pending) as pending:
            self._put_module(pending[:head])
            self._put_module(pending[head : head + body])
        self._take(head + body)
        self._moved[self._taken] = self._size
        return True

    def _take(self, count: int) -> bool:
        if len(self._pending) < count:
            self._wanted = count
            return False
        del self._pending[:count]
        self._taken += count
        self._wanted = 0
        return True

    def _put(self, data: bytes) -> bool:
        self._sink.write(data)
        self._size += len(data)
        return True

    def _put_module(self, plain: bytes | memoryview) -> None:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._aes.encrypt(nonce, plain, None)
        self._put((len(nonce) + len(sealed)).to_bytes(4, "little") + nonce)
        self._put(sealed)

    def _check_dictionaries(self, footer: Struct) -> None:
        """DuckDB gets lost in such files, with its whole process."""
        for group in footer[_ROW_GROUPS][1][1]:
            for chunk in group[_CHUNKS][1][1]:
                metadata = chunk[_CHUNK_METADATA][1]
                start = _start(metadata)
                pages = bisect_left(self._pages, start + metadata[_CHUNK_BYTES][1]) - bisect_left(self._pages, start)
                if _DICTIONARY_PAGE in metadata and pages > 2:
                    raise NotSupportedError(
                        "a column of an encrypted file would have a dictionary and several pages in one row group, "
                        "which DuckDB cannot read; set parquet_row_group_size to a smaller number"
                    )


def decrypt(data: bytes, key: str, path: str) -> bytes:
    """The plain Parquet file with the contents of an encrypted one; `key` is in base64, `path` for messages.

    DamagedFileError when the file is not whole, was changed, or has another key.
    """
    footer = read_footer(io.BytesIO(data), key, path)
    aes = _cipher(key_bytes(key, path))
    plain, moved = bytearray(_PLAIN_MAGIC), {}
    chunks = [chunk[_CHUNK_METADATA][1] for group in footer[_ROW_GROUPS][1][1] for chunk in group[_CHUNKS][1][1]]
    for chunk in sorted(chunks, key=_start):
        position, end = _start(chunk), _start(chunk) + chunk[_CHUNK_BYTES][1]
        while position < end:
            moved[position] = len(plain)
            for _ in ("header", "page"):
                module, position = _opened(aes, data, position, path)
                plain += module
        moved[position] = len(plain)
    tail = thrift.serialize(_relocated(footer, moved))
    return bytes(plain) + tail + len(tail).to_bytes(4, "little") + _PLAIN_MAGIC


def read_footer(source: IO[bytes], key: str, path: str) -> Struct:
    """The metadata of an encrypted file."""
    aes = _cipher(key_bytes(key, path))
    try:
        source.seek(-_TAIL_BYTES, os.SEEK_END)
        tail = source.read(_TAIL_BYTES)
        if tail[4:] != _MAGIC:
            raise _unreadable(path, "it is no encrypted Parquet file")
        source.seek(-_TAIL_BYTES - int.from_bytes(tail[:4], "little"), os.SEEK_END)
        algorithm, start = thrift.parse(footer := source.read())
        if algorithm != _ALGORITHM:
            raise NotSupportedError(f"{path}: it is encrypted in another way than DuckDB's, which cannot be read here")
        return thrift.parse(_opened(aes, footer, start, path)[0])[0]
    except (ValueError, OSError) as error:
        raise _unreadable(path, str(error)) from error


def schema_elements(source: IO[bytes], key: str, path: str) -> Sequence[Mapping[str, object]]:
    """The schema of an encrypted file, depth first from its root: `name`, `field_id`, `num_children` and `kind` (LIST,
    MAP, MAP_KEY_VALUE or empty)."""
    elements = read_footer(source, key, path)[_SCHEMA][1][1]
    found = [{name: element.get(number, (0, None))[1] for name, number in _ELEMENT.items()} for element in elements]
    return [
        {
            "name": element["name"].decode(),
            "field_id": element["field_id"],
            "num_children": element["num_children"] or 0,
            "kind": _KINDS.get(element["kind"], ""),
        }
        for element in found
    ]


def _opened(aes: Any, data: bytes, position: int, path: str) -> tuple[bytes, int]:
    """The plain content of the module at `position`, and where it ends."""
    from cryptography.exceptions import InvalidTag

    start = position + _LENGTH_BYTES
    end = start + int.from_bytes(data[position:start], "little")
    try:
        nonce = data[start : start + _NONCE_BYTES]
        return aes.decrypt(nonce, data[start + _NONCE_BYTES : end], None), end
    except (InvalidTag, ValueError):
        raise _unreadable(path, "it was changed, or has another key than its catalog says") from None


def _unreadable(path: str, reason: str) -> DamagedFileError:
    return DamagedFileError(f"{path}: not a readable encrypted Parquet file: {reason}")


def _relocated(footer: Struct, moved: Mapping[int, int]) -> Struct:
    """The footer for pages that begin and end elsewhere: `moved` tells where, by where they did."""
    type, groups = footer[_ROW_GROUPS][1]
    return {**footer, _ROW_GROUPS: (thrift.LIST, (type, [_group(*numbered, moved) for numbered in enumerate(groups)]))}


def _group(number: int, group: Struct, moved: Mapping[int, int]) -> Struct:
    type, old = group[_CHUNKS][1]
    chunks = [_chunk(chunk, moved) for chunk in old]
    found = {**group, _CHUNKS: (thrift.LIST, (type, chunks))}
    if _GROUP_OFFSET in group:
        found[_GROUP_OFFSET] = thrift.I64, min(_start(chunk[_CHUNK_METADATA][1]) for chunk in chunks)
    if _GROUP_BYTES in group:
        found[_GROUP_BYTES] = thrift.I64, sum(chunk[_CHUNK_METADATA][1][_CHUNK_BYTES][1] for chunk in chunks)
    found[_GROUP_NUMBER] = thrift.I16, number  # Readers of encrypted files need it.
    return found


def _chunk(chunk: Struct, moved: Mapping[int, int]) -> Struct:
    old: Struct = chunk[_CHUNK_METADATA][1]
    start = _start(old)
    metadata = {number: value for number, value in old.items() if number not in (_INDEX_PAGE, *_BLOOM_FILTER)}
    metadata[_CHUNK_BYTES] = thrift.I64, moved[start + old[_CHUNK_BYTES][1]] - moved[start]
    for page in (_DATA_PAGE, _DICTIONARY_PAGE):
        if page in metadata:
            metadata[page] = thrift.I64, moved[metadata[page][1]]
    kept = {number: value for number, value in chunk.items() if number not in _INDEXES}
    # Parquet wants 0 there, but some writers give the place of a copy of the metadata, which is left out.
    return {**kept, _CHUNK_OFFSET: (thrift.I64, 0), _CHUNK_METADATA: (thrift.STRUCT, metadata)}


def _start(metadata: Mapping[int, tuple[int, Any]]) -> int:
    """Where the first page of a column chunk begins."""
    return min(int(metadata[page][1]) for page in (_DATA_PAGE, _DICTIONARY_PAGE) if page in metadata)
