"""Lengths of time in table properties: `interval 1 week`, `interval 30 days 12 hours`."""

from __future__ import annotations

import re

from lakedbapi.errors import ProgrammingError
from lakedbapi.model.instants import EVER

_UNITS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
}
_PART = re.compile(r"([+-]?\d+)\s+([a-z]+?)s?(?:\s+|$)")


def milliseconds(text: str) -> int:
    """At most `EVER`. ProgrammingError for what is no such length, or has months, which have none."""
    rest = text.strip().casefold().removeprefix("interval").strip()
    parts = _PART.findall(rest)
    if not parts or _PART.sub("", rest) or any(unit not in _UNITS for _, unit in parts):
        raise ProgrammingError(f"{text!r} is no interval such as 'interval 30 days'")
    return min(sum(int(number) * _UNITS[unit] for number, unit in parts), EVER)
