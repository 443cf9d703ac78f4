"""Which format versions of a catalog are understood, and how far."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError, OperationalError

DEFAULT = "1.0"
"""The version of new catalogs: every writer that is in use reads it."""
CREATED = (DEFAULT, "1.1")
"""Versions that catalogs are made in, and migrated to."""
WRITTEN = frozenset({*CREATED, "1.1-dev1"})
READ = frozenset({"0.3", "0.4-dev1", "0.4"})
"""Versions that are read as they are; they are written once they are migrated."""
_OLDER = frozenset({"0.1", "0.2", "0.3-dev1"})


def has_1_1(version: str) -> bool:
    """Whether a catalog of this version has the columns and tables that came with 1.1."""
    return version.startswith("1.1")


def check_version(version: str | None, catalog: str) -> str:
    """`version`; NotSupportedError unless a catalog of it, called `catalog`, can be read."""
    if version is None:
        raise OperationalError(f"catalog {catalog}: it names no format version, so it is no complete DuckLake catalog")
    if version in WRITTEN or version in READ:
        return version
    supported = " and ".join(CREATED)
    if version in _OLDER:
        raise NotSupportedError(
            f"catalog {catalog}: format version {version} is too old, {supported} are supported; "
            "attach it once with DuckDB and AUTOMATIC_MIGRATION true"
        )
    raise NotSupportedError(f"catalog {catalog}: format version {version} is not known, {supported} are supported")


def check_writable(version: str, catalog: str) -> None:
    """NotSupportedError when catalogs of this version are only read."""
    if version in READ:
        raise NotSupportedError(
            f"catalog {catalog}: format version {version} can be read, but not written; CALL ducklake_migrate('…') "
            f"with the catalog's name, or connect with automatic_migration=true, makes it version {DEFAULT}, "
            "which programs that are as old as the catalog cannot open any more"
        )


def check_creatable(version: str) -> None:
    if version not in CREATED:
        raise NotSupportedError(
            f"a catalog of format version {version} cannot be created; supported: {', '.join(CREATED)}"
        )
