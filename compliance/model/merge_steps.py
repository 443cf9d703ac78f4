"""MERGE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

import lakedbapi
from compliance.model.clients import Client, Expected
from compliance.model.expressions import condition
from compliance.model.program import Data
from compliance.model.row_steps import RowSteps
from compliance.model.tables import Table, Values
from compliance.model.values import Column, Value, quoted, type_sql, values


class MergeSteps(RowSteps):
    def merge(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None or len(table.columns) < 2:
            return
        column = data.draw(st.sampled_from(table.columns[1:]))
        keys = self.choose_keys(data, client, table, unique=True)
        present = table.keys()
        repeated = [key for key in keys if key in present and data.draw(st.integers(0, 5)) == 0]
        source = [(key, data.draw(values(column.type))) for key in [*keys, *repeated]]
        _Merge(self, data, client, table, column, source).run()


@dataclass
class _Clause:
    when: str
    action: str
    conditional: bool
    test: Callable[[Values, Value], bool | None]
    change: Callable[[Values, int, Value], Values]


class _Merge:
    """One MERGE of the source `s(k, v)` with several clauses."""

    def __init__(
        self,
        machine: MergeSteps,
        data: Data,
        client: Client,
        table: Table,
        column: Column,
        source: list[tuple[int, Value]],
    ) -> None:
        self._machine, self._data, self._client = machine, data, client
        self._table, self._column, self._pairs = table, column, source
        self._bind = machine.binder(data)
        self._clauses: list[_Clause] = []

    def run(self) -> None:
        data, table, column = self._data, self._table, self._column
        type = type_sql(column.type)
        rows = ", ".join(
            f"(CAST({key} AS BIGINT), CAST({self._bind(value, column.type)} AS {type}))" for key, value in self._pairs
        )
        source = f"(VALUES {rows}) AS s(k, v)"
        if not rows:
            source = f"(SELECT CAST(NULL AS BIGINT) AS k, CAST(NULL AS {type}) AS v WHERE false) AS s"
        kinds = data.draw(
            st.lists(st.sampled_from(["matched", "not matched", "not matched by source"]), min_size=1, max_size=4)
        )
        texts = [self._clause(kind) for kind in kinds]
        sql = (
            f"MERGE INTO {quoted(table.name)} AS x USING {source} ON x.{quoted(table.key.name)} = s.k {' '.join(texts)}"
        )
        changed, returned, count, repeated = self._outcome()
        if repeated:
            self._machine.expect_failure(self._client, sql, self._bind.parameters, lakedbapi.Error)
            return
        returning, expected = self._machine.returning(data, table, returned, "x.")
        after = table.with_rows(changed) if changed else None
        self._machine.run(self._client, sql + returning, self._bind.parameters, Expected(after, count, **expected))

    def _clause(self, kind: str) -> str:
        condition_sql, test = self._test(kind)
        actions = ["insert", "nothing"] if kind == "not matched" else ["update", "delete", "nothing"]
        action = self._data.draw(st.sampled_from(actions))
        done, change = self._action(kind, action)
        self._clauses.append(_Clause(kind, action, bool(condition_sql), test, change))
        return f"WHEN {kind.upper()}{condition_sql} THEN {done}"

    def _test(self, kind: str) -> tuple[str, Callable[[Values, Value], bool | None]]:
        """AND … of a clause."""
        if self._data.draw(st.booleans()):
            return "", lambda row, value: True
        if kind == "not matched":
            return " AND s.v IS NOT NULL", lambda row, value: value is not None
        where = condition(self._data.draw, self._table, 1)
        return f" AND ({where.sql(self._bind, 'x.')})", lambda row, value: where.test(row)

    def _action(self, kind: str, action: str) -> tuple[str, Callable[[Values, int, Value], Values]]:
        """What follows THEN, and the row that it leaves."""
        table, column, name = self._table, self._column, quoted(self._column.name)
        if action == "insert":
            defaults = {other.id: other.default for other in table.columns}
            return (
                f"INSERT ({quoted(table.key.name)}, {name}) VALUES (s.k, s.v)",
                lambda row, key, value: {**defaults, table.key.id: key, column.id: value},
            )
        if action == "update" and kind == "matched" and self._data.draw(st.booleans()):
            return f"UPDATE SET {name} = s.v", lambda row, key, value: {**row, column.id: value}
        if action == "update":
            sets, assign = self._machine.choose_assignments(self._data, table, self._bind, "x.")
            return f"UPDATE SET {sets}", lambda row, key, value: assign(row)
        return "DO NOTHING" if action == "nothing" else "DELETE", lambda row, key, value: row

    def _outcome(self) -> tuple[dict[int, Values | None], list[Values], int, bool]:
        """The changed rows by identity, those that RETURNING gives, how many, and whether one was changed twice."""
        table, keys = self._table, self._table.keys()
        changed: dict[int, Values | None] = {}
        returned: list[Values] = []
        matches = [(keys.get(key), key, value) for key, value in self._pairs]
        found = {identity for identity, _, _ in matches}
        matches += [(identity, -1, None) for identity in table.rows if identity not in found]
        repeated = False
        for identity, key, value in matches:
            row = {} if identity is None else table.rows[identity]
            kind = "not matched" if identity is None else "matched" if identity in found else "not matched by source"
            clause = next((c for c in self._clauses if c.when == kind and c.test(row, value) is True), None)
            if clause is None or clause.action == "nothing":
                continue
            if identity is None:
                identity = self._machine.lake.number()
            if identity in changed and self._only_deletes_what_matches():
                continue
            repeated |= identity in changed
            new = clause.change(row, key, value)
            changed[identity] = None if clause.action == "delete" else new
            returned.append(new)
        return changed, returned, len(returned), repeated

    def _only_deletes_what_matches(self) -> bool:
        """Then it is all the same how often a row of the target is matched."""
        matched = [(clause.action, clause.conditional) for clause in self._clauses if clause.when == "matched"]
        return matched == [("delete", False)]
