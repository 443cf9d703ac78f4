"""From the paths in metadata to those that files are read at."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_FILE = re.compile("^file:(//[^/]*)?")
"""file:/x, file:///x and file://host/x all are local paths."""
_ABSOLUTE = re.compile("^(/|[A-Za-z][A-Za-z0-9+.-]*://)")


@dataclass(frozen=True)
class Paths:
    """`moved` is (directory that the metadata names, directory where it lies now) of a table that was copied, `base`
    the directory that relative paths start from (default: the current one); both without a slash at the end.

    The text in the metadata stays the identity of a file: position deletes name data files by it.
    """

    moved: tuple[str, str] | None = None
    base: str | None = None

    def full(self, path: str) -> str:
        """A plain absolute path for a local file, else a URL."""
        if self.moved is not None:
            old, new = self.moved
            if path.startswith(old) and path[len(old) : len(old) + 1] in ("", "/"):
                path = new + path[len(old) :]
        path = _FILE.sub("", path)
        if _ABSOLUTE.match(path):
            return path
        return f"{self._base}/{path.removeprefix('./')}"

    def full_all(self, paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        if self.moved is not None:
            old, new = self.moved
            rest = pc.utf8_slice_codeunits(paths, len(old))
            below = pc.and_(pc.starts_with(paths, old), pc.or_(pc.equal(rest, ""), pc.starts_with(rest, "/")))
            paths = pc.if_else(below, pc.binary_join_element_wise(new, rest, ""), paths)
        is_file = pc.starts_with(paths, "file:")
        if pc.any(is_file).as_py():
            plain = pc.replace_substring_regex(paths, _FILE.pattern, "")
            paths = pc.if_else(is_file, plain, paths)
        relative = pc.invert(pc.match_substring_regex(paths, _ABSOLUTE.pattern))
        if pc.any(relative).as_py():
            plain = pc.replace_substring_regex(paths, r"^\./", "")
            paths = pc.if_else(relative, pc.binary_join_element_wise(self._base, plain, "/"), paths)
        return paths

    @property
    def _base(self) -> str:
        return os.getcwd().replace(os.sep, "/") if self.base is None else self.base


def moved(location: str, actual: str) -> Paths:
    """The paths of a table whose metadata says `location` and whose directory is `actual`."""
    location, actual = location.rstrip("/").removeprefix("./"), actual.rstrip("/")
    is_relative = not location.startswith("/") and ":" not in location
    if is_relative and actual.endswith(f"/{location}"):
        return Paths(base=actual[: -len(location) - 1])
    return Paths() if Paths().full(location) == actual else Paths((location, actual))
