"""Tables as they were: `as_of()` for FROM."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, exc, inspect
from sqlalchemy import types as sqltypes
from sqlalchemy.sql import coercions, roles
from sqlalchemy.sql.selectable import AliasedReturnsRows, FromClause, TableClause
from sqlalchemy.sql.visitors import InternalTraversal

from lakedbapi.model.catalog import AsOf as Point
from lakedbapi.url import point as _parsed


class AsOf(AliasedReturnsRows):
    """A table at a version or timestamp, under an alias of its own: what `as_of()` makes."""

    __visit_name__ = "lake_as_of"
    inherit_cache = True

    _traverse_internals = [  # noqa: RUF012 - SQLAlchemy's protocol
        *AliasedReturnsRows._traverse_internals,
        ("point", InternalTraversal.dp_clauseelement),
        ("kind", InternalTraversal.dp_string),
    ]

    def _init(self, selectable: Any, *, name: str | None = None, kind: str, point: Any) -> None:
        super()._init(selectable, name=name)
        self.kind = kind
        self.point = point

    def alias(self, name: str | None = None, flat: bool = False) -> AsOf:
        """The same under another name; what SQLAlchemy makes otherwise would have two."""
        return AsOf._construct(self.element, name=name, kind=self.kind, point=self.point)

    @property
    def value(self) -> Point:
        """The point itself."""
        return _parsed(self.point.value)


def as_of(
    of: Any, *, version: int | None = None, timestamp: datetime | str | None = None, name: str | None = None
) -> AsOf:
    """`of`, a table or mapped class, as it was at a version or a timestamp (naive = UTC): something to select from.

    `aliased(User, as_of(User, version=3))` gives the mapped class at that version.
    """
    if (version is None) == (timestamp is None):
        raise exc.ArgumentError("as_of() takes a version or a timestamp")
    table = _table(of)
    if version is not None:
        kind, point = "VERSION", bindparam(None, version, type_=sqltypes.BigInteger(), unique=True)
    else:
        kind, point = "TIMESTAMP", bindparam(None, _text(timestamp), type_=sqltypes.String(), unique=True)
    return AsOf._construct(table, name=name, kind=kind, point=point)


def _table(of: Any) -> FromClause:
    found: Any = inspect(of, raiseerr=False)
    table = of if isinstance(of, TableClause) else getattr(found, "local_table", None)
    if table is None:
        table = coercions.expect(roles.FromClauseRole, of)
    if not isinstance(table, TableClause) or getattr(found, "selectable", table) is not table:
        raise exc.ArgumentError(
            f"as_of() takes a table or a class mapped to one table, not {of!r}: read everything in a statement at a "
            "version with the execution option lake_as_of"
        )
    return table


def _text(timestamp: Any) -> str:
    return timestamp.isoformat(" ") if isinstance(timestamp, datetime) else str(timestamp)


def point_of(option: Any) -> Point | None:
    """What the execution option `lake_as_of` means; None = now.

    It is a version, a timestamp, `{"version": …}` or `{"timestamp": …}`.
    """
    if isinstance(option, Mapping):
        if len(option) != 1 or not option.keys() <= {"version", "timestamp"}:
            raise exc.ArgumentError(f"lake_as_of takes {{'version': …}} or {{'timestamp': …}}, not {dict(option)!r}")
        option = next(iter(option.values()))
    return None if option is None else _parsed(option, refs=True)


def shown_point(point: Point | None) -> str:
    """For messages."""
    if point is None:
        return "now"
    if point.version is not None:
        return f"version {point.version}"
    return f"{point.timestamp}" if point.timestamp is not None else f"{point.ref}"
