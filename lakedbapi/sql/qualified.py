"""Columns with the path of their table before them.

The text does not tell what is what in `a.b.c.d`: fields of structs are written as columns of tables are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp


def table_paths(column: exp.Column) -> Iterator[tuple[str, ...]]:
    """What can be the path of the table in a qualified column, casefolded, the longest first."""
    return leading([part.name.casefold() for part in column.parts[:-1]])


def leading(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What can be the path of a table at the beginning of `names`, the longest first."""
    return (tuple(names[:length]) for length in range(min(len(names), 3), 0, -1))


def under(alias: Any, column: exp.Column, length: int) -> exp.Column:
    """The column of a table whose path is `length` parts long, under another name of the table."""
    *qualifiers, name = (part.copy() for part in (alias, *column.parts[length:]))
    names = dict(zip(("table", "db", "catalog"), reversed(qualifiers), strict=False))
    return exp.Column(this=name, **names)
