"""`lakedbapi` under the name by which tools know Arrow-native drivers.

Polars looks for drivers called `adbc_driver_…` and then reads and writes whole columns:
`pl.read_database(query, adbc_driver_lake.dbapi.connect("shop"))`,
`pl.read_database_uri(query, "lake:///shop", engine="adbc")`.
Such tools ask for the package `adbc-driver-manager` too.
"""

from __future__ import annotations

from lakedbapi import __version__

__all__ = ["__version__"]
