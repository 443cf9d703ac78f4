"""Which format versions of a catalog are understood."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError, OperationalError

SUPPORTED = ("1.0",)
"""Versions that are read and written; the first is that of new catalogs."""
_OLDER = frozenset({"0.1", "0.2", "0.3-dev1", "0.3", "0.4-dev1", "0.4"})


def check_version(version: str | None, catalog: str) -> None:
    """NotSupportedError unless the catalog called `catalog` has a supported version."""
    if version in SUPPORTED:
        return
    if version is None:
        raise OperationalError(f"catalog {catalog}: it names no format version, so it is no complete DuckLake catalog")
    supported = " and ".join(SUPPORTED)
    if version in _OLDER:
        raise NotSupportedError(
            f"catalog {catalog}: format version {version} is too old, {supported} is supported; "
            "attach it once with DuckDB and AUTOMATIC_MIGRATION true"
        )
    raise NotSupportedError(f"catalog {catalog}: format version {version} is not known, {supported} is supported")
