"""The timeline: the instants at which commits, compactions, cleanings and so on were begun and completed.

The names of its files tell everything but what the commits did. Layout 1 (table version 6): `<begun>.<action>` when
completed, `<begun>.<action>.requested` and `.inflight` before. Layout 2 (versions 8 and 9):
`<begun>_<completed>.<action>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property

from lakedbapi.errors import ProgrammingError

DATA_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})
"""Actions that change which rows or files a table has, once completed."""
_NAME = re.compile(r"^(\d{14}|\d{17})(?:_(\d{14}|\d{17}))?\.([a-z]+)$")


@dataclass(frozen=True)
class Instant:
    """A completed action. `begun` and `completed` (the same as `begun` in layout 1) are yyyyMMddHHmmss[SSS]."""

    begun: str
    completed: str
    action: str

    @property
    def order(self) -> str:
        return order(self.begun)


def order(instant: str) -> str:
    """What instants are compared by: those without milliseconds count as the end of their second, as in Hudi."""
    return instant if len(instant) == 17 else instant + "999"


def version_of(instant: str) -> int:
    """The version that a table has after the commit that was begun at `instant`."""
    return int(instant)


def instant_of(version: int) -> str:
    """ProgrammingError for a number that is no instant."""
    text = str(version)
    try:
        time_of(text, is_local=False)
    except ValueError:
        raise ProgrammingError(
            f"{version} is no version of a Hudi table: give an instant of its timeline, yyyyMMddHHmmssSSS, such as "
            "history('table') shows"
        ) from None
    return text


def time_of(instant: str, *, is_local: bool) -> datetime:
    """Aware; ValueError for a text that is no instant."""
    if len(instant) not in (14, 17) or not instant.isdecimal():
        raise ValueError(instant)
    time = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(microsecond=int(instant[14:] or 0) * 1000)
    return time.astimezone(timezone.utc) if is_local else time.replace(tzinfo=timezone.utc)


def instant_at(time: datetime, *, is_local: bool) -> str:
    """The last instant that is not later than `time` (aware)."""
    time = time.astimezone(None if is_local else timezone.utc)
    return f"{time:%Y%m%d%H%M%S}{time.microsecond // 1000:03}"


@dataclass(frozen=True)
class Timeline:
    """The active timeline; older instants are archived, and the table cannot be read at them."""

    names: frozenset[str]
    """The names of its files."""

    @classmethod
    def of(cls, names: Iterable[str]) -> Timeline:
        return cls(frozenset(name for name in names if name[:14].isdecimal()))

    @cached_property
    def commits(self) -> Sequence[Instant]:
        """The completed ones, in order."""
        found = []
        for name in self.names:
            match = _NAME.match(name)
            if match is not None and match[3] in DATA_ACTIONS:
                found.append(Instant(match[1], match[2] or match[1], match[3]))
        return sorted(found, key=lambda instant: instant.order)

    def at(self, instant: str) -> Instant | None:
        """The newest commit that was begun at or before `instant`."""
        return next((commit for commit in reversed(self.commits) if commit.order <= order(instant)), None)
