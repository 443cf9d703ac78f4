"""Keeps symbolic links from leading out of the data paths, where DuckDB does not do so itself (before 1.5)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import duckdb

from lakedbapi.errors import ProgrammingError

NEEDED = tuple(int(part) for part in duckdb.__version__.split(".")[:2]) < (1, 5)


def check(paths: Iterable[str], directories: Sequence[str]) -> None:
    """ProgrammingError for a local path that is outside of `directories` once links are followed; these end in `/`."""
    real: dict[str, str] = {}
    for path in paths:
        if "://" in path:
            continue
        directory, name = os.path.split(path)
        if directory not in real:
            real[directory] = os.path.realpath(directory)
        resolved = os.path.realpath(path) if os.path.islink(path) else f"{real[directory]}/{name}"
        if not resolved.startswith(tuple(directories)):
            raise ProgrammingError(
                f"The path {path!r} leads out of the data path, to {resolved!r}. Attach with a data path that includes"
                " it, or remove the link."
            )
