"""A lake, its history as the model knows it, and connections that run the same statements in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import lakedbapi
from compliance.model.tables import (
    Table,
    Tables,
    Verdict,
    changes_between,
    multiset,
    rebased,
)
from compliance.model.values import Column, Value, canonical, quoted


@dataclass
class Expected:
    """What a statement does: the table afterwards (None: no change), and what it reports."""

    table: Table | None = None
    rowcount: int = -1
    returned: Counter[Value] | None = None
    returned_names: list[str] = field(default_factory=list)


class Lake:
    """`history[n]` are the tables as snapshot n left them, with what that commit did to each."""

    def __init__(self, url: str, mode: str) -> None:
        self.url = url
        self.rewriting: set[int] = set()
        """Tables whose files were once allowed to be rewritten by DML."""
        self._mode = mode
        self.observer = lakedbapi.connect(url, autocommit=True)
        self.history: dict[int, Tables] = {self._newest(): {}}
        self._row_ids: dict[tuple[int, int], int] = {}
        """(table, identity) -> row id"""
        self._counter = 0

    def number(self) -> int:
        """A new number for a table, a column, a row."""
        self._counter += 1
        return self._counter

    def may_rewrite(self, table: int) -> bool:
        return self._mode != "merge-on-read" or table in self.rewriting

    @property
    def newest(self) -> int:
        return max(self.history)

    def record(self, tables: Tables) -> None:
        """A commit has made the next snapshot."""
        number = self.newest + 1
        self.history[number] = tables
        for table in tables.values():
            if table.changed:
                self._check_row_ids(table)

    def check_history(self) -> None:
        """Every snapshot still holds what it held, and there are no others."""
        times = self._times()
        assert sorted(times) == list(range(min(times), len(times) + min(times)))
        assert sorted(times) == sorted(self.history)
        for number, tables in self.history.items():
            for table in tables.values():
                self.check_version(number, table)

    def check_version(self, number: int, table: Table) -> None:
        self._check_rows(f"SELECT * FROM {quoted(table.name)} AT (VERSION => {number})", table)

    def check_time(self, number: int) -> None:
        """At the time of a snapshot the lake holds what the last one with that time left."""
        times = self._times()
        number = max(other for other, time in times.items() if time <= times[number])
        for table in self.history[number].values():
            sql = f"SELECT * FROM {quoted(table.name)} AT (TIMESTAMP => ?)"
            self._check_rows(sql, table, [times[number]])

    def check_feed(self, first: int, last: int, table: Table) -> None:
        """The change feed has the difference of any two neighbours, in the columns of the last."""
        cursor = self.observer.execute("SELECT * FROM table_changes(?, ?, ?)", [table.name, first, last])
        names = [column[0] for column in cursor.description or ()]
        assert names == ["snapshot_id", "rowid", "change_type", *table.names]
        expected = Counter[Value]()
        for number in range(max(first, min(self.history) + 1), last + 1):
            old, new = self.history[number - 1].get(table.id), self.history[number].get(table.id)
            if new is not None:
                for identity, kind, row in changes_between(old, new, table):
                    expected[(number, self._row_ids[table.id, identity], kind, canonical(row))] += 1
        actual = Counter((row[0], row[1], row[2], canonical(row[3:])) for row in cursor.fetchall())
        same("the change feed", without_idle_updates(actual), expected)

    def _check_rows(self, sql: str, table: Table, parameters: Sequence[Value] = ()) -> None:
        cursor = self.observer.execute(sql, parameters or None)
        assert [column[0] for column in cursor.description or ()] == table.names
        same(sql, multiset(cursor.fetchall()), table.contents())

    def _check_row_ids(self, table: Table) -> None:
        """Rows keep their ids, no id is given twice, and each row names the snapshot that brought this version."""
        identities = table.keys()
        owners = {row_id: identity for (id, identity), row_id in self._row_ids.items() if id == table.id}
        for value, row_id, snapshot in self._rows_by_id(table):
            identity = identities[int(value)]
            known = self._row_ids.setdefault((table.id, identity), row_id)
            assert known == row_id, f"the row {value} of {table.name} had the id {known} and has {row_id}"
            assert owners.setdefault(row_id, identity) == identity, f"two rows of {table.name} had the id {row_id}"
            earliest, latest = self._version_of(table, identity)
            if self.may_rewrite(table.id):
                latest = self.newest
            assert earliest <= snapshot <= latest, f"the row {value} of {table.name} says {snapshot}, not {latest}"

    def _rows_by_id(self, table: Table) -> list[tuple[Value, int, int]]:
        """Key, row id, and number of the snapshot that the row names."""
        key = quoted(table.key.name)
        return self.observer.execute(f"SELECT {key}, rowid, snapshot_id FROM {quoted(table.name)}").fetchall()

    def _version_of(self, table: Table, identity: int) -> tuple[int, int]:
        """The snapshots that last changed the values of a row, and last touched it."""
        latest = None
        for number in sorted(self.history, reverse=True):
            now = self.history[number].get(table.id)
            before = self.history[number - 1].get(table.id) if number - 1 in self.history else None
            if now is None or identity not in now.rows:
                break
            was = None if before is None else before.rows.get(identity)
            if latest is None and (was is None or identity in now.touched):
                latest = number
            if was is None or was is not now.rows[identity]:
                return number, latest or number
        raise AssertionError("a row that no snapshot inserted")

    def _newest(self) -> int:
        return max(self._times())

    def _times(self) -> dict[int, datetime]:
        return dict(self.observer.execute("SELECT snapshot_id, snapshot_time FROM snapshots()").fetchall())

    def close(self) -> None:
        self.observer.close()


@dataclass
class Open:
    """A transaction: the snapshot it began on, and the tables as it sees them."""

    base: int
    tables: Tables
    savepoints: list[tuple[str, Tables]] = field(default_factory=list)


class Client:
    """A connection and the transaction that the model thinks it has open."""

    def __init__(self, lake: Lake, *, autocommit: bool = False) -> None:
        self.lake = lake
        self.autocommit = autocommit
        self.connection = lakedbapi.connect(lake.url, autocommit=autocommit)
        self.cursor = self.connection.cursor()
        self._open: Open | None = None
        self._last_made: int | None = None

    @property
    def open(self) -> Open:
        """Pinned now, if it was not; in autocommit each statement sees the newest snapshot."""
        if self._open is None or (self.autocommit and self._open.base != self.lake.newest):
            self._pin()
            newest = self.lake.newest
            tables = {id: table.as_committed() for id, table in self.lake.history[newest].items()}
            self._open = Open(newest, tables)
        return self._open

    def _pin(self) -> None:
        """Begin a transaction on the newest snapshot."""
        self.cursor.execute("SHOW TABLES")

    @property
    def tables(self) -> Tables:
        return self.open.tables

    def named(self, name: str) -> Table | None:
        return next((table for table in self.tables.values() if table.name == name), None)

    def run(self, sql: str, parameters: Sequence[Value], expected: Expected, *, many: bool = False) -> None:
        before = self.open
        if many:
            self.cursor.executemany(sql, parameters)
        else:
            self.cursor.execute(sql, parameters or None)
        if expected.returned is not None:
            assert [column[0] for column in self.cursor.description or ()] == expected.returned_names
            same("RETURNING", multiset(self.cursor.fetchall()), expected.returned)
        assert self.cursor.rowcount == expected.rowcount, f"rowcount {self.cursor.rowcount}, not {expected.rowcount}"
        if expected.table is not None:
            before.tables = {**before.tables, expected.table.id: expected.table}
            self._end_statement()
            self.check(expected.table)

    def fail(self, sql: str, parameters: Sequence[Value], kind: type[Exception], *, many: bool = False) -> None:
        """The statement raises an error and changes nothing."""
        tables = self.open.tables
        try:
            self.run(sql, parameters, Expected(), many=many)
        except kind:
            pass
        else:
            raise AssertionError(f"{sql} did not raise {kind.__name__}")
        for table in tables.values():
            self.check(table)

    def set_tables(self, sql: str, tables: Tables) -> None:
        """A statement that makes, drops or renames tables."""
        before = self.open
        self.cursor.execute(sql)
        before.tables = tables
        self._end_statement()
        self.check_all()

    def check(self, table: Table) -> None:
        """The transaction sees the table as the model does."""
        self.cursor.execute(f"SELECT * FROM {quoted(table.name)}")
        assert [column[0] for column in self.cursor.description or ()] == table.names
        same(f"SELECT * FROM {table.name}", multiset(self.cursor.fetchall()), table.contents())

    def check_all(self) -> None:
        for table in self.tables.values():
            self.check(table)

    def query(self, table: Table, columns: Sequence[Column], where: str, parameters: Sequence[Value]) -> list[Value]:
        shown = ", ".join(quoted(column.name) for column in columns)
        return self.cursor.execute(
            f"SELECT {shown} FROM {quoted(table.name)} WHERE {where}", parameters or None
        ).fetchall()

    def savepoint(self, name: str) -> None:
        if self.autocommit:
            return self.fail(f"SAVEPOINT {name}", (), lakedbapi.ProgrammingError)
        self.open.savepoints.append((name, self.tables))
        self.check_all()
        self.cursor.execute(f"SAVEPOINT {name}")
        return None

    def rollback_to(self, name: str) -> None:
        index = self._savepoint(name)
        if index is None:
            return self.fail(f"ROLLBACK TO SAVEPOINT {name}", (), lakedbapi.ProgrammingError)
        self.cursor.execute(f"ROLLBACK TO SAVEPOINT {name}")
        self.open.tables = self.open.savepoints[index][1]
        del self.open.savepoints[index + 1 :]
        return self.check_all()

    def release(self, name: str) -> None:
        index = self._savepoint(name)
        if index is None:
            return self.fail(f"RELEASE SAVEPOINT {name}", (), lakedbapi.ProgrammingError)
        self.cursor.execute(f"RELEASE SAVEPOINT {name}")
        del self.open.savepoints[index:]
        return self.check_all()

    def _savepoint(self, name: str) -> int | None:
        found = [index for index, (other, _) in enumerate(self.open.savepoints) if other == name]
        return found[-1] if found else None

    def rollback(self) -> None:
        self.connection.rollback()
        self._open = None
        self.check_all()

    def commit(self, *, by_sql: bool = False) -> None:
        verdict, merged = self._outcome()
        try:
            if by_sql:
                self.cursor.execute("COMMIT")
            else:
                self.connection.commit()
        except lakedbapi.ConflictError:
            if verdict == Verdict.COMMITS:
                raise
        else:
            assert verdict != Verdict.CONFLICTS, "a commit that should have met a conflict"
            self._record(merged)
        self._open = None
        self.check_all()

    def _end_statement(self) -> None:
        """Which commits by itself when nothing else does."""
        if self.autocommit:
            verdict, merged = self._outcome()
            assert verdict == Verdict.COMMITS
            self._record(merged)
            self._open = None

    def _outcome(self) -> tuple[Verdict, Tables]:
        """What a commit will do now."""
        lake, mine, base = self.lake, self.tables, self.lake.history[self.open.base]
        return (
            (Verdict.COMMITS, self._theirs)
            if self._is_idle
            else rebased(base, mine, self._theirs, self._since(), lake.may_rewrite)
        )

    def _since(self) -> list[Tables]:
        """The tables as each commit since the transaction began left them."""
        return [self.lake.history[number] for number in range(self.open.base + 1, self.lake.newest + 1)]

    @property
    def _is_idle(self) -> bool:
        base, mine = self.lake.history[self.open.base], self.tables
        return mine.keys() == base.keys() and not any(table.changed for table in mine.values())

    @property
    def _theirs(self) -> Tables:
        return {id: table.as_committed() for id, table in self.lake.history[self.lake.newest].items()}

    def _record(self, merged: Tables) -> None:
        """A commit has succeeded, and made one snapshot if it changed anything."""
        made = self.connection.snapshot_id
        if made == self._last_made:
            assert _shown(merged) == _shown(self._theirs), "a commit with changes made no snapshot"
        else:
            assert not self._is_idle, "a commit without changes made a snapshot"
            assert made == self.lake.newest + 1
            self.lake.record(merged)
        self._last_made = made

    def close(self) -> None:
        self.connection.close()


def _shown(tables: Tables) -> Mapping[int, Value]:
    return {id: (table.name, table.columns, table.partition, table.contents()) for id, table in tables.items()}


def without_idle_updates(changes: Counter[Value]) -> Counter[Value]:
    """The feed without updates that change nothing, which copy-on-write leaves out."""
    kept = Counter(changes)
    for snapshot, row_id, kind, row in changes:
        other = (snapshot, row_id, "update_postimage", row)
        if kind == "update_preimage" and other in changes:
            del kept[snapshot, row_id, kind, row], kept[other]
    return kept


def same(what: str, actual: Counter[Value], expected: Counter[Value]) -> None:
    if actual != expected:
        missing, surplus = expected - actual, actual - expected
        raise AssertionError(f"{what}: missing {dict(missing)}, surplus {dict(surplus)}")


def altered(table: Table, **changes: Value) -> Table:
    """The table after a change of its definition."""
    return replace(table, altered=True, **changes)
