"""COMMIT, ROLLBACK, savepoints, statements that fail, and reading the present and the past."""

from __future__ import annotations

from hypothesis import note
from hypothesis import strategies as st

import lakedbapi
from compliance.model.clients import Client
from compliance.model.expressions import condition
from compliance.model.program import Data, Program
from compliance.model.tables import multiset
from compliance.model.values import quoted

SAVEPOINTS = ("one", "two")


class TransactionSteps(Program):
    def commit(self, data: Data, client: Client) -> None:
        by_sql = data.draw(st.booleans())
        note(f"{self.clients.index(client)}: COMMIT")
        client.commit(by_sql=by_sql)

    def commit_both(self, data: Data, client: Client) -> None:
        """In either order."""
        for client in data.draw(st.permutations(self.clients)):
            note(f"{self.clients.index(client)}: COMMIT")
            client.commit()

    def roll_back(self, data: Data, client: Client) -> None:
        note(f"{self.clients.index(client)}: ROLLBACK")
        client.rollback()

    def savepoint(self, data: Data, client: Client) -> None:
        name = data.draw(st.sampled_from(SAVEPOINTS))
        kind = data.draw(st.sampled_from(["set", "set", "back", "release"]))
        note(f"{self.clients.index(client)}: {kind} savepoint {name}")
        {"set": client.savepoint, "back": client.rollback_to, "release": client.release}[kind](name)

    def fail(self, data: Data, client: Client) -> None:
        kind = data.draw(st.sampled_from(["column", "table", "cast", "cast later", "many", "update"]))
        table = self.choose_table(data, client)
        if table is None:
            return
        name, key = quoted(table.name), quoted(table.key.name)
        if kind == "column":
            self.expect_failure(client, f"UPDATE {name} SET nosuch = 1", (), lakedbapi.ProgrammingError)
        elif kind == "table":
            self.expect_failure(client, "DELETE FROM nosuch", (), lakedbapi.ProgrammingError)
        elif kind == "cast":
            self.expect_failure(client, f"INSERT INTO {name} ({key}) VALUES ('no number')", (), lakedbapi.DataError)
        elif kind == "cast later":
            rows = "SELECT i::VARCHAR FROM range(3000) r(i) UNION ALL SELECT 'no number'"
            self.expect_failure(client, f"INSERT INTO {name} ({key}) {rows}", (), lakedbapi.DataError)
        elif kind == "many":
            sets = [(self.fresh_key(client),), ("no number",)]
            self.expect_failure(client, f"INSERT INTO {name} ({key}) VALUES (?)", sets, lakedbapi.DataError, many=True)
        elif table.rows:
            self.expect_failure(client, f"UPDATE {name} SET {key} = 'no number'", (), lakedbapi.DataError)

    def query(self, data: Data, client: Client) -> None:
        """What a condition selects, and counts."""
        table = self.choose_table(data, client)
        if table is None:
            return
        bind, where = self.binder(data), condition(data.draw, table)
        sql = where.sql(bind, "")
        note(f"{self.clients.index(client)}: SELECT FROM {table.name} WHERE {sql}; {bind.parameters}")
        columns = data.draw(st.lists(st.sampled_from(table.columns), min_size=1, unique_by=lambda c: c.id))
        expected = multiset(table.shown(row, columns) for row in table.rows.values() if where.test(row) is True)
        assert multiset(client.query(table, columns, sql, bind.parameters)) == expected
        count = client.cursor.execute(
            f"SELECT count(*), count({quoted(columns[0].name)}) FROM {quoted(table.name)} WHERE {sql}",
            bind.parameters or None,
        ).fetchone()
        known = [row for row in table.rows.values() if where.test(row) is True]
        not_nulls = sum(table.cell(row, columns[0]) is not None for row in known)
        assert count == (len(known), not_nulls)
        total = client.cursor.execute(f"SELECT count(*) FROM {quoted(table.name)}").fetchone()
        assert total == (len(table.rows),)

    def travel(self, data: Data, client: Client) -> None:
        by_time = data.draw(st.booleans())
        number = data.draw(st.sampled_from(sorted(self.lake.history)))
        if by_time:
            self.lake.check_time(number)
        else:
            for table in self.lake.history[number].values():
                self.lake.check_version(number, table)

    def feed(self, data: Data, client: Client) -> None:
        numbers = sorted(self.lake.history)
        last = data.draw(st.sampled_from(numbers))
        first = data.draw(st.sampled_from([number for number in numbers if number <= last]))
        for table in self.lake.history[last].values():
            note(f"feed of {table.name} from {first} to {last}")
            self.lake.check_feed(first, last, table)
