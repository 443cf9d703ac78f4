"""What each kind of delete costs: once, when rows go, and again in every scan afterwards.

    python benchmarks/delete_kinds.py [--rows N] [--rounds 3] [--only TEXT]

CPU milliseconds (all threads) of the DELETE and of `SELECT count(*), sum(amount)` after it, medians over tables that
are made for each round. The last column says after how many scans copy-on-write has paid for itself. Equality deletes
come from a writer of tests, since none are written here: only their scan is measured.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyiceberg.types import DoubleType, LongType, NestedField

import lakedbapi
from tests.formats.iceberg.building import Table

FILES = 4
SCANS = 5
SCAN = "SELECT count(*), sum(amount) FROM t"
COPIED = "copy-on-write"


@dataclass(frozen=True)
class Kind:
    """How a table is made: `url` of a folder, `properties` of the table."""

    url: Callable[[Path], str]
    version: int | None = None
    mode: str = "merge-on-read"
    inlined: int = 0


def _iceberg(folder: Path) -> str:
    return f"iceberg+sqlite:///{folder}/catalog.db?warehouse=file://{folder}/warehouse"


KINDS = {
    "position delete files": Kind(_iceberg, version=2),
    "deletion vectors": Kind(_iceberg, version=3),
    COPIED: Kind(_iceberg, version=3, mode=COPIED),
    "position files, DuckLake": Kind(str),
    "inlined rows, DuckLake": Kind(str, inlined=10),
}


@dataclass(frozen=True)
class Change:
    """`where` says of a table with this number of rows which go; `few`: no more than DuckLake keeps in its catalog."""

    name: str
    where: Callable[[int], str]
    few: bool = False


def _everywhere(permille: int) -> Callable[[int], str]:
    return lambda rows: f"id * 7919 % 1000 < {permille}"


CHANGES = [
    Change("1 row", lambda rows: f"id = {rows // 2}", few=True),
    Change("1 %, all in one file", lambda rows: f"id < {rows // 100}"),
    Change("1 %", _everywhere(10)),
    Change("10 %", _everywhere(100)),
    Change("50 %", _everywhere(500)),
    Change("90 %", _everywhere(900)),
]


def made(kind: Kind, folder: Path, rows: int) -> lakedbapi.Connection:
    """`rows` rows in `FILES` files, one a partition; ids ascend through them."""
    folder.mkdir(parents=True)
    lake = lakedbapi.connect(kind.url(folder), autocommit=True)
    properties = {"lake.write_mode": kind.mode}
    if kind.version is not None:
        properties |= {"format-version": str(kind.version)}
    lake.execute("CREATE TABLE t (id BIGINT, part INTEGER, amount DOUBLE, customer VARCHAR) PARTITIONED BY (part)")
    for name, value in properties.items():
        lake.execute(f"ALTER TABLE t SET ('{name}' = '{value}')")
    if kind.version is None:
        lake.execute(f"CALL set_option('lake', 'data_inlining_row_limit', '{kind.inlined}')")
    size = rows // FILES
    lake.execute(
        f"INSERT INTO t SELECT i, (i // {size})::INTEGER, (i * 7919 % 1000003) / 8.0, 'customer ' || (i % 5000)"
        f" FROM range({rows}) r(i)"
    )
    return lake


def cpu(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return 1000 * (time.process_time() - start)


def scans(lake: lakedbapi.Connection) -> float:
    return statistics.median(cpu(lambda: lake.execute(SCAN).fetchall()) for _ in range(SCANS))


def measured(kind: Kind, change: Change | None, folder: Path, rows: int, rounds: int) -> tuple[float, float]:
    """(the change, a scan after it)."""
    changes, after = [], []
    for number in range(rounds):
        place = folder / str(number)
        lake = made(kind, place, rows)
        lake.execute("DELETE FROM t WHERE id = 0")  # What a first statement loads is not the point.
        if change is not None:
            sql = f"DELETE FROM t WHERE {change.where(rows)}"
            changes.append(cpu(lambda lake=lake, sql=sql: lake.execute(sql)))  # type: ignore[misc]
        after.append(scans(lake))
        lake.close()
        shutil.rmtree(place)
    return statistics.median(changes or [0.0]), statistics.median(after)


def by_equality(change: Change, folder: Path, rows: int) -> float:
    """A scan of a table in which another program has deleted the rows by their keys."""
    table = Table(folder, NestedField(1, "id", LongType()), NestedField(2, "amount", DoubleType()))
    size = rows // FILES
    for part in range(FILES):
        ids = range(part * size, (part + 1) * size)
        table.commit(table.data({"id": ids, "amount": [id * 7919 % 1000003 / 8 for id in ids]}))
    with lakedbapi.connect(f"iceberg:///{table.metadata()}") as lake:
        gone = [id for (id,) in lake.execute(f"SELECT id FROM t WHERE {change.where(rows)}").fetchall()]
    table.commit(table.equality({"id": gone}, [1]), operation="delete")
    with lakedbapi.connect(f"iceberg:///{table.metadata()}") as lake:
        return scans(lake)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="", help="only the changes whose name contains this")
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="delete-kinds-"))
    try:
        _, clean = measured(KINDS[COPIED], None, folder, chosen.rows, chosen.rounds)
        print(f"{chosen.rows:,} rows in {FILES} files; a scan without deletes: {clean:.1f} ms CPU\n")
        print(f"| {'deleted':20} | {'kind':24} | {'change':>8} | {'scan':>8} | scans until copy-on-write pays |")
        print(f"|{'-' * 22}|{'-' * 26}|{'-' * 10}|{'-' * 10}|{'-' * 32}|")
        for change in (change for change in CHANGES if chosen.only in change.name):
            compare(change, folder, chosen.rows, chosen.rounds)
    finally:
        shutil.rmtree(folder)


def compare(change: Change, folder: Path, rows: int, rounds: int) -> None:
    found = {
        name: measured(kind, change, folder / name, rows, rounds)
        for name, kind in KINDS.items()
        if change.few or not kind.inlined
    }
    copied = found[COPIED]
    for name, (once, scan) in found.items():
        saved, more = scan - copied[1], copied[0] - once
        if name == COPIED or "DuckLake" in name:
            pays = ""
        else:
            pays = "at once" if more <= 0 else f"{more / saved:.0f}" if saved > 0 else "never"
        print(f"| {change.name:20} | {name:24} | {once:8.1f} | {scan:8.1f} | {pays:>30} |", flush=True)
    scan = by_equality(change, Path(tempfile.mkdtemp(dir=folder)), rows)
    print(f"| {change.name:20} | {'equality deletes':24} | {'':8} | {scan:8.1f} | {'':>30} |", flush=True)


if __name__ == "__main__":
    main()
