"""What all steps of a program share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import note
from hypothesis import strategies as st

import lakedbapi
from compliance.model.clients import Client, Expected, Lake
from compliance.model.expressions import Binder
from compliance.model.tables import Table, Values, multiset
from compliance.model.values import Column, Value, quoted
from lakedbapi.dml import new_rows


@dataclass(frozen=True)
class Data:
    """Draws without printing each value: the statements tell what was drawn."""

    source: Any

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.source.conjecture_data.draw(strategy)


_MEMORY_LIMIT = new_rows.MEMORY_LIMIT


def hold_rows(in_memory: bool) -> None:
    """Whether new rows stay in memory until the commit, as few do, or go to files at once, as many do."""
    new_rows.MEMORY_LIMIT = _MEMORY_LIMIT if in_memory else 0


class Program:
    """A lake, two connections to it, and the keys that were given so far."""

    lake: Lake
    clients: list[Client]
    keys: int

    def choose_table(self, data: Data, client: Client) -> Table | None:
        tables = sorted(client.tables.values(), key=lambda table: table.id)
        return data.draw(st.sampled_from(tables)) if tables else None

    @staticmethod
    def choose_columns(data: Data, table: Table, most: int | None = None) -> list[Column]:
        """Some columns beside the key."""
        others = table.columns[1:]
        return data.draw(st.lists(st.sampled_from(others), unique_by=lambda c: c.id, max_size=most)) if others else []

    def binder(self, data: Data) -> Binder:
        return Binder(data.draw(st.booleans()))

    def fresh_key(self, client: Client) -> int:
        """A key that the other connection never makes."""
        self.keys += 2
        return self.keys + self.clients.index(client)

    def run(
        self, client: Client, sql: str, parameters: Sequence[Value], expected: Expected, *, many: bool = False
    ) -> None:
        note(f"{self.clients.index(client)}: {sql}; {list(parameters) if parameters else ''}")
        if expected.table is not None and expected.table.breaks_not_null():
            client.fail(sql, parameters, lakedbapi.IntegrityError, many=many)
        else:
            client.run(sql, parameters, expected, many=many)

    def expect_failure(
        self, client: Client, sql: str, parameters: Sequence[Value], kind: type[Exception], *, many: bool = False
    ) -> None:
        note(f"{self.clients.index(client)}: {sql}; {list(parameters) if parameters else ''} -- {kind.__name__}")
        client.fail(sql, parameters, kind, many=many)

    def returning(
        self, data: Data, table: Table, rows: Sequence[Values], prefix: str = ""
    ) -> tuple[str, dict[str, Any]]:
        """RETURNING for some statements: its SQL, and what it gives."""
        kind = data.draw(st.sampled_from(["", "", "*", "columns"]))
        if not kind:
            return "", {}
        columns = list(table.columns)
        if kind == "columns":
            columns = data.draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique_by=lambda c: c.id))
            kind = ", ".join(prefix + quoted(column.name) for column in columns)
        returned = multiset(table.shown(row, columns) for row in rows)
        return f" RETURNING {kind}", {"returned": returned, "returned_names": [column.name for column in columns]}
