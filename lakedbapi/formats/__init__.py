"""The registry of table formats."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import Format

NAMES = ("ducklake",)


def get(name: str) -> Format:
    """The table format called `name`; NotSupportedError if there is none."""
    if name == "ducklake":
        from lakedbapi.formats.ducklake import DuckLakeFormat

        return DuckLakeFormat()
    raise NotSupportedError(f"table format {name!r} is not supported; supported: {', '.join(NAMES)}")
