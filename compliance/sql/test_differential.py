"""Random programs on a lake and on DuckDB's own tables: after each statement the same rows, counts and errors, at the
end the same rows at every snapshot, and a change feed that leads from each to the next."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa
import pytest

from compliance.sql.programs import KEY_TYPES, Generator, Table, path, quoted, saved
from compliance.sql.twins import Difference, Twins

PROGRAMS = int(os.environ.get("LAKE_PROGRAMS", "20"))
FIRST = int(os.environ.get("LAKE_FIRST_PROGRAM", "0"))
STEPS = 40
PARTITION_TYPES = (*KEY_TYPES, "BOOLEAN", "TIMESTAMP", "UUID", "DECIMAL(12,2)")


@dataclass
class Saved:
    """What a savepoint, or the start of a transaction, goes back to."""

    copy: str
    tables: dict[str, Table]


@dataclass(frozen=True)
class State:
    """The rows of each table at a snapshot, by the table's path in SQL, and which table that was."""

    rows: dict[str, pa.Table]
    identities: dict[str, int]


@dataclass
class Program:
    seed: int
    twins: Twins = field(default_factory=Twins)
    savepoints: list[Saved] = field(default_factory=list)
    history: dict[int, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.generator = Generator(self.random)

    def run(self) -> None:
        twins = self.twins
        twins.ours(f"CALL set_option('lake', 'data_inlining_row_limit', '{self.random.choice([0, 0, 5, 1000])}')")
        self.twins.lake.commit()
        twins.run("CREATE SCHEMA sub")
        for _ in range(self.random.randint(2, 4)):
            twins.run(self.generator.create())
            if self.random.random() < 0.4:
                self.partition()
        for _ in range(8):
            twins.run(self.generator.insert())
        self.commit()
        for _ in range(STEPS):
            self.step()
        self.commit()
        self.check_history()

    def step(self) -> None:
        choice = self.random.random()
        if choice < 0.2:
            self.commit()
        elif choice < 0.24:
            self.back_to(0)
            self.twins.ours("ROLLBACK")
            self.begin()
        elif choice < 0.29:
            self.twins.ours(f"SAVEPOINT s{len(self.savepoints)}")
            self.save()
        elif choice < 0.33 and len(self.savepoints) > 1:
            index = self.random.randrange(1, len(self.savepoints))
            self.back_to(index)
            self.twins.ours(f"ROLLBACK TO SAVEPOINT s{index}")
        elif choice < 0.36:
            self.partition()
        elif choice < 0.45:
            self.twins.run(self.generator.query())
        else:
            before = saved(self.generator.tables)
            if not self.twins.run(self.generator.statement()):
                self.generator.tables = before
            if self.generator.changed is not None:
                self.twins.contents([path(self.generator.changed.name)])
                self.twins.run(self.generator.filtered(self.generator.changed))

    def partition(self) -> None:
        """By a column, or no longer; and the way in which rows go."""
        table = self.generator.any_table()
        column = self.random.choice([n for n, type in table.columns.items() if type in PARTITION_TYPES])
        mode = self.random.choice(["auto", "merge-on-read", "copy-on-write"])
        action = self.random.choice(
            [f"SET PARTITIONED BY ({quoted(column)})", "RESET PARTITIONED BY", f"SET ('lake.write_mode' = '{mode}')"]
        )
        if "PARTITIONED" in action:
            table.key = column if action.startswith("SET") else None
        self.twins.ours(f"ALTER TABLE {path(table.name)} {action}")

    def paths(self) -> list[str]:
        return [path(name) for name in self.generator.tables]

    def begin(self) -> None:
        for point in self.savepoints:
            self.twins.forget(point.copy)
        self.savepoints = []
        self.save()

    def save(self) -> None:
        self.savepoints.append(Saved(self.twins.save(), saved(self.generator.tables)))

    def back_to(self, index: int) -> None:
        if index < len(self.savepoints):
            for point in self.savepoints[index + 1 :]:
                self.twins.forget(point.copy)
            del self.savepoints[index + 1 :]
            self.twins.restore(self.savepoints[index].copy)
            self.generator.tables = saved(self.savepoints[index].tables)

    def commit(self) -> None:
        self.twins.ours("COMMIT")
        version = self.twins.lake.snapshot_id
        found = self.twins.contents(self.paths())
        self.twins.lake.rollback()
        assert version is not None
        self.history[version] = State(found, self.identities())
        self.begin()

    def identities(self) -> dict[str, int]:
        return {path(name): table.identity for name, table in self.generator.tables.items()}

    def check_history(self) -> None:
        cursor = self.twins.cursor
        versions = sorted(self.history)
        for version in versions:
            for name, expected in self.history[version].rows.items():
                sql = f"SELECT * FROM {name} AT (VERSION => {version})"
                self.twins.compare(sql, expected, cursor.execute(sql).fetch_arrow_table())
        now = self.identities()
        for before, after in pairwise(versions):
            known = [self.history[before].identities, self.history[after].identities]
            for name, identity in now.items():
                if all(identities.get(name) == identity for identities in known):
                    self.check_feed(name, before, after)

    def check_feed(self, name: str, before: int, after: int) -> None:
        """The rows of `before` without those that the feed takes away, and with those that it brings, are `after`'s."""
        old, new = self.history[before].rows[name], self.history[after].rows[name]
        now = self.twins.cursor.execute(f"SELECT * FROM {name} LIMIT 0").fetch_arrow_table().schema
        if not old.schema.equals(new.schema) or not now.equals(new.schema):
            return
        sql = f"SELECT * FROM table_changes('{name.replace(chr(34), '')}', {before + 1}, {after})"
        try:
            feed = self.twins.cursor.execute(sql).fetch_arrow_table()
        except Exception as error:
            raise Difference(f"{sql}\n{type(error).__name__}: {error}") from error
        checker = self.twins.duck.cursor()
        columns = ", ".join(f"c{i}" for i in range(old.num_columns))
        names = [f"c{i}" for i in range(old.num_columns)]
        checker.register("old", old.rename_columns(names))
        checker.register("new", new.rename_columns(names))
        checker.register("feed", feed.rename_columns(["snapshot_id", "rowid", "change_type", *names]))
        wrong = checker.execute(
            f"""
            WITH gone AS (SELECT {columns} FROM feed WHERE change_type IN ('delete', 'update_preimage')),
            came AS (SELECT {columns} FROM feed WHERE change_type IN ('insert', 'update_postimage')),
            expected AS ((FROM old UNION ALL FROM came) EXCEPT ALL FROM gone)
            (FROM expected EXCEPT ALL FROM new) UNION ALL (FROM new EXCEPT ALL FROM expected)
            """
        ).fetchall()
        checker.close()
        if wrong:
            raise Difference(f"{sql} does not lead from one to the other: {wrong[:5]}")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS))
def test_a_lake_and_duckdb_agree(seed: int) -> None:
    program = Program(seed)
    try:
        program.run()
    except Exception as error:
        script = ";\n".join(program.twins.script)
        raise AssertionError(f"program {seed}:\n{script};\n-- {type(error).__name__}: {error}") from error
    finally:
        program.twins.close()
