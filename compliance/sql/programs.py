"""Random SQL that means the same in DuckDB's own tables and in a lake: no value fails, no tie is left to chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

VALUES = {
    "INTEGER": ["0", "1", "2", "3", "-1", "7", "2147483647", "-2147483648"],
    "BIGINT": ["0", "1", "2", "-3", "9223372036854775807", "-9223372036854775808"],
    "HUGEINT": ["0::HUGEINT", "9007199254740993::HUGEINT", "-17014118346046923173168730371588410::HUGEINT"],
    "DOUBLE": ["0.0", "1.5", "-2.5", "'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "1e300", "3.0"],
    "DECIMAL(9,2)": ["0.00", "1.50", "-2.25", "9999999.99", "3.00"],
    "VARCHAR": ["''", "'a'", "'b'", "'B'", "'ab'", "'é'", "'😀'", "'it''s'", "'%'", "'a' || chr(0)", "'NULL'", "'7'"],
    "BOOLEAN": ["true", "false"],
    "DATE": ["DATE '2020-02-29'", "DATE '1969-12-31'", "DATE 'infinity'", "DATE '-infinity'", "DATE '0001-01-01'"],
    "TIMESTAMP": ["TIMESTAMP '2020-02-29 23:59:59.999999'", "TIMESTAMP 'infinity'", "TIMESTAMP '1969-12-31 00:00:00'"],
    "TIMESTAMP WITH TIME ZONE": [
        "TIMESTAMPTZ '2020-03-01 01:00:00+02'", "TIMESTAMPTZ '-infinity'", "TIMESTAMPTZ '2020-02-29 23:00:00+00'",
    ],
    "TIME": ["TIME '00:00:00'", "TIME '23:59:59.999999'"],
    "INTERVAL": ["INTERVAL '1 microsecond'", "INTERVAL '-1 month'", "INTERVAL '3 days'"],
    "BLOB": ["''::BLOB", "'\\x00\\xFF'::BLOB", "'a'::BLOB"],
    "UUID": ["UUID '00000000-0000-0000-0000-000000000001'", "UUID 'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "INTEGER[]": ["[]::INTEGER[]", "[1, NULL, 3]", "[1]", "[2147483647]"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': ''}", "{'a': 2, 'b': NULL}"],
    "MAP(VARCHAR, INTEGER)": ["MAP {}::MAP(VARCHAR, INTEGER)", "MAP {'k': 1}", "MAP {'k': NULL, '': 2}"],
}  # fmt: skip
KEY_TYPES = ("INTEGER", "VARCHAR", "BIGINT", "DATE", "DECIMAL(9,2)", "DOUBLE")
WIDER = {"INTEGER": "BIGINT", "DECIMAL(9,2)": "DECIMAL(12,2)"}
NAMES = ("k", "n", "s", "select", "a.b", "É", "t1", 'q"q', "x y", "value", "range")
TABLES = ("t1", "t2", "order", "T three", "k", "sub.t1")
WHEN_NULL = 0.15


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def path(table: str) -> str:
    return ".".join(map(quoted, table.split(".")))


@dataclass
class Table:
    name: str
    columns: dict[str, str]
    """Types by name, in order."""
    key: str | None = None
    """The column that a lake's table is partitioned by."""
    identity: int = 0
    """Tells it from earlier and later tables of the same name."""

    def copy(self) -> Table:
        return replace(self, columns=dict(self.columns))


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may use: (SQL, type), innermost last."""

    columns: tuple[tuple[str, str], ...] = ()

    def of(self, type: str) -> list[str]:
        return [sql for sql, its in self.columns if its == type]

    def plus(self, alias: str, table: Table) -> Scope:
        return Scope(
            self.columns + tuple((f"{quoted(alias)}.{quoted(name)}", type) for name, type in table.columns.items())
        )


@dataclass
class Generator:
    """Statements over `tables`, which it keeps up to date. `random` decides everything."""

    random: random.Random
    tables: dict[str, Table] = field(default_factory=dict)
    made: int = 0
    changed: Table | None = None
    """What the last statement changes."""

    # -- expressions ------------------------------------------------------------------------------------------------

    def literal(self, type: str) -> str:
        if self.random.random() < WHEN_NULL:
            return f"NULL::{type}"
        base = {"DECIMAL(12,2)": "DECIMAL(9,2)"}.get(type, type)
        return f"{self.random.choice(VALUES[base])}"

    def expression(self, type: str, scope: Scope, depth: int = 2) -> str:
        options: list[Callable[[], str]] = [lambda: self.literal(type)]
        columns = scope.of(type)
        if columns:
            options += [lambda: self.random.choice(columns)] * 3
        if depth > 0:
            again = lambda of=type: self.expression(of, scope, depth - 1)  # noqa: E731
            options += [
                lambda: f"coalesce({again()}, {again()})",
                lambda: f"CASE WHEN {self.predicate(scope, depth - 1)} THEN {again()} ELSE {again()} END",
                lambda: f"nullif({again()}, {again()})",
                lambda: self.scalar_subquery(type, scope, depth - 1),
            ]
            if type == "INTEGER":
                options += [
                    lambda: f"({again()} % 5)::INTEGER",
                    lambda: f"length({again('VARCHAR')})::INTEGER",
                    lambda: f"(({again()} % 100) + ({again()} % 100))",
                    lambda: f"len({again('INTEGER[]')})::INTEGER",
                    lambda: f"{again('STRUCT(a INTEGER, b VARCHAR)')}.a",
                ]
            if type == "VARCHAR":
                options += [
                    lambda: f"left({again()} || {again()}, 3)",
                    lambda: f"upper({again()})",
                    lambda: f"{again('INTEGER')}::VARCHAR",
                    lambda: f"{again('DATE')}::VARCHAR",
                ]
            if type == "INTEGER[]":
                options.append(lambda: f"list_transform({again()}, lambda x: x % 10)::INTEGER[]")
            if type == "STRUCT(a INTEGER, b VARCHAR)":
                options.append(lambda: f"{{'a': {again('INTEGER')}, 'b': {again('VARCHAR')}}}")
            if type == "BOOLEAN":
                options.append(lambda: f"({self.predicate(scope, depth - 1)})")
        return self.random.choice(options)()

    def scalar_subquery(self, type: str, scope: Scope, depth: int) -> str:
        table = self.any_table()
        alias = self.alias()
        inner = scope.plus(alias, table)
        own = Scope().plus(alias, table).of(type)
        if not own:
            return self.literal(type)
        where = self.predicate(inner, depth)
        return f"(SELECT max({self.random.choice(own)}) FROM {path(table.name)} AS {quoted(alias)} WHERE {where})"

    def predicate(self, scope: Scope, depth: int = 2) -> str:
        options: list[Callable[[], str]] = []
        if scope.columns:
            column, type = self.random.choice(scope.columns)
            operators = ["=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
            if not type.startswith("MAP"):
                operators += ["<", "<=", ">", ">="]
            operator = self.random.choice(operators)
            other = lambda: self.expression(type, scope, min(depth - 1, 0))  # noqa: E731
            options += [lambda: f"{column} {operator} {other()}"] * 4
            options += [
                lambda: f"{other()} {operator} {column}",
                lambda: f"{column} IS NULL",
                lambda: f"{column} IS NOT NULL",
                lambda: f"{column} IN ({', '.join(self.literal(type) for _ in range(self.random.randint(1, 3)))})",
                lambda: f"{column} NOT IN ({self.literal(type)}, {self.literal(type)})",
            ]
            if not type.startswith("MAP"):
                options.append(lambda: f"{column} BETWEEN {self.literal(type)} AND {self.literal(type)}")
            if type == "VARCHAR":
                options += [
                    lambda: f"{column} LIKE {self.random.choice(['a%', '%b', '_', '%', 'A%'])!r}",
                    lambda: f"{column} ILIKE 'a%'",
                    lambda: f"starts_with({column}, 'a')",
                    lambda: f"TRY_CAST({column} AS INTEGER) > 3",
                ]
            if type in ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL(9,2)"):
                options += [
                    lambda: f"{column} {operator} {self.random.choice(['0', '1', '2.5', '-1', '1e10', '2147483648'])}",
                    lambda: f"{column}::VARCHAR {operator} '1'",
                ]
            if type in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "DATE"):
                options += [
                    lambda: f"year({column}) {operator} 2020",
                    lambda: f"{column} {operator} '2020-02-29'",
                    lambda: f"{column}::DATE {operator} DATE '2020-02-29'",
                ]
            if type.startswith("STRUCT"):
                options.append(lambda: f"{column}.a {operator} 1")
        if depth > 0:
            again = lambda: self.predicate(scope, depth - 1)  # noqa: E731
            options += [
                lambda: f"({again()} AND {again()})",
                lambda: f"({again()} OR {again()})",
                lambda: f"NOT ({again()})",
                lambda: self.exists(scope, depth - 1),
                lambda: self.in_subquery(scope, depth - 1),
            ]
        return self.random.choice(options or [lambda: self.random.choice(["true", "false", "NULL"])])()

    def exists(self, scope: Scope, depth: int) -> str:
        table, alias = self.any_table(), self.alias()
        negation = self.random.choice(["", "NOT "])
        where = self.predicate(scope.plus(alias, table), depth)
        return f"{negation}EXISTS (SELECT 1 FROM {path(table.name)} AS {quoted(alias)} WHERE {where})"

    def in_subquery(self, scope: Scope, depth: int) -> str:
        table, alias = self.any_table(), self.alias()
        column, type = self.random.choice(list(table.columns.items()))
        operator = self.random.choice(["IN", "NOT IN"])
        where = self.predicate(Scope().plus(alias, table), 0)
        return (
            f"{self.expression(type, scope, min(depth, 0))} {operator} "
            f"(SELECT {quoted(alias)}.{quoted(column)} FROM {path(table.name)} AS {quoted(alias)} WHERE {where})"
        )

    # -- queries ----------------------------------------------------------------------------------------------------

    def query(self) -> str:
        return self.random.choice(
            [self.simple_query, self.simple_query, self.join, self.aggregate, self.window, self.set_operation, self.cte]
        )()

    def simple_query(self) -> str:
        table = self.any_table()
        alias, reference = self.reference(table)
        scope = Scope().plus(alias, table)
        items = [
            f"{self.expression(type, scope)} AS c{i}"
            for i, type in enumerate(self.random.choices(list(table.columns.values()), k=self.random.randint(1, 4)))
        ]
        chosen = self.random.choice(["*", f"{quoted(alias)}.*", ", ".join(items), ", ".join(items)])
        tail = " ORDER BY ALL LIMIT 3" if self.random.random() < 0.15 else ""
        return f"SELECT {chosen} FROM {reference} WHERE {self.predicate(scope)}{tail}"

    def filtered(self, table: Table) -> str:
        """By conditions that tell which data files can have matching rows."""
        condition = " AND ".join(self.predicate(Scope().plus("x", table), 0) for _ in range(self.random.randint(1, 2)))
        return f"SELECT * FROM {path(table.name)} AS x WHERE {condition}"

    def join(self) -> str:
        left, right = self.any_table(), self.any_table()
        (left_alias, left_sql), (right_alias, right_sql) = self.reference(left), self.reference(right, apart=True)
        scope = Scope().plus(left_alias, left).plus(right_alias, right)
        kind = self.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        on = self.equation(left_alias, left, right_alias, right)
        items = ", ".join(f"{sql} AS c{i}" for i, (sql, _) in enumerate(scope.columns))
        return f"SELECT {items} FROM {left_sql} {kind} {right_sql} ON {on} WHERE {self.predicate(scope)}"

    def equation(self, left_alias: str, left: Table, right_alias: str, right: Table) -> str:
        pairs = [
            f"{quoted(left_alias)}.{quoted(a)} = {quoted(right_alias)}.{quoted(b)}"
            for a, of_a in left.columns.items()
            for b, of_b in right.columns.items()
            if of_a == of_b and of_a in KEY_TYPES
        ]
        return self.random.choice(pairs or ["true"])

    def aggregate(self) -> str:
        table = self.any_table()
        alias, reference = self.reference(table)
        scope = Scope().plus(alias, table)
        key, _ = self.random.choice(scope.columns)
        value, type = self.random.choice(scope.columns)
        functions = [f"count({value})", f"count(DISTINCT {value})", f"min({value})", f"max({value})"]
        if type in ("INTEGER", "BIGINT", "DECIMAL(9,2)"):
            functions += [f"sum({value})"]
        function = self.random.choice(functions)
        having = self.random.choice(["", " HAVING count(*) > 1"])
        where = self.predicate(scope)
        return (
            f"SELECT {key} AS g, {function} AS a, count(*) AS n FROM {reference} WHERE {where} GROUP BY {key}{having}"
        )

    def window(self) -> str:
        table = self.any_table()
        alias, reference = self.reference(table)
        columns = [sql for sql, type in Scope().plus(alias, table).columns if not type.startswith("MAP")]
        key, order = self.random.choice(columns), self.random.choice(columns)
        function = self.random.choice(["rank()", "dense_rank()", "count(*)", f"max({key})"])
        return f"SELECT *, {function} OVER (PARTITION BY {key} ORDER BY {order} NULLS LAST) AS w FROM {reference}"

    def set_operation(self) -> str:
        left, right = self.any_table(), self.any_table()
        common = [
            (a, b) for a, of_a in left.columns.items() for b, of_b in right.columns.items() if of_a == of_b
        ]  # fmt: skip
        if not common:
            return self.simple_query()
        a, b = self.random.choice(common)
        operator = self.random.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"])
        return f"SELECT {quoted(a)} FROM {path(left.name)} {operator} SELECT {quoted(b)} FROM {path(right.name)}"

    def cte(self) -> str:
        """The common table may have the name of a table, which it hides."""
        table = self.any_table()
        name = self.random.choice([self.alias(), self.any_table().name.split(".")[-1]])
        materialized = self.random.choice(["", "MATERIALIZED ", "NOT MATERIALIZED "])
        inner = f"SELECT * FROM {path(table.name)} AS x WHERE {self.predicate(Scope().plus('x', table), 1)}"
        outer = Table(name, table.columns)
        return (
            f"WITH {quoted(name)} AS {materialized}({inner}) "
            f"SELECT * FROM {quoted(name)} WHERE {self.expression('BOOLEAN', Scope().plus(name, outer), 0)} IS NOT true"
        )

    def reference(self, table: Table, apart: bool = False) -> tuple[str, str]:
        """(alias, SQL in FROM). The alias may be the name of another table."""
        choice = self.random.random()
        if choice < 0.3 and not apart:
            return table.name.split(".")[-1], path(table.name)
        alias = self.alias() if choice < 0.8 or apart else self.any_table().name.split(".")[-1]
        return alias, f"{path(table.name)} AS {quoted(alias)}"

    # -- statements that change something -----------------------------------------------------------------------------

    def statement(self) -> str:
        choice = self.random.choices(
            [
                self.insert, self.insert_select, self.update, self.update_from, self.delete, self.delete_using,
                self.merge, self.alter, self.create, self.create_as, self.drop, self.truncate,
            ],
            [6, 3, 6, 3, 4, 3, 4, 2, 0.5, 0.5, 0.3, 0.2],
        )[0]  # fmt: skip
        return choice()

    def insert(self) -> str:
        table = self.target()
        names = self.random.sample(list(table.columns), self.random.randint(1, len(table.columns)))
        rows = [
            f"({', '.join(self.item(table.columns[name]) for name in names)})"
            for _ in range(self.random.choice([1, 1, 2, 5, 20]))
        ]
        columns = ", ".join(map(quoted, names))
        return f"INSERT INTO {path(table.name)} ({columns}) VALUES {', '.join(rows)}{self.returning(table)}"

    def item(self, type: str) -> str:
        """A value of VALUES."""
        return self.expression(type, Scope(), 1) if self.random.random() < 0.3 else self.literal(type)

    def insert_select(self) -> str:
        table, source = self.target(), self.any_table()
        scope = Scope().plus("src", source)
        names = self.random.sample(list(table.columns), self.random.randint(1, len(table.columns)))
        items = [f"{self.expression(table.columns[n], scope, 1)} AS {quoted(n)}" for n in names]
        form = self.random.choice(["BY NAME", f"({', '.join(map(quoted, names))})"])
        cte = "WITH src AS (SELECT * FROM {0}) " if self.random.random() < 0.3 else ""
        source_sql = "src" if cte else f"{path(source.name)} AS src"
        limit = " ORDER BY ALL LIMIT 15"
        return (
            f"INSERT INTO {path(table.name)} {form} {cte.format(path(source.name))}SELECT {', '.join(items)} "
            f"FROM {source_sql} WHERE {self.predicate(scope, 1)}{limit}"
        )

    def assignments(self, table: Table, scope: Scope) -> str:
        names = self.random.sample(list(table.columns), self.random.randint(1, min(3, len(table.columns))))
        return ", ".join(f"{quoted(n)} = {self.expression(table.columns[n], scope, 1)}" for n in names)

    def update(self) -> str:
        table = self.target()
        alias, target = self.reference(table)
        scope = Scope().plus(alias, table)
        where = f" WHERE {self.predicate(scope)}" if self.random.random() < 0.9 else ""
        return f"UPDATE {target} SET {self.assignments(table, scope)}{where}{self.returning(table)}"

    def source(self) -> tuple[Table, str, str]:
        """A relation with one row for each value of its column `key`, that key's type, and its SQL."""
        table = self.any_table()
        keys = [n for n, type in table.columns.items() if type in KEY_TYPES]
        if not keys:
            return Table("src", {"key": "INTEGER"}), "INTEGER", "(VALUES (1), (2)) AS src(key)"
        key = self.random.choice(keys)
        value = self.random.choice([n for n, type in table.columns.items() if not type.startswith("MAP")])
        where = self.predicate(Scope().plus("x", table), 1)
        sql = (
            f"(SELECT x.{quoted(key)} AS key, max(x.{quoted(value)}) AS val FROM {path(table.name)} AS x "
            f"WHERE {where} GROUP BY x.{quoted(key)}) AS src"
        )
        return Table("src", {"key": table.columns[key], "val": table.columns[value]}), table.columns[key], sql

    def matching(self, table: Table, alias: str, type: str) -> str | None:
        columns = [name for name, its in table.columns.items() if its == type]
        return f"{quoted(alias)}.{quoted(self.random.choice(columns))} = src.key" if columns else None

    def update_from(self) -> str:
        table, (source, type, sql) = self.target(), self.source()
        alias, target = self.reference(table)
        on = self.matching(table, alias, type)
        if on is None or alias == "src":
            return self.update()
        scope = Scope().plus(alias, table).plus("src", source)
        return f"UPDATE {target} SET {self.assignments(table, scope)} FROM {sql} WHERE {on} AND {self.predicate(scope)}"

    def delete(self) -> str:
        table = self.target()
        alias, target = self.reference(table)
        where = self.predicate(Scope().plus(alias, table))
        return f"DELETE FROM {target} WHERE {where}{self.returning(table)}"

    def delete_using(self) -> str:
        table, other = self.target(), self.any_table()
        alias, target = self.reference(table)
        scope = Scope().plus(alias, table).plus("other", other)
        on = self.equation(alias, table, "other", other)
        return f"DELETE FROM {target} USING {path(other.name)} AS other WHERE {on} AND {self.predicate(scope, 1)}"

    def merge(self) -> str:
        table, (source, type, sql) = self.target(), self.source()
        alias, target = self.reference(table)
        on = self.matching(table, alias, type)
        if on is None or alias == "src":
            return self.delete_using()
        both = Scope().plus(alias, table).plus("src", source)
        own, theirs = Scope().plus(alias, table), Scope().plus("src", source)
        clauses: list[str] = []
        always: set[str] = set()
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.choice(["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"])
            if kind in always:
                continue
            scope = {"MATCHED": both, "NOT MATCHED": theirs, "NOT MATCHED BY SOURCE": own}[kind]
            condition = f" AND {self.simple_predicate(scope)}" if self.random.random() < 0.7 else ""
            if not condition:
                always.add(kind)
            if kind == "NOT MATCHED":
                names = self.random.sample(list(table.columns), self.random.randint(1, len(table.columns)))
                values = ", ".join(self.flat(table.columns[n], scope) for n in names)
                action = f"INSERT ({', '.join(map(quoted, names))}) VALUES ({values})"
            else:
                name = self.random.choice(list(table.columns))
                value = self.flat(table.columns[name], scope)
                action = self.random.choice(["DELETE", f"UPDATE SET {quoted(name)} = {value}", "DO NOTHING"])
            clauses.append(f"WHEN {kind}{condition} THEN {action}")
        return f"MERGE INTO {target} USING {sql} ON {on} {' '.join(clauses)}"

    def flat(self, type: str, scope: Scope) -> str:
        return self.expression(type, scope, 0)

    def simple_predicate(self, scope: Scope) -> str:
        return self.predicate(scope, 0)

    def returning(self, table: Table) -> str:
        if self.random.random() < 0.75:
            return ""
        names = self.random.sample(list(table.columns), self.random.randint(1, len(table.columns)))
        return self.random.choice([" RETURNING *", f" RETURNING {', '.join(map(quoted, names))}"])

    def truncate(self) -> str:
        return f"TRUNCATE {path(self.target().name)}"

    # -- statements that define something ---------------------------------------------------------------------------

    def create(self) -> str:
        free = [name for name in TABLES if name not in self.tables]
        if not free:
            return self.insert()
        name = self.random.choice(free)
        names = self.random.sample(NAMES, self.random.randint(2, 6))
        types = [self.random.choice(KEY_TYPES), *(self.random.choice(list(VALUES)) for _ in names[1:])]
        self.add(name, dict(zip(names, types, strict=True)))
        columns = ", ".join(
            f"{quoted(n)} {type}" + (f" DEFAULT {self.literal(type)}" if self.random.random() < 0.3 else "")
            for n, type in self.tables[name].columns.items()
        )
        return f"CREATE TABLE {path(name)} ({columns})"

    def add(self, name: str, columns: dict[str, str]) -> None:
        self.made += 1
        self.tables[name] = self.changed = Table(name, columns, identity=self.made)

    def create_as(self) -> str:
        free = [name for name in TABLES if name not in self.tables]
        if not free or not self.tables:
            return self.insert_select()
        source, name = self.any_table(), self.random.choice(free)
        where = self.predicate(Scope().plus("x", source), 1)
        sql = f"CREATE TABLE {path(name)} AS SELECT * FROM {path(source.name)} AS x WHERE {where}"
        self.add(name, dict(source.columns))
        return sql

    def drop(self) -> str:
        if len(self.tables) < 3:
            return self.delete()
        table = self.any_table()
        self.changed = None
        del self.tables[table.name]
        return f"DROP TABLE {path(table.name)}"

    def alter(self) -> str:
        table = self.target()
        free = [n for n in NAMES if n.casefold() not in map(str.casefold, table.columns)]
        column = self.random.choice(list(table.columns))
        kind = self.random.choice(["add", "drop", "rename", "type", "default", "move"])
        head = f"ALTER TABLE {path(table.name)}"
        if kind == "add" and free:
            name, type = self.random.choice(free), self.random.choice(list(VALUES))
            table.columns[name] = type
            # Rows of a DuckLake take no default with parts.
            has_parts = type.endswith("[]") or type.startswith(("STRUCT", "MAP"))
            default = f" DEFAULT {self.literal(type)}" if self.random.random() < 0.5 and not has_parts else ""
            return f"{head} ADD COLUMN {quoted(name)} {type}{default}"
        if kind == "drop" and len(table.columns) > 2 and column != table.key:
            del table.columns[column]
            return f"{head} DROP COLUMN {quoted(column)}"
        if kind == "rename" and free:
            new = self.random.choice(free)
            table.columns = {new if n == column else n: type for n, type in table.columns.items()}
            table.key = new if table.key == column else table.key
            return f"{head} RENAME COLUMN {quoted(column)} TO {quoted(new)}"
        if kind == "type" and table.columns[column] in WIDER:
            table.columns[column] = WIDER[table.columns[column]]
            return f"{head} ALTER COLUMN {quoted(column)} TYPE {table.columns[column]}"
        if kind == "default":
            return f"{head} ALTER COLUMN {quoted(column)} SET DEFAULT {self.literal(table.columns[column])}"
        names = [name for name in TABLES if name not in self.tables and "." not in name]
        if kind == "move" and names and "." not in table.name:
            new = self.random.choice(names)
            self.tables = {new if n == table.name else n: t for n, t in self.tables.items()}
            table.name = new
            return f"{head} RENAME TO {quoted(new)}"
        return self.update()

    # -- names --------------------------------------------------------------------------------------------------------

    def any_table(self) -> Table:
        return self.random.choice(list(self.tables.values()))

    def target(self) -> Table:
        self.changed = self.any_table()
        return self.changed

    def alias(self) -> str:
        self.made += 1
        return f"a{self.made}"


def saved(tables: dict[str, Table]) -> dict[str, Table]:
    return {name: table.copy() for name, table in tables.items()}
