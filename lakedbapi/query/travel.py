"""Points in time: from the value of a time-travel clause to what the catalog is asked for."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from lakedbapi.context import Context
from lakedbapi.engine.base import Query
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import AsOf
from lakedbapi.query.constants import constant
from lakedbapi.query.names import catalog_alias, catalog_view, schema_place
from lakedbapi.sql.statements import Name, Travel


def point_of(context: Context, travel: Travel) -> AsOf:
    """The point that a time-travel clause names."""
    catalog = catalog_view(context, _alias(context, travel.of)).catalog
    value = _plain(constant(context, travel.value))
    if value is None:
        raise ProgrammingError(f"{travel.of} cannot be read at {travel.kind} NULL: give a {travel.kind}")
    return version_of(catalog, travel.of, value) if travel.kind == "version" else timestamp_of(context, catalog, value)


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's, which have no fractions of microseconds."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def instant(context: Context, value: Any) -> datetime.datetime | None:
    """An aware datetime from a datetime, date or text; without a zone it is UTC. None = the value is no time."""
    if isinstance(value, str):
        query = Query("SELECT TRY_CAST($value AS TIMESTAMPTZ) AS t", parameters={"value": value})
        try:
            found: datetime.datetime | None = context.engine.fetch(query).column(0)[0].as_py()
        except (OverflowError, ValueError):
            return None  # In the year 10000, or infinity.
        return found
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.timezone.utc) if value.tzinfo is None else value
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.timezone.utc)
    return None


def version_of(catalog: Catalog, of: Name | str, value: Any) -> AsOf:
    capabilities = catalog.capabilities
    if isinstance(value, str) and not value.isdecimal():
        if not capabilities.travel_by_ref:
            raise ProgrammingError(f"{of}: {value!r} is no version; format {catalog.format!r} numbers its versions")
        return AsOf(ref=value)
    if not capabilities.travel_by_version:
        raise NotSupportedError(f"{of}: format {catalog.format!r} cannot be read at a version; give a timestamp")
    if not isinstance(value, (int, str)) or isinstance(value, bool):
        raise ProgrammingError(f"{of}: {value!r} is no version: give a whole number")
    return AsOf(version=int(value))


def timestamp_of(context: Context, catalog: Catalog, value: Any) -> AsOf:
    if not catalog.capabilities.travel_by_timestamp:
        raise NotSupportedError(f"format {catalog.format!r} cannot be read at a timestamp; give a version")
    at = instant(context, value)
    if at is None:
        raise ProgrammingError(f"{value!r} is no timestamp: write '2026-01-31 12:00:00', with a zone if it is not UTC")
    return AsOf(timestamp=at)


def _alias(context: Context, name: Name) -> str:
    """The catalog that `name` is in, before it is known at which point to look."""
    current = context.search_path[0]
    if len(name.parts) == 1:
        return current
    if len(name.parts) == 2 and current in context.transaction.catalogs:
        is_schema = context.transaction.view(current, context.as_of).schema(name.parts[0]) is not None
        return current if is_schema else catalog_alias(context, name.parts[0]) or current
    return schema_place(context, Name(name.parts[:-1]))[0]
