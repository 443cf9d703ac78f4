"""CREATE, DROP, ALTER."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import note
from hypothesis import strategies as st

import lakedbapi
from compliance.model.clients import Client, altered
from compliance.model.expressions import Binder, condition, paths
from compliance.model.program import Data, Program
from compliance.model.tables import Table, edited
from compliance.model.values import (
    BIGINT,
    DATE,
    INTEGER,
    INTEGERS,
    SCALARS,
    TIMESTAMP,
    VARCHAR,
    WIDER,
    Column,
    ListOf,
    Plain,
    StructOf,
    Type,
    literal,
    not_null,
    quoted,
    type_sql,
    values,
)

NAMES = ("t", "u", "Odd name")
COLUMN_NAMES = ("a", "b", "c", "d", "e", "Long name", "select", "ü")


class TableSteps(Program):
    table_options = ""
    """What stands behind the columns of CREATE TABLE."""
    initial_defaults = True
    """Whether a new column can have a value in the rows that are there."""
    nested_initial_defaults = False
    """Whether one with parts can."""
    scalars: Sequence[Plain] = SCALARS
    wider: ClassVar[Mapping[Type, tuple[Plain, ...]]] = WIDER

    def create(self, data: Data, client: Client, name: str) -> None:
        """A new table of that name, which is free."""
        draw, number = data.draw, self.lake.number
        columns = [Column(number(), draw(st.sampled_from(["id", "Key"])), draw(st.sampled_from([INTEGER, BIGINT])))]
        names = draw(st.permutations(COLUMN_NAMES))[: draw(st.integers(1, 5))]
        columns += [self._new_column(draw, column_name) for column_name in names]
        columns = [column if self.has_first_default(column) else replace(column, default=None) for column in columns]
        defined = ", ".join(self.definition(column) for column in columns)
        partition = self._partition(draw, columns) if draw(st.booleans()) else ()
        sql = f"CREATE TABLE {quoted(name)} ({defined})"
        if partition:
            sql += f" PARTITIONED BY ({self._partition_sql(columns, partition)})"
        sql += self.table_options
        note(f"{self.clients.index(client)}: {sql}")
        table = Table(self.lake.number(), name, tuple(columns), partition=partition, altered=True)
        client.set_tables(sql, {**client.tables, table.id: table})

    def _new_column(self, draw: Any, name: str) -> Column:
        type = draw(self._types())
        default = draw(values(type)) if draw(st.booleans()) else None
        nullable = draw(st.integers(0, 5)) > 0
        return Column(self.lake.number(), name, type, nullable, default)

    def _types(self) -> st.SearchStrategy[Type]:
        scalars: st.SearchStrategy[Type] = st.sampled_from(self.scalars)
        simple = st.one_of(scalars, scalars, st.sampled_from([ListOf(INTEGER), ListOf(VARCHAR)]))
        flat = self._structs(simple)
        return st.one_of(scalars, simple, flat, self._structs(st.one_of(simple, flat)))

    def _structs(self, types: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
        members = st.lists(types, min_size=1, max_size=3)
        return members.map(
            lambda found: StructOf(tuple(Column(self.lake.number(), "xyz"[i], type) for i, type in enumerate(found)))
        )

    @staticmethod
    def definition(column: Column) -> str:
        text = f"{quoted(column.name)} {type_sql(column.type)}"
        if column.default is not None:
            text += f" DEFAULT {literal(column.default, column.type)}"
        return text if column.nullable else f"{text} NOT NULL"

    def _partition(self, draw: Any, columns: Sequence[Column]) -> tuple[tuple[int, str], ...]:
        keys = []
        for column in columns[1:]:
            if isinstance(column.type, Plain):
                keys.append((column.id, ""))
            if column.type in (DATE, TIMESTAMP):
                keys += [(column.id, transform) for transform in ("year", "month", "day")]
            if column.type in (*INTEGERS, VARCHAR, DATE):
                keys.append((column.id, "bucket"))
        return tuple(draw(st.lists(st.sampled_from(keys), max_size=2, unique_by=lambda key: key[0]))) if keys else ()

    @staticmethod
    def _partition_sql(columns: Sequence[Column], partition: Sequence[tuple[int, str]]) -> str:
        names = {column.id: quoted(column.name) for column in columns}
        forms = {"": "{}", "bucket": "bucket(3, {})"}
        return ", ".join(forms.get(kind, kind + "({})").format(names[id]) for id, kind in partition)

    def create_table(self, data: Data, client: Client) -> None:
        name = data.draw(st.sampled_from(NAMES))
        if client.named(name) is not None:
            if data.draw(st.integers(0, 3)) == 0:
                self.expect_failure(client, f"CREATE TABLE {quoted(name)} (a INTEGER)", (), lakedbapi.ProgrammingError)
            return
        self.create(data, client, name)

    def create_table_as(self, data: Data, client: Client) -> None:
        name = data.draw(st.sampled_from(NAMES))
        table = self.choose_table(data, client)
        old = client.named(name)
        if table is None or (old is not None and data.draw(st.integers(0, 3))):
            return
        columns = [table.key, *self.choose_columns(data, table)]
        where = condition(data.draw, table)
        chosen = [row for row in table.rows.values() if where.test(row) is True]
        new_columns = tuple(Column(self.lake.number(), column.name, column.type) for column in columns)
        rows = {
            self.lake.number(): {
                new.id: table.cell(row, column) for new, column in zip(new_columns, columns, strict=True)
            }
            for row in chosen
        }
        shown_columns = ", ".join(quoted(column.name) for column in columns)
        replacing = "" if old is None else "OR REPLACE "
        sql = (
            f"CREATE {replacing}TABLE {quoted(name)} AS SELECT {shown_columns} FROM {quoted(table.name)} "
            f"WHERE {where.sql(Binder(False), '')}"
        )
        note(f"{self.clients.index(client)}: {sql}")
        new = Table(self.lake.number(), name, new_columns, rows, altered=True, inserted=True)
        others = {id: other for id, other in client.tables.items() if old is None or id != old.id}
        client.set_tables(sql, {**others, new.id: new})

    def drop_table(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None or data.draw(st.integers(0, 3)):
            return
        note(f"{self.clients.index(client)}: DROP TABLE {table.name}")
        others = {id: other for id, other in client.tables.items() if id != table.id}
        client.set_tables(f"DROP TABLE {quoted(table.name)}", others)
        self.expect_failure(client, f"SELECT * FROM {quoted(table.name)}", (), lakedbapi.ProgrammingError)

    def rename_table(self, data: Data, client: Client) -> None:
        name = data.draw(st.sampled_from(NAMES))
        table = self.choose_table(data, client)
        if table is None or data.draw(st.booleans()) or name == table.name:
            return
        sql = f"ALTER TABLE {quoted(table.name)} RENAME TO {quoted(name)}"
        if client.named(name) is not None:
            self.expect_failure(client, sql, (), lakedbapi.ProgrammingError)
        else:
            self.alter(client, sql, altered(table, name=name))

    def alter(self, client: Client, sql: str, table: Table) -> None:
        note(f"{self.clients.index(client)}: {sql}")
        client.set_tables(sql, {**client.tables, table.id: table})

    # Columns

    def add_column(self, data: Data, client: Client) -> None:
        name = data.draw(st.sampled_from(COLUMN_NAMES))
        table = self.choose_table(data, client)
        if table is None:
            return
        column = self._new_column(data.draw, name)
        has_parts = column.type not in self.scalars
        if not self.initial_defaults or (has_parts and not self.nested_initial_defaults):
            column = replace(column, default=None)
        column = replace(column, initial=column.default)
        sql = f"ALTER TABLE {quoted(table.name)} ADD COLUMN {self.definition(column)}"
        if name.casefold() in {other.casefold() for other in table.names}:
            self.expect_failure(client, sql, (), lakedbapi.ProgrammingError)
        elif not self.can_be_added(column, table):
            self.expect_failure(client, sql, (), lakedbapi.NotSupportedError)
        else:
            self.alter(client, sql, altered(table, columns=(*table.columns, column)))

    def can_be_added(self, column: Column, table: Table) -> bool:
        if column.default is None:
            return column.nullable or not self.had_rows(table)
        return self.keeps_default(column)

    def has_first_default(self, column: Column) -> bool:
        """Whether a column of a new table can have this default."""
        return True

    @staticmethod
    def keeps_default(column: Column) -> bool:
        """Whether the format has a way to tell the value of a new column in older rows."""
        return True

    @staticmethod
    def had_rows(table: Table) -> bool:
        """Whether there may be rows that a new column has to have a value for."""
        return bool(table.rows)

    def drop_column(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None or len(table.columns) < 2:
            return
        column = data.draw(st.sampled_from(table.columns[1:]))
        sql = f"ALTER TABLE {quoted(table.name)} DROP COLUMN {quoted(column.name)}"
        if column.id in {id for id, _ in table.partition}:
            self.expect_failure(client, sql, (), lakedbapi.ProgrammingError)
        else:
            self.alter(client, sql, altered(table, columns=edited(table.columns, [column.id], None)))

    def rename_column(self, data: Data, client: Client) -> None:
        name = data.draw(st.sampled_from([*COLUMN_NAMES, "id"]))
        table = self.choose_table(data, client)
        if table is None:
            return
        column = data.draw(st.sampled_from(table.columns))
        sql = f"ALTER TABLE {quoted(table.name)} RENAME COLUMN {quoted(column.name)} TO {quoted(name)}"
        if name in table.names:
            if name != column.name:
                self.expect_failure(client, sql, (), lakedbapi.ProgrammingError)
            return
        renamed = edited(table.columns, [column.id], replace(column, name=name))
        self.alter(client, sql, altered(table, columns=renamed))

    def widen(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None:
            return None
        found = [path for path in paths(table.columns) if path.type in self.wider]
        if not found:
            return None
        path = data.draw(st.sampled_from(found))
        column = path.columns[-1]
        type = data.draw(st.sampled_from(self.wider[column.type]))
        if path.columns[0].id == table.key.id and type not in INTEGERS:
            return None
        name = ".".join(quoted(c.name) for c in path.columns)
        sql = f"ALTER TABLE {quoted(table.name)} ALTER COLUMN {name} TYPE {type_sql(type)}"
        buckets = {id for id, kind in table.partition if kind == "bucket"}
        if column.id in buckets and type not in INTEGERS:
            return self.expect_failure(client, sql, (), lakedbapi.NotSupportedError)
        changed = edited(table.columns, [c.id for c in path.columns], replace(column, type=type))
        return self.alter(client, sql, altered(table, columns=changed))

    def alter_struct(self, data: Data, client: Client) -> None:
        name = data.draw(st.sampled_from("xyzw"))
        kind = data.draw(st.sampled_from(["add", "drop", "rename"]))
        table = self.choose_table(data, client)
        if table is None:
            return
        found = [path for path in paths(table.columns) if isinstance(path.type, StructOf)]
        if not found:
            return
        path = data.draw(st.sampled_from(found))
        column, ids = path.columns[-1], [c.id for c in path.columns]
        shown_path = ".".join(quoted(c.name) for c in path.columns)
        start = f"ALTER TABLE {quoted(table.name)}"
        taken = name in [field.name for field in column.type.fields]
        field = data.draw(st.sampled_from(column.type.fields))
        fields: tuple[Column, ...] | None = None
        if kind == "add":
            type = data.draw(st.sampled_from(self.scalars))
            value = data.draw(values(type)) if self.initial_defaults else None
            new = Column(self.lake.number(), name, type, default=value, initial=value)
            default = "" if value is None else f" DEFAULT {literal(value, type)}"
            sql = f"{start} ADD COLUMN {shown_path}.{quoted(name)} {type_sql(type)}{default}"
            fields = None if taken else (*column.type.fields, new)
        elif kind == "drop":
            sql = f"{start} DROP COLUMN {shown_path}.{quoted(field.name)}"
            fields = tuple(other for other in column.type.fields if other.id != field.id) or None
        else:
            sql = f"{start} RENAME COLUMN {shown_path}.{quoted(field.name)} TO {quoted(name)}"
            if name == field.name:
                return
            fields = None if taken else edited(column.type.fields, [field.id], replace(field, name=name))
        if fields is None:
            self.expect_failure(client, sql, (), lakedbapi.ProgrammingError)
        elif kind == "add" and new.default is not None and not self.keeps_default(new):
            self.expect_failure(client, sql, (), lakedbapi.NotSupportedError)
        else:
            changed = edited(table.columns, ids, replace(column, type=StructOf(fields)))
            self.alter(client, sql, altered(table, columns=changed))

    def alter_column(self, data: Data, client: Client) -> None:
        kind = data.draw(st.sampled_from(["set default", "drop default", "set not null", "drop not null"]))
        table = self.choose_table(data, client)
        if table is None:
            return
        column = data.draw(st.sampled_from(table.columns))
        sql = f"ALTER TABLE {quoted(table.name)} ALTER COLUMN {quoted(column.name)} {kind.upper()}"
        if kind == "set default":
            column = replace(column, default=data.draw(not_null(column.type)))
            sql += f" {literal(column.default, column.type)}"
        elif kind == "drop default":
            column = replace(column, default=None)
        else:
            column = replace(column, nullable=kind == "drop not null")
        changed = altered(table, columns=edited(table.columns, [column.id], column))
        if changed.breaks_not_null():
            self.expect_failure(client, sql, (), lakedbapi.IntegrityError)
        else:
            self.alter(client, sql, changed if changed.columns != table.columns else table)

    def alter_partitioning(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None:
            return
        partition = self._partition(data.draw, table.columns)
        sql = f"ALTER TABLE {quoted(table.name)} "
        if partition:
            sql += f"SET PARTITIONED BY ({self._partition_sql(table.columns, partition)})"
        else:
            sql += "RESET PARTITIONED BY"
        self.alter(client, sql, altered(table, partition=partition) if partition or table.partition else table)

    def alter_write_mode(self, data: Data, client: Client) -> None:
        mode = data.draw(st.sampled_from(["auto", "merge-on-read", "copy-on-write"]))
        table = self.choose_table(data, client)
        if table is None or data.draw(st.integers(0, 3)):
            return
        sql = f"ALTER TABLE {quoted(table.name)} SET ('lake.write_mode' = '{mode}')"
        if mode != "merge-on-read":
            self.lake.rewriting.add(table.id)
        self.alter(client, sql, replace(table, configured=True))
