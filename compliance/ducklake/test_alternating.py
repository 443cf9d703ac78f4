"""Both programs change one table in turn, at random; after each step both hold what a plain dict says, at the end at
every snapshot."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from compliance.ducklake.lakes import Ours, Program, Theirs
from compliance.peers.lakes import Place, on_postgresql, on_sqlite
from compliance.peers.peer import Peer

Row = dict[str, Any]
MAINTENANCE = (
    "ducklake_flush_inlined_data('lake')",
    "ducklake_merge_adjacent_files('lake')",
    "ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.1)",
    "ducklake_cleanup_old_files('lake', cleanup_all => true)",
)


@dataclass
class Model:
    """The table as a dict by key. `apply` returns the SQL for a step and makes the same change here."""

    rows: dict[int, Row] = field(default_factory=dict)
    columns: list[str] = field(default_factory=lambda: ["k", "v", "s"])
    next_key: int = 0
    added: int = 0

    def contents(self) -> list[tuple[Any, ...]]:
        return [tuple(row[column] for column in self.columns) for _, row in sorted(self.rows.items())]

    def apply(self, kind: str, size: int, modulus: int) -> list[str]:
        return getattr(self, kind)(size, modulus)  # type: ignore[no-any-return]

    def insert(self, size: int, modulus: int) -> list[str]:
        start, self.next_key = self.next_key, self.next_key + size
        for key in range(start, self.next_key):
            added = {name: int(name[1:]) for name in self.columns[3:]}
            self.rows[key] = {"k": key, "v": None if key % 7 == 0 else key, "s": f"s{key % modulus}", **added}
        sql = (
            f"INSERT INTO t(k, v, s) SELECT i, CASE WHEN i % 7 <> 0 THEN i END, 's' || (i % {modulus})"
            f" FROM range({start}, {self.next_key}) r(i)"
        )
        return [sql]

    def update(self, size: int, modulus: int) -> list[str]:
        for key, row in self.rows.items():
            if key % modulus == size % modulus:
                self.rows[key] = {**row, "v": None if row["v"] is None else row["v"] + 1}
        return [f"UPDATE t SET v = v + 1 WHERE k % {modulus} = {size % modulus}"]

    def delete(self, size: int, modulus: int) -> list[str]:
        self.rows = {key: row for key, row in self.rows.items() if key % modulus != size % modulus}
        return [f"DELETE FROM t WHERE k % {modulus} = {size % modulus}"]

    def delete_range(self, size: int, modulus: int) -> list[str]:
        low = self.next_key * (modulus - 2) // 12
        self.rows = {key: row for key, row in self.rows.items() if not low <= key < low + size}
        return [f"DELETE FROM t WHERE k >= {low} AND k < {low + size}"]

    def merge(self, size: int, modulus: int) -> list[str]:
        low, high = max(0, self.next_key - size), self.next_key + size // 2
        added = {name: int(name[1:]) for name in self.columns[3:]}
        for key in range(low, high):
            if key in self.rows:
                self.rows[key] = {**self.rows[key], "s": "merged"}
            else:
                self.rows[key] = {"k": key, "v": -key, "s": "new", **added}
        self.next_key = high
        sql = (
            f"MERGE INTO t USING (SELECT i AS k FROM range({low}, {high}) r(i)) AS src ON t.k = src.k"
            " WHEN MATCHED THEN UPDATE SET s = 'merged'"
            " WHEN NOT MATCHED THEN INSERT (k, v, s) VALUES (src.k, -src.k, 'new')"
        )
        return [sql]

    def add_column(self, size: int, modulus: int) -> list[str]:
        self.added += 1
        name = f"c{self.added}"
        self.columns = [*self.columns, name]
        self.rows = {key: {**row, name: self.added} for key, row in self.rows.items()}
        return [f"ALTER TABLE t ADD COLUMN {name} int DEFAULT {self.added}"]

    def drop_column(self, size: int, modulus: int) -> list[str]:
        if len(self.columns) == 3:
            return []
        name = self.columns[-1]
        self.columns = self.columns[:-1]
        return [f"ALTER TABLE t DROP COLUMN {name}"]

    def transaction(self, size: int, modulus: int) -> list[str]:
        inside = [*self.insert(size, modulus), *self.update(size, modulus), *self.delete(size + 1, modulus)]
        return ["BEGIN", *inside, "COMMIT"]

    def rolled_back(self, size: int, modulus: int) -> list[str]:
        return ["BEGIN", f"DELETE FROM t WHERE k % {modulus} = 0", "INSERT INTO t(k) VALUES (-1)", "ROLLBACK"]

    def truncate(self, size: int, modulus: int) -> list[str]:
        if modulus % 4:
            return []
        self.rows = {}
        return ["DELETE FROM t"]


STEPS = ["insert"] * 4 + ["update"] * 3 + ["delete"] * 2 + ["delete_range", "merge", "transaction", "rolled_back"]
RARE = ["add_column", "drop_column", "truncate", "maintain"]
step = st.tuples(st.booleans(), st.sampled_from(STEPS + RARE), st.integers(1, 30), st.integers(2, 12))


@contextmanager
def _place(backend: str) -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        if backend == "sqlite":
            yield on_sqlite(Path(folder))
        else:
            with on_postgresql(Path(folder)) as place:
                yield place


@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
@settings(
    max_examples=int(os.environ.get("LAKE_ALTERNATING_EXAMPLES", "4")),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking such a run takes minutes
    suppress_health_check=list(HealthCheck),
)
@given(steps=st.lists(step, min_size=50, max_size=60), inlined=st.booleans())
def test_alternating_writers_agree_with_a_dict(
    backend: str, peer_pool: Any, steps: list[tuple[bool, str, int, int]], inlined: bool
) -> None:
    peer: Peer = peer_pool.fresh()
    with _place(backend) as place:
        theirs = Theirs(peer, place)
        if not inlined:
            peer.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
        theirs.execute("CREATE TABLE t(k int, v int, s varchar)")
        ours = Ours(place)
        try:
            _alternate(ours, theirs, steps)
        finally:
            ours.close()
            peer.reset()


def _alternate(ours: Ours, theirs: Theirs, steps: list[tuple[bool, str, int, int]]) -> None:
    model = Model()
    history: dict[int, list[tuple[Any, ...]]] = {}
    snapshot = moved = 0
    for ours_turn, kind, size, modulus in steps:
        if kind == "maintain":
            call = MAINTENANCE[size % len(MAINTENANCE)]
            theirs.execute(f"CALL {call}")
            moved = snapshot + 1 if "rewrite" in call or "flush" in call else moved
        else:
            program: Program = ours if ours_turn else theirs
            for sql in model.apply(kind, size, modulus):
                program.execute(sql)
        expected = model.contents()
        for reader in (ours, theirs):
            assert reader.rows("SELECT * FROM t ORDER BY k") == expected, (reader.name, kind)
            assert reader.value("SELECT count(*) FROM t") == len(expected), (reader.name, kind)
        snapshot = theirs.value("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
        history[snapshot] = expected
    for snapshot, expected in history.items():
        # DuckDB reads older snapshots wrong after a rewrite (with the statistics that it narrowed) and after a flush
        # (it counts the rows of a file with two delete files twice).
        for reader in (ours, theirs) if snapshot >= moved else (ours,):
            then = reader.rows(f"SELECT * FROM t AT (VERSION => {snapshot}) ORDER BY k")
            assert then == expected, (reader.name, snapshot)
