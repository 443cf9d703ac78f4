"""Maintenance and planning next to DuckDB's own ducklake extension, each in its own process on its own copy of a lake.

    python benchmarks/maintenance.py [--rounds 5] [--only TEXT] [--scale 1.0]

Every round copies the lake of a case anew for either of the two, and takes turns, so that what else the machine does
hits both; a line shows the medians and their ratio (below 1: we are faster). After each round both must show the same.
Catalogs with many files are made by SQL: only the files that are read are there. Needs `make peers`.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import lakedbapi
from benchmarks.ours import Ours
from compliance.peers.lakes import Place, on_sqlite
from compliance.peers.peer import Peer, peers_python

ROWS_A_FILE = 1000


class Theirs:
    name = "duckdb + ducklake"

    def __init__(self, place: Place, python: Path) -> None:
        self._peer = Peer(python)
        self._peer.attach(place.location, place.data_path)

    def run(self, sql: str) -> float:
        """Seconds inside the peer's process, with the result fetched as Arrow."""
        self._peer.execute(sql)
        return self._peer.seconds

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._peer.rows(sql)

    def close(self) -> None:
        self._peer.close()


@dataclass(frozen=True)
class Case:
    """`build` fills the empty lake at a place; `statements` are timed one by one, `check` must show the same then."""

    name: str
    build: Callable[[Place, float], None]
    statements: Sequence[tuple[str, str]]
    check: str


def small_files(place: Place, scale: float) -> None:
    with lakedbapi.connect(place.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id BIGINT, customer VARCHAR, amount DOUBLE)")
        for number in range(int(200 * scale)):
            connection.execute(
                "INSERT INTO t SELECT i, 'customer ' || (i % 5000), i / 8.0 FROM range(?, ?) r(i)",
                (number * ROWS_A_FILE, (number + 1) * ROWS_A_FILE),
            )


def deleted_rows(place: Place, scale: float) -> None:
    size = int(200_000 * scale)
    with lakedbapi.connect(place.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id BIGINT, customer VARCHAR, amount DOUBLE)")
        for number in range(10):
            connection.execute(
                "INSERT INTO t SELECT i, 'customer ' || (i % 5000), i / 8.0 FROM range(?, ?) r(i)",
                (number * size, (number + 1) * size),
            )
        connection.execute("DELETE FROM t WHERE id % 10 < 3")


def snapshots(place: Place, scale: float) -> None:
    """Each adds a file, and ends the one before."""
    _one_file(place, delete=False)
    with closing(_catalog(place)) as catalog, catalog:
        (first,) = catalog.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchone()
        last = first + int(1000 * scale)
        _copies(catalog, "ducklake_snapshot", first, last, {"snapshot_id": "n", "next_file_id": "n + 10"})
        _copies(catalog, "ducklake_snapshot_changes", first, last, {"snapshot_id": "n"})
        ended = {"data_file_id": "n", "begin_snapshot": "n", "end_snapshot": "n + 1", "path": "n || '-' || path"}
        _copies(catalog, "ducklake_data_file", first, last - 1, ended)
        _copies(catalog, "ducklake_file_column_stats", first, last - 1, {"data_file_id": "n"})


def many_files(place: Place, scale: float) -> None:
    """Files of a thousand rows each, every twentieth with a delete file; the first one is really there."""
    _one_file(place, delete=True)
    count = int(100_000 * scale)
    with closing(_catalog(place)) as catalog, catalog:
        entry = {"data_file_id": "n + 10", "path": "n || '-' || path", "row_id_start": f"n * {ROWS_A_FILE}"}
        _copies(catalog, "ducklake_data_file", 0, count, entry)
        bounds = {
            "data_file_id": "n + 10",
            "min_value": f"CASE column_id WHEN 1 THEN n * {ROWS_A_FILE} ELSE min_value END",
            "max_value": f"CASE column_id WHEN 1 THEN n * {ROWS_A_FILE} + {ROWS_A_FILE - 1} ELSE max_value END",
        }
        _copies(catalog, "ducklake_file_column_stats", 0, count, bounds)
        deletes = {"delete_file_id": "n + 1000000", "data_file_id": "n * 20 + 10", "path": "n || '-' || path"}
        _copies(catalog, "ducklake_delete_file", 0, count // 20, deletes)
        catalog.execute("UPDATE ducklake_snapshot SET next_file_id = 3000000")
        whole = (count * ROWS_A_FILE, str(count * ROWS_A_FILE))
        catalog.execute("UPDATE ducklake_table_stats SET record_count = ?, next_row_id = ?", (whole[0], whole[0]))
        catalog.execute("UPDATE ducklake_table_column_stats SET max_value = ? WHERE column_id = 1", (whole[1],))


def _one_file(place: Place, *, delete: bool) -> None:
    with lakedbapi.connect(place.url, autocommit=True) as connection:
        connection.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
        connection.execute("CREATE TABLE t (id BIGINT, customer VARCHAR, amount DOUBLE)")
        connection.execute(f"INSERT INTO t SELECT i, 'c', 0.5 FROM range({ROWS_A_FILE}) r(i)")
        if delete:
            connection.execute("DELETE FROM t WHERE id % 100 = 7")


def _catalog(place: Place) -> sqlite3.Connection:
    return sqlite3.connect(place.url.removeprefix("ducklake:///").split("?")[0])


def _copies(catalog: sqlite3.Connection, table: str, first: int, last: int, changed: dict[str, str]) -> None:
    """Copies of the newest row(s) of a table for each `n` after `first` up to `last`, with columns `changed` by it."""
    columns = [row[1] for row in catalog.execute(f"PRAGMA table_info({table})")]
    selected = ", ".join(changed.get(name, f"source.{name}") for name in columns)
    key = columns[0]
    catalog.execute(
        f"WITH RECURSIVE numbers(n) AS (SELECT {first + 1} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last}) "
        f"INSERT INTO {table} SELECT {selected} FROM numbers, "
        f"(SELECT * FROM {table} WHERE {key} = (SELECT max({key}) FROM {table})) AS source"
    )


TOTAL = "SELECT count(*), sum(id) FROM t"
CASES = (
    Case(
        "merge",
        small_files,
        [("merge of 200 small files", "CALL ducklake_merge_adjacent_files('lake')")],
        TOTAL,
    ),
    Case(
        "rewrite",
        deleted_rows,
        [
            (
                "rewrite of 10 files, 30 % deleted",
                "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.2)",
            )
        ],
        TOTAL,
    ),
    Case(
        "expiry",
        snapshots,
        [("expiry of 1,000 snapshots", "CALL ducklake_expire_snapshots('lake', older_than => now())")],
        "SELECT count(*) FROM ducklake_snapshots('lake')",
    ),
    Case(
        "planning",
        many_files,
        [
            ("plan, 100,000 files, 5,000 with deletes", "SELECT * FROM t WHERE id = 500"),
            ("the same again", "SELECT * FROM t WHERE id = 501"),
        ],
        "SELECT * FROM t WHERE id = 500",
    ),
)


def compare(folder: Path, python: Path, rounds: int, only: str, scale: float) -> None:
    print(f"medians of {rounds} alternating rounds\n")
    print(f"{'':42}{Ours.name:>18}{Theirs.name:>20}{'ratio':>9}")
    for case in CASES:
        if only.casefold() in case.name:
            template = folder / case.name
            template.mkdir()
            case.build(on_sqlite(template), scale)
            run(case, template, folder, python, rounds)


def run(case: Case, template: Path, folder: Path, python: Path, rounds: int) -> None:
    seconds: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        shown = []
        for kind in (Ours, Theirs):
            place = _copy(template, folder / "round")
            side = Ours(place.url) if kind is Ours else Theirs(place, python)
            side.run("SELECT 1")
            for name, sql in case.statements:
                seconds.setdefault((name, kind.name), []).append(side.run(sql))
            shown.append(side.rows(case.check))
            side.close()
            shutil.rmtree(folder / "round")
        if shown[0] != shown[1]:
            sys.exit(f"the lakes differ after {case.name}: {shown[0]} and {shown[1]}")
    for name, _ in case.statements:
        ours, theirs = (1000 * statistics.median(seconds[name, kind.name]) for kind in (Ours, Theirs))
        print(f"{name:42}{ours:>15.1f} ms{theirs:>17.1f} ms{ours / theirs:>9.2f}", flush=True)


def _copy(template: Path, folder: Path) -> Place:
    shutil.copytree(template, folder)
    place = on_sqlite(folder)
    with closing(_catalog(place)) as catalog, catalog:
        catalog.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", (place.data_path,))
    return place


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", default="", help="only the cases whose name contains this")
    options.add_argument("--scale", type=float, default=1.0, help="of the numbers of files, rows and snapshots")
    options.add_argument("--folder", type=Path, default=None, help="for the lakes (default: a temporary one)")
    chosen = options.parse_args()
    python = peers_python()
    if python is None:
        sys.exit("DuckDB with ducklake is not installed: run 'make peers'")
    folder = Path(tempfile.mkdtemp(prefix="maintenance-", dir=chosen.folder))
    try:
        compare(folder, python, chosen.rounds, chosen.only, chosen.scale)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
