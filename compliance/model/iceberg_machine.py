"""Random programs on an Iceberg table. Commits that change rows make a snapshot; those that only alter the table are
part of the history without one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import note
from hypothesis import strategies as st

import lakedbapi
from compliance.model.clients import Client, Lake, altered, same
from compliance.model.one_table import OneTablePrograms, SerializableClient
from compliance.model.program import Data
from compliance.model.tables import Table, Tables, changes_between, edited, multiset
from compliance.model.values import (
    BIGINT,
    DECIMAL,
    DOUBLE,
    FLOAT,
    FLOATS,
    INTEGER,
    SCALARS,
    SMALLINT,
    WIDE_DECIMAL,
    Column,
    Plain,
    Type,
    Value,
    canonical,
    literal,
    not_null,
    quoted,
)
from tests.formats.iceberg.foreign import commit, newest


@dataclass(frozen=True)
class IcebergSetting:
    version: int = 2
    mode: str = "merge-on-read"
    partitioned: bool = False

    def __str__(self) -> str:
        return f"v{self.version}-{self.mode}" + ("-partitioned" if self.partitioned else "")


class IcebergLake(Lake):
    """Number 0 is the state before the table."""

    def __init__(self, url: str, setting: IcebergSetting) -> None:
        self.snapshots: dict[int, int] = {}
        """The ids of the snapshots, by number in the history."""
        self.by_value: set[int] = set()
        """The numbers of those in which another writer deleted rows by their values."""
        self.expired: set[int] = set()
        """The numbers of those that are gone."""
        self._setting = setting
        super().__init__(url, setting.mode)

    def new_snapshots(self) -> list[int]:
        return [id for id in self._ids() if id not in self.snapshots.values()]

    @property
    def kept(self) -> dict[int, int]:
        """The snapshots that are left."""
        return {number: id for number, id in self.snapshots.items() if number not in self.expired}

    def check_history(self) -> None:
        assert self._ids() == list(self.kept.values())
        for number in self.kept:
            for table in self.history[number].values():
                self.check_version(number, table)

    def check_version(self, number: int, table: Table) -> None:
        if number in self.kept:
            super().check_version(self.snapshots[number], table)

    def check_time(self, number: int) -> None:
        if number in self.kept:
            super().check_time(number)

    def check_feed(self, first: int, last: int, table: Table) -> None:
        """What came and went with each snapshot, whether the format can tell updates or not, in the columns of the last
        snapshot."""
        known = [*self.kept][1 if self.expired else 0 :]
        numbers = [number for number in known if first <= number <= last]
        if not numbers:
            return
        sql, ends = "SELECT * FROM table_changes(?, ?, ?)", [self.snapshots[numbers[0]], self.snapshots[numbers[-1]]]
        if self.by_value & set(numbers):
            with pytest.raises(lakedbapi.NotSupportedError, match="do not say which rows they hit"):
                self.observer.execute(sql, [table.name, *ends]).fetchall()
            return
        cursor = self.observer.execute(sql, [table.name, *ends])
        actual = Counter[Value]()
        ids = self.snapshots
        at = self.history[numbers[-1]][table.id]
        for snapshot, _, kind, *row in cursor.fetchall():
            actual[snapshot, canonical(row)] += _sign(kind)
        expected = Counter[Value]()
        for number in numbers:
            old, new = self.history[number - 1].get(table.id), self.history[number][table.id]
            for _, kind, shown in changes_between(old, new, at):
                expected[ids[number], canonical(shown)] += _sign(kind)
        same("the change feed", *(Counter({row: n for row, n in c.items() if n}) for c in (actual, expected)))

    def add(self, id: int, table: Table) -> int:
        """A snapshot that none of the clients made, in which the table became this; its number."""
        number = self.newest + 1
        self.snapshots[number] = id
        self.record({table.id: table})
        assert self._ids() == list(self.kept.values())
        self._check_rows(f"SELECT * FROM {quoted(table.name)}", table)
        return number

    def forget(self) -> None:
        """Snapshots have been expired, but not the newest."""
        ids = self._ids()
        assert ids[-1:] == [*self.kept.values()][-1:]
        self.expired |= {number for number, id in self.snapshots.items() if id not in ids}
        assert ids == list(self.kept.values())

    def _check_row_ids(self, table: Table) -> None:
        if self._setting.version >= 3:
            super()._check_row_ids(table)

    def _rows_by_id(self, table: Table) -> list[tuple[Value, int, int]]:
        numbers = {id: number for number, id in self.snapshots.items()}
        return [(key, row_id, numbers[snapshot]) for key, row_id, snapshot in super()._rows_by_id(table)]

    def _newest(self) -> int:
        return 0

    def _ids(self) -> list[int]:
        """Of a table that may not be there yet."""
        if not self.observer.execute("SHOW TABLES").fetchall():
            return []
        return [id for (id,) in self.observer.execute("SELECT snapshot_id FROM history('t')").fetchall()]

    def _times(self) -> dict[int, datetime]:
        times = dict(self.observer.execute("SELECT snapshot_id, snapshot_time FROM history('t')").fetchall())
        return {number: times[id] for number, id in self.kept.items()}


def _sign(kind: str) -> int:
    return 1 if kind in ("insert", "update_postimage") else -1


class IcebergClient(SerializableClient):
    lake: IcebergLake

    def _pin(self) -> None:
        """A table's snapshot is the one that it had when it was first read."""
        for table in self.lake.history[self.lake.newest].values():
            self.cursor.execute(f"SELECT * FROM {quoted(table.name)} LIMIT 0")

    def _since(self) -> list[Tables]:
        """A row that another writer deleted by its value may have been deleted here as well: no position says so."""
        found = []
        gone = {id: table.touched - table.rows.keys() for id, table in self.tables.items()}
        for number in range(self.open.base + 1, self.lake.newest + 1):
            tables = self.lake.history[number]
            if number in self.lake.by_value:
                tables = {id: replace(t, touched=t.touched - gone.get(id, frozenset())) for id, t in tables.items()}
            found.append(tables)
        return found

    def _record(self, merged: Tables) -> None:
        made = self.lake.new_snapshots()
        changed = [table for table in merged.values() if table.changed]
        assert len(made) <= 1
        if made:
            assert made == [self.connection.snapshot_id]
            assert any(table.touched or table.inserted for table in changed), "a snapshot without changed rows"
            self.lake.snapshots[self.lake.newest + 1] = made[0]
        else:
            for id, table in self._theirs.items():
                same("a commit without a snapshot", *_in_common(table, merged[id]))
        if made or changed:
            self.lake.record(merged)


def _in_common(first: Table, second: Table) -> list[Counter[Value]]:
    """The rows of each in the columns that both have, by id."""
    ids = {column.id for column in first.columns} & {column.id for column in second.columns}
    return [
        multiset(
            [table.cell(row, column) for column in sorted(table.columns, key=lambda c: c.id) if column.id in ids]
            for row in table.rows.values()
        )
        for table in (first, second)
    ]


class IcebergPrograms(OneTablePrograms):
    setting = IcebergSetting()
    client: ClassVar[type[Client]] = IcebergClient
    more: ClassVar[Mapping[str, int]] = {"delete_by_value": 4, "delete_by_position": 1, "optimize": 2, "expire": 1}
    lake: IcebergLake
    nested_initial_defaults = True
    scalars = tuple(type for type in SCALARS if type != SMALLINT)
    wider: ClassVar[Mapping[Type, tuple[Plain, ...]]] = {INTEGER: (BIGINT,), FLOAT: (DOUBLE,), DECIMAL: (WIDE_DECIMAL,)}

    def __init__(self) -> None:
        self.initial_defaults = self.setting.version >= 3
        super().__init__()

    def left_out(self) -> set[str]:
        return set() if self.setting.partitioned else {"alter_partitioning"}

    def properties(self) -> Mapping[str, str]:
        return {"format-version": str(self.setting.version), "lake.write_mode": self.setting.mode}

    def new_lake(self, folder: Path) -> Lake:
        url = f"iceberg+sqlite:///{folder}/catalog.db?warehouse=file://{folder}/warehouse"
        return IcebergLake(url, self.setting)

    def _partition(self, draw: Any, columns: Sequence[Column]) -> tuple[tuple[int, str], ...]:
        return super()._partition(draw, columns) if self.setting.partitioned else ()

    def has_first_default(self, column: Column) -> bool:
        return self.initial_defaults and self.keeps_default(column)

    @staticmethod
    def keeps_default(column: Column) -> bool:
        is_finite = not isinstance(column.default, float) or math.isfinite(column.default)
        return isinstance(column.type, Plain) and is_finite

    @staticmethod
    def had_rows(table: Table) -> bool:
        return True

    def delete_by_value(self, data: Data, client: Client) -> None:
        """Another writer commits an equality delete file, about one partition or all of the table."""
        table = self._newest()
        names = [column for column in table.columns if isinstance(column.type, Plain) and column.type not in FLOATS]
        columns = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique_by=lambda c: c.id))
        version, places = newest(self.lake.observer), self._places(table)
        partition = data.draw(st.sampled_from([None, *sorted({place[0] for place in places.values()}, key=repr)]))
        reached = [identity for identity, place in places.items() if partition in (None, place[0])]
        if not reached:
            return
        chosen = data.draw(st.lists(st.sampled_from(reached), min_size=1, max_size=3))
        keys = [[table.cell(table.rows[identity], column) for column in columns] for identity in chosen]
        hit = {
            identity: None
            for identity in reached
            if [canonical(table.cell(table.rows[identity], column)) for column in columns]
            in [[canonical(value) for value in key] for key in keys]
        }
        note(f"another writer deletes where {[column.name for column in columns]} are {keys} in {partition}")
        written = {column.name: [key[i] for key in keys] for i, column in enumerate(columns)}
        where = None if partition is None else version.live.partitions[partition]
        id = commit(self.lake.observer, lambda foreign: foreign.equality(written, where))
        self.lake.by_value.add(self.lake.add(id, table.with_rows(hit)))
        for other in self.clients:
            other.check_all()

    def delete_by_position(self, data: Data, client: Client) -> None:
        """Another writer commits a position delete file about several data files of a partition."""
        table, version = self._newest(), newest(self.lake.observer)
        places = self._places(table)
        if not places or self.setting.version > 2:
            return
        partition = data.draw(st.sampled_from(sorted({place[0] for place in places.values()})))
        inside = sorted(identity for identity, place in places.items() if place[0] == partition)
        chosen = data.draw(st.lists(st.sampled_from(inside), min_size=1, max_size=4, unique=True))
        positions: dict[str, list[int]] = {}
        for identity in chosen:
            _, path, position = places[identity]
            positions.setdefault(path, []).append(position)
        note(f"another writer deletes positions {positions}")
        where = version.live.partitions[partition]
        id = commit(self.lake.observer, lambda foreign: foreign.positions(positions, where))
        self.lake.add(id, table.with_rows(dict.fromkeys(chosen)))
        for other in self.clients:
            other.check_all()

    def optimize(self, data: Data, client: Client) -> None:
        note("OPTIMIZE t")
        table = self._newest()
        self.lake.observer.execute(f"OPTIMIZE {quoted(table.name)}")
        self.lake.rewriting.add(table.id)  # Rows name the snapshot that moved them.
        for id in self.lake.new_snapshots():
            self.lake.add(id, table)

    def expire(self, data: Data, client: Client) -> None:
        """Nobody reads what goes."""
        for other in self.clients:
            other.rollback()
        note("VACUUM t RETAIN 0 HOURS")
        self.lake.observer.execute("VACUUM t RETAIN 0 HOURS")
        self.lake.forget()

    def _newest(self) -> Table:
        (table,) = self.lake.history[self.lake.newest].values()
        return table.as_committed()

    def _places(self, table: Table) -> dict[int, tuple[int, str, int]]:
        """Where each row is: the number of the partition, the name of the file in the metadata, and the position."""
        data, identities = newest(self.lake.observer).live.data, table.keys()
        columns = (data.column(name).to_pylist() for name in ("path", "scope", "raw_path"))
        files = {path: (scope, name) for path, scope, name in zip(*columns, strict=True)}
        sql = f"SELECT {quoted(table.key.name)}, filename, file_row_number FROM {quoted(table.name)}"
        return {identities[key]: (*files[path], position) for key, path, position in self.lake.observer.execute(sql)}

    def alter_column(self, data: Data, client: Client) -> None:
        """What would need a value in older snapshots is refused."""
        kind = data.draw(st.sampled_from(["set default", "drop default", "set not null", "drop not null"]))
        table = self.choose_table(data, client)
        if table is None:
            return
        column = data.draw(st.sampled_from(table.columns))
        sql = f"ALTER TABLE {quoted(table.name)} ALTER COLUMN {quoted(column.name)} {kind.upper()}"
        if kind == "set default":
            value = data.draw(not_null(column.type).filter(lambda value: value != column.default))
            sql += f" {literal(value, column.type)}"
            new = replace(column, default=value)
            if self.has_first_default(new):
                self.alter(client, sql, altered(table, columns=edited(table.columns, [column.id], new)))
            else:
                self.expect_failure(client, sql, (), lakedbapi.NotSupportedError)
        elif kind == "set not null" and column.nullable:
            has_nulls = any(table.cell(row, column) is None for row in table.rows.values())
            error = lakedbapi.IntegrityError if has_nulls else lakedbapi.NotSupportedError
            self.expect_failure(client, sql, (), error)
        else:
            new = replace(column, default=None) if kind == "drop default" else column
            new = replace(new, nullable=column.nullable or kind == "drop not null")
            changed = altered(table, columns=edited(table.columns, [column.id], new))
            self.alter(client, sql, changed if changed.columns != table.columns else table)
