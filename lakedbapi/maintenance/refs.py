"""Branches and tags by statement. Each is a commit of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakedbapi.context import Context
from lakedbapi.engine.base import Result, TableResult
from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.refs import Refs
from lakedbapi.maintenance.names import called_table
from lakedbapi.maintenance.results import SUCCESS
from lakedbapi.maintenance.scope import check_alone
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.refs import NewRef
from lakedbapi.query import constant, resolve_table
from lakedbapi.sql.statements import Call, DropRef, Name, PutRef


def put_ref(context: Context, statement: PutRef) -> Result:
    refs, table = _refs(context, statement.table, f"{_verb(statement.ref)} {statement.ref.kind.upper()}")
    ref = statement.ref
    if statement.version is not None:
        ref = replace(ref, snapshot=_snapshot(context, statement))
    refs.put(table, ref)
    return SUCCESS


def drop_ref(context: Context, statement: DropRef) -> Result:
    refs, table = _refs(context, statement.table, f"DROP {statement.kind.upper()}")
    refs.drop(table, statement.kind, statement.name, if_exists=statement.if_exists)
    return SUCCESS


def fast_forward(context: Context, call: Call) -> Result:
    """`CALL fast_forward('t', 'main', 'audit')`; `lake.fast_forward` means a table of `lake`."""
    names = ("table", "branch", "to")
    arguments: dict[str, Any] = dict(zip(names, (constant(context, each) for each in call.arguments), strict=False))
    arguments |= {name.casefold(): constant(context, value) for name, value in call.named}
    if arguments.keys() != set(names) or len(call.arguments) > len(names):
        raise ProgrammingError(f"{call.name} takes a table, a branch, and the branch or tag that it is to be like")
    table, branch, to = (str(arguments[name]) for name in names)
    refs, found = _refs(context, called_table(context, call, table), str(call.name))
    before, after = refs.fast_forward(found, branch, to)
    columns = {
        "branch_updated": pa.array([branch]),
        "previous_ref": pa.array([before], pa.int64()),
        "updated_ref": pa.array([after], pa.int64()),
    }
    return TableResult(pa.table(columns), ["VARCHAR", "BIGINT", "BIGINT"])


def _refs(context: Context, name: Name, verb: str) -> tuple[Refs, TableInfo]:
    check_alone(context, verb)
    found = resolve_table(context, name)
    context.transaction.check_writing(found.alias)
    return found.view.catalog.refs, found.table


def _verb(ref: NewRef) -> str:
    return "CREATE" if ref.create else "REPLACE"


def _snapshot(context: Context, statement: PutRef) -> int:
    assert statement.version is not None
    value: Any = constant(context, statement.version)
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ProgrammingError(
            f"AS OF VERSION {value!r} is no version: give a whole number, as history('t') lists them"
        )
    return int(value)
