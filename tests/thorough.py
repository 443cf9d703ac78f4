"""Repetitions with other seeds and on more kinds of tables, which `make test` leaves to `make compliance`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet

T = TypeVar("T")


def quick(count: int, cases: Iterable[T]) -> list[T | ParameterSet]:
    """The cases, of which only the first `count` run in `make test`."""
    return [case if n < count else pytest.param(case, marks=pytest.mark.thorough) for n, case in enumerate(cases)]
