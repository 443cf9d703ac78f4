"""The registry of table formats."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import Format

NAMES = ("ducklake", "delta")


def get(name: str) -> Format:
    """The table format called `name`; NotSupportedError if there is none."""
    if name == "ducklake":
        from lakedbapi.formats.ducklake import DuckLakeFormat

        return DuckLakeFormat()
    if name == "delta":
        from lakedbapi.formats.delta import DeltaFormat

        return DeltaFormat()
    raise NotSupportedError(f"table format {name!r} is not supported; supported: {', '.join(NAMES)}")
