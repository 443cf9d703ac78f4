"""Procedures of CALL: DuckLake's, with its arguments and result columns, and Spark's for one table, by `table`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from sqlglot import exp

from lakedbapi import query
from lakedbapi.context import Context
from lakedbapi.engine.base import Result
from lakedbapi.errors import OperationalError, ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.formats.maintenance import Maintenance
from lakedbapi.maintenance import retention
from lakedbapi.maintenance.compaction import MergeLimits, merge, rewrite
from lakedbapi.maintenance.flush import flush
from lakedbapi.maintenance.names import called_table, catalog_of, names_system
from lakedbapi.maintenance.purge import purge, purge_call
from lakedbapi.maintenance.refs import fast_forward
from lakedbapi.maintenance.results import compacted, counts, flushed, paths, snapshots
from lakedbapi.maintenance.scope import Subject, check_alone, maintenance_of, settle, tables
from lakedbapi.maintenance.statements import OptimizeOptions, optimize
from lakedbapi.query.travel import instant
from lakedbapi.sql.expressions import parse_expression
from lakedbapi.sql.statements import Call, Name, Optimize

_PREFIX = "ducklake_"
TABLE = "table"
"""The argument that procedures of Spark have for a table's name, which may be qualified."""
_FLAGS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
T = TypeVar("T")


@dataclass(frozen=True)
class _Call:
    """A call with its arguments computed; `alias` is the catalog."""

    context: Context
    name: str
    alias: str
    arguments: Mapping[str, Any]
    table: Name | None = None
    """The one that the argument `table` names."""

    @property
    def catalog(self) -> Catalog:
        return self.context.transaction.catalogs[self.alias]

    @property
    def maintenance(self) -> Maintenance:
        return self.catalog.maintenance

    def tables(self, schema_argument: str = "schema") -> Sequence[int]:
        """Ids of the tables that the arguments choose."""
        if self.table is not None:
            return tables(self.context, self.alias, self.table)
        schema, table = self.arguments.get(schema_argument), self.arguments.get("table_name")
        if table is None:
            return tables(self.context, self.alias, None, schema)
        schema = str(schema or _current(self.context, self.alias))
        return tables(self.context, self.alias, Name((self.alias, schema, str(table))))

    def settled(self, work: Callable[[Subject], T]) -> T:
        """Work on the table that is named."""
        if self.table is None:
            raise ProgrammingError(f"{self.name} needs a table: {self.name}(table => 't')")
        id = query.resolve_table(self.context, self.table).table.id
        done = settle(self.context, self.alias, id, work)
        if done is None:
            raise OperationalError(f"{self.name}: table {self.table} was dropped meanwhile")
        return done

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

    def number(self, argument: str, least: int | None = None) -> int | None:
        found = self._converted(argument, int, "whole number")
        if found is not None and least is not None and found < least:
            raise ProgrammingError(f"{self.name}: {argument} is {found}; give {least} or more")
        return found

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
    names = procedure.positional
    if names_system(call) and names[:1] == ("table_name",):
        names = (TABLE,)
    named = {name.casefold(): query.constant(context, argument) for name, argument in call.named}
    catalog = catalog_of(call)
    if catalog is None and positional and not names_system(call):
        catalog = positional.pop(0)
    if len(positional) > len(names):
        allowed = ", ".join(names) or "none besides the catalog"
        raise ProgrammingError(f"{call.name} takes these arguments by position: {allowed}; name the others")
    known = tuple(dict.fromkeys((*procedure.positional, *procedure.named)))
    for name in named:
        if name not in known:
            raise ProgrammingError(f"{call.name} has no argument {name!r}; it has: {', '.join(known)}")
    arguments: dict[str, Any] = {**dict(zip(names, positional, strict=False)), **named}
    table = None if arguments.get(TABLE) is None else called_table(context, call, str(arguments[TABLE]))
    if catalog is None and table is not None:
        return _Call(context, str(call.name), query.resolve_table(context, table).alias, arguments, table)
    if not isinstance(catalog, str):
        otherwise = f", or {TABLE} => 't'" if TABLE in known else ""
        raise ProgrammingError(f"{call.name} needs the catalog's name as its first argument{otherwise}")
    alias = query.resolve_catalog(context, catalog)
    if table is not None and catalog_of(call) is None:
        table = Name((alias, table.parts[-2] if len(table.parts) > 1 else _current(context, alias), table.last))
    return _Call(context, str(call.name), alias, arguments, table)


def _current(context: Context, alias: str) -> str:
    return context.search_path[1] if context.search_path[0] == alias else "main"


def _flush_inlined_data(call: _Call) -> Result:
    ids = call.tables("schema_name")
    return flushed([done for id in ids if (done := settle(call.context, call.alias, id, flush)) is not None])


def _merge_adjacent_files(call: _Call) -> Result:
    limits = MergeLimits(
        call.number("min_file_size", least=0) or 0,
        call.number("max_file_size", least=1),
        call.number("max_compacted_files", least=1),
    )
    if limits.max_file_size is not None and limits.min_file_size >= limits.max_file_size:
        raise ProgrammingError(
            f"{call.name}: no file is of at least {limits.min_file_size} and less than {limits.max_file_size} bytes"
        )
    done = (settle(call.context, call.alias, id, lambda table: merge(table, limits)) for id in call.tables())
    return compacted([part for part in done if part is not None])


def _rewrite_data_files(call: _Call) -> Result:
    if call.table is not None:
        others = call.arguments.keys() - {TABLE, *_OF_ONE_TABLE}
        if others:
            raise ProgrammingError(
                f"{call.name}: with {TABLE} it is OPTIMIZE {call.table}, with {' and '.join(_OF_ONE_TABLE)}; leave "
                f"{', '.join(sorted(others))} out"
            )
        return optimize(call.context, Optimize(call.table, _condition(call)), _rewrite_options(call))
    given = call.arguments.keys() & set(_OF_ONE_TABLE)
    if given:
        raise ProgrammingError(f"{call.name}: {min(given)} is about one table: give {TABLE} => 't', too")
    threshold = call.fraction("delete_threshold")
    if threshold is not None and not 0 <= threshold <= 1:
        raise ProgrammingError(f"{call.name}: delete_threshold is {threshold}; give a fraction from 0 to 1")
    done = (settle(call.context, call.alias, id, lambda table: rewrite(table, threshold)) for id in call.tables())
    return compacted([part for part in done if part is not None])


def _condition(call: _Call) -> exp.Expression | None:
    """`where`, which is text."""
    text = call.arguments.get("where")
    if text is None:
        return None
    tree = parse_expression(str(text))
    if tree is None or tree.find(exp.Query) is not None:
        raise ProgrammingError(f"{call.name}: where is {text!r}, which compares no columns of the table with constants")
    return tree


def _rewrite_options(call: _Call) -> OptimizeOptions | None:
    given = call.arguments.get("options")
    if given is None:
        return None
    if not isinstance(given, list):
        raise ProgrammingError(f"{call.name}: options are {given!r}; write MAP {{'min-input-files': '5'}}")
    options = replace(call, name=f"{call.name}, options", arguments=dict(given))
    unknown = sorted(options.arguments.keys() - {*_REWRITE_NUMBERS, _REWRITE_ALL})
    if unknown:
        known = ", ".join((*_REWRITE_NUMBERS, _REWRITE_ALL))
        raise ProgrammingError(f"{call.name} has no option {unknown[0]!r}; it has: {known}")
    numbers: dict[str, int] = {}
    for name, meaning in _REWRITE_NUMBERS.items():
        value = options.number(name)
        if value is not None and value < 1:
            raise ProgrammingError(f"{options.name}: {name} is {value}; give 1 or more")
        if value is not None:
            numbers[meaning] = value
    return OptimizeOptions(**numbers, all_files=options.flag(_REWRITE_ALL))


def _rewrite_manifests(call: _Call) -> Result:
    done = call.settled(lambda found: found.maintenance.rewrite_manifests(found.base, found.table))
    return counts(rewritten_manifests_count=done.removed, added_manifests_count=done.added)


def _rewrite_delete_files(call: _Call) -> Result:
    done = call.settled(lambda found: found.maintenance.rewrite_delete_files(found.base, found.table))
    return counts(rewritten_delete_files_count=done.removed, added_delete_files_count=done.added)


def _expire_snapshots(call: _Call) -> Result:
    versions, ids = call.numbers("versions"), call.numbers("snapshot_ids")
    if versions is not None and ids is not None:
        raise ProgrammingError(f"{call.name}: versions and snapshot_ids are the same: give one")
    versions = ids if versions is None else versions
    older_than = call.instant("older_than")
    retain_last, dry_run = call.number("retain_last"), call.flag("dry_run")
    if call.table is not None:
        if versions is not None and (older_than is not None or retain_last is not None):
            raise ProgrammingError(f"{call.name}: versions are all that expires; leave older_than and retain_last out")
        if retain_last is not None and retain_last < 1:
            raise ProgrammingError(f"{call.name}: retain_last is {retain_last}; the newest snapshot always stays")
        expired = call.settled(
            lambda found: found.maintenance.expire_table(
                found.base, found.table, versions, older_than, retain_last, dry_run=dry_run
            )
        )
        return snapshots(expired.snapshots)
    if retain_last is not None:
        raise ProgrammingError(f"{call.name}: retain_last is about the snapshots of one table: give table => 't', too")
    infos = retention.expire(call.context, call.catalog, call.maintenance, versions, older_than, dry_run=dry_run)
    return snapshots(infos)


def _cleanup_old_files(call: _Call) -> Result:
    return paths(call.maintenance.cleanup(_cutoff(call), dry_run=call.flag("dry_run")))


def _delete_orphaned_files(call: _Call) -> Result:
    cutoff, dry_run = _cutoff(call), call.flag("dry_run")
    if call.table is None:
        return paths(call.maintenance.remove_orphans(cutoff, dry_run=dry_run))
    return paths(
        call.settled(lambda found: found.maintenance.remove_orphans(cutoff, table=found.table, dry_run=dry_run))
    )


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


_OF_ONE_TABLE = ("where", "options")
_REWRITE_NUMBERS = {
    "target-file-size-bytes": "target_size",
    "min-input-files": "min_files",
    "delete-file-threshold": "delete_files",
}
_REWRITE_ALL = "rewrite-all"
"""Spark's names of what `OptimizeOptions` has."""
_FILE_SIZES = ("max_compacted_files", "max_file_size", "min_file_size")
_AGE = ("dry_run", "cleanup_all", "older_than")

_PROCEDURES: Mapping[str, _Procedure] = {
    "flush_inlined_data": _Procedure(_flush_inlined_data, (), ("table_name", "schema_name")),
    "merge_adjacent_files": _Procedure(_merge_adjacent_files, ("table_name",), ("schema", *_FILE_SIZES)),
    "rewrite_data_files": _Procedure(
        _rewrite_data_files, ("table_name",), ("schema", "delete_threshold", TABLE, *_OF_ONE_TABLE)
    ),
    "rewrite_manifests": _Procedure(_rewrite_manifests, (TABLE,)),
    "rewrite_position_delete_files": _Procedure(_rewrite_delete_files, (TABLE,)),
    "expire_snapshots": _Procedure(
        _expire_snapshots, (TABLE, "older_than", "retain_last"), ("dry_run", "versions", "snapshot_ids")
    ),
    "cleanup_old_files": _Procedure(_cleanup_old_files, (), _AGE),
    "delete_orphaned_files": _Procedure(_delete_orphaned_files, (), (*_AGE, TABLE)),
    "remove_orphan_files": _Procedure(_delete_orphaned_files, (TABLE, "older_than"), _AGE),
}
