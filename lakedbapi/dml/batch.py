"""executemany: as few engine queries as give the same outcome as one statement for each parameter set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Context, Counted
from lakedbapi.dml.conflict import RepeatedKeyError
from lakedbapi.dml.delete import delete, delete_rows
from lakedbapi.dml.insert import insert, insert_rows
from lakedbapi.dml.merge import merge
from lakedbapi.dml.parameter_table import PARAMETERS, NotTabularError, ParameterTable, has_parameters
from lakedbapi.dml.row_source import RowSource, given_fields, mismatch, projection, values_rows
from lakedbapi.dml.sources import conjunction
from lakedbapi.dml.target import Target
from lakedbapi.dml.update import Updating, update
from lakedbapi.dml.values import assigned_field, cast, default, field_named, given_value
from lakedbapi.errors import DataError, ProgrammingError
from lakedbapi.model.sql_types import sql_type
from lakedbapi.query.shown import has_stars
from lakedbapi.sql.nulls import parameter_name
from lakedbapi.sql.statements import Delete, Insert, Merge, Update

Statement = Insert | Update | Delete | Merge
S = TypeVar("S", Update, Delete)
ParameterSets = Sequence[Mapping[str, object]]


def execute_many(context: Context, statement: Statement, parameter_sets: ParameterSets) -> Counted:
    """The summed outcome of the statement with each parameter set in turn. RETURNING is for INSERT alone."""
    if statement.returning and not isinstance(statement, Insert):
        raise ProgrammingError("executemany takes RETURNING with INSERT only: use execute for each parameter set")
    if len(parameter_sets) > 1:
        try:
            return _at_once(context, statement, ParameterTable(parameter_sets))
        except (NotTabularError, RepeatedKeyError):
            pass
    return _one_by_one(context, statement, parameter_sets)


def _one_by_one(context: Context, statement: Statement, parameter_sets: ParameterSets) -> Counted:
    outcomes = [_run(replace(context, parameters=parameters), statement) for parameters in parameter_sets]
    returned = [outcome.returned for outcome in outcomes if outcome.returned is not None]
    return Counted(
        sum(outcome.rowcount for outcome in outcomes),
        pa.concat_tables(returned) if returned else None,
        outcomes[0].returned_types if outcomes else (),
        sum(outcome.inserted for outcome in outcomes),
        sum(outcome.updated for outcome in outcomes),
        sum(outcome.deleted for outcome in outcomes),
    )


def _run(context: Context, statement: Statement) -> Counted:
    if isinstance(statement, Insert):
        return insert(context, statement)
    if isinstance(statement, Update):
        return update(context, statement)
    return delete(context, statement) if isinstance(statement, Delete) else merge(context, statement)


def _at_once(context: Context, statement: Statement, parameters: ParameterTable) -> Counted:
    """NotTabularError, before anything is staged, when that could give another outcome."""
    if isinstance(statement, Insert):
        return _insert(context, statement, parameters)
    if isinstance(statement, Update):
        return _update(context, statement, parameters)
    if isinstance(statement, Delete):
        return _delete(context, statement, parameters)
    raise NotTabularError


def _insert(context: Context, statement: Insert, parameters: ParameterTable) -> Counted:
    """One INSERT of a row for each parameter set.

    With ON CONFLICT DO UPDATE the statements could update what one before them inserted: RepeatedKeyError tells.
    """
    conflict = statement.on_conflict
    others = list(statement.returning)
    if conflict is not None:
        others += [e for e in (conflict.where, *(a.value for a in conflict.update)) if e is not None]
    if any(has_parameters(expression) or expression.find(exp.Query) for expression in others):
        raise NotTabularError
    target = Target.of(context, statement.target, statement.alias)
    target.require("INSERT INTO", target.capabilities.inserts)
    return insert_rows(target, statement, _source(target, statement, parameters))


def _update(context: Context, statement: Update, parameters: ParameterTable) -> Counted:
    """One UPDATE … FROM the parameters, if each row is found by a key that no two sets share and no SET changes."""
    target = Target.of(context, statement.target, statement.alias)
    keys = _keys(target, statement, [assignment.value for assignment in statement.assignments])
    changed = {name.casefold() for assignment in statement.assignments for name in assignment.column}
    keys = {column: name for column, name in keys.items() if column.casefold() not in changed}
    if not keys or not _distinct(target, keys, parameters):
        raise NotTabularError
    parameters.check_texts((a.value, assigned_field(target, a)) for a in statement.assignments)
    assignments = tuple(
        assignment if assignment.value is None else replace(assignment, value=parameters.in_place(assignment.value))
        for assignment in statement.assignments
    )
    joined = replace(_joined(target, statement, parameters), assignments=assignments)
    target, bounds = _bounds(target, keys, parameters)
    return Updating(target, joined, {PARAMETERS: parameters.rows}, bounds).run()


def _delete(context: Context, statement: Delete, parameters: ParameterTable) -> Counted:
    """One DELETE … USING the parameters: a row that several sets match is gone after the first."""
    target = Target.of(context, statement.target, statement.alias)
    keys = _keys(target, statement, [])
    if not keys:
        raise NotTabularError
    joined = _joined(target, statement, parameters)
    target, bounds = _bounds(target, keys, parameters)
    return delete_rows(target, joined, {PARAMETERS: parameters.rows}, bounds)


def _keys(target: Target, statement: Update | Delete, others: Sequence[exp.Expression | None]) -> dict[str, str]:
    """Column -> parameter of the `column = ?` that the condition demands.

    NotTabularError when the statement reads relations: what it sees would be the state before all statements. And with
    `COLUMNS(*)`, which would see the parameters.
    """
    expressions = [e for e in (statement.where, *others) if e is not None]
    if statement.where is None or statement.source or statement.ctes is not None:
        raise NotTabularError
    if any(isinstance(e, exp.Var) or e.find(exp.Query) or has_stars(e) for e in expressions):
        raise NotTabularError
    keys = {}
    conditions: Any = statement.where.flatten() if isinstance(statement.where, exp.And) else [statement.where]
    for condition in conditions:
        equality = condition.unnest()
        if not isinstance(equality, exp.EQ):
            continue
        sides: list[Any] = [equality.left, equality.right]
        for column, value in (sides, reversed(sides)):
            name = parameter_name(value)
            if name is not None and isinstance(column, exp.Column) and _is_own(target, column):
                keys[column.name] = name
    return keys


def _is_own(target: Target, column: exp.Column) -> bool:
    return target.table.schema.get(column.name) is not None and column.table.casefold() in ("", target.name.casefold())


def _distinct(target: Target, keys: Mapping[str, str], parameters: ParameterTable) -> bool:
    """Whether no two parameter sets can mean the same row by these key columns. A NULL means none."""
    values = [
        cast(parameters.item(exp.Placeholder(this=name), sql_type(field.type)), field)
        for column, name in keys.items()
        for field in [field_named(target.table, column)]
    ]
    names = [f"k{i}" for i in range(len(values))]
    selected = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
    known = " AND ".join(f"{name} IS NOT NULL" for name in names)
    sql = (
        f"SELECT count(*), count(DISTINCT row({', '.join(names)})) FROM "
        f"(SELECT {selected} FROM {PARAMETERS.sql}) WHERE {known}"
    )
    try:
        counts = target.fetch(target.query(sql, {PARAMETERS: parameters.rows}))
    except DataError as error:
        raise NotTabularError from error
    return bool(counts.column(0)[0] == counts.column(1)[0])


def _bounds(
    target: Target, keys: Mapping[str, str], parameters: ParameterTable
) -> tuple[Target, exp.Expression | None]:
    """A condition with constants that the statements' conditions imply, and the target with their values as
    parameters."""
    bounds: list[Any] = []
    values: dict[str, object] = {}
    for column, name in keys.items():
        extremes = parameters.range(name)
        if extremes is not None:
            for comparison, value in zip((exp.GTE, exp.LTE), extremes, strict=True):
                bound = f"_lake_bound_{len(values)}"
                values[bound] = value
                column_ = exp.Column(this=exp.to_identifier(column, quoted=True))
                bounds.append(comparison(this=column_, expression=exp.Placeholder(this=bound)))
    context = replace(target.context, parameters=values)
    return replace(target, context=context), conjunction(bounds) if bounds else None


def _joined(target: Target, statement: S, parameters: ParameterTable) -> S:
    """`statement` beside the parameter table, with its columns in place of the condition's parameters."""
    assert statement.where is not None
    item = exp.Table(this=exp.to_identifier(PARAMETERS.name, quoted=True))
    where = parameters.in_place(statement.where)
    return replace(statement, where=where, source=(item,), identifiers=frozenset())


def _source(target: Target, statement: Insert, parameters: ParameterTable) -> RowSource:
    """The one row of VALUES, for each parameter set."""
    rows = None if statement.source is None else values_rows(statement.source)
    if rows is None or len(rows) != 1 or statement.by_name or statement.ctes is not None:
        raise NotTabularError
    given = given_fields(target, statement)
    (items,) = rows
    if len(items) != len(given):
        raise mismatch(target, len(given), len(items))
    if any(item.find(exp.Query) for item in items):
        raise NotTabularError
    parameters.check_texts(zip(items, given, strict=True))
    values = [
        default(target, field)
        if (0, i) in statement.defaults
        else given_value(parameters.item(item, sql_type(field.type)), field)
        for i, (item, field) in enumerate(zip(items, given, strict=True))
    ]
    base = target.query("", {PARAMETERS: parameters.rows})
    return projection(target, given, values, f" FROM {PARAMETERS.sql}", base, small=True)
