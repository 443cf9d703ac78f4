"""executemany."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakedbapi.context import Context, Counted
from lakedbapi.dml.delete import delete
from lakedbapi.dml.insert import insert
from lakedbapi.dml.merge import merge
from lakedbapi.dml.update import update
from lakedbapi.sql.statements import Delete, Insert, Merge, Update


def execute_many(
    context: Context, statement: Insert | Update | Delete | Merge, parameter_sets: Sequence[Mapping[str, object]]
) -> Counted:
    run = {Insert: insert, Update: update, Delete: delete, Merge: merge}[type(statement)]
    total = Counted(0)
    for parameters in parameter_sets:
        one = run(replace(context, parameters=parameters), statement)
        total = Counted(
            total.rowcount + one.rowcount,
            None,
            (),
            total.inserted + one.inserted,
            total.updated + one.updated,
            total.deleted + one.deleted,
        )
    return total
