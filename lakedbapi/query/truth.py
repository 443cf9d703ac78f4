"""Three-valued logic over many files at once: which truth values a condition can have for the rows of each file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Truth:
    """One bool a file: whether the condition can be TRUE, FALSE, NULL for some row of it; if in doubt it can."""

    true: Mask
    false: Mask
    null: Mask

    @classmethod
    def unknown(cls, count: int) -> Truth:
        return cls(*(np.ones(count, np.bool_) for _ in range(3)))

    @classmethod
    def always(cls, value: bool | None, count: int) -> Truth:
        """The condition has `value` for every row."""
        return cls(*(np.full(count, value is possible) for possible in (True, False, None)))

    def __invert__(self) -> Truth:
        return Truth(self.false, self.true, self.null)

    def __and__(self, other: Truth) -> Truth:
        return Truth(
            self.true & other.true,
            self.false | other.false,
            (self.null | other.null) & (self.true | self.null) & (other.true | other.null),
        )

    def __or__(self, other: Truth) -> Truth:
        return ~(~self & ~other)

    def null_as_false(self) -> Truth:
        """Of `condition IS TRUE`."""
        return Truth(self.true, self.false | self.null, np.zeros_like(self.null))
