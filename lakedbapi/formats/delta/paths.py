"""Paths of the log: RFC 2396 URIs, relative to the table or absolute. They are decoded once, here and nowhere else."""

from __future__ import annotations

import re
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError

_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_SAFE = "/!$&'()*+,;=:@-._~"
ESCAPED = f"[^A-Za-z0-9{re.escape(_SAFE)}]"
"""Regular expression of a character that `encode` escapes."""


def encode(relative: str) -> str:
    """The text for the log of a path relative to the table."""
    return quote(relative, safe=_SAFE)


def full_paths(root: str, paths: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Full paths (as `Storage` has them) of paths of the log of the table at `root`, which ends in `/`.

    DataError for a path that leads out of the table by `..`.
    """
    array = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
    decoded = _decoded(array)
    absolute = pc.or_(pc.starts_with(array, "/"), pc.match_substring(array, ":"))
    if pc.any(absolute).as_py():
        absolute = pc.match_substring_regex(array, "^(/|[A-Za-z][A-Za-z0-9+.-]*:)")
    if not pc.any(absolute).as_py():
        _check_inside(decoded)
        return pc.binary_join_element_wise(root, decoded, "")
    _check_inside(decoded.filter(pc.invert(absolute)))
    plain = pc.replace_substring_regex(decoded, "^file:(//)?/", "/")
    return pc.if_else(absolute, plain, pc.binary_join_element_wise(root, decoded, ""))


def _decoded(paths: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring(paths, "%")).as_py():
        return paths
    data = pc.cast(paths, pa.binary())
    escapes = set(_ESCAPE.findall(memoryview(data.buffers()[2])))
    # Only an escaped percent sign can make a new one, so that it comes last.
    for escape in sorted(escapes, key=lambda escape: escape == b"%25"):
        data = pc.replace_substring(data, escape, bytes([int(escape[1:], 16)]))
    try:
        return pc.cast(data, pa.string())
    except pa.ArrowInvalid as error:
        raise DataError(f"the log names a file whose path is no UTF-8 text: {error}") from error


def _check_inside(relative: pa.Array) -> None:
    if not pc.any(pc.match_substring(relative, "..")).as_py():
        return
    leaving = pc.match_substring_regex(relative, r"(^|/)\.\.(/|$)")
    if pc.any(leaving).as_py():
        path = relative.filter(leaving)[0].as_py()
        raise DataError(f"the log names the file {path!r}, which leads out of the table's directory")
