"""Which table the arguments of a CALL name."""

from __future__ import annotations

from lakedbapi import sql
from lakedbapi.context import Context
from lakedbapi.errors import ProgrammingError
from lakedbapi.sql.statements import Call, Name

_NAMESPACE = "system"
"""Of procedures in Spark: `CALL lake.system.expire_snapshots(…)`."""


def catalog_of(call: Call) -> str | None:
    """The catalog that qualifies the procedure's name."""
    before = [part for part in call.name.parts[:-1] if part.casefold() != _NAMESPACE]
    return before[0] if before else None


def names_system(call: Call) -> bool:
    """Whether the name says that the arguments are those of Spark, with no catalog among them."""
    return any(part.casefold() == _NAMESPACE for part in call.name.parts[:-1])


def called_table(context: Context, call: Call, table: str, schema: str | None = None) -> Name:
    """The name of the table `t`, `schema.t` or `catalog.schema.t`, as text; `lake.procedure` means one of `lake`."""
    name = _parts(call, table)
    if schema is not None:
        name = (schema, *name[-1:])
    catalog = catalog_of(call)
    if catalog is not None:
        current = "main" if len(name) > 1 or catalog != context.search_path[0] else context.search_path[1]
        name = (catalog, *((current,) if len(name) == 1 else ()), *name[-2:])
    return Name(name)


def _parts(call: Call, text: str) -> tuple[str, ...]:
    """As written in SQL."""
    statement = sql.parse(f"TRUNCATE {text}").statement
    target = getattr(statement, "target", None)
    if not isinstance(target, Name):
        raise ProgrammingError(f"CALL {call.name}: {text!r} is not the name of a table")
    return target.parts
