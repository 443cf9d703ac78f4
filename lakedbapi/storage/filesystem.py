"""`Storage`: the directory or bucket that a lake's files lie in."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import fsspec
import pyarrow as pa
from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from lakedbapi import errors
from lakedbapi.storage import exclusive

LISTING = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("mtime", pa.timestamp("us", "UTC")),
    ]
)
"""What `Storage.list` gives; `mtime` is NULL where the store keeps none."""

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
"""The extra of this package that brings the filesystem of a protocol."""


@dataclass(frozen=True)
class Entry:
    """A file or directory in a directory; `mtime` is None where the store keeps none."""

    path: str
    name: str
    is_directory: bool
    size: int | None
    mtime: datetime | None


class Storage:
    """A root directory and the filesystem that it lies on.

    Paths are full everywhere: plain absolute paths for local files, URLs (`s3://bucket/key`) otherwise. That is how
    DuckDB sees them through a registered fsspec filesystem. Failures are OperationalErrors that name the path.
    """

    def __init__(self, root: str, filesystem: AbstractFileSystem) -> None:
        self.root = root
        self.filesystem = filesystem
        self.is_local = isinstance(filesystem, LocalFileSystem)

    @classmethod
    def of(cls, url: str, storage_options: Mapping[str, Any] | None = None) -> Storage:
        """The storage below `url`, a local path or a URL. `storage_options` go to the fsspec filesystem."""
        protocol, separator, _ = url.partition("://")
        if not separator:
            return cls(_directory(os.path.abspath(url).replace(os.sep, "/")), LocalFileSystem())
        if protocol in ("file", "local"):
            path = fsspec.filesystem("file")._strip_protocol(url)
            return cls(_directory(path), LocalFileSystem())
        try:
            filesystem = fsspec.filesystem(protocol, **{**_uncached(protocol), **(storage_options or {})})
        except ImportError as error:
            ours = f"; pip install 'lakedbapi[{_EXTRAS[protocol]}]'" if protocol in _EXTRAS else ""
            raise errors.NotSupportedError(f"storage {protocol}://: {error}{ours}") from error
        except ValueError as error:
            raise errors.OperationalError(f"storage {protocol}://: {error}") from error
        return cls(_directory(url), filesystem)

    def __repr__(self) -> str:
        return f"<Storage {self.root}>"

    def join(self, *parts: str) -> str:
        """The full path of `parts` below the root: plain concatenation, with single slashes between."""
        path = self.root
        for part in parts:
            path = path + part if path.endswith("/") else f"{path}/{part}"
        return path

    def exists(self, path: str) -> bool:
        with _reported("looking for", path):
            return bool(self.filesystem.exists(path))

    def is_directory(self, path: str) -> bool:
        with _reported("looking for", path):
            return os.path.isdir(path) if self.is_local else bool(self.filesystem.isdir(path))

    def glob(self, pattern: str) -> list[str]:
        """The files that a path, with wildcards or without, matches."""
        with _reported("looking for", pattern):
            found = self.filesystem.glob(pattern)
        return [path for path in map(self._full, found) if not self.filesystem.isdir(path)]

    def size(self, path: str) -> int:
        """Bytes."""
        with _reported("looking at", path):
            return int(self.filesystem.size(path))

    def read_bytes(self, path: str) -> bytes:
        with _reported("reading", path):
            if self.is_local:
                with open(path, "rb") as file:
                    return file.read()
            return bytes(self.filesystem.cat_file(path))

    def read_many(self, paths: Sequence[str]) -> Sequence[bytes]:
        """The contents of many files, at the same time where the store can do that."""
        if self.is_local or len(paths) < 2:
            return [self.read_bytes(path) for path in paths]
        with _reported("reading", paths[0]):
            found = self.filesystem.cat(list(paths), on_error="raise")
            contents = {self._full(name): bytes(content) for name, content in found.items()}
            return [contents[path] for path in paths]

    def read_ranges(self, ranges: Sequence[tuple[str, int, int]]) -> Sequence[bytes]:
        """Bytes of files, each (path, start, end); shorter where a file ends before."""
        if not ranges:
            return []
        paths, starts, ends = (list(column) for column in zip(*ranges, strict=True))
        with _reported("reading", paths[0]):
            found = self.filesystem.cat_ranges(paths, starts, ends, on_error="return")
        for path, content in zip(paths, found, strict=True):
            if isinstance(content, BaseException):
                raise _failed("reading", path, content)
        return [bytes(content) for content in found]

    def write_exclusive(self, path: str, data: bytes) -> None:
        """Create `path`, a name that nobody else is likely to use, with `data`; FileExistsError if it exists already.

        Never leaves a partial file. Of two writers at the same time one can overwrite the other where the store has no
        conditional put: see `put_if_absent`.
        """
        with _reported("writing", path):
            exclusive.put_if_absent(self.filesystem, path, data)

    def write_all_exclusive(self, files: Mapping[str, bytes]) -> None:
        """As `write_exclusive` of each file by its path, several at a time: a disk takes as long to sync them all as to
        sync one. Where one fails, others may be there."""
        if len(files) < 2:
            for path, data in files.items():
                self.write_exclusive(path, data)
            return
        with ThreadPoolExecutor(min(len(files), exclusive.FILES_TOGETHER)) as pool:
            for done in [pool.submit(self.write_exclusive, path, data) for path, data in files.items()]:
                done.result()

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create `path` with `data`; of several writers at the same time exactly one succeeds, FileExistsError for all
        others. NotSupportedError, with nothing written, where the store cannot promise that."""
        with _reported("writing", path):
            exclusive.require(self.filesystem, posixpath.dirname(path))
            exclusive.put_if_absent(self.filesystem, path, data)

    def overwrite(self, path: str, data: bytes) -> None:
        """Write `data` in place of what is at `path`, if anything: readers see the old or the new, whole."""
        with _reported("writing", path):
            if self.is_local:
                _replace_local(path, data)
            else:
                self.filesystem.pipe_file(path, data)

    @property
    def has_directories(self) -> bool:
        """Whether a directory can be there without files."""
        return not exclusive.protocols(self.filesystem) & exclusive.CONDITIONAL

    def makedirs(self, path: str) -> None:
        """Make the directory `path` and its parents, where the store has directories."""
        if self.has_directories:
            with _reported("making directory", path):
                self.filesystem.makedirs(path, exist_ok=True)

    def remove_tree(self, path: str) -> None:
        """Remove the directory `path` with everything in it; one that is missing already is fine."""
        with _reported("removing", path), suppress(FileNotFoundError):
            self.filesystem.rm(path, recursive=True)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files; one that is missing already is fine."""
        remaining = list(paths)
        if not self.is_local and len(remaining) > 1:
            try:
                self.filesystem.rm(remaining)
                return
            except FileNotFoundError:
                pass  # Some are gone; which ones shows one by one.
            except Exception as error:
                raise _failed("removing", remaining[0], error) from error
        for path in remaining:
            self._remove(path)

    def _remove(self, path: str) -> None:
        with _reported("removing", path), suppress(FileNotFoundError):
            os.unlink(path) if self.is_local else self.filesystem.rm_file(path)

    def remove_value_folders(self, paths: Iterable[str]) -> None:
        """Remove the folders `name=value/` that these files were in, as far as they are empty: their names tell."""
        if not self.is_local:
            return
        for folder in sorted({posixpath.dirname(path) for path in paths}):
            while "=" in posixpath.basename(folder):
                try:
                    os.rmdir(folder)
                except OSError:
                    break
                folder = posixpath.dirname(folder)

    def remove_empty(self, directory: str) -> None:
        """Remove a directory if nothing is in it."""
        if self.is_local:
            with suppress(OSError):
                os.rmdir(directory)

    def remove_empty_tree(self, directory: str) -> None:
        """Remove a directory and those below it, as far as no file is in them."""
        if self.is_local:
            for path, _, _ in os.walk(directory, topdown=False):
                self.remove_empty(path)

    def list(self, prefix: str | None = None) -> pa.Table:
        """All files below `prefix` (default: the root), recursively; columns `LISTING`. No directory = no files."""
        start = prefix or self.root
        with _reported("listing", start):
            self.filesystem.invalidate_cache()
            try:
                found = self.filesystem.find(start, detail=True)
            except FileNotFoundError:
                found = {}
        entries = [entry for entry in found.values() if entry.get("type") != "directory"]
        columns = [
            pa.array([self._full(entry["name"]) for entry in entries], pa.string()),
            pa.array([entry.get("size") for entry in entries], pa.int64()),
            pa.array([_mtime(entry) for entry in entries], pa.timestamp("us", "UTC")),
        ]
        return pa.Table.from_arrays(columns, schema=LISTING)

    def entry(self, path: str) -> Entry | None:
        """The file at `path` as it is now; None when there is none."""
        with _reported("looking at", path):
            if not self.is_local:
                self.filesystem.invalidate_cache()
            try:
                info = self.filesystem.info(path)
            except FileNotFoundError:
                return None
        return Entry(path, posixpath.basename(path), info.get("type") == "directory", info.get("size"), _mtime(info))

    def entries(self, directory: str) -> Sequence[Entry]:
        """What lies directly in `directory`, sorted by name; nothing when there is no such directory."""
        with _reported("listing", directory):
            if self.is_local:
                return _local_entries(directory)
            self.filesystem.invalidate_cache()
            try:
                found = self.filesystem.ls(directory, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return ()
        entries = [
            Entry(path, posixpath.basename(path), info.get("type") == "directory", info.get("size"), _mtime(info))
            for info in found
            for path in [self._full(info["name"].rstrip("/"))]
            if path + "/" != directory
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def _full(self, name: str) -> str:
        if self.is_local or "://" in name:
            return name.replace(os.sep, "/")
        return f"{self.root.partition('://')[0]}://{name.lstrip('/')}"


def _local_entries(directory: str) -> Sequence[Entry]:
    try:
        found = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    entries = []
    for entry in found:
        with suppress(FileNotFoundError):  # It may be removed while this looks.
            status = entry.stat()
            mtime = datetime.fromtimestamp(status.st_mtime, timezone.utc)
            path = posixpath.join(directory, entry.name)
            entries.append(Entry(path, entry.name, entry.is_dir(), status.st_size, mtime))
    return entries


def _uncached(protocol: str) -> Mapping[str, Any]:
    """Options of stores that others write as well: an old listing would hide new files, also from a look by name."""
    return {"use_listings_cache": False} if protocol in exclusive.CONDITIONAL else {}


def _directory(path: str) -> str:
    return path if path.endswith("/") else path + "/"


def _mtime(entry: Mapping[str, Any]) -> datetime | None:
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, timezone.utc)
        if isinstance(value, str):
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    return None


def _replace_local(path: str, data: bytes) -> None:
    written = exclusive.temporary(path)
    os.makedirs(posixpath.dirname(path), exist_ok=True)
    try:
        with open(written, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(written, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(written)


@contextmanager
def _reported(action: str, path: str) -> Iterator[None]:
    """Turn whatever a filesystem raises (each has its own) into an OperationalError that names the path."""
    try:
        yield
    except (FileExistsError, errors.Error):
        raise
    except Exception as error:
        raise _failed(action, path, error) from error


def _failed(action: str, path: str, error: BaseException) -> errors.OperationalError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return errors.OperationalError(f"{path}: {action} it failed: {reason}")
