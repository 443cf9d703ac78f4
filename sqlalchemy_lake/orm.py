"""Time travel in ORM sessions.

`lake_as_of` reaches lazy loads and refreshes, and what is read at two points are two objects: those that were not
read at their session's own point have a `PointToken` as identity token. SQLAlchemy 1.4 has no identity tokens for
statements: there a session should read at one point only.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy
from sqlalchemy import event, exc, inspect
from sqlalchemy.orm import Session

from sqlalchemy_lake.timetravel import AsOf, point_of, shown_point

OPTION = "lake_as_of"
_HAS_TOKENS = not sqlalchemy.__version__.startswith("1.4")


class PointToken:
    """The identity token of objects that were read at another point than the session's; None = now."""

    __slots__ = ("point",)

    def __init__(self, point: Any) -> None:
        self.point = point

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointToken) and self.point == other.point

    def __hash__(self) -> int:
        return hash((PointToken, self.point))

    def __repr__(self) -> str:
        return f"<as of {shown_point(self.point)}>"


class LakeSession(Session):
    """A Session that reads at `as_of`, and that looks up objects it holds at the point that is asked for.

    A plain Session looks many-to-one relations of an object of the past, and the object of `get()` with `lake_as_of`,
    up among those of the present first.
    """

    def __init__(self, bind: Any = None, *, as_of: Any = None, **kw: Any) -> None:
        super().__init__(bind, **kw)
        if as_of is not None:
            self.info[OPTION] = as_of

    def _identity_lookup(
        self,
        mapper: Any,
        primary_key_identity: Any,
        identity_token: Any = None,
        passive: Any = sqlalchemy.orm.attributes.PASSIVE_OFF,
        lazy_loaded_from: Any = None,
        **kw: Any,
    ) -> Any:
        asked = kw.get("execution_options") or {}
        if identity_token is None and lazy_loaded_from is not None:
            identity_token = lazy_loaded_from.identity_token
        elif identity_token is None and OPTION in asked and point_of(asked[OPTION]) != _session_point(self):
            identity_token = PointToken(point_of(asked[OPTION]))
        return super()._identity_lookup(
            mapper,
            primary_key_identity,
            identity_token=identity_token,
            passive=passive,
            lazy_loaded_from=lazy_loaded_from,
            **kw,
        )


def install() -> None:
    """Let every session follow `lake_as_of`."""
    if not event.contains(Session, "do_orm_execute", _read_at_point):
        event.listen(Session, "do_orm_execute", _read_at_point)
        event.listen(Session, "before_flush", _refuse_changes_of_the_past)


def _read_at_point(state: Any) -> None:
    own = _session_point(state.session)
    token = _loading_token(state)
    if token is not None:
        point = token.point
    elif OPTION in state.execution_options:
        point = point_of(state.execution_options[OPTION])
    else:
        point = own
    options: dict[str, Any] = {}
    if point is not None or OPTION in state.execution_options:
        options[OPTION] = point
    read = _entity_point(state, point) if state.is_select and state.is_orm_statement else point
    if read != own and _HAS_TOKENS and state.execution_options.get("identity_token") is None:
        options["identity_token"] = PointToken(read)
    if options:
        state.update_execution_options(**options)


def _loading_token(state: Any) -> PointToken | None:
    """The token of the object that is refreshed, or whose attribute is loaded."""
    options = state.load_options if state.is_select and state.is_orm_statement else None
    parent = getattr(options, "_lazy_loaded_from", None)
    for token in (getattr(options, "_identity_token", None), getattr(parent, "identity_token", None)):
        if isinstance(token, PointToken):
            return token
    return None


def _entity_point(state: Any, point: Any) -> Any:
    """The point that the statement's entities are read at, where an `as_of()` in FROM may say another than `point`."""
    points = {
        _alias_point(description["entity"], point)
        for description in getattr(state.statement, "column_descriptions", ())
        if description.get("entity") is not None and description["expr"] is description["entity"]
    }
    if len(points) > 1 and _HAS_TOKENS:
        raise exc.InvalidRequestError(
            "one statement cannot load objects of several points in time, since a row would be one object for all: "
            "select columns of one side, or run a statement for each point"
        )
    return points.pop() if points else point


def _alias_point(entity: Any, point: Any) -> Any:
    selectable = getattr(inspect(entity, raiseerr=False), "selectable", None)
    return selectable.value if isinstance(selectable, AsOf) else point


def _session_point(session: Session) -> Any:
    return point_of(session.info.get(OPTION))


def _refuse_changes_of_the_past(session: Session, context: Any, instances: Any) -> None:
    point = _session_point(session)
    changed = [*session.dirty, *session.deleted]
    if point is not None and (changed or session.new):
        raise exc.InvalidRequestError(
            f"this session reads as of {shown_point(point)} and cannot change anything: use one without lake_as_of"
        )
    for instance in changed:
        key = inspect(instance).key
        if key is not None and isinstance(key[2], PointToken):
            raise exc.InvalidRequestError(
                f"{instance!r} was read as of {shown_point(key[2].point)} and cannot be changed: change today's object"
            )
