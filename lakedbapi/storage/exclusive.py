"""Put-if-absent: of several writers of one name exactly one succeeds, and nobody ever sees half of what it wrote.

A log of numbered commits stands on this. Local files get it from `link`, S3 from `If-None-Match`, Google Cloud Storage
from a generation match, Azure from `overwrite=False`: fsspec's mode `create`. Most other filesystems of fsspec look
first and write then, which two writers can do at the same time.
"""

from __future__ import annotations

import os
import posixpath
import random
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from lakedbapi.errors import NotSupportedError

CONDITIONAL = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Protocols whose store has a conditional put that fsspec's mode `create` asks for."""

TEMPORARY = r"(^|/)\.[^/]+\.[0-9a-f]{12}\.tmp$"
"""What `temporary` gives: a writer that is killed leaves such a file."""

FILES_TOGETHER = 8
"""How many files are written at a time."""

_TRY_AGAIN = "ConditionalRequestConflict"
_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between tries."""
_NOTHING_KNOWN = frozenset({500, 502, 504})
"""HTTP statuses of servers that failed, or stand before the store and had no answer from it."""

_memory = threading.Lock()
_probed: dict[int, bool] = {}
"""By the filesystem's own token, which is the same for all instances with the same options."""


def protocols(filesystem: AbstractFileSystem) -> frozenset[str]:
    found = filesystem.protocol
    return frozenset(found if isinstance(found, (tuple, list)) else (found,))


def put_if_absent(filesystem: AbstractFileSystem, path: str, data: bytes) -> None:
    """Create `path` with `data`; FileExistsError if it exists. For filesystems that pass `require`."""
    if isinstance(filesystem, LocalFileSystem):
        link_new(path, data)
    elif "memory" in protocols(filesystem):
        with _memory:
            filesystem.pipe_file(path, data, mode="create")
    else:
        _put_remotely(filesystem, path, data)


def _put_remotely(filesystem: AbstractFileSystem, path: str, data: bytes) -> None:
    """S3 may tell all of several writers at one time to try again, with none of their files there."""
    for wait in _WAITS:
        try:
            filesystem.pipe_file(path, data, mode="create")
        except OSError as error:
            if _answer(error)[1] != _TRY_AGAIN:
                raise
            time.sleep(wait * (0.5 + random.random()))
        else:
            return
    filesystem.pipe_file(path, data, mode="create")


def may_arrive(error: BaseException | None) -> bool:
    """Whether a put that a filesystem ended with `error` may be carried out yet: the store did not say no.

    Filesystems have the refusals of their stores as plain `OSError`s, and what the network does as whatever it raised.
    """
    if error is None:
        return False
    refused = type(error).__module__ == "builtins" and isinstance(error, OSError)
    return not refused or isinstance(error, (ConnectionError, TimeoutError)) or _answer(error)[0] in _NOTHING_KNOWN


def _answer(error: BaseException) -> tuple[int, str]:
    """The HTTP status and the code in the answer that s3fs made `error` of; 0 and nothing where there was none."""
    found = getattr(error.__cause__, "response", None)
    if not isinstance(found, Mapping):
        return 0, ""
    status = found.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return int(status), str(found.get("Error", {}).get("Code", ""))


def require(filesystem: AbstractFileSystem, directory: str) -> None:
    """NotSupportedError unless the store can do it. An S3-like store is tried once, in `directory`: some ignore the
    condition."""
    if isinstance(filesystem, LocalFileSystem) or "memory" in protocols(filesystem):
        return
    if not protocols(filesystem) & CONDITIONAL:
        raise NotSupportedError(
            f"{directory}: storage {'/'.join(sorted(protocols(filesystem)))} cannot create a file only if it is not "
            "there, so that two writers could overwrite each other's commits: write to local files, S3, Google Cloud "
            "Storage or Azure, or connect read_only"
        )
    token = hash(filesystem)
    if token not in _probed:
        _probed[token] = _honours_create(filesystem, directory)
    if not _probed[token]:
        raise NotSupportedError(
            f"{directory}: the store ignores the condition that a file must not exist yet (on S3: If-None-Match), so "
            "that two writers could overwrite each other's commits: use a newer version of the store, or connect "
            "read_only"
        )


def _honours_create(filesystem: AbstractFileSystem, directory: str) -> bool:
    path = f"{directory.rstrip('/')}/.put-if-absent-{uuid4().hex}"
    filesystem.pipe_file(path, b"1", mode="create")
    try:
        filesystem.pipe_file(path, b"2", mode="create")
    except FileExistsError:
        return True
    finally:
        filesystem.rm_file(path)
    return False


def link_new(path: str, data: bytes) -> None:
    """Create a local file: it appears complete and on disk, or not at all. FileExistsError if it exists."""
    written = temporary(path)
    os.makedirs(posixpath.dirname(path), exist_ok=True)
    try:
        with open(written, "xb") as file:
            file.write(data)
        link_complete(written, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(written)


def temporary(path: str) -> str:
    """A name beside `path`, of a file that is to take its place once it is complete."""
    return posixpath.join(posixpath.dirname(path), f".{posixpath.basename(path)}.{os.urandom(6).hex()}.tmp")


def link_complete(written: str, path: str) -> None:
    """Let the content of a local file appear at `path` as well, once it is on disk. FileExistsError if it exists."""
    _sync_file(written)
    os.link(written, path)  # Fails if the target exists, and shows it only complete.
    _sync_directory(posixpath.dirname(path))


def sync(path: str) -> None:
    """Have a local file that another program wrote on disk, with its name."""
    _sync_file(path)
    _sync_directory(posixpath.dirname(path))


def sync_all(paths: Sequence[str]) -> None:
    """As `sync` of each file, several at a time: a disk takes about as long to sync many files as to sync one."""
    if len(paths) == 1:
        sync(paths[0])
        return
    directories = {posixpath.dirname(path) for path in paths}
    with ThreadPoolExecutor(min(len(paths), FILES_TOGETHER)) as pool:
        for synced in (pool.map(_sync_file, paths), pool.map(_sync_directory, directories)):
            deque(synced, maxlen=0)


def _sync_file(path: str) -> None:
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def _sync_directory(directory: str) -> None:
    """The new name must survive a power cut as well. Best effort where directories cannot be opened."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
