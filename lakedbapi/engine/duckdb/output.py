"""Where data files are written: names, directories, and removal after a failure."""

from __future__ import annotations

import os
import secrets
import time
import uuid
from collections.abc import Sequence

import fsspec


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
        os.makedirs(directory, exist_ok=True)
    return directory


def is_local(path: str) -> bool:
    return "://" not in path


def remove(paths: Sequence[str], filesystems: Sequence[fsspec.AbstractFileSystem]) -> None:
    """Best effort: a file that stays is an orphan that no reader sees."""
    for path in paths:
        try:
            if is_local(path):
                os.unlink(path)
            else:
                _filesystem(path, filesystems).rm_file(path)
        except OSError:
            continue


def remove_all(directory: str, token: str, filesystems: Sequence[fsspec.AbstractFileSystem]) -> None:
    """Remove the files below `directory` whose names start with `token`."""
    if is_local(directory):
        found = [os.path.join(at, name) for at, _, names in os.walk(directory) for name in names]
    else:
        fs = _filesystem(directory, filesystems)
        try:
            found = [fs.unstrip_protocol(path) for path in fs.find(directory)]
        except OSError:
            return
    remove([path for path in found if os.path.basename(path).startswith(token)], filesystems)


def _filesystem(path: str, filesystems: Sequence[fsspec.AbstractFileSystem]) -> fsspec.AbstractFileSystem:
    protocol = path.split("://", 1)[0]
    for fs in filesystems:
        if protocol in ((fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol):
            return fs
    return fsspec.filesystem(protocol)
