"""Catalogs in a database that is a file."""

from __future__ import annotations

from pathlib import Path

from lakedbapi.errors import OperationalError, ProgrammingError


def is_there(path: Path) -> bool:
    """Whether there is a file; OperationalError where that cannot be told, as in a directory of somebody else."""
    try:
        return path.exists()
    except OSError as error:
        raise OperationalError(f"{path}: looking for it failed: {error.strerror}") from error


def prepare_new(path: Path, catalog: str, *, create: bool) -> None:
    """Before a database is made at `path`: make its directory. ProgrammingError unless `create`.

    `catalog` says what it would be, for messages.
    """
    if not create:
        raise ProgrammingError(
            f"{path}: no such file, so there is no {catalog} catalog; connect without read_only to create one"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperationalError(f"{path.parent}: making the directory failed: {error.strerror}") from error
