"""The same statements in a lake and in DuckDB's own tables, compared after each."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

import lakedbapi


class Difference(AssertionError):
    pass


class Twins:
    """`lake` is ours, `duck` is DuckDB in memory.

    DuckDB has no savepoints, and an error ends its transactions: here each saved state is a copy of its database, which
    a rollback makes the current one again.
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.lake = lakedbapi.connect(Path(self._directory.name) / "lake")
        self.cursor = self.lake.cursor()
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'")
        self._copies = 0
        self.current = "memory"
        self.script: list[str] = []

    def close(self) -> None:
        self.lake.close()
        self.duck.close()
        self._directory.cleanup()

    def ours(self, sql: str) -> None:
        """Run on the lake alone: what has no meaning for DuckDB's tables."""
        self.script.append(sql)
        self.cursor.execute(sql)

    def run(self, sql: str) -> bool:
        """Run on both and compare; False when both fail."""
        self.script.append(sql)
        expected, their_error = self._theirs(sql)
        actual, our_error = self._ours(sql)
        if their_error or our_error:
            if not their_error or not our_error:
                raise Difference(f"{sql}\nDuckDB: {their_error}\nlake: {our_error}")
            return False
        if expected is not None and expected.column_names == ["Count"]:
            count = expected["Count"][0].as_py() if expected.num_rows else None
            if count is not None and "TABLE" not in sql[:20] and self.cursor.rowcount != count:
                raise Difference(f"{sql}\nrowcount is {self.cursor.rowcount}, not {count}")
        elif expected is not None and expected.num_columns and actual is not None:
            self.compare(sql, expected, actual)
        return True

    def compare(self, what: str, expected: pa.Table, actual: pa.Table) -> None:
        names = [f"c{i}" for i in range(expected.num_columns)]
        if expected.column_names != actual.column_names:
            raise Difference(f"{what}\ncolumns are {actual.column_names}, not {expected.column_names}")
        if expected.schema.types != actual.schema.types:
            raise Difference(f"{what}\ntypes are {actual.schema.types}, not {expected.schema.types}")
        checker = self.duck.cursor()
        try:
            checker.register("expected", expected.rename_columns(names))
            checker.register("actual", actual.rename_columns(names))
            missing = checker.execute("FROM expected EXCEPT ALL FROM actual").fetchall()
            extra = checker.execute("FROM actual EXCEPT ALL FROM expected").fetchall()
        finally:
            checker.close()
        if missing or extra:
            raise Difference(f"{what}\nmissing: {missing[:5]}\nextra: {extra[:5]}")

    def contents(self, tables: Sequence[str]) -> dict[str, pa.Table]:
        """DuckDB's rows of `tables`, given as SQL, after comparing them with the lake's."""
        found = {}
        for table in tables:
            sql = f"SELECT * FROM {table}"
            self.cursor.execute(sql)
            found[table] = self.duck.execute(sql).to_arrow_table()
            self.compare(sql, found[table], self.cursor.fetch_arrow_table())
        return found

    def save(self) -> str:
        """A copy of DuckDB's database, by name."""
        self._copies += 1
        name = f"copy_{self._copies}"
        self.duck.execute(f"ATTACH ':memory:' AS {name}")
        self.duck.execute(f"COPY FROM DATABASE {self.current} TO {name}")
        return name

    def restore(self, name: str) -> None:
        """Make a copy of the copy the current database, so that it can be restored again."""
        old, self.current = self.current, name
        self.current = self.save()
        self.duck.execute(f"USE {self.current}")
        self.forget(old)

    def forget(self, name: str) -> None:
        if name != "memory":
            self.duck.execute(f"DETACH {name}")

    def _theirs(self, sql: str) -> tuple[pa.Table | None, str | None]:
        try:
            return self.duck.execute(sql).to_arrow_table(), None
        except duckdb.Error as error:
            return None, str(error)

    def _ours(self, sql: str) -> tuple[pa.Table | None, str | None]:
        try:
            self.cursor.execute(sql)
            return (self.cursor.fetch_arrow_table() if self.cursor.description else None), None
        except lakedbapi.Error as error:
            return None, f"{type(error).__name__}: {error}"
