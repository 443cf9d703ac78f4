"""One process of many that write the same lake: `python -m compliance.races.worker <job> <url> <number> <count>`.

Every acknowledged statement is printed at once as a line `<kind> <rowcount>`, so that what was acknowledged is known even
when the process is killed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import lakedbapi


def mixed(cursor: lakedbapi.Cursor, number: int, count: int) -> None:
    """Inserts, updates of rows that stay, and deletes of others, in the table `t(id, worker, counter)`."""
    choice = random.Random(number)
    for n in range(count):
        kind = choice.choice(["insert", "update", "delete"])
        if kind == "insert":
            rows = choice.randint(1, 20)
            cursor.execute("INSERT INTO t SELECT ? + i, ?, 0 FROM range(?) r(i)", (first_id(number, n), number, rows))
        elif kind == "update":
            bucket = choice.randrange(7)
            cursor.execute("UPDATE t SET counter = counter + 1 WHERE id < 100 AND id % 7 = ?", (bucket,))
        else:
            divisor = choice.randint(3, 9)
            cursor.execute("DELETE FROM t WHERE id >= 100 AND id % ? = ?", (divisor, choice.randrange(divisor)))
        acknowledge(kind, cursor.rowcount)


def insert(cursor: lakedbapi.Cursor, number: int, count: int) -> None:
    """Single rows into the one table `t`."""
    for n in range(count):
        cursor.execute("INSERT INTO t VALUES (?, ?, 0)", (first_id(number, n), number))
        acknowledge("insert", cursor.rowcount)


def insert_apart(cursor: lakedbapi.Cursor, number: int, count: int) -> None:
    """Single rows into a table of the process' own, which it makes."""
    cursor.execute(f"CREATE TABLE t{number} (id INTEGER)")
    for n in range(count):
        cursor.execute(f"INSERT INTO t{number} VALUES (?)", (n,))
        acknowledge("insert", cursor.rowcount)


def pairs(cursor: lakedbapi.Cursor, number: int, count: int) -> None:
    """Transactions that each add as many rows to `plus` as to `minus`, and take some from both."""
    for n in range(count):
        cursor.execute("BEGIN")
        for table in ("plus", "minus"):
            cursor.execute(f"INSERT INTO {table} SELECT ? + i FROM range(30) r(i)", (first_id(number, n),))
            cursor.execute(f"DELETE FROM {table} WHERE id % 30 = ? AND id < ?", (n % 30, first_id(number, n)))
        cursor.execute("COMMIT")
        acknowledge("commit", 30)


def first_id(number: int, n: int) -> int:
    """The first of 100 ids that only this process has."""
    return 100_000 * (number + 1) + 100 * n


def acknowledge(kind: str, rowcount: int) -> None:
    print(kind, rowcount, flush=True)


JOBS: dict[str, Callable[[lakedbapi.Cursor, int, int], None]] = {
    job.__name__: job for job in (mixed, insert, insert_apart, pairs)
}


if __name__ == "__main__":
    name, url, number, count = sys.argv[1:]
    with lakedbapi.connect(url, autocommit=True) as connection:
        JOBS[name](connection.cursor(), int(number), int(count))
