"""Where the rows of an INSERT come from, as one engine query with a column for each column of the target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from lakedbapi.dml.blame import blaming
from lakedbapi.dml.sources import named, with_clause
from lakedbapi.dml.target import Target
from lakedbapi.dml.values import default, fields_named, given_value, refuse_nan
from lakedbapi.engine.base import Query, RelationName
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.sql_types import quote_literal
from lakedbapi.model.types import Field
from lakedbapi.query.relations import present
from lakedbapi.sql.expressions import render
from lakedbapi.sql.nulls import parameter_name
from lakedbapi.sql.statements import Insert, Select

ARROW = RelationName.local("_lake_arrow")
_TOO_FEW = re.compile(r'"_lake_source" has (\d+) columns available')


@dataclass(frozen=True)
class RowSource:
    """`query` gives the target's columns in order; `alone` is its SQL for each given column by itself.

    `small` = the rows stand in the statement. `expected` is the number of columns that it gives.
    """

    target: Target
    query: Query
    alone: Mapping[str, str]
    expected: int
    small: bool = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside, errors of the query are told in terms of the INSERT."""
        try:
            with blaming(self.target, self.query, self.alone):
                yield
        except ProgrammingError as error:
            found = _TOO_FEW.search(str(error))
            if found is None:
                raise
            raise mismatch(self.target, self.expected, int(found.group(1))) from error

    def check(self, columns: int) -> None:
        """ProgrammingError when the result has more `columns` than the target: the source gave too many."""
        surplus = columns - len(self.target.fields)
        if surplus:
            raise mismatch(self.target, self.expected, self.expected + surplus)


def mismatch(target: Target, expected: int, given: int) -> ProgrammingError:
    return ProgrammingError(
        f"INSERT INTO {target.table.name}: {expected} column{'s' * (expected != 1)} but {given} "
        f"value{'s' * (given != 1)}; name the columns that the values are for"
    )


def of_statement(target: Target, statement: Insert) -> RowSource:
    """The rows of an INSERT statement."""
    source = statement.source
    base = _base(target, statement)
    if source is None:
        return projection(target, (), (), "", base, small=True)
    if statement.by_name:
        given = fields_named(target.table, _described(target, source, base))
    else:
        given = given_fields(target, statement)
    rows = values_rows(source)
    if rows is not None and not statement.by_name:
        return _values(target, statement, given, rows, base)
    width = _static_width(source)
    if width is not None and width != len(given):
        raise mismatch(target, len(given), width)
    return _casting(target, given, f"({source.text}\n)", base, exact=width is not None)


def of_query(target: Target, source: Query) -> RowSource:
    """All columns of the target in order."""
    item = f"({source.sql.rstrip().rstrip(';')}\n)"
    return _casting(target, target.fields, item, replace(source, sql=""), exact=False)


def of_arrow(target: Target, source: pa.Table | pa.RecordBatchReader) -> RowSource:
    """Arrow data, matched by column name."""
    given = fields_named(target.table, source.schema.names)
    base = target.query("", {ARROW: source})
    return _casting(target, given, ARROW.sql, base, exact=True)


def given_fields(target: Target, statement: Insert) -> tuple[Field, ...]:
    """The columns that an INSERT gives by position."""
    return fields_named(target.table, statement.columns) if statement.columns else target.fields


def values_rows(source: Select) -> list[list[exp.Expression]] | None:
    """The items of VALUES, None when the source is something else."""
    if not isinstance(source.tree, exp.Values) or source.tree.args.get("alias"):
        return None
    rows = source.tree.expressions
    return [list(row.expressions if isinstance(row, exp.Tuple) else [row]) for row in rows]


def item_sql(item: exp.Expression) -> str:
    """SQL of a VALUES item; literals and parameters, of which there can be thousands, without a generator."""
    if isinstance(item, exp.Literal):
        return quote_literal(item.this) if item.is_string else str(item.this)
    name = parameter_name(item)
    return f"({render(item)})" if name is None else f"${name}"


def _values(
    target: Target, statement: Insert, given: tuple[Field, ...], rows: list[list[exp.Expression]], base: Query
) -> RowSource:
    """Every item is cast by itself: a column of VALUES may mix what no common type could hold."""
    for row in rows:
        if len(row) != len(given):
            raise mismatch(target, len(given), len(row))
        for value, field in zip(row, given, strict=True):
            refuse_nan(target, value, field)
    casts = [
        [
            default(target, field) if (i, k) in statement.defaults else given_value(item_sql(item), field)
            for k, (item, field) in enumerate(zip(row, given, strict=True))
        ]
        for i, row in enumerate(rows)
    ]
    if len(casts) == 1:
        return projection(target, given, casts[0], "", base, small=True)
    names = [f"_lake_c{i}" for i in range(len(given))]
    text = ", ".join(f"({', '.join(row)})" for row in casts)
    item = f"(VALUES {text}) AS _lake_source({', '.join(names)})"
    return projection(target, given, names, f" FROM {item}", base, small=True)


def _casting(target: Target, given: Sequence[Field], item: str, base: Query, *, exact: bool) -> RowSource:
    """A FROM item with a column for each of `given`. Unless that is known (`exact`), surplus columns show in the
    result."""
    names = [f"_lake_c{i}" for i in range(len(given))]
    surplus = "" if exact else f", * EXCLUDE ({', '.join(names)})"
    casts = [given_value(name, field) for name, field in zip(names, given, strict=True)]
    rows = f" FROM {item} AS _lake_source({', '.join(names)})"
    return projection(target, given, casts, rows, base, surplus=surplus)


def projection(
    target: Target,
    given: Sequence[Field],
    values: Sequence[str],
    rows: str,
    base: Query,
    *,
    surplus: str = "",
    small: bool = False,
) -> RowSource:
    """`values` are SQL over FROM `rows` for the columns `given`; the others get their default. `base` has the WITH
    clause."""
    by_name = {field.name: value for field, value in zip(given, values, strict=True)}
    items = [f"{by_name.get(f.name) or default(target, f)} AS _lake_v{i}" for i, f in enumerate(target.fields)]
    prefix = base.sql
    alone = {name: f"{prefix}SELECT {value}{rows}" for name, value in by_name.items()}
    query = replace(base, sql=f"{prefix}SELECT {', '.join(items)}{surplus}{rows}")
    return RowSource(target, query, alone, len(given), small)


def _base(target: Target, statement: Insert) -> Query:
    """The WITH clause, and what names in the source mean. VALUES seldom name a relation."""
    source, specials, ctes = statement.source, statement.specials, statement.ctes
    if source is None or values_rows(source) is not None:
        identifiers = named(statement, [] if source is None else [source.tree])
    else:
        trees = [source.tree] if ctes is None else [source.tree, ctes]
        identifiers = present(statement.identifiers, specials, trees)
    return target.query(with_clause(ctes), {}, identifiers, specials)


def _described(target: Target, source: Select, base: Query) -> list[str]:
    """The column names of the source."""
    result = target.open(replace(base, sql=f"{base.sql}SELECT * FROM ({source.text}\n) LIMIT 0"))
    result.close()
    return [column.name for column in result.columns]


def _static_width(source: Select) -> int | None:
    """The number of columns of a query, where its select list tells."""
    tree = source.tree
    while isinstance(tree, (exp.SetOperation, exp.Subquery)):
        tree = tree.this
    if not isinstance(tree, exp.Select) or any(not _is_single(item) for item in tree.expressions):
        return None
    return len(tree.expressions)


def _is_single(item: exp.Expression) -> bool:
    """Whether a select item is one column: no star, no COLUMNS(…), no UNNEST of a struct."""
    return isinstance(item.unalias(), (exp.Column, exp.Literal, exp.Placeholder)) and not item.find(exp.Star)
