"""What cursors are told of a statement that ran."""

from __future__ import annotations

from dataclasses import dataclass

from lakedbapi.context import Counted
from lakedbapi.engine.base import Result, TableResult


@dataclass(frozen=True)
class Outcome:
    """What a statement did.

    `rowcount` is exact for DML and CREATE TABLE AS, -1 otherwise. `result` is there when the statement returns rows.
    `snapshot` is the snapshot that the statement itself committed (autocommit). `nullable` says for each result column
    whether it can be NULL.
    """

    rowcount: int = -1
    result: Result | None = None
    snapshot: int | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    nullable: tuple[bool | None, ...] = ()
    lastrowid: int | None = None

    @classmethod
    def of(cls, counted: Counted) -> Outcome:
        return cls(
            counted.rowcount,
            None if counted.returned is None else TableResult(counted.returned, counted.returned_types),
            inserted=counted.inserted,
            updated=counted.updated,
            deleted=counted.deleted,
            lastrowid=counted.lastrowid,
        )
