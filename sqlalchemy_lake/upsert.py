"""INSERT … ON CONFLICT, and the `method` of pandas' `to_sql` that upserts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy.dialects.sqlite import dml


class Insert(dml.Insert):
    """INSERT with `on_conflict_do_update` and `on_conflict_do_nothing`.

    `index_elements` name the columns that decide what conflicts; they need no constraint. Without them it is the
    primary key. `excluded` holds the values that were to be inserted.
    """

    stringify_dialect = "lake"
    inherit_cache = dml.Insert.inherit_cache


def insert(table: Any) -> Insert:
    """An INSERT into a table or mapped class that can have an ON CONFLICT clause."""
    return Insert(table)


def lake_upsert(keys: Sequence[str]) -> Callable[[Any, Any, list[str], Iterable[Sequence[Any]]], int]:
    """For `DataFrame.to_sql(..., method=lake_upsert(["id"]))`: rows whose key is there update it, others are inserted.

    The number of rows inserted and updated is what `to_sql` returns.
    """

    def method(table: Any, connection: Any, columns: list[str], rows: Iterable[Sequence[Any]]) -> int:
        statement = insert(table.table)
        others = {name: statement.excluded[name] for name in columns if name not in keys}
        statement = (
            statement.on_conflict_do_update(index_elements=list(keys), set_=others)
            if others
            else statement.on_conflict_do_nothing(index_elements=list(keys))
        )
        return int(connection.execute(statement, [dict(zip(columns, row, strict=True)) for row in rows]).rowcount)

    return method
