"""Instants that lie some time ago."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)
"""Nothing of a lake is older."""


EVER = 100_000 * 86_400_000
"""Milliseconds: longer ago than anything of a lake, and no longer than an interval of SQL can be."""


def ago(milliseconds: float) -> datetime:
    """In UTC; `EARLIEST` for an age that goes beyond it, however large."""
    return EARLIEST + timedelta(milliseconds=max(0.0, time.time() * 1000 - milliseconds))
