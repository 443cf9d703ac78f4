"""Pruning never loses a row, and never claims a whole file that has another row: against the engine itself."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lakedbapi.engine.base import Query, RelationName
from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.errors import Error
from lakedbapi.model.arrow import arrow_schema
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.types import Decimal, Field, Scalar, Schema
from lakedbapi.query.prune import prune
from lakedbapi.query.transforms import transform_constant
from lakedbapi.sql.expressions import parse_query
from tests.support_catalog import MemorySnapshot, context

NAN, INF = float("nan"), float("inf")
DAY = datetime.date
TIME = datetime.datetime
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "i": (Scalar("int32"), [-1, 0, 1, 2, 3, 2147483647]),
    "l": (Scalar("int64"), [0, 1, 2**53, 2**53 + 1, -(2**62)]),
    "u": (Scalar("uint8"), [0, 1, 2, 255]),
    "f": (Scalar("float64"), [0.0, -0.0, 1.0, 1.5, 0.1, NAN, INF, -INF]),
    "g": (Scalar("float32"), [0.0, 1.0, 0.5, NAN]),
    "n": (Decimal(9, 2), [decimal.Decimal("0.00"), decimal.Decimal("1.50"), decimal.Decimal("2.00")]),
    "b": (Scalar("boolean"), [True, False]),
    "s": (Scalar("varchar"), ["", "a", "ab", "abc", "b", "é", "a%"]),
    "d": (Scalar("date"), [DAY(2023, 12, 31), DAY(2024, 1, 1), DAY(2024, 2, 29), DAY(2025, 1, 1)]),
    "t": (Scalar("timestamp"), [TIME(2023, 12, 31, 23, 59), TIME(2024, 1, 1), TIME(2024, 2, 29, 5), TIME(2025, 1, 1)]),
}
SCHEMA = Schema(tuple(Field(name, type, id=number) for number, (name, (type, _)) in enumerate(VALUES.items(), 1)))
TABLE = TableInfo(1, 0, "t", SCHEMA)
CONSTANTS = [
    *("NULL", "0", "1", "2", "-1", "300", "1.5", "2.0", "0.1", "1e0", "2147483648", "9007199254740993", "1 + 1"),
    *("'NaN'::DOUBLE", "'inf'::DOUBLE", "9007199254740992.0::DOUBLE", "0.5::DOUBLE", "1::FLOAT", "1::BIGINT"),
    *("'a'", "'ab'", "''", "'é'", "'a%'", "'1'", "'a' || 'b'", "'2024-01-01'", "DATE '2024-01-01'"),
    *("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-02-29 05:00:00'", "NULL::INT", "true", "false", "$p", "$q"),
]
PARAMETERS = {"p": 1, "q": "2024-01-01"}
PATTERNS = ["'a%'", "'%'", "'a_'", "'ab'", "'b%%'", "'%b'", "''", "NULL"]

constants = st.sampled_from(CONSTANTS)
columns = st.sampled_from(list(VALUES))
comparisons = st.builds(
    lambda column, operator, constant, flip: (
        f"{constant} {operator} {column}" if flip else f"{column} {operator} {constant}"
    ),
    columns,
    st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"]),
    constants,
    st.booleans(),
)
atoms = st.one_of(
    comparisons,
    comparisons,
    st.builds("{} IS {}NULL".format, columns, st.sampled_from(["", "NOT "])),
    st.builds(
        lambda column, negated, items: f"{column} {negated}IN ({', '.join(items)})",
        columns,
        st.sampled_from(["", "NOT "]),
        st.lists(constants, min_size=1, max_size=3),
    ),
    st.builds("({} IN [{}, NULL])".format, columns, constants),
    st.builds("{} BETWEEN {} AND {}".format, columns, constants, constants),
    st.builds("s {}LIKE {}".format, st.sampled_from(["", "NOT "]), st.sampled_from(PATTERNS)),
    st.builds("starts_with(s, {})".format, st.sampled_from(["'a'", "''", "'é'"])),
    st.sampled_from(["b", "true", "false", "NULL", "i + 1 = 2", "random() < 2"]),
)
predicates = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
        st.builds("(({}) IS {}TRUE)".format, inner, st.sampled_from(["", "NOT "])),
        st.builds("(({}) IS FALSE)".format, inner),
    ),
    max_leaves=4,
)
rows = st.fixed_dictionaries({name: st.sampled_from([*values, None]) for name, (_, values) in VALUES.items()})
files = st.lists(st.lists(rows, min_size=1, max_size=4), min_size=1, max_size=4)
unknowns = st.frozensets(st.tuples(st.integers(0, 3), columns), max_size=3)
keys = st.lists(
    st.sampled_from(
        [(n, "identity") for n in VALUES]
        + [("t", k) for k in ("year", "month", "day", "hour")]
        + [("d", "year")]
        + [(n, "bucket(3)") for n in ("i", "l", "s", "d", "t", "b")]
    ),
    max_size=3,
)


def partitions(parts: list[pa.Table], wanted: list[tuple[str, str]]) -> dict[tuple[int, str], dict[int, object]]:
    """The values of the files whose rows all have the same one, which is the only way to write such a file."""
    found: dict[tuple[int, str], dict[int, object]] = {}
    for name, transform in wanted:
        column = SCHEMA.get(name)
        assert column is not None
        for number, part in enumerate(parts):
            scalars = list(part.column(name))
            if transform == "identity":
                values = {repr(scalar.as_py()) if scalar.is_valid else None for scalar in scalars}
                value = scalars[0].as_py()
            else:
                values = {transform_constant(transform, column.type, scalar) for scalar in scalars}
                value = next(iter(values))
            if len(values) == 1:
                found.setdefault((column.id, transform), {})[number] = value
    return found


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(predicates, files, unknowns, keys)
def test_pruning_agrees_with_the_engine(
    engine: DuckDBEngine,
    predicate: str,
    data: list[list[dict[str, Any]]],
    unknown: frozenset[tuple[int, str]],
    partitioned_by: list[tuple[str, str]],
) -> None:
    parts = [pa.Table.from_pylist(rows, arrow_schema(SCHEMA)) for rows in data]
    snapshot = MemorySnapshot(TABLE, parts, unknown, partitions(parts, partitioned_by))
    numbered = [part.append_column("_file", pa.array([n] * part.num_rows, pa.int64())) for n, part in enumerate(parts)]
    matched = f"SELECT _file, coalesce(({predicate}), false) AS matches FROM t"
    sql = f"SELECT bool_or(matches) AS some, bool_and(matches) AS every FROM ({matched}) GROUP BY _file ORDER BY _file"
    relations = {RelationName("memory", "main", "t"): pa.concat_tables(numbered)}
    try:
        truth = engine.fetch(Query(sql, relations, PARAMETERS)).to_pydict()
    except Error:
        assume(False)
    tree = parse_query(f"SELECT * FROM t WHERE {predicate}")
    assert tree is not None
    pruning = prune(context(engine, **PARAMETERS), snapshot.contents, tree.args["where"].this, "t")
    for number, (some, every) in enumerate(zip(truth["some"], truth["every"], strict=True)):
        assert pruning.keep[number] or not some, f"file {number} has a row with {predicate}"
        assert every or not pruning.all_match[number], f"file {number} has a row without {predicate}"
