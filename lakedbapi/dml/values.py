"""SQL for the column values of new rows: casts, defaults, assignments to columns and to fields of structs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from sqlglot import exp

from lakedbapi.dml.target import Target
from lakedbapi.errors import DataError, ProgrammingError
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.sql_types import quote_identifier, sql_type
from lakedbapi.model.types import Field, Struct
from lakedbapi.query.stored import runnable_default
from lakedbapi.sql.nulls import parameter_name
from lakedbapi.sql.statements import Assignment

Render = Callable[[exp.Expression], str]
"""From an expression of the statement to SQL."""


def cast(sql: str, field: Field) -> str:
    return f"CAST({sql} AS {sql_type(field.type)})"


def given_value(sql: str, field: Field) -> str:
    """A value that the statement itself gives a column; ProgrammingError where rows cannot bring one."""
    if field.identity is not None and field.identity.always:
        raise ProgrammingError(
            f"column {field.name!r} is GENERATED ALWAYS AS IDENTITY and takes no values: leave it out, or write DEFAULT"
        )
    return cast(sql, field)


def refuse_nan(target: Target, item: exp.Expression, field: Field) -> None:
    """DataError for a parameter that is NaN and stands for a text: pandas and NumPy mean a missing value by it."""
    name = parameter_name(item)
    if name is None or sql_type(field.type) != "VARCHAR":
        return
    value = target.context.parameters.get(name)
    if isinstance(value, (float, np.floating)) and np.isnan(value):
        raise DataError(
            f"value for column {target.table.name}.{field.name}: parameter ${name} is NaN, which is no text; "
            "pass None for NULL (of a pandas frame: frame.astype(object).where(frame.notna(), None))"
        )


def default(target: Target, field: Field) -> str:
    """The value of a column that a new row does not give. NULL stands for a value that is counted or computed."""
    if field.default is None or field.identity or field.generated:
        return cast("NULL", field)
    return cast(f"({runnable_default(target.catalog, field.default, f'the default of column {field.name!r}')})", field)


def kept(target: Target, field: Field) -> str:
    """The value of a column that an update does not assign: the old one, or of a generated column one to compute."""
    return cast("NULL", field) if field.generated is not None else target.column(field.name)


def field_named(table: TableInfo, name: str) -> Field:
    """ProgrammingError when the table has no such column."""
    field = table.schema.get(name)
    if field is None:
        near = difflib.get_close_matches(name.casefold(), [n.casefold() for n in table.schema.names], n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ProgrammingError(f"table {table.name} has no column {name!r}{hint}")
    return field


def fields_named(table: TableInfo, names: Sequence[str]) -> tuple[Field, ...]:
    """The columns of a column list, each at most once."""
    fields = tuple(field_named(table, name) for name in names)
    for i, field in enumerate(fields):
        if field in fields[:i]:
            raise ProgrammingError(f"column {field.name!r} of table {table.name} is given twice")
    return fields


def assigned(target: Target, assignments: Sequence[Assignment], render: Render) -> dict[str, str]:
    """SQL for the new value of every column that `assignments` change, by column name. It may read the target's row."""
    paths: dict[str, dict[tuple[str, ...], Assignment]] = {}
    for assignment in assignments:
        column, path, _ = _column_and_path(target, assignment.column)
        given = paths.setdefault(column.name, {})
        if any(path[: len(other)] == other or other[: len(path)] == path for other in given):
            raise ProgrammingError(f"{'.'.join(assignment.column)} of table {target.table.name} is assigned twice")
        given[path] = assignment

    def new_value(field: Field, value: exp.Expression | None) -> str:
        if value is None:
            return default(target, field)
        refuse_nan(target, value, field)
        return given_value(f"({render(value)})", field)

    return {
        name: _new_value(field_named(target.table, name), target.column(name), given, (), new_value)
        for name, given in paths.items()
    }


def assigned_field(target: Target, assignment: Assignment) -> Field:
    """The column, or the field of a struct, that gets the value."""
    return _column_and_path(target, assignment.column)[2]


def _column_and_path(target: Target, names: tuple[str, ...]) -> tuple[Field, tuple[str, ...], Field]:
    """The column, the casefolded path of struct fields in it and the field there; the target's name may stand before
    the column."""
    if target.table.schema.get(names[0]) is None:
        names = names[target.path_length([name.casefold() for name in names[:-1]]) :]
    field = field_named(target.table, names[0])
    inner = field
    for name in names[1:]:
        inner = _member(target, inner, name, names)
    return field, tuple(name.casefold() for name in names[1:]), inner


def _member(target: Target, field: Field, name: str, path: tuple[str, ...]) -> Field:
    members = field.type.fields if isinstance(field.type, Struct) else ()
    found = next((member for member in members if member.name.casefold() == name.casefold()), None)
    if found is None:
        raise ProgrammingError(f"{'.'.join(path)}: {target.table.name}.{field.name} is no struct with a field {name!r}")
    return found


def _new_value(
    field: Field,
    old: str,
    given: Mapping[tuple[str, ...], Assignment],
    path: tuple[str, ...],
    new_value: Callable[[Field, exp.Expression | None], str],
) -> str:
    """The value of `field`, which lies at `path` of its column and was `old`."""
    assignment = given.get(path)
    if assignment is not None:
        return new_value(field, assignment.value)
    if not any(other[: len(path)] == path for other in given):
        return old
    assert isinstance(field.type, Struct)
    members = (
        f"{quote_identifier(member.name)} := "
        + _new_value(
            member, f"({old}).{quote_identifier(member.name)}", given, (*path, member.name.casefold()), new_value
        )
        for member in field.type.fields
    )
    return cast(f"struct_pack({', '.join(members)})", field)
