"""Row-level changes of an Iceberg table next to pyiceberg, and reads next to DuckDB's iceberg extension.

Each side has a table of its own with the same rows, in a catalog of its own on SQLite and in a process of its own;
rounds alternate. After each case of changes both tables must hold the same rows. Called by `rowlevel.py --format
iceberg`.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyiceberg.types import DoubleType, LongType, NestedField

from benchmarks.ours import Ours
from compliance.delta.readers import Readers
from tests.formats.iceberg.building import Table

SERVER = Path(__file__).parents[1] / "compliance" / "iceberg" / "server.py"
FILES = 10
SCATTERED = "DELETE of 100 scattered rows"
KEYS = 10_000
"""Keys of an equality delete, about as many as a stream's commit has."""
TIMED = """
import time
start = time.perf_counter()
{code}
result = time.perf_counter() - start
"""


def url(folder: Path) -> str:
    return f"iceberg+sqlite:///{folder}/catalog.db?warehouse=file://{folder}/warehouse"


@dataclass(frozen=True)
class Case:
    """`ours(n)` is the statement of round n, `theirs(n)` the Python that does the same to the table `t`."""

    name: str
    ours: Callable[[int], str]
    theirs: Callable[[int], str]
    rounds: int | None = None


def cases(rows: int) -> list[Case]:
    middle, step = rows // 2, max(1, rows // 100_000)

    def scattered(n: int) -> str:
        return ", ".join(str(i * (rows // 100) + n + 1) for i in range(100))

    def merge(n: int) -> str:
        source = f"SELECT i * {step} + {n} AS id FROM range(100000) r(i)"
        return (
            f"MERGE INTO t USING ({source}) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET part = 0, amount = -1,"
            " customer = 'new' WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, -1, 'new')"
        )

    def upsert(n: int) -> str:
        return (
            f"count, ids = 100000, pa.array(range({n}, {n} + {step} * 100000, {step}), pa.int64())\n"
            "columns = [ids, pa.array([0] * count, pa.int32()), pa.array([-1.0] * count), pa.array(['new'] * count)]\n"
            "names = ['id', 'part', 'amount', 'customer']\n"
            "table().upsert(pa.table(columns, names=names), join_cols=['id'])"
        )

    return [
        Case(
            "DELETE by key",
            lambda n: f"DELETE FROM t WHERE id = {middle + n}",
            lambda n: f"table().delete('id = {middle + n}')",
        ),
        Case(
            SCATTERED,
            lambda n: f"DELETE FROM t WHERE id IN ({scattered(n)})",
            lambda n: f"table().delete('id in ({scattered(n)})')",
        ),
        Case("upsert of 100,000 keys", merge, upsert, rounds=1),
    ]


def load(folder: Path, rows: int, version: int = 2, pages: int = 1) -> Ours:
    """`rows` rows in `FILES` files with pages of this version, one a partition, in the table `t`; ids ascend through
    them."""
    folder.mkdir(parents=True)
    ours = Ours(url(folder))
    ours.run(
        "CREATE TABLE t (id BIGINT, part INTEGER, amount DOUBLE, customer VARCHAR) PARTITIONED BY (part)"
        f" WITH ('format-version' = '{version}', 'write.parquet.page-version' = '{pages}')"
    )
    size = rows // FILES
    for part in range(FILES):
        ours.run(
            f"INSERT INTO t SELECT i, {part}, (i * 7919 % 1000003) / 8.0, 'customer ' || (i % 5000)"
            f" FROM range({part * size}, {(part + 1) * size}) r(i)"
        )
    return ours


def with_vectors(folder: Path, rows: int) -> str:
    """The metadata file of a table in which 5 % of the rows are deleted by deletion vectors."""
    ours = load(folder, rows, version=3)
    ours.run("DELETE FROM t WHERE id % 20 = 7")
    ours.close()
    return str(max((folder / "warehouse").glob("**/*.metadata.json")))


def with_equality_deletes(folder: Path, rows: int) -> str:
    """A table in which `KEYS` rows are deleted by an equality delete file."""
    table = Table(folder, NestedField(1, "id", LongType()), NestedField(2, "amount", DoubleType()))
    size = rows // FILES
    for part in range(FILES):
        ids = range(part * size, (part + 1) * size)
        table.commit(table.data({"id": ids, "amount": [id * 7919 % 1000003 / 8 for id in ids]}))
    table.commit(table.equality({"id": range(7, rows, rows // KEYS)}, [1]), operation="delete")
    return table.metadata()


def compare(folder: Path, python: Path, rows: int, rounds: int, only: str) -> None:
    others = Readers(python, SERVER)
    try:
        print(f"{rows:,} rows in {FILES} files, medians of {rounds} alternating rounds\n")
        print(f"{'':36}{'lakedbapi':>20}{'pyiceberg / duckdb':>20}{'ratio':>9}")
        chosen = [case for case in cases(rows) if only.casefold() in case.name.casefold()]
        if chosen:
            _compare_changes(folder, others, rows, rounds, chosen)
        pages = [replace(case, name=f"{case.name}, pages 2") for case in chosen if case.name == SCATTERED]
        if pages:
            _compare_changes(folder / "pages", others, rows, rounds, pages, pages=2)
        for title, made in (
            ("count + sum, 5 % deletion vectors", with_vectors),
            (f"count + sum, {KEYS:,} equality deletes", with_equality_deletes),
        ):
            if only.casefold() in title.casefold():
                _compare_scans(title, made(folder / title.split()[-2], rows), others, rounds)
    finally:
        others.close()


def _compare_changes(
    folder: Path, others: Readers, rows: int, rounds: int, chosen: Sequence[Case], pages: int = 1
) -> None:
    sides = load(folder / "ours", rows, pages=pages), load(folder / "theirs", rows)
    place = f"uri='sqlite:///{folder}/theirs/catalog.db', warehouse='file://{folder}/theirs/warehouse'"
    opened = f"table = lambda: load_catalog('default', type='sql', {place}).load_table('main.t')\ntable()\n"
    for case in chosen:
        seconds: tuple[list[float], list[float]] = ([], [])
        for n in range(case.rounds or rounds):
            seconds[0].append(sides[0].run(case.ours(n)))
            seconds[1].append(others.run(opened + TIMED.format(code=case.theirs(n))))
        _print(case.name, *seconds)
        counted = [side.row("SELECT count(*), sum(amount), sum(id) FROM t") for side in sides]
        if counted[0] != counted[1]:
            sys.exit(f"the tables differ after {case.name}: {counted[0]} and {counted[1]}")
    for side in sides:
        side.close()


def _compare_scans(title: str, metadata: str, others: Readers, rounds: int) -> None:
    ours = Ours(f"iceberg:///{metadata}")
    scan = f"found = duckdb_with_iceberg().execute(\"SELECT count(*), sum(amount) FROM iceberg_scan('{metadata}')\")"
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        seconds[0].append(ours.run("SELECT count(*), sum(amount) FROM t"))
        seconds[1].append(others.run("duckdb_with_iceberg()\n" + TIMED.format(code=f"{scan}.fetchone()")))
    _print(title, *seconds)
    theirs = others.run(f"{scan}\nresult = found.fetchone()")
    if list(ours.row("SELECT count(*), sum(amount) FROM t")) != theirs:
        sys.exit(f"{title}: DuckDB has {theirs}")
    ours.close()


def _print(name: str, ours: list[float], theirs: list[float]) -> None:
    first, second = (1000 * statistics.median(taken) for taken in (ours, theirs))
    print(f"{name:36}{first:>17.1f} ms{second:>17.1f} ms{first / second:>9.3f}", flush=True)
