"""Row-level changes of a Delta table next to deltalake, and reads next to DuckDB's delta extension.

Both sides work on copies of one table, in a process of their own; rounds alternate. After each case of changes both
copies must hold the same rows. Called by `rowlevel.py --format delta`.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ours import Ours
from compliance.delta.readers import Readers

FILES = 10
TIMED = """
import time
start = time.perf_counter()
{code}
result = time.perf_counter() - start
"""


@dataclass(frozen=True)
class Case:
    """`ours(n)` is the statement of round n, `theirs(n)` the Python that does the same to the table `t` at `path`."""

    name: str
    ours: Callable[[int], str]
    theirs: Callable[[int], str]


def cases(rows: int) -> list[Case]:
    step = max(1, rows // 100_000)
    open_table = "t = Table(path)\n"

    def hundred(n: int) -> int:
        return rows // 2 + 1000 * n

    def keys(n: int) -> str:
        return f"SELECT i * {step} + {n} AS id FROM range(100000) r(i)"

    def merge(n: int) -> str:
        return (
            open_table
            + f"ids = pa.array([i * {step} + {n} for i in range(100000)], pa.int64())\n"
            + "merge = t.merge(pa.table({'id': ids}), 't.id = s.id', source_alias='s', target_alias='t')\n"
            + "merge.when_matched_update({'amount': '-1.0'}).when_not_matched_insert(\n"
            + "    {'id': 's.id', 'part': '0', 'amount': '0.0', 'customer': \"'new'\"}).execute()"
        )

    def scan(n: int) -> str:
        return "duckdb_with_delta().execute(f\"SELECT count(*), sum(amount) FROM delta_scan('{path}')\").fetchall()"

    middle = rows // 2
    return [
        Case("SELECT count + sum, 5 % deleted", lambda n: "SELECT count(*), sum(amount) FROM t", scan),
        Case("DELETE by key", lambda n: f"DELETE FROM t WHERE id = {middle + n}", _delete(f"id = {middle} + {{n}}")),
        Case("DELETE of 5 %", lambda n: f"DELETE FROM t WHERE id % 20 = {n}", _delete("id % 20 = {n}")),
        Case(
            "UPDATE of 100 rows",
            lambda n: f"UPDATE t SET amount = amount + 1 WHERE id >= {hundred(n)} AND id < {hundred(n) + 100}",
            lambda n: (
                open_table
                + "t.update({'amount': 'amount + 1'}, "
                + f"predicate='id >= {hundred(n)} and id < {hundred(n) + 100}')"
            ),
        ),
        Case(
            "UPDATE of 2 %",
            lambda n: f"UPDATE t SET amount = amount + 1 WHERE id % 50 = {n + 20}",
            lambda n: open_table + f"t.update({{'amount': 'amount + 1'}}, predicate='id % 50 = {n + 20}')",
        ),
        Case(
            "MERGE of 100,000 keys",
            lambda n: (
                f"MERGE INTO t USING ({keys(n)}) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = -1"
                " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, 0, 'new')"
            ),
            merge,
        ),
    ]


def _delete(predicate: str) -> Callable[[int], str]:
    return lambda n: f"Table(path).delete('{predicate.format(n=n)}')"


def load(folder: Path, rows: int) -> None:
    """`rows` rows in `FILES` files, one a partition, in the table `t`; ids ascend through them; 5 % are deleted."""
    ours = Ours(f"delta:///{folder}")
    ours.run("CREATE TABLE t (id BIGINT, part INTEGER, amount DOUBLE, customer VARCHAR) PARTITIONED BY (part)")
    size = rows // FILES
    for part in range(FILES):
        ours.run(
            f"INSERT INTO t SELECT i, {part}, (i * 7919 % 1000003) / 8.0, 'customer ' || (i % 5000)"
            f" FROM range({part * size}, {(part + 1) * size}) r(i)"
        )
    ours.run("DELETE FROM t WHERE id % 20 = 19")
    ours.close()


def compare(folder: Path, python: Path, rows: int, rounds: int, only: str) -> None:
    readers = Readers(python)
    try:
        readers.run("duckdb_with_delta()")
        folder.mkdir(exist_ok=True)
        print(f"{rows:,} rows in {FILES} files, medians of {rounds} alternating rounds\n")
        print(f"{'':36}{'lakedbapi':>20}{'deltalake / duckdb':>20}{'ratio':>9}")
        load(folder / "ours", rows)
        shutil.copytree(folder / "ours", folder / "theirs")
        sides = Ours(f"delta:///{folder}/ours"), Ours(f"delta:///{folder}/theirs")
        for case in cases(rows):
            if only.casefold() not in case.name.casefold():
                continue
            seconds: tuple[list[float], list[float]] = ([], [])
            for n in range(rounds):
                seconds[0].append(sides[0].run(case.ours(n)))
                code = f"path = {str(folder / 'theirs' / 't')!r}\n" + TIMED.format(code=case.theirs(n))
                seconds[1].append(readers.run(code))
            _print(case.name, *seconds)
            counted = [side.row("SELECT count(*), sum(amount), sum(id) FROM t") for side in sides]
            if counted[0] != counted[1]:
                sys.exit(f"the tables differ after {case.name}: {counted[0]} and {counted[1]}")
    finally:
        readers.close()


def _print(name: str, ours: list[float], theirs: list[float]) -> None:
    first, second = (1000 * statistics.median(taken) for taken in (ours, theirs))
    print(f"{name:36}{first:>17.1f} ms{second:>17.1f} ms{first / second:>9.2f}", flush=True)
