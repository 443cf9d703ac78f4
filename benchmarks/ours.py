"""This package's side of the comparisons."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import lakedbapi


class Ours:
    name = "lakedbapi"

    def __init__(self, location: str) -> None:
        self._connection = lakedbapi.connect(location, autocommit=True)
        self._cursor = self._connection.cursor()

    def run(self, sql: str, many: Sequence[list[Any]] = ()) -> float:
        """Seconds of the statement with its result fetched as Arrow; with `many`, of it with each of these."""
        start = time.perf_counter()
        if many:
            self._cursor.executemany(sql, many)
        else:
            self._cursor.execute(sql)
            if self._cursor.description:
                self._cursor.fetch_arrow_table()
        return time.perf_counter() - start

    def row(self, sql: str) -> tuple[Any, ...]:
        (row,) = self.rows(sql)
        return row

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._cursor.execute(sql).fetchall()]

    def close(self) -> None:
        self._connection.close()
