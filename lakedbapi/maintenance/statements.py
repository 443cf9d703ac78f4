"""CHECKPOINT, OPTIMIZE, REORG and VACUUM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.engine.base import Result, TableResult
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.maintenance import retention
from lakedbapi.maintenance.compaction import (
    Chooser,
    CompactionLimits,
    Done,
    Mask,
    MergeLimits,
    anything,
    cluster,
    compact,
    merge,
    rewrite,
)
from lakedbapi.maintenance.flush import flush
from lakedbapi.maintenance.results import SUCCESS, paths
from lakedbapi.maintenance.scope import Subject, check_alone, maintenance_of, settle, tables
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.instants import ago
from lakedbapi.model.scan import most_deleted
from lakedbapi.model.types import List, Map, Struct
from lakedbapi.query import constant, prune, resolve_catalog, resolve_table
from lakedbapi.sql.statements import Checkpoint, Name, Optimize, Reorg, Vacuum

_DELETED_FRACTION = 0.05
"""Of a file's rows: from there on OPTIMIZE writes it anew."""
_DELETE_FILES = 5
"""Of one data file: from there on OPTIMIZE writes it anew, since every read has to open them all."""


def checkpoint(context: Context, statement: Checkpoint) -> Result:
    """All maintenance of a catalog by its options, in DuckLake's order: what comes first makes work for the next."""
    check_alone(context, "CHECKPOINT")
    alias, name = _to_checkpoint(context, statement)
    maintenance = maintenance_of(context, alias, "CHECKPOINT")
    catalog = context.transaction.catalogs[alias]
    ids = tables(context, alias, name)
    if catalog.capabilities.table_versions:
        for id in ids:
            settle(context, alias, id, lambda found: found.maintenance.checkpoint(found.base, found.table))
        return SUCCESS
    for id in ids:
        settle(context, alias, id, flush)
    retention.expire(context, catalog, maintenance, None, None, dry_run=False)
    for id in ids:
        settle(context, alias, id, lambda table: merge(table, MergeLimits()))
    for id in ids:
        settle(context, alias, id, rewrite)
    cutoff = retention.option_cutoff(context, catalog, retention.DELETE_OPTION)
    maintenance.cleanup(cutoff)
    maintenance.remove_orphans(cutoff)
    return SUCCESS


def _to_checkpoint(context: Context, statement: Checkpoint) -> tuple[str, Name | None]:
    """The catalog, and the table if one is named."""
    name = statement.name
    if name is None:
        return resolve_catalog(context, context.search_path[0]), None
    is_catalog = name.last.casefold() in (alias.casefold() for alias in context.transaction.catalogs)
    if not statement.is_table and len(name.parts) == 1 and is_catalog:
        return resolve_catalog(context, name.last), None
    alias = resolve_table(context, name).alias
    if not context.transaction.catalogs[alias].capabilities.table_versions:
        raise ProgrammingError(
            f"CHECKPOINT {name}: tables of catalog {alias!r} have no checkpoints of their own: CHECKPOINT {alias} looks"
            f" after all of them, OPTIMIZE {name} after one"
        )
    return alias, name


@dataclass(frozen=True)
class OptimizeOptions:
    """What is worth to be written anew, besides files that lost many rows: `min_files` small ones of less than
    `target_size` bytes (None: the table's option), those about which there are so many delete files, `all_files`."""

    target_size: int | None = None
    min_files: int = 2
    delete_files: int = _DELETE_FILES
    all_files: bool = False


def optimize(context: Context, statement: Optimize, options: OptimizeOptions | None = None) -> Result:
    """Files of which rows were deleted are written anew, small ones together; one row tells what that did.

    With an order all files are written anew. NotSupportedError for `options` of formats that do all of it in steps.
    """
    check_alone(context, "OPTIMIZE")
    alias, _, schema, table = resolve_table(context, statement.name)
    maintenance = maintenance_of(context, alias, "OPTIMIZE")
    chosen, predicate = _files(table, f"OPTIMIZE {statement.name}", statement.where)
    order = _columns(table, statement)

    worth = options or OptimizeOptions()
    limits = CompactionLimits(worth.target_size, worth.min_files)

    def worn(subject: Subject, files: pa.Table) -> Mask:
        return chosen(subject, files) & (worth.all_files or _worn(subject, files, worth.delete_files))

    work: Sequence[Callable[[Subject], Done | None]]
    if order:
        work = [lambda subject: cluster(subject, order, chosen, predicate)]
    elif maintenance.merges_in_history:
        if options is not None:
            raise NotSupportedError(
                f"tables of catalog {alias!r} are optimized without options: set the options of the catalog, such as "
                "target_file_size and rewrite_delete_threshold"
            )
        work = [lambda subject: rewrite(subject, 0, worn), lambda subject: merge(subject, MergeLimits(), chosen)]
    else:
        work = [lambda subject: compact(subject, worn, chosen, predicate, limits)]
    done = [part for part in (settle(context, alias, table.id, step) for step in work) if part is not None]
    return _optimized(schema.name, table.name, done)


def reorg(context: Context, statement: Reorg) -> Result:
    """Files that have deleted rows are written anew without them; the result is that of OPTIMIZE."""
    check_alone(context, "REORG TABLE")
    alias, _, schema, table = resolve_table(context, statement.name)
    maintenance_of(context, alias, "REORG TABLE")
    chosen, predicate = _files(table, f"REORG TABLE {statement.name}", statement.where)
    done = settle(context, alias, table.id, lambda found: rewrite(found, 0, chosen, kind="reorg", predicate=predicate))
    return _optimized(schema.name, table.name, [] if done is None else [done])


def _columns(table: TableInfo, statement: Optimize) -> tuple[str, ...]:
    """The columns to cluster by, as the table spells them."""
    keys = {key.field_id for key in table.partitioning.fields} if table.partitioning else set()
    columns = []
    for name in statement.order:
        field = table.schema.get(name)
        if field is None:
            raise ProgrammingError(f"OPTIMIZE {statement.name}: table {table.name} has no column {name}")
        if field.id in keys:
            raise ProgrammingError(
                f"OPTIMIZE {statement.name}: {name} partitions the table already, so ZORDER BY it would change nothing"
            )
        if isinstance(field.type, (Struct, List, Map)):
            raise ProgrammingError(f"OPTIMIZE {statement.name}: ZORDER BY {name}, which has parts: name plain columns")
        columns.append(field.name)
    return tuple(dict.fromkeys(columns))


def _files(table: TableInfo, verb: str, where: exp.Expression | None) -> tuple[Chooser, str | None]:
    """The files that partition values and statistics do not prove to be without rows that match, and the condition as
    text."""
    if where is None:
        return anything, None
    for column in where.find_all(exp.Column):
        if table.schema.get(column.name) is None:
            raise ProgrammingError(f"{verb}: table {table.name} has no column {column.name}")

    def choose(subject: Subject, files: pa.Table) -> Mask:
        return prune(subject.context, subject.view.contents(subject.table), where, subject.table.name).keep

    return choose, where.sql(dialect="duckdb")


def _worn(subject: Subject, files: pa.Table, delete_files: int) -> Mask:
    """Files that are slow to read, by the counts in the catalog."""
    deleted, records = most_deleted(files), files.column("record_count").to_numpy()
    owners = pc.value_counts(subject.base.delete_files(subject.table).column("data_file").combine_chunks())
    often = owners.field("values").filter(pc.greater_equal(owners.field("counts"), delete_files))
    many: Mask = pc.is_in(files.column("path"), often).to_numpy()
    worn: Mask = (deleted >= _DELETED_FRACTION * records) | many
    return worn


def _optimized(schema: str, table: str, done: Sequence[Done]) -> Result:
    counts = ("files_added", "files_removed", "bytes_added", "bytes_removed", "deletes_removed")
    columns = {"schema_name": pa.array([schema]), "table_name": pa.array([table])}
    columns |= {name: pa.array([sum(getattr(part, name) for part in done)], pa.int64()) for name in counts}
    return TableResult(pa.table(columns), ["VARCHAR"] * 2 + ["BIGINT"] * len(counts))


def vacuum(context: Context, statement: Vacuum) -> Result:
    """Files that only versions older than the retention needed are removed; the result has their paths."""
    check_alone(context, "VACUUM")
    if statement.name is None:
        alias, table = resolve_catalog(context, context.search_path[0]), None
    else:
        alias, _, _, table = resolve_table(context, statement.name)
    maintenance = maintenance_of(context, alias, "VACUUM")
    cutoff = _cutoff(context, statement, maintenance.retention(table))
    if statement.age is not None:
        maintenance.check_cutoff(table, cutoff)
    # A short retention is about versions; writers at work need their time all the same.
    grace = retention.option_cutoff(context, context.transaction.catalogs[alias], retention.DELETE_OPTION)
    return paths(maintenance.vacuum(table, cutoff, min(cutoff, grace or cutoff), dry_run=statement.dry_run))


def _cutoff(context: Context, statement: Vacuum, usual: str) -> datetime:
    if statement.age is None:
        return retention.ago(context, usual, "the retention of VACUUM")
    given: Any = constant(context, statement.age)
    try:
        age = float(given) * (3_600_000 if statement.unit == "hours" else 86_400_000)
    except (TypeError, ValueError, OverflowError):
        age = -1
    if not age >= 0:
        unit = statement.unit
        raise ProgrammingError(f"VACUUM RETAIN {given} {unit.upper()}: give a number of {unit}, 0 or more")
    return ago(age)
