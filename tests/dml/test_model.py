"""Random statements against a lake and against plain Python lists: same rows, same counts, whatever came before."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import lakedbapi

Row = tuple[int | None, int | None, str | None]

keys = st.one_of(st.none(), st.integers(0, 12))
numbers = st.one_of(st.none(), st.integers(-5, 5))
texts = st.sampled_from([None, "", "a", "bb"])
rows = st.lists(st.tuples(keys, numbers, texts), max_size=14)
bounds = st.integers(0, 12)


class Model(RuleBasedStateMachine):
    """The table `t(k, n, s)`. `committed` and `now` are its rows as lists."""

    @initialize(
        inline=st.sampled_from([0, 10, 1000]),
        mode=st.sampled_from(["auto", "merge-on-read", "copy-on-write"]),
        partitioned=st.booleans(),
    )
    def create(self, inline: int, mode: str, partitioned: bool) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.connection = lakedbapi.connect(Path(self.directory.name) / "lake")
        self.cursor = self.connection.cursor()
        self.cursor.execute("CREATE TABLE t (k INTEGER, n INTEGER, s VARCHAR)")
        self.cursor.execute(f"ALTER TABLE t SET ('data_inlining_row_limit' = '{inline}', 'lake.write_mode' = '{mode}')")
        if partitioned:
            self.cursor.execute("ALTER TABLE t SET PARTITIONED BY (n)")
        self.connection.commit()
        self.committed: list[Row] = []
        self.now: list[Row] = []
        self.history: dict[int, list[Row]] = {}

    def teardown(self) -> None:
        if hasattr(self, "connection"):
            self.connection.close()
            self.directory.cleanup()

    def run(self, sql: str, *parameters: Any) -> int:
        self.cursor.execute(sql, parameters)
        return int(self.cursor.rowcount)

    def change(self, matches: Callable[[Row], bool], new: Callable[[Row], Row | None]) -> int:
        """Replace the matching rows of the model; None = they go. Returns how many there were."""
        count = sum(map(matches, self.now))
        changed = [new(row) if matches(row) else row for row in self.now]
        self.now = [row for row in changed if row is not None]
        return count

    @rule(new=rows)
    def insert_many(self, new: list[Row]) -> None:
        self.cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", new)
        self.now += new

    @rule(row=st.tuples(keys, numbers, texts))
    def insert_one(self, row: Row) -> None:
        assert self.run("INSERT INTO t (s, n, k) VALUES (?, ?, ?)", row[2], row[1], row[0]) == 1
        self.now.append(row)

    @precondition(lambda self: len(self.now) < 200)
    @rule(bound=bounds)
    def insert_select(self, bound: int) -> None:
        added: list[Row] = [(k + 1, n, "copy") for k, n, _ in self.now if k is not None and k < bound]
        assert self.run("INSERT INTO t SELECT k + 1, n, 'copy' FROM t WHERE k < ?", bound) == len(added)
        self.now += added

    @rule(low=bounds, high=bounds)
    def delete_range(self, low: int, high: int) -> None:
        count = self.run("DELETE FROM t WHERE k BETWEEN ? AND ?", low, high)
        assert count == self.change(lambda r: r[0] is not None and low <= r[0] <= high, lambda r: None)

    @rule(n=numbers)
    def delete_by_value(self, n: int | None) -> None:
        count = self.run("DELETE FROM t WHERE n = ? OR s IS NULL", n)
        assert count == self.change(lambda r: (n is not None and r[1] == n) or r[2] is None, lambda r: None)

    @rule(n=numbers)
    def delete_by_negation(self, n: int | None) -> None:
        count = self.run("DELETE FROM t WHERE NOT (n > ?)", n)
        assert count == self.change(lambda r: None not in (n, r[1]) and r[1] <= n, lambda r: None)

    @rule(gone=st.lists(keys, max_size=6))
    def delete_using(self, gone: list[int | None]) -> None:
        count = self.run("DELETE FROM t USING (SELECT unnest(?::INTEGER[]) AS i) s WHERE k = i", gone)
        assert count == self.change(lambda r: r[0] is not None and r[0] in gone, lambda r: None)

    @rule(gone=st.lists(keys, max_size=6))
    def delete_many(self, gone: list[int | None]) -> None:
        self.cursor.executemany("DELETE FROM t WHERE k = ?", [(key,) for key in gone])
        count = self.change(lambda r: r[0] is not None and r[0] in gone, lambda r: None)
        assert self.cursor.rowcount == count

    @rule()
    def delete_all(self) -> None:
        assert self.run("DELETE FROM t") == len(self.now)
        self.now = []

    @rule(bound=bounds, s=texts)
    def update(self, bound: int, s: str | None) -> None:
        count = self.run("UPDATE t SET n = n + 1, s = ? WHERE k < ?", s, bound)
        plus = lambda n: None if n is None else n + 1  # noqa: E731
        assert count == self.change(lambda r: r[0] is not None and r[0] < bound, lambda r: (r[0], plus(r[1]), s))

    @rule(sets=st.lists(st.tuples(numbers, keys), max_size=8))
    def update_many(self, sets: list[tuple[int | None, int | None]]) -> None:
        self.cursor.executemany("UPDATE t SET n = ?, s = s || '.' WHERE k = ?", sets)
        dotted = lambda s: None if s is None else s + "."  # noqa: E731
        count = 0
        for n, key in sets:
            count += self.change(
                lambda r, key=key: key is not None and r[0] == key, lambda r, n=n: (r[0], n, dotted(r[2]))
            )
        assert self.cursor.rowcount == count

    @rule(pairs=st.dictionaries(st.integers(0, 12), numbers, max_size=6))
    def update_from(self, pairs: dict[int, int | None]) -> None:
        count = self.run(
            "UPDATE t SET n = m FROM (SELECT unnest(?::INTEGER[]) AS i, unnest(?::INTEGER[]) AS m) s WHERE k = i",
            list(pairs), list(pairs.values()),
        )  # fmt: skip
        assert count == self.change(lambda r: r[0] in pairs, lambda r: (r[0], pairs[r[0]], r[2]))

    @rule(pairs=st.dictionaries(st.integers(0, 12), numbers, max_size=6), by_source=st.booleans())
    def merge(self, pairs: dict[int, int | None], by_source: bool) -> None:
        count = self.run(
            "MERGE INTO t USING (SELECT unnest(?::INTEGER[]) AS i, unnest(?::INTEGER[]) AS m) s ON k = i "
            "WHEN MATCHED AND m IS NULL THEN DELETE WHEN MATCHED AND n = m THEN DO NOTHING "
            "WHEN MATCHED THEN UPDATE SET n = m, s = 'merged' WHEN NOT MATCHED THEN INSERT (k, n) VALUES (i, m)"
            + (" WHEN NOT MATCHED BY SOURCE AND k > 6 THEN DELETE" if by_source else ""),
            list(pairs), list(pairs.values()),
        )  # fmt: skip
        known = {r[0] for r in self.now}
        expected = self.change(lambda r: r[0] in pairs and pairs[r[0]] is None, lambda r: None)
        expected += self.change(
            lambda r: r[0] in pairs and r[1] != pairs[r[0]], lambda r: (r[0], pairs[r[0]], "merged")
        )
        if by_source:
            expected += self.change(lambda r: r[0] is not None and r[0] > 6 and r[0] not in pairs, lambda r: None)
        added: list[Row] = [(key, n, None) for key, n in pairs.items() if key not in known]
        self.now += added
        assert count == expected + len(added)

    @rule(pairs=st.dictionaries(st.integers(0, 12), numbers, max_size=6))
    def upsert(self, pairs: dict[int, int | None]) -> None:
        self.cursor.executemany(
            "INSERT INTO t (k, n) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET n = excluded.n", list(pairs.items())
        )
        known = {r[0] for r in self.now}
        count = self.change(lambda r: r[0] in pairs, lambda r: (r[0], pairs[r[0]], r[2]))
        added: list[Row] = [(key, n, None) for key, n in pairs.items() if key not in known]
        self.now += added
        if pairs:
            assert self.cursor.rowcount == count + len(added)

    @rule()
    def fail(self) -> None:
        try:
            self.run("INSERT INTO t SELECT 1, 2, 'x' UNION ALL SELECT 'not a number', 2, 'x'")
        except lakedbapi.DataError:
            pass
        else:
            raise AssertionError("a text became a number")

    @rule()
    def commit(self) -> None:
        self.connection.commit()
        self.committed = list(self.now)
        self.history[self.connection.session.last_snapshot] = self.committed
        self.cursor.execute("SELECT count(DISTINCT rowid) FROM t")
        assert self.cursor.fetchone() == (len(self.now),)

    @rule()
    def roll_back(self) -> None:
        self.connection.rollback()
        self.now = list(self.committed)

    @precondition(lambda self: self.history)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.history)))
        self.cursor.execute(f"SELECT k, n, s FROM t FOR VERSION AS OF {version}")
        assert sorted(self.cursor.fetchall(), key=repr) == sorted(self.history[version], key=repr)

    @invariant()
    def same_rows(self) -> None:
        if not hasattr(self, "cursor"):
            return
        self.cursor.execute("SELECT k, n, s FROM t")
        assert sorted(self.cursor.fetchall(), key=repr) == sorted(self.now, key=repr)


Model.TestCase.settings = settings(
    max_examples=12, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
test_any_sequence_of_statements = Model.TestCase
