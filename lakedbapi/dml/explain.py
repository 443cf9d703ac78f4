"""EXPLAIN of DML: which files are read, and what happens to those that lose rows. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lakedbapi.context import Context
from lakedbapi.dml.delete import count_rows, drop_files, matching, reading, whole_files
from lakedbapi.dml.merge import merging
from lakedbapi.dml.namesakes import told_apart
from lakedbapi.dml.new_rows import MEMORY_LIMIT
from lakedbapi.dml.strategy import Policy, touched
from lakedbapi.dml.target import Target
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.query.prune import prune
from lakedbapi.sql.statements import Delete, Insert, Merge, Truncate, Update
from lakedbapi.transaction import Parts

_MOST_FILES = 100
"""Of more files than this the rest is only counted."""


def explain(context: Context, statement: Insert | Update | Delete | Merge | Truncate) -> list[str]:
    """One line a fact. The condition is evaluated, as only its matches tell what happens to a file."""
    if isinstance(statement, (Update, Delete, Merge)):
        statement = told_apart(context, statement)
    alias = None if isinstance(statement, Truncate) else statement.alias
    target = Target.of(context, statement.target, alias)
    verb = type(statement).__name__.upper()
    return [f"{verb} {target.qualified_name}", *(f"  {line}" for line in _lines(target, statement))]


def _lines(target: Target, statement: Insert | Update | Delete | Merge | Truncate) -> Iterator[str]:
    count = target.contents.files.num_rows
    if isinstance(statement, Insert):
        yield f"new rows stay in memory until the commit, more than {MEMORY_LIMIT >> 20} MiB go to data files at once"
        if statement.on_conflict is not None:
            yield f"files: {count:,} read to find conflicts"
        return
    if isinstance(statement, Truncate) or (isinstance(statement, Delete) and _is_everything(statement)):
        yield f"files: {count:,} dropped whole, none read"
        yield f"rows: {count_rows(target):,} deleted"
        return
    if isinstance(statement, Merge):
        plan = merging(target, statement)
        found, parts = plan.touched()
        keep, whole = plan.keep, np.zeros(count, np.bool_)
    else:
        target, where = reading(target, _as_delete(statement))
        pruning = prune(target.context, target.contents, where.where, target.name)
        whole = whole_files(target, where, pruning) & isinstance(statement, Delete)
        keep = pruning.keep & ~whole
        scan, parts = target.contents.scan(keep)
        found = matching(target, where, scan, parts)
    yield from _touched_lines(target, found, parts, keep, whole, type(statement).__name__.lower())


def _is_everything(statement: Delete) -> bool:
    return statement.where is None and not statement.source and not statement.returning


def _as_delete(statement: Update | Delete) -> Delete:
    """A DELETE of the rows that the statement touches."""
    if isinstance(statement, Delete):
        return replace(statement, returning=())
    return Delete(
        statement.target,
        statement.alias,
        statement.source,
        statement.where,
        ctes=statement.ctes,
        identifiers=statement.identifiers,
        specials=statement.specials,
    )


def _touched_lines(
    target: Target,
    positions: Mapping[int, DeleteVector],
    parts: Parts,
    keep: npt.NDArray[np.bool_],
    whole: npt.NDArray[np.bool_],
    kind: str,
) -> Iterator[str]:
    count, read, dropped = len(keep), int(keep.sum()), int(whole.sum())
    yield f"files: {count:,} live, {count - read - dropped:,} pruned, {dropped:,} dropped whole unread, {read:,} read"
    unread = int(target.live_counts[whole].sum())
    matched = sum(map(len, positions.values()))
    yield f"rows: {matched + unread:,} matched" + (f", {unread:,} of them unread" if unread else "")
    changes = drop_files(target, target.contents.delete(parts, positions), whole)
    gone = len(changes.removed - target.contents.rows.removed) - dropped
    if gone:
        yield f"files: {gone:,} more dropped whole, since no row is left"
    found, policy = touched(target, changes, kind), Policy.of(target, kind)
    arrays = (found.records, found.live, found.rewritten, found.overlooked)
    files = zip(found.paths, *(array.tolist() for array in arrays), strict=True)
    for path, records, live, rewritten, overlooked in list(files)[:_MOST_FILES]:
        yield f"{path}: {records - live:,} of {records:,} rows gone: {policy.reason(rewritten, overlooked)}"
    if len(found.paths) > _MOST_FILES:
        yield f"… and {len(found.paths) - _MOST_FILES:,} more files"
