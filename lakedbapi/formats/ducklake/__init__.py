"""DuckLake 1.0: tables whose metadata lies in an SQL database."""

from __future__ import annotations

from lakedbapi.formats.ducklake.open import DuckLakeFormat

__all__ = ["DuckLakeFormat"]
