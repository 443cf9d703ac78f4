"""Procedures of CALL: DuckLake's own, with its arguments and result columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypeVar

from lakedbapi import query
from lakedbapi.context import Context
from lakedbapi.engine.base import Result
from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.formats.maintenance import Maintenance
from lakedbapi.maintenance import retention
from lakedbapi.maintenance.compaction import MergeLimits, merge, rewrite
from lakedbapi.maintenance.flush import flush
from lakedbapi.maintenance.purge import purge, purge_call
from lakedbapi.maintenance.refs import fast_forward
from lakedbapi.maintenance.results import compacted, flushed, paths, snapshots
from lakedbapi.maintenance.scope import check_alone, maintenance_of, settle, tables
from lakedbapi.query.travel import instant
from lakedbapi.sql.statements import Call, Name

_PREFIX = "ducklake_"
_FLAGS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
T = TypeVar("T")


@dataclass(frozen=True)
class _Call:
    """A call with its arguments computed; `alias` is the catalog."""

    context: Context
    name: str
    alias: str
    arguments: Mapping[str, Any]

    @property
    def catalog(self) -> Catalog:
        return self.context.transaction.catalogs[self.alias]

    @property
    def maintenance(self) -> Maintenance:
        return self.catalog.maintenance

    def tables(self, schema_argument: str = "schema") -> Sequence[int]:
        """Ids of the tables that the arguments choose."""
        schema, table = self.arguments.get(schema_argument), self.arguments.get("table_name")
        if table is None:
            return tables(self.context, self.alias, None, schema)
        current = self.context.search_path[1] if self.context.search_path[0] == self.alias else "main"
        return tables(self.context, self.alias, Name((self.alias, str(schema or current), str(table))))

    def instant(self, argument: str) -> datetime | None:
        value = self.arguments.get(argument)
        if value is None:
            return None
        found = instant(self.context, value)
        if found is None:
            raise ProgrammingError(f"{self.name}: {argument} is {value!r}, which is no timestamp")
        return found.astimezone(timezone.utc)

    def flag(self, argument: str) -> bool:
        value = self.arguments.get(argument)
        found = False if value is None else _FLAGS.get(str(value).casefold())
        if found is None:
            raise ProgrammingError(f"{self.name}: {argument} is {value!r}, which is neither true nor false")
        return found

    def number(self, argument: str) -> int | None:
        return self._converted(argument, int, "whole number")

    def fraction(self, argument: str) -> float | None:
        return self._converted(argument, float, "number")

    def numbers(self, argument: str) -> Sequence[int] | None:
        return self._converted(argument, lambda values: [int(value) for value in values], "list of whole numbers")

    def _converted(self, argument: str, convert: Callable[[Any], T], what: str) -> T | None:
        value = self.arguments.get(argument)
        try:
            return None if value is None else convert(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ProgrammingError(f"{self.name}: {argument} is {value!r}, which is no {what}") from error


def run(context: Context, call: Call) -> Result | None:
    """The result of a maintenance procedure; None when `call` is none."""
    if call.name.last.casefold() == "purge":
        return purge(context, purge_call(context, call))
    if call.name.last.casefold() == "fast_forward":
        return fast_forward(context, call)
    procedure = _PROCEDURES.get(call.name.last.casefold().removeprefix(_PREFIX))
    if procedure is None:
        return None
    check_alone(context, str(call.name))
    made = _bound(context, call, procedure)
    maintenance_of(context, made.alias, str(call.name))
    return procedure.run(made)


def _bound(context: Context, call: Call, procedure: _Procedure) -> _Call:
    positional = [query.constant(context, argument) for argument in call.arguments]
    catalog = call.name.parts[0] if len(call.name.parts) > 1 else positional.pop(0) if positional else None
    if not isinstance(catalog, str):
        raise ProgrammingError(f"{call.name} needs the catalog's name as its first argument")
    if len(positional) > len(procedure.positional):
        allowed = ", ".join(procedure.positional) or "none besides the catalog"
        raise ProgrammingError(f"{call.name} takes these arguments by position: {allowed}; name the others")
    arguments: dict[str, Any] = dict(zip(procedure.positional, positional, strict=False))
    known = (*procedure.positional, *procedure.named)
    for name, argument in call.named:
        if name.casefold() not in known:
            raise ProgrammingError(f"{call.name} has no argument {name!r}; it has: {', '.join(known)}")
        arguments[name.casefold()] = query.constant(context, argument)
    return _Call(context, str(call.name), query.resolve_catalog(context, catalog), arguments)


def _flush_inlined_data(call: _Call) -> Result:
    ids = call.tables("schema_name")
    return flushed([done for id in ids if (done := settle(call.context, call.alias, id, flush)) is not None])


def _merge_adjacent_files(call: _Call) -> Result:
    limits = MergeLimits(
        call.number("min_file_size") or 0, call.number("max_file_size"), call.number("max_compacted_files")
    )
    done = (settle(call.context, call.alias, id, lambda table: merge(table, limits)) for id in call.tables())
    return compacted([part for part in done if part is not None])


def _rewrite_data_files(call: _Call) -> Result:
    threshold = call.fraction("delete_threshold")
    done = (settle(call.context, call.alias, id, lambda table: rewrite(table, threshold)) for id in call.tables())
    return compacted([part for part in done if part is not None])


def _expire_snapshots(call: _Call) -> Result:
    infos = retention.expire(
        call.context,
        call.catalog,
        call.maintenance,
        call.numbers("versions"),
        call.instant("older_than"),
        dry_run=call.flag("dry_run"),
    )
    return snapshots(infos)


def _cleanup_old_files(call: _Call) -> Result:
    return paths(call.maintenance.cleanup(_cutoff(call), dry_run=call.flag("dry_run")))


def _delete_orphaned_files(call: _Call) -> Result:
    return paths(call.maintenance.remove_orphans(_cutoff(call), dry_run=call.flag("dry_run")))


def _cutoff(call: _Call) -> datetime | None:
    return retention.file_cutoff(
        call.context, call.catalog, call.name, call.flag("cleanup_all"), call.instant("older_than")
    )


@dataclass(frozen=True)
class _Procedure:
    """`positional` arguments follow the catalog, and can be named as well."""

    run: Callable[[_Call], Result]
    positional: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


_FILE_SIZES = ("max_compacted_files", "max_file_size", "min_file_size")
_AGE = ("dry_run", "cleanup_all", "older_than")

_PROCEDURES: Mapping[str, _Procedure] = {
    "flush_inlined_data": _Procedure(_flush_inlined_data, (), ("table_name", "schema_name")),
    "merge_adjacent_files": _Procedure(_merge_adjacent_files, ("table_name",), ("schema", *_FILE_SIZES)),
    "rewrite_data_files": _Procedure(_rewrite_data_files, ("table_name",), ("schema", "delete_threshold")),
    "expire_snapshots": _Procedure(_expire_snapshots, (), ("dry_run", "versions", "older_than")),
    "cleanup_old_files": _Procedure(_cleanup_old_files, (), _AGE),
    "delete_orphaned_files": _Procedure(_delete_orphaned_files, (), _AGE),
}
