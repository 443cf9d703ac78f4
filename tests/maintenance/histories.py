"""Random histories of a table, and all that its users can see of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol


class Runs(Protocol):
    def __call__(self, sql: str) -> Any: ...


TABLES = (
    "CREATE TABLE t (k INTEGER, g VARCHAR, v VARCHAR)",
    "CREATE TABLE t (k INTEGER, g VARCHAR, v VARCHAR) PARTITIONED BY (g)",
    "CREATE TABLE t (k INTEGER, g VARCHAR, v VARCHAR) PARTITIONED BY (bucket(2, k)) SORTED BY (v DESC)",
)


def statements(seed: int, length: int) -> Iterator[str]:
    """The statements of one history, from the creation of `t` on; some are grouped by BEGIN and COMMIT."""
    choice = random.Random(seed)
    yield TABLES[seed % len(TABLES)]
    yield _insert(choice, 0, 30)
    columns, next_key, added = ["v"], 30, 0
    open_statements = 0
    for _ in range(length):
        if open_statements == 0 and choice.random() < 0.15:
            yield "BEGIN"
            open_statements = choice.randint(2, 3)
        kind = choice.choices(("insert", "few", "delete", "update", "alter"), (2, 3, 4, 4, 1))[0]
        column = choice.choice(columns)
        if kind in ("insert", "few"):
            count = choice.randint(12, 30) if kind == "insert" else choice.randint(1, 3)
            yield _insert(choice, next_key, count)
            next_key += count
        elif kind == "delete":
            yield f"DELETE FROM t WHERE {_condition(choice, next_key)}"
        elif kind == "update":
            value = "g || '!'" if choice.random() < 0.3 else f"'u{choice.randint(0, 9)}'"
            yield f"UPDATE t SET {column} = {value} WHERE {_condition(choice, next_key)}"
        elif open_statements == 0:
            added += 1
            if len(columns) == 1 or choice.random() < 0.6:
                columns.append(f"c{added}")
                yield f"ALTER TABLE t ADD COLUMN c{added} VARCHAR DEFAULT 'd{added}'"
            elif choice.random() < 0.5:
                yield f"ALTER TABLE t RENAME COLUMN {columns[-1]} TO r{added}"
                columns[-1] = f"r{added}"
            else:
                yield f"ALTER TABLE t DROP COLUMN {columns.pop()}"
        if open_statements:
            open_statements -= 1
            if open_statements == 0:
                yield "COMMIT"
    if open_statements:
        yield "COMMIT"


def _insert(choice: random.Random, start: int, count: int) -> str:
    columns = "k, g, v"
    return f"INSERT INTO t ({columns}) SELECT i, 'g' || (i % 3), 'x' || i FROM range({start}, {start + count}) r(i)"


def _condition(choice: random.Random, next_key: int) -> str:
    kind = choice.random()
    if kind < 0.5:
        return f"k = {choice.randrange(next_key)}"
    if kind < 0.9:
        start = choice.randrange(next_key)
        return f"k BETWEEN {start} AND {start + choice.randint(1, 14)}"
    return f"g = 'g{choice.randint(0, 2)}'"


Rows = list[tuple[Any, ...]]


def rows(lake: Runs, last: int) -> dict[int, Rows]:
    """The rows of `t` with their ids at every kept snapshot up to `last`."""
    kept = [id for (id,) in lake("SELECT snapshot_id FROM snapshots()") if 0 < id <= last]
    return {id: sorted(lake(f"SELECT rowid, * FROM t AT (VERSION => {id})"), key=repr) for id in kept}


def changes(lake: Runs, first: int, last: int) -> Rows:
    """The change feed of `t`."""
    return sorted(lake(f"SELECT * FROM table_changes('t', {first}, {last})"), key=repr)


def newest(lake: Runs) -> int:
    return int(lake("SELECT max(snapshot_id) FROM snapshots()")[0][0])


def live(lake: Runs, table: str = "t") -> set[str]:
    """Names of the files that the table consists of now."""
    paths = [path for (path,) in lake(f"SELECT path FROM files('{table}')")]
    paths += [path for (path,) in lake(f"SELECT path FROM delete_files('{table}')")]
    return {Path(path).name for path in paths}
