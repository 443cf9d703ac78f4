"""What a statement runs in: handed by the session to `query/`, `dml/` and `ddl/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakedbapi.engine.base import Engine
from lakedbapi.model.catalog import AsOf
from lakedbapi.model.progress import Report, unreported
from lakedbapi.transaction import Transaction


@dataclass(frozen=True)
class Context:
    """`parameters` are the bound values by canonical name (`1`, `2`, … or the user's names).

    `search_path` is the current (catalog, schema). `registered` are the Arrow tables and streams that the program gave
    a name.
    `as_of` is the point that every table without its own time travel is read at. `report` is told how far long work
    is, and ends it when the statement is cancelled.
    """

    engine: Engine
    transaction: Transaction
    search_path: tuple[str, str]
    parameters: Mapping[str, object] = field(default_factory=dict)
    registered: Mapping[str, pa.Table | pa.RecordBatchReader] = field(default_factory=dict)
    as_of: AsOf | None = None
    allow_external: bool = False
    """Whether the program trusts whoever wrote the SQL, in statements and in the catalog."""
    report: Report = unreported


@dataclass(frozen=True)
class Counted:
    """Outcome of a statement without result rows, or with RETURNING rows (`returned`, with the columns' SQL types)."""

    rowcount: int
    returned: pa.Table | None = None
    returned_types: tuple[str, ...] = ()
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    lastrowid: int | None = None
    """The identity value of the row that an INSERT made, where that is one row and one value."""
