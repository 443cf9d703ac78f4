"""The registry of table formats."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError
from lakedbapi.formats.base import Format

NAMES = ("ducklake", "delta", "iceberg", "hudi")


def get(name: str) -> Format:
    """The table format called `name`; NotSupportedError if there is none."""
    if name == "ducklake":
        from lakedbapi.formats.ducklake import DuckLakeFormat

        return DuckLakeFormat()
    if name == "delta":
        from lakedbapi.formats.delta import DeltaFormat

        return DeltaFormat()
    if name == "iceberg":
        try:
            from lakedbapi.formats.iceberg import IcebergFormat
        except ImportError as error:
            raise NotSupportedError(
                f"Iceberg tables need pyiceberg ({error}): pip install 'lakedbapi[iceberg]'"
            ) from error
        return IcebergFormat()
    if name == "hudi":
        from lakedbapi.formats.hudi import HudiFormat

        return HudiFormat()
    raise NotSupportedError(f"table format {name!r} is not supported; supported: {', '.join(NAMES)}")
