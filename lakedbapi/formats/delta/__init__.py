"""Delta Lake: tables whose log lies beside their data."""

from lakedbapi.formats.delta.open import DeltaFormat

__all__ = ["DeltaFormat"]
