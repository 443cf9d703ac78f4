"""Where data files are written: names, directories, and removal after a failure."""

from __future__ import annotations

import os
import secrets
import time
import uuid
from collections.abc import Sequence

from fsspec import AbstractFileSystem

from lakedbapi.errors import OperationalError
from lakedbapi.storage import exclusive


def file_token(prefix: str) -> str:
    """`<prefix><uuid version 7>`: unique, and sorted by time."""
    milliseconds = time.time_ns() // 1_000_000
    bits = (milliseconds << 80) | secrets.randbits(80)
    bits = bits & ~(0xF << 76) | (7 << 76)
    bits = bits & ~(0b11 << 62) | (0b10 << 62)
    return f"{prefix}{uuid.UUID(int=bits)}"


def prepare_directory(directory: str) -> str:
    """The directory, made where it is local."""
    if is_local(directory):
        try:
            os.makedirs(directory, exist_ok=True)
        except OSError as error:
            raise OperationalError(f"{directory}: making the directory failed: {error.strerror}") from error
    return directory


def is_local(path: str) -> bool:
    return "://" not in path


def sync(paths: Sequence[str]) -> None:
    """Have local files on disk, which DuckDB leaves to the system: a commit that names them survives a power cut."""
    local = [path for path in paths if is_local(path)]
    try:
        if local:
            exclusive.sync_all(local)
    except OSError as error:
        raise OperationalError(f"{local[0]}: writing failed: {error.strerror}") from error


def remove(paths: Sequence[str], filesystems: Sequence[AbstractFileSystem]) -> None:
    """Best effort: a file that stays is an orphan that no reader sees."""
    for path in paths:
        fs = filesystem_of(path, filesystems)
        try:
            if fs is not None:
                fs.rm_file(path)
            elif is_local(path):
                os.unlink(path)
        except OSError:
            continue


def remove_all(directory: str, token: str, filesystems: Sequence[AbstractFileSystem]) -> None:
    """Remove the files below `directory` whose names start with `token`."""
    fs = filesystem_of(directory, filesystems)
    if fs is not None:
        try:
            found = [fs.unstrip_protocol(path) for path in fs.find(directory)]
        except OSError:
            return
    else:
        found = [os.path.join(at, name) for at, _, names in os.walk(directory) for name in names]
    remove([path for path in found if os.path.basename(path).startswith(token)], filesystems)


def filesystem_of(path: str, filesystems: Sequence[AbstractFileSystem]) -> AbstractFileSystem | None:
    """The one of `filesystems` that serves a URL; None for local paths and for what DuckDB reads itself."""
    protocol, separator, _ = path.partition("://")
    if not separator:
        return None
    for fs in filesystems:
        if protocol in ((fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol):
            return fs
    return None
