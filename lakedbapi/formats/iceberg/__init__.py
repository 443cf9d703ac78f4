"""Apache Iceberg tables of format versions 1, 2 and 3."""

from __future__ import annotations

from lakedbapi.formats.iceberg.open import IcebergFormat

__all__ = ["IcebergFormat"]
