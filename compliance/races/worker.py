"""What one of many processes does to a lake that the others write, too.

Every acknowledged statement is written at once as a line `<kind> <rowcount>`, so that what was acknowledged is known
even when the process is killed.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

import duckdb  # noqa: F401 - these are here to be loaded before the fork
import pandas  # noqa: F401
import psycopg  # noqa: F401

import lakedbapi


class Worker:
    """`number` makes its rows differ from those of others; `count` statements or transactions are run."""

    def __init__(self, cursor: lakedbapi.Cursor, acknowledged: TextIO, number: int, count: int) -> None:
        self.cursor = cursor
        self.acknowledged = acknowledged
        self.number = number
        self.count = count

    def mixed(self) -> None:
        """Inserts, updates of rows that stay, and deletes of others, in the table `t(id, worker, counter)`."""
        choice = random.Random(self.number)
        for n in range(self.count):
            kind = choice.choice(["insert", "update", "delete"])
            if kind == "insert":
                new = (self._first_id(n), self.number, choice.randint(1, 20))
                self.cursor.execute("INSERT INTO t SELECT ? + i, ?, 0 FROM range(?) r(i)", new)
            elif kind == "update":
                bucket = choice.randrange(7)
                self.cursor.execute("UPDATE t SET counter = counter + 1 WHERE id < 100 AND id % 7 = ?", (bucket,))
            else:
                divisor = choice.randint(3, 9)
                chosen = (divisor, choice.randrange(divisor))
                self.cursor.execute("DELETE FROM t WHERE id >= 100 AND id % ? = ?", chosen)
            self._acknowledge(kind, self.cursor.rowcount)

    def insert(self) -> None:
        """Single rows into the one table `t`."""
        for n in range(self.count):
            self.cursor.execute("INSERT INTO t VALUES (?, ?, 0)", (self._first_id(n), self.number))
            self._acknowledge("insert", self.cursor.rowcount)

    def insert_apart(self) -> None:
        """Single rows into a table of the process' own, which it makes."""
        self.cursor.execute(f"CREATE TABLE t{self.number} (id INTEGER)")
        for n in range(self.count):
            self.cursor.execute(f"INSERT INTO t{self.number} VALUES (?)", (n,))
            self._acknowledge("insert", self.cursor.rowcount)

    def transfer(self) -> None:
        """Transactions that add 30 rows to `plus` and take as many from `minus`, by a delete of some rows of a file."""
        for n in range(self.count):
            self.cursor.execute("BEGIN")
            self.cursor.execute("INSERT INTO plus SELECT ? + i FROM range(30) r(i)", (self._first_id(n),))
            self.cursor.execute("DELETE FROM minus WHERE id < (SELECT min(id) FROM minus) + 30")
            self.cursor.execute("COMMIT")
            self._acknowledge("commit", 30)

    def swap(self) -> None:
        """Transactions on the one table `t(id, worker, counter)`: 30 new rows, and as many of the oldest less."""
        for n in range(self.count):
            self.cursor.execute("BEGIN")
            self.cursor.execute(
                "INSERT INTO t SELECT ? + i, ?, 0 FROM range(30) r(i)", (self._first_id(n), self.number)
            )
            self.cursor.execute("DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY worker NULLS FIRST, id LIMIT 30)")
            self.cursor.execute("COMMIT")
            self._acknowledge("commit", 30)

    def maintain(self) -> None:
        """All that there is to maintain the one table `t`, over and over."""
        for _ in range(self.count):
            for sql in ("REORG TABLE t APPLY (PURGE)", "OPTIMIZE t", "VACUUM t", "CHECKPOINT t"):
                self.cursor.execute(sql)
            self._acknowledge("maintain", 0)

    def _first_id(self, n: int) -> int:
        """The first of 100 ids that only this process has."""
        return 100_000 * (self.number + 1) + 100 * n

    def _acknowledge(self, kind: str, rowcount: int) -> None:
        print(kind, rowcount, file=self.acknowledged, flush=True)


JOBS: dict[str, Callable[[Worker], None]] = {
    "mixed": Worker.mixed,
    "insert": Worker.insert,
    "insert_apart": Worker.insert_apart,
    "transfer": Worker.transfer,
    "swap": Worker.swap,
    "maintain": Worker.maintain,
}


def work(
    job: str, url: str, number: int, count: int, acknowledged: Path, failure: Path, options: Mapping[str, Any]
) -> None:
    """Run a job; an error ends in the file `failure` and in the exit code 1."""
    try:
        with lakedbapi.connect(url, autocommit=True, **options) as connection, acknowledged.open("w") as lines:
            JOBS[job](Worker(connection.cursor(), lines, number, count))
    except BaseException:
        failure.write_text(traceback.format_exc())
        sys.exit(1)
