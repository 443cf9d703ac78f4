"""Foreign keys follow the tables and columns that they refer to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakedbapi.context import Context
from lakedbapi.ddl.staging import stage_table
from lakedbapi.model.catalog import Constraint, TableInfo

Change = Callable[[Constraint], "Constraint | None"]
"""What becomes of a foreign key; None = it goes."""


def change_references(context: Context, alias: str, schema: str, table: TableInfo, change: Change) -> TableInfo:
    """Apply `change` to all foreign keys that refer to `table`.

    Other tables are staged; the table itself is returned, with its foreign keys to itself changed.
    """
    key = (schema.casefold(), table.name.casefold())
    for other in list(context.transaction.view(alias).tables.values()):
        if other.id != table.id:
            changed = _changed(other, key, change)
            if changed != other:
                stage_table(context, alias, changed)
    return _changed(table, key, change)


def _changed(table: TableInfo, key: tuple[str, str], change: Change) -> TableInfo:
    constraints = (
        change(constraint) if tuple(part.casefold() for part in constraint.referred) == key else constraint
        for constraint in table.constraints
    )
    return replace(table, constraints=tuple(constraint for constraint in constraints if constraint is not None))
