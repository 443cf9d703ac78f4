"""How far long work has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """`done` of `total` (None = not known before the end) `unit`s of what `task` says, such as `merge main.t`."""

    task: str
    done: int
    total: int | None
    unit: str


Report: TypeAlias = Callable[[Progress], None]
"""Told between the steps of long work. An exception ends the work, with nothing changed by the step under way."""


def unreported(progress: Progress) -> None:
    """For whom nobody waits."""
