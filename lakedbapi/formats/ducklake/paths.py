"""Where a lake's files lie: `data_path` + schema path + table path + file path.

Each part is relative to the ones before it, or absolute; directories end in `/`.
"""

from __future__ import annotations

import os
import re

import pyarrow as pa
import pyarrow.compute as pc

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")


def data_directory(path: str) -> str:
    """`path`, a `data_path`, as a full path or URL that ends in `/`. Local ones may start at the working directory."""
    if "://" not in path:
        path = os.path.abspath(path).replace(os.sep, "/")
    return path if path.endswith("/") else path + "/"


def resolve(base: str, path: str | None, is_relative: bool | None) -> str:
    """The full path of `path` in the directory `base`. No path (old catalogs) = the directory itself."""
    if not path:
        return base
    return base + path if is_relative is not False else path


def resolve_all(base: str, path: pa.ChunkedArray, is_relative: pa.ChunkedArray) -> pa.ChunkedArray:
    """`resolve` for whole columns; NULL stays NULL."""
    return pc.if_else(pc.fill_null(is_relative, True), pc.binary_join_element_wise(base, path, ""), path)


def relative_to(base: str, path: str) -> tuple[str, bool]:
    """(path, path_is_relative) as the catalog stores `path`, which may lie below the directory `base` or elsewhere."""
    return (path[len(base) :], True) if path.startswith(base) else (path, False)


def folder(name: str, uuid: str) -> str:
    """The directory of a new schema or table below its parent's, ending in `/`."""
    return f"{name if _PLAIN_NAME.fullmatch(name) else uuid}/"
