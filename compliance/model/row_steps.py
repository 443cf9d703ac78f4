"""INSERT, UPDATE, DELETE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from compliance.model.clients import Client, Expected
from compliance.model.expressions import Binder, Condition, condition, expression, paths
from compliance.model.program import Data, Program
from compliance.model.tables import Table, Values
from compliance.model.values import Column, Value, literal, not_null, quoted, shown, type_sql, values

FEW_ROWS = 60


class RowSteps(Program):
    def insert(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None:
            return
        columns = [table.key, *self._with_required(table, self.choose_columns(data, table))]
        columns = data.draw(st.permutations(columns))
        bind = self.binder(data)
        rows, tuples = [], []
        for _ in range(data.draw(st.integers(1, 4))):
            row, written = self.new_row(data.draw, client, table, columns, bind)
            rows.append(row)
            tuples.append(written)
        after, new = self._with_new(table, rows)
        returning, expected = self.returning(data, table, new)
        names = ", ".join(quoted(column.name) for column in columns)
        sql = f"INSERT INTO {quoted(table.name)} ({names}) VALUES {', '.join(tuples)}{returning}"
        self.run(client, sql, bind.parameters, Expected(after, len(rows), **expected))

    def new_row(
        self, draw: Any, client: Client, table: Table, columns: Sequence[Column], bind: Binder
    ) -> tuple[Values, str]:
        """Values for `columns`, and the row that they make."""
        row = {column.id: column.default for column in table.columns}
        written = []
        for column in columns:
            if column.id == table.key.id:
                row[column.id] = self.fresh_key(client)
            elif draw(st.integers(0, 7)) == 0:
                written.append("DEFAULT")
                continue
            else:
                row[column.id] = draw(self._mostly_valid(column))
            written.append(bind(row[column.id], column.type))
        return row, f"({', '.join(written)})"

    @staticmethod
    def _with_required(table: Table, columns: list[Column]) -> list[Column]:
        """The columns, and those that have to be given."""
        required = [c for c in table.columns[1:] if not c.nullable and c.default is None and c not in columns]
        return [*columns, *required]

    @staticmethod
    def _mostly_valid(column: Column) -> st.SearchStrategy[Value]:
        """NULL is rare where it is not allowed."""
        if column.nullable:
            return values(column.type)
        return st.integers(0, 15).flatmap(lambda n: values(column.type) if n == 0 else not_null(column.type))

    def _with_new(self, table: Table, rows: Sequence[Values]) -> tuple[Table, list[Values]]:
        return table.with_rows({self.lake.number(): row for row in rows}), list(rows)

    def insert_many(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None:
            return
        count = data.draw(st.sampled_from([0, 1, 2, 5, 15]))
        rows = []
        for _ in range(count):
            row = {column.id: data.draw(self._mostly_valid(column)) for column in table.columns}
            row[table.key.id] = self.fresh_key(client)
            rows.append(row)
        after, _ = self._with_new(table, rows)
        sets = [table.shown(row) for row in rows]
        sql = f"INSERT INTO {quoted(table.name)} VALUES ({', '.join('?' for _ in table.columns)})"
        self.run(client, sql, sets, Expected(after if rows else None, count), many=True)

    def insert_range(self, data: Data, client: Client) -> None:
        """Many rows, for files of some size."""
        count = data.draw(st.sampled_from([20, 100, 400]))
        table = self.choose_table(data, client)
        if table is None or len(table.rows) > 600:
            return
        start = self.keys + 2
        self.keys += 2 * count
        domains = {
            column.id: data.draw(
                st.lists(values(column.type) if column.nullable else not_null(column.type), min_size=1, max_size=3)
            )
            for column in table.columns[1:]
        }
        parity = self.clients.index(client)
        rows = []
        for i in range(count):
            row = {id: domain[i // 7 % len(domain)] for id, domain in domains.items()}
            rows.append({table.key.id: start + 2 * i + parity, **row})
        after, _ = self._with_new(table, rows)
        items = [f"{start} + 2 * i + {parity}"]
        for column in table.columns[1:]:
            domain = ", ".join(literal(value, column.type) for value in domains[column.id])
            items.append(f"CAST([{domain}] AS {type_sql(column.type)}[])[1 + i // 7 % {len(domains[column.id])}]")
        sql = f"INSERT INTO {quoted(table.name)} SELECT {', '.join(items)} FROM range({count}) r(i)"
        self.run(client, sql, (), Expected(after, count))

    def insert_select(self, data: Data, client: Client) -> None:
        """Copies, whose keys differ as those of their rows do, and have the parity of the connection's own."""
        table = self.choose_table(data, client)
        if table is None:
            return
        bind, where = self.binder(data), condition(data.draw, table)
        chosen = [row for row in table.rows.values() if where.test(row) is True]
        if len(chosen) > FEW_ROWS:
            return
        offset = self.keys * 2 + 2
        self.keys = 2 * offset
        offset += self.clients.index(client)
        changed = data.draw(st.sampled_from(table.columns))
        value = expression(data.draw, table, changed)
        new, items = [], []
        for row in chosen:
            copy = {column.id: table.cell(row, column) for column in table.columns}
            copy[changed.id] = value.value(row)
            copy[table.key.id] = 2 * table.cell(row, table.key) + offset
            new.append(copy)
        for column in table.columns:
            if column.id == table.key.id:
                items.append(f"2 * {quoted(column.name)} + {offset}")
            else:
                items.append(value.sql(bind, "") if column.id == changed.id else quoted(column.name))
        after, _ = self._with_new(table, new)
        returning, expected = self.returning(data, table, new)
        name = quoted(table.name)
        sql = f"INSERT INTO {name} SELECT {', '.join(items)} FROM {name} WHERE {where.sql(bind, '')}{returning}"
        self.run(client, sql, bind.parameters, Expected(after if new else None, len(new), **expected))

    def upsert(self, data: Data, client: Client) -> None:
        many = data.draw(st.booleans())
        table = self.choose_table(data, client)
        if table is None:
            return
        keys = self.choose_keys(data, client, table, unique=not many)
        columns = self._with_required(table, self.choose_columns(data, table, 2))
        update = data.draw(st.booleans())
        proposed = []
        for key in keys:
            row = {column.id: column.default for column in table.columns}
            row |= {column.id: data.draw(self._mostly_valid(column)) for column in columns}
            proposed.append({**row, table.key.id: key})
        after, returned, count = self._upserted(table, proposed, columns if update else None)
        bind = Binder(True)
        names = ", ".join(quoted(column.name) for column in (table.key, *columns))
        items = [
            f"({', '.join(bind(row[column.id], column.type) for column in (table.key, *columns))})" for row in proposed
        ]
        key_name = quoted(table.key.name)
        action = "NOTHING"
        if update and columns:
            action = "UPDATE SET " + ", ".join(f"{quoted(c.name)} = excluded.{quoted(c.name)}" for c in columns)
        if not proposed:
            return
        sql = f"INSERT INTO {quoted(table.name)} ({names}) VALUES {{}} ON CONFLICT ({key_name}) DO {action}"
        result = after if after.rows != table.rows or after.touched != table.touched else None
        if many:
            width = 1 + len(columns)
            sets = [bind.parameters[i : i + width] for i in range(0, len(bind.parameters), width)]
            placeholders = f"({', '.join('?' for _ in range(width))})"
            self.run(client, sql.format(placeholders), sets, Expected(result, count), many=True)
        else:
            returning, expected = self.returning(data, table, returned)
            text = sql.format(", ".join(items)) + returning
            self.run(client, text, bind.parameters, Expected(result, count, **expected))

    def _upserted(
        self, table: Table, proposed: Sequence[Values], columns: Sequence[Column] | None
    ) -> tuple[Table, list[Values], int]:
        returned: list[Values] = []
        for row in proposed:
            identity = table.keys().get(row[table.key.id])
            if identity is None:
                table = table.with_rows({self.lake.number(): row})
                returned.append(row)
            elif columns:
                changed = {**table.rows[identity], **{column.id: row[column.id] for column in columns}}
                table = table.with_rows({identity: changed})
                returned.append(changed)
        return table, returned, len(returned)

    def choose_keys(self, data: Data, client: Client, table: Table, *, unique: bool) -> list[int]:
        """Keys that are there, that were, and that never were."""
        present = sorted(table.keys())[:40]
        parity = self.clients.index(client)
        kinds = [st.integers(1, max(1, self.keys // 2)).map(lambda n: 2 * n + parity)]
        if present:
            kinds.append(st.sampled_from(present))
        return data.draw(st.lists(st.one_of(kinds), max_size=6, unique=unique))

    # UPDATE

    def update(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None:
            return
        bind = self.binder(data)
        prefix = data.draw(st.sampled_from(["", "x."]))
        sets, change = self.choose_assignments(data, table, bind, prefix)
        where = self.choose_where(data, table)
        matched = {
            identity: change(row) for identity, row in table.rows.items() if where is None or where.test(row) is True
        }
        after = table.with_rows(matched) if matched else None
        target = quoted(table.name) + (" AS x" if prefix else "")
        sql = f"UPDATE {target} SET {sets}"
        sql += "" if where is None else f" WHERE {where.sql(bind, prefix)}"
        returning, expected = self.returning(data, table, list(matched.values()))
        self.run(client, sql + returning, bind.parameters, Expected(after, len(matched), **expected))

    def choose_where(self, data: Data, table: Table) -> Condition | None:
        return None if data.draw(st.integers(0, 7)) == 0 else condition(data.draw, table)

    def choose_assignments(
        self, data: Data, table: Table, bind: Binder, prefix: str
    ) -> tuple[str, Callable[[Values], Values]]:
        """The text after SET, and what it does to a row."""
        if len(table.columns) == 1:
            key = quoted(table.key.name)
            return f"{key} = {prefix}{key}", dict
        targets = [path for path in paths(table.columns[1:]) if len(path.columns) < 3]
        chosen = data.draw(
            st.lists(st.sampled_from(targets), min_size=1, max_size=2, unique_by=lambda path: path.columns[0].id)
        )
        texts, steps = [], []
        for path in chosen:
            name = ".".join(quoted(column.name) for column in path.columns)
            if len(path.columns) == 1 and data.draw(st.integers(0, 5)) == 0:
                texts.append(f"{name} = DEFAULT")
                steps.append((path.columns, lambda row, path=path: path.columns[0].default))
                continue
            value = expression(data.draw, table, path.columns[-1])
            texts.append(f"{name} = {value.sql(bind, prefix)}")
            steps.append((path.columns, value.value))

        def change(row: Values) -> Values:
            new = dict(row)
            for columns, value in steps:
                if len(columns) == 1:
                    new[columns[0].id] = value(row)
                else:
                    old = table.cell(row, columns[0])
                    members = {} if old is None else {f.id: old.get(f.id, f.initial) for f in columns[0].type.fields}
                    if old is None:
                        members = {f.id: None for f in columns[0].type.fields}
                    new[columns[0].id] = {**members, columns[1].id: value(row)}
            return new

        return ", ".join(texts), change

    def update_from(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None or len(table.columns) < 2:
            return
        column = data.draw(st.sampled_from(table.columns[1:]))
        keys = self.choose_keys(data, client, table, unique=True)
        new = {key: data.draw(self._mostly_valid(column)) for key in keys}
        bind, where = self.binder(data), condition(data.draw, table, 1)
        source = self.source(table, new, column, bind)
        matched = {}
        for key, identity in table.keys().items():
            row = table.rows[identity]
            if key in new and where.test(row) is True:
                matched[identity] = {**row, column.id: new[key]}
        key_name = quoted(table.key.name)
        sql = (
            f"UPDATE {quoted(table.name)} AS x SET {quoted(column.name)} = s.v FROM {source} "
            f"WHERE x.{key_name} = s.k AND ({where.sql(bind, 'x.')})"
        )
        returning, expected = self.returning(data, table, list(matched.values()), "x.")
        after = table.with_rows(matched) if matched else None
        self.run(client, sql + returning, bind.parameters, Expected(after, len(matched), **expected))

    def source(self, table: Table, pairs: Mapping[int, Value], column: Column, bind: Binder) -> str:
        """A relation `s(k, v)`."""
        type = type_sql(column.type)
        rows = ", ".join(
            f"(CAST({key} AS BIGINT), CAST({bind(value, column.type)} AS {type}))" for key, value in pairs.items()
        )
        if not rows:
            return f"(SELECT CAST(NULL AS BIGINT) AS k, CAST(NULL AS {type}) AS v WHERE false) AS s"
        return f"(VALUES {rows}) AS s(k, v)"

    def update_many(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None or len(table.columns) < 2:
            return
        column = data.draw(st.sampled_from(table.columns[1:]))
        keys = self.choose_keys(data, client, table, unique=False)
        sets, after, count = [], table, 0
        for key in keys:
            value = data.draw(values(column.type))
            sets.append((shown(value, column.type), key))
            identity = table.keys().get(key)
            if identity is not None:
                after = after.with_rows({identity: {**after.rows[identity], column.id: value}})
                count += 1
        sql = f"UPDATE {quoted(table.name)} SET {quoted(column.name)} = ? WHERE {quoted(table.key.name)} = ?"
        if sets and not column.nullable and any(value is None for value, _ in sets):
            return  # An update that a later one mends may or may not be an error.
        self.run(client, sql, sets, Expected(after if count else None, count), many=True)

    # DELETE

    def delete(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None:
            return
        bind, prefix = self.binder(data), data.draw(st.sampled_from(["", "x."]))
        where = self.choose_where(data, table)
        gone = [i for i, row in table.rows.items() if where is None or where.test(row) is True]
        target = quoted(table.name) + (" AS x" if prefix else "")
        sql = f"DELETE FROM {target}" + ("" if where is None else f" WHERE {where.sql(bind, prefix)}")
        returning, expected = self.returning(data, table, [table.rows[i] for i in gone])
        after = table.with_rows(dict.fromkeys(gone)) if gone else None
        self.run(client, sql + returning, bind.parameters, Expected(after, len(gone), **expected))

    def delete_using(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None:
            return
        keys = self.choose_keys(data, client, table, unique=False)
        bind, where = self.binder(data), condition(data.draw, table, 1)
        rows = ", ".join(f"(CAST({key} AS BIGINT))" for key in [*keys, "NULL"])
        gone = [i for k, i in table.keys().items() if k in keys and where.test(table.rows[i]) is True]
        sql = (
            f"DELETE FROM {quoted(table.name)} AS x USING (VALUES {rows}) AS s(k) "
            f"WHERE x.{quoted(table.key.name)} = s.k AND ({where.sql(bind, 'x.')})"
        )
        returning, expected = self.returning(data, table, [table.rows[i] for i in gone], "x.")
        after = table.with_rows(dict.fromkeys(gone)) if gone else None
        self.run(client, sql + returning, bind.parameters, Expected(after, len(gone), **expected))

    def delete_many(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None:
            return
        keys = self.choose_keys(data, client, table, unique=False)
        gone = [i for k, i in table.keys().items() if k in keys]
        sql = f"DELETE FROM {quoted(table.name)} WHERE {quoted(table.key.name)} = ?"
        after = table.with_rows(dict.fromkeys(gone)) if gone else None
        self.run(client, sql, [(key,) for key in keys], Expected(after, len(gone)), many=True)

    def truncate(self, data: Data, client: Client) -> None:
        table = self.choose_table(data, client)
        if table is None or data.draw(st.integers(0, 2)):
            return
        after = table.with_rows(dict.fromkeys(table.rows)) if table.rows else None
        self.run(client, f"TRUNCATE {quoted(table.name)}", (), Expected(after, len(table.rows)))
