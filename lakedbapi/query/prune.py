"""Which data files a condition can touch, told from partition values and column statistics alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.transaction import Contents


@dataclass(frozen=True)
class Pruning:
    """One bool a row of `Contents.files`: `keep` = some row may satisfy the condition; `all_match` = every row surely does."""

    keep: npt.NDArray[np.bool_]
    all_match: npt.NDArray[np.bool_]


def prune(context: Context, contents: Contents, predicate: exp.Expression | None, alias: str) -> Pruning:
    """The files of `contents` that rows with `predicate` TRUE can be in.

    `alias` is the name by which columns of the table are qualified in `predicate`; unqualified ones are the table's if it
    has a column of that name. What cannot be decided keeps the file. None = no condition: everything matches.
    """
    raise NotImplementedError
