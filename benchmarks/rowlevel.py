"""Row-level changes next to DuckDB's own ducklake extension, each in its own process on its own lake of the same rows.

    python benchmarks/rowlevel.py [--format delta|iceberg] [--rows N] [--rounds 5] [--only TEXT] [--large]

Rounds alternate between the two, so that what else the machine does hits both; a line shows the medians and their
ratio (below 1: we are faster). After each case both lakes must hold the same rows. `--large` shows peak memory on 100 M
rows instead. `--format delta` compares Delta tables with deltalake and DuckDB's delta extension, `--format iceberg`
Iceberg tables with pyiceberg and DuckDB's iceberg extension. Needs `make peers`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import delta, iceberg
from benchmarks.ours import Ours
from compliance.peers.lakes import Place, on_sqlite
from compliance.peers.peer import Peer, peers_python

FILES = 10
ROWS = 10_000_000
LARGE_ROWS = 100_000_000


@dataclass(frozen=True)
class Step:
    """One statement; with `many` it runs once per list of parameters, in one transaction."""

    sql: str
    many: Sequence[list[Any]] = ()


class Theirs:
    name = "duckdb + ducklake"

    def __init__(self, place: Place, python: Path) -> None:
        self.peer = Peer(python)
        self.peer.attach(place.location, place.data_path)

    def run(self, sql: str, many: Sequence[list[Any]] = ()) -> float:
        """Seconds inside the peer's process, with the result fetched as Arrow."""
        if not many:
            self.peer.execute(sql)
            return self.peer.seconds
        seconds = 0.0
        for text in ("BEGIN", None, "COMMIT"):
            if text:
                self.peer.execute(text)
            else:
                self.peer.execute_many(sql, list(many))
            seconds += self.peer.seconds
        return seconds

    def row(self, sql: str) -> tuple[Any, ...]:
        return self.peer.rows(sql)[0]

    def close(self) -> None:
        self.peer.close()


def load(side: Ours | Theirs, table: str, rows: int) -> None:
    """`rows` rows in `FILES` files, one a partition; ids ascend through the files."""
    side.run(f"CREATE TABLE {table}(id bigint, part int, amount double, customer varchar)")
    side.run(f"ALTER TABLE {table} SET PARTITIONED BY (part)")
    size = rows // FILES
    for part in range(FILES):
        side.run(
            f"INSERT INTO {table} SELECT i, {part}, (i * 7919 % 1000003) / 8.0, 'customer ' || (i % 5000)"
            f" FROM range({part * size}, {(part + 1) * size}) r(i)"
        )


@dataclass(frozen=True)
class Case:
    """`steps(n)` are the statements of round n; `table` is what they read or change."""

    name: str
    table: str
    steps: Callable[[int], list[Step]]
    rounds: int | None = None


def cases(rows: int) -> list[Case]:
    size = rows // FILES
    total = "SELECT count(*), sum(amount) FROM"

    def keys(round_: int) -> str:
        return f"SELECT i * {max(1, rows // 100_000)} + {round_} AS id FROM range(100000) r(i)"

    return [
        Case("SELECT count + sum, no deletes", "plain", lambda n: [Step(f"{total} plain")]),
        Case("SELECT count + sum, 5 % deleted", "deleted", lambda n: [Step(f"{total} deleted")]),
        Case(
            "SELECT by key, 5 % deleted",
            "deleted",
            lambda n: [Step(f"SELECT * FROM deleted WHERE id = {rows // 3 + n}")],
        ),
        Case("DELETE by key", "work", lambda n: [Step(f"DELETE FROM work WHERE id = {rows // 2 + n}")]),
        Case("20 autocommit INSERTs of a row", "work", lambda n: _inserts(rows + 20 * n)),
        Case("DELETE of 5 %", "work", lambda n: [Step(f"DELETE FROM work WHERE id % 20 = {n}")]),
        Case(
            "UPDATE of 2 %",
            "work",
            lambda n: [Step(f"UPDATE work SET amount = amount + 1 WHERE id % 50 = {n + 20}")],
        ),
        Case(
            "MERGE of 100,000 keys",
            "work",
            lambda n: [
                Step(
                    f"MERGE INTO work USING ({keys(n)}) AS s ON work.id = s.id"
                    " WHEN MATCHED THEN UPDATE SET amount = -1"
                    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, 0, 'new')"
                )
            ],
        ),
        Case(
            "1,000 UPDATEs by key, executemany",
            "keyed",
            lambda n: [
                Step(
                    "UPDATE keyed SET amount = ? WHERE id = ?",
                    [[float(i), i * (rows // 1000) + n] for i in range(1000)],
                )
            ],
            rounds=1,
        ),
        Case("DELETE of a partition", "keyed", lambda n: [Step(f"DELETE FROM keyed WHERE part = {n}")]),
        Case(
            "DELETE of a key range in one file",
            "keyed",
            lambda n: [
                Step(f"DELETE FROM keyed WHERE id BETWEEN {rows - size + 1000 * n} AND {rows - size + 1000 * n + 99}")
            ],
        ),
    ]


def _inserts(first: int) -> list[Step]:
    return [Step(f"INSERT INTO work VALUES ({first + i}, 0, {i}, 'single')") for i in range(20)]


def compare(folder: Path, python: Path, rows: int, rounds: int, only: str) -> None:
    sides = (Ours(on_sqlite(_made(folder / "ours")).url), Theirs(on_sqlite(_made(folder / "theirs")), python))
    try:
        chosen = [case for case in cases(rows) if only.casefold() in case.name.casefold()]
        print(f"{rows:,} rows in {FILES} files, medians of {rounds} alternating rounds\n")
        print(f"{'':36}{sides[0].name:>20}{sides[1].name:>20}{'ratio':>9}")
        for table in dict.fromkeys(case.table for case in chosen):
            for side in sides:
                load(side, table, rows)
                if table == "deleted":
                    side.run("DELETE FROM deleted WHERE id % 20 = 7")
        for case in chosen:
            seconds: tuple[list[float], list[float]] = ([], [])
            for n in range(case.rounds or rounds):
                for side, taken in zip(sides, seconds, strict=True):
                    taken.append(sum(side.run(step.sql, step.many) for step in case.steps(n)))
            ours, theirs = (1000 * statistics.median(taken) for taken in seconds)
            print(f"{case.name:36}{ours:>17.1f} ms{theirs:>17.1f} ms{ours / theirs:>9.2f}", flush=True)
            counted = [side.row(f"SELECT count(*), sum(amount), sum(id) FROM {case.table}") for side in sides]
            if counted[0] != counted[1]:
                sys.exit(f"the lakes differ after {case.name}: {counted[0]} and {counted[1]}")
    finally:
        for side in sides:
            side.close()


LARGE_STEPS = ("DELETE FROM large WHERE id % 20 = 7", "SELECT count(*), sum(amount) FROM large")


def large(folder: Path, python: Path, rows: int) -> None:
    """Peak memory: each statement in a process of its own, on a lake that the same program wrote."""
    print(f"{rows:,} rows in {FILES} files, peak resident memory\n")
    print(f"{'':36}{Ours.name:>20}{Theirs.name:>20}")
    places = [on_sqlite(_made(folder / name)) for name in ("ours", "theirs")]
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(1) as pool:
        pool.apply(_load_ours, (places[0], rows))
    theirs = Theirs(places[1], python)
    load(theirs, "large", rows)
    theirs.close()
    for sql in LARGE_STEPS:
        with spawn.Pool(1) as pool:
            ours_peak, ours_seconds = pool.apply(_peak_of_ours, (places[0], sql))
        theirs = Theirs(places[1], python)
        seconds = theirs.run(sql)
        peak = theirs.peer.peak_rss
        theirs.close()
        print(f"{sql[:34]:36}{_megabytes(ours_peak, ours_seconds):>20}{_megabytes(peak, seconds):>20}", flush=True)


def _load_ours(place: Place, rows: int) -> None:
    load(Ours(place.url), "large", rows)


def _peak_of_ours(place: Place, sql: str) -> tuple[int, float]:
    ours = Ours(place.url)
    ours.run("SELECT 1")  # opens the engine, as the peer's is by now
    seconds = ours.run(sql)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, seconds


def _megabytes(size: int, seconds: float) -> str:
    return f"{size / 2**20:,.0f} MiB, {seconds:.1f} s"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--format", choices=["ducklake", "delta", "iceberg"], default="ducklake")
    options.add_argument("--rows", type=int)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", default="", help="only the cases whose name contains this")
    options.add_argument("--large", action="store_true")
    options.add_argument("--folder", type=Path, default=None, help="for the lakes (default: a temporary one)")
    chosen = options.parse_args()
    python = peers_python()
    if python is None:
        sys.exit("DuckDB with ducklake is not installed: run 'make peers'")
    folder = Path(tempfile.mkdtemp(prefix="rowlevel-", dir=chosen.folder))
    try:
        if chosen.format == "iceberg":
            iceberg.compare(folder, python, chosen.rows or ROWS, chosen.rounds, chosen.only)
        elif chosen.format == "delta":
            delta.compare(folder, python, chosen.rows or ROWS, chosen.rounds, chosen.only)
        elif chosen.large:
            large(folder, python, chosen.rows or LARGE_ROWS)
        else:
            compare(folder, python, chosen.rows or ROWS, chosen.rounds, chosen.only)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
