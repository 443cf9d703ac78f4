"""A catalog that is called with SQL, whatever its kind of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.formats.kinds import Kind, Rows, connect


class Lake:
    """Called with a statement it gives the rows, or the row count when there are none."""

    def __init__(self, kind: Kind, directory: Path, **options: Any) -> None:
        self.kind = kind
        self.directory = directory
        self.connection = connect(kind, directory, **options)
        self.cursor = self.connection.cursor()

    def __call__(self, sql: str, *parameters: object) -> Any:
        self.cursor.execute(sql, parameters or None)
        return self.cursor.fetchall() if self.cursor.description else self.cursor.rowcount

    def returned(self, sql: str, *parameters: object) -> tuple[Rows, int]:
        """The rows that RETURNING gives, sorted, with the row count."""
        self.cursor.execute(sql, parameters or None)
        return sorted(self.cursor.fetchall(), key=repr), self.cursor.rowcount

    def many(self, sql: str, parameters: list[tuple[object, ...]]) -> int:
        self.cursor.executemany(sql, parameters)
        return self.cursor.rowcount

    def create(self, sql: str, **properties: str) -> None:
        """CREATE TABLE with the properties of this kind of table."""
        self(f"{sql} {self.kind.options(**properties)}")
        self.commit()

    def rows(self, table: str = "t") -> Rows:
        return sorted(self(f"SELECT * FROM {table}"), key=repr)

    def commit(self) -> int | None:
        """The new version."""
        self.connection.commit()
        return self.connection.snapshot_id
