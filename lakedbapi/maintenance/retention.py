"""Expiry of snapshots and removal of files: how old they must be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from lakedbapi.context import Context
from lakedbapi.engine.base import Query
from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.formats.maintenance import Maintenance
from lakedbapi.model.catalog import SnapshotInfo
from lakedbapi.model.instants import EARLIEST, EVER

EXPIRE_OPTION = "expire_older_than"
DELETE_OPTION = "delete_older_than"


def expire(
    context: Context,
    catalog: Catalog,
    maintenance: Maintenance,
    versions: Sequence[int] | None,
    older_than: datetime | None,
    *,
    dry_run: bool,
) -> Sequence[SnapshotInfo]:
    """By the one criterion that is given, else by the option; without any of them nothing expires."""
    if versions is not None and older_than is not None:
        raise ProgrammingError(
            "ducklake_expire_snapshots: cannot specify both 'versions' and 'older_than' at the same time; give one"
        )
    if versions is None and older_than is None:
        older_than = option_cutoff(context, catalog, EXPIRE_OPTION)
    if versions is None and older_than is None:
        return ()
    return maintenance.expire(versions, older_than, dry_run=dry_run).snapshots


def file_cutoff(
    context: Context, catalog: Catalog, procedure: str, cleanup_all: bool, older_than: datetime | None
) -> datetime | None:
    """Before when a file must have become needless to be removed; None = whenever."""
    if cleanup_all and older_than is not None:
        raise ProgrammingError(f"{procedure}: either cleanup_all or older_than can be given, not both")
    if cleanup_all:
        return None
    return older_than if older_than is not None else option_cutoff(context, catalog, DELETE_OPTION)


def option_cutoff(context: Context, catalog: Catalog, option: str) -> datetime | None:
    """The instant that lies as long ago as the option says (`2 days`, `1 week`); None if it is not set."""
    text = catalog.option(option)
    return None if text is None else ago(context, text, option)


def ago(context: Context, interval: str, what: str) -> datetime:
    """`interval` in SQL's spelling before now, but nothing before `EARLIEST`."""
    # least() of DuckDB takes an interval of 2 days for a longer one than one of a million hours.
    age = "CASE WHEN CAST($interval AS INTERVAL) < to_milliseconds($ever) THEN CAST($interval AS INTERVAL) END"
    sql = f"SELECT greatest(now() - {age}, CAST($earliest AS TIMESTAMPTZ)) AS instant"
    try:
        found = context.engine.fetch(Query(sql, parameters={"interval": interval, "earliest": EARLIEST, "ever": EVER}))
    except Exception as error:
        raise ProgrammingError(f"{what} is {interval!r}, which is no interval such as '7 days'") from error
    instant: datetime = found.column(0)[0].as_py()
    return instant.astimezone(timezone.utc)
