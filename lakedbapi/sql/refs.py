"""Branches and tags: CREATE, REPLACE and DROP behind ALTER TABLE, in Spark's words."""

from __future__ import annotations

from lakedbapi.model.refs import BRANCH, TAG, NewRef, RefRetention
from lakedbapi.sql.expressions import expression, has_columns
from lakedbapi.sql.keywords import words
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.statements import DropRef, Name, PutRef
from lakedbapi.sql.tokens import NUMBER

_KINDS = (BRANCH, TAG)
_BEHIND_COLUMN = words("cascade restrict ,")
_MILLISECONDS = {
    "minute": 60_000,
    "minutes": 60_000,
    "hour": 3_600_000,
    "hours": 3_600_000,
    "day": 86_400_000,
    "days": 86_400_000,
}


def at_ref(reader: Reader) -> bool:
    """A column may be called `branch` or `tag`, too."""
    verb, following = reader.peek().key, reader.peek(1).key
    if verb == "drop" and following in _KINDS:
        behind = reader.peek(2)
        return behind.is_identifier and behind.key not in _BEHIND_COLUMN
    return (verb in ("create", "replace") and following in _KINDS) or reader.at("create", "or", "replace")


def read_ref(reader: Reader, table: Name) -> PutRef | DropRef:
    """`CREATE [OR REPLACE] | REPLACE | DROP` of a branch or tag of `table`."""
    verb = reader.next().key
    replace = verb == "replace" or reader.accept("or", "replace")
    kind = next((kind for kind in _KINDS if reader.accept(kind)), None)
    if kind is None:
        raise reader.error("expected BRANCH or TAG")
    if verb == "drop":
        if_exists = reader.accept("if", "exists")
        dropped = DropRef(table, kind, _name(reader, kind), if_exists)
        reader.expect_end()
        return dropped
    if_not_exists = not replace and reader.accept("if", "not", "exists")
    name = _name(reader, kind)
    version = None
    if reader.accept("as", "of", "version"):
        start = reader.peek()
        clause = reader.until(("retain",), ("with", "snapshot"))
        if clause.done or has_columns(version := expression(clause)):
            raise reader.error("expected the number of a version", start)
    retention = RefRetention(
        _age(reader) if reader.accept("retain") else None, *(_snapshots(reader) if kind == BRANCH else ())
    )
    reader.expect_end()
    return PutRef(table, NewRef(kind, name, None, verb == "create", replace, if_not_exists, retention), version)


def _name(reader: Reader, kind: str) -> str:
    return reader.identifier(f"the name of a {kind}")


def _snapshots(reader: Reader) -> tuple[int | None, int | None]:
    """`[WITH SNAPSHOT RETENTION [n SNAPSHOTS] [n DAYS]]`: how many, and their age."""
    if not reader.accept("with", "snapshot", "retention"):
        return None, None
    count = None
    if reader.peek(1).key in ("snapshot", "snapshots"):
        count = _number(reader)
        reader.next()
    return count, None if reader.done and count is not None else _age(reader)


def _age(reader: Reader) -> int:
    """`n DAYS | HOURS | MINUTES` in milliseconds."""
    number = _number(reader)
    unit = _MILLISECONDS.get(reader.peek().key)
    if unit is None:
        raise reader.error("expected DAYS, HOURS or MINUTES")
    reader.next()
    return number * unit


def _number(reader: Reader) -> int:
    token = reader.peek()
    if token.kind != NUMBER or not token.value.isdecimal() or not 0 < int(token.value) < 1 << 31:
        raise reader.error("expected a whole number above 0 and below 2147483648")
    reader.next()
    return int(token.value)
