"""A filesystem that encrypts the Parquet files which DuckDB writes to it.

DuckDB itself encrypts files safely only with its httpfs extension, which nobody may download here. So COPY writes plain
Parquet to a path that `encrypting_path` makes, and what arrives at the real one is encrypted, a page at a time.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

from fsspec import AbstractFileSystem

from lakedbapi.engine.duckdb.output import filesystem_of
from lakedbapi.errors import DataError, OperationalError
from lakedbapi.storage.encryption import EncryptedFile, EncryptedWriter

_SCHEME = "lake-encrypting"
_LOCAL, _REMOTE = f"{_SCHEME}://local", f"{_SCHEME}://remote/"


def encrypting_path(path: str) -> str:
    """What to call `path` in a COPY, so that its file is encrypted. DuckDB takes `//` in the middle for `/`."""
    protocol, separator, rest = path.partition("://")
    return f"{_REMOTE}{protocol}/{rest}" if separator else f"{_LOCAL}{path}"


def _real_path(path: str) -> str:
    if path.startswith(_LOCAL):
        return path.removeprefix(_LOCAL)
    protocol, _, rest = path.removeprefix(_REMOTE).partition("/")
    return f"{protocol}://{rest}"


class EncryptingFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Only for COPY to write to; `filesystems` serve the URLs among the real paths."""

    protocol = _SCHEME
    cachable = False

    def __init__(self, filesystems: Sequence[AbstractFileSystem]) -> None:
        super().__init__()
        self._filesystems = filesystems
        self._written: dict[str, EncryptedFile] = {}

    def take(self, path: str) -> tuple[str, EncryptedFile]:
        """The real path of a file that COPY reports, and what was written there. Each file once."""
        real = _real_path(path)
        if real not in self._written:
            raise OperationalError(f"{real}: writing the data file ended before it was whole")
        return real, self._written.pop(real)

    def open(self, path: str, mode: str = "rb", **_: Any) -> _Output:
        if mode != "wb":
            raise OSError(f"{path}: it can only be written")
        real = _real_path(path)
        fs = filesystem_of(real, self._filesystems)
        sink = open(real, "wb") if fs is None else fs.open(real, "wb")  # noqa: SIM115
        return _Output(self, real, sink)

    def done(self, path: str, file: EncryptedFile) -> None:
        self._written[path] = file

    def exists(self, path: str, **_: Any) -> bool:
        return self.isdir(path)

    def isfile(self, path: str) -> bool:
        return False

    def isdir(self, path: str) -> bool:
        real = _real_path(path)
        if filesystem_of(real, self._filesystems) is not None:
            return not real.endswith(".parquet")
        return os.path.isdir(real)

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        real = _real_path(path)
        if filesystem_of(real, self._filesystems) is None:
            os.makedirs(real, exist_ok=True)


class _Output(io.RawIOBase):
    """A plain file that is being written; `close` ends the encrypted one, unless DuckDB gave the plain one up."""

    def __init__(self, owner: EncryptingFileSystem, path: str, sink: IO[bytes]) -> None:
        super().__init__()
        self._owner, self._path, self._sink = owner, path, sink
        self._writer = EncryptedWriter(sink)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._writer.write(data)
        return len(data)

    def close(self) -> None:
        if self.closed:
            return
        try:
            with suppress(DataError):
                self._owner.done(self._path, self._writer.finish())
        finally:
            self._sink.close()
            super().close()
