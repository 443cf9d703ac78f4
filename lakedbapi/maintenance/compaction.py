"""Compaction: which data files are worth it, told from the counts in the catalog, and how the engine rewrites them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.dml.writing import option, write_options
from lakedbapi.engine.base import PART, ROW_ID, ROW_SNAPSHOT, Query, RelationName, ScanRelation, WriteOptions
from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.maintenance import MERGE, REWRITE, Compacted, CompactionGroup
from lakedbapi.maintenance.scope import Subject, removing
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.scan import Scan
from lakedbapi.model.sql_types import quote_identifier

Mask = npt.NDArray[np.bool_]
Chooser = Callable[[Subject, pa.Table], Mask]
"""Which of a table's data files may be compacted."""


@dataclass(frozen=True)
class Done:
    """What a compaction did to one table. `deletes_removed`: deleted rows that the new files are without."""

    schema: str
    table: str
    files_removed: int
    files_added: int
    bytes_removed: int
    bytes_added: int
    deletes_removed: int


@dataclass(frozen=True)
class MergeLimits:
    """Bytes of a file that is still to be merged, and how many files a table may get by one call."""

    min_file_size: int = 0
    max_file_size: int | None = None
    max_created: int | None = None


def anything(subject: Subject, files: pa.Table) -> Mask:
    return np.ones(files.num_rows, np.bool_)


def merge(subject: Subject, limits: MergeLimits, chosen: Chooser = anything) -> Done | None:
    """Make one file of small ones that have no deletes. None if there are none to merge."""
    files = subject.base.files(subject.table)
    target_size = _options(subject).target_file_size or 0
    largest = target_size if limits.max_file_size is None else min(limits.max_file_size, target_size)
    sizes = files.column("file_size_bytes").fill_null(largest).to_numpy()
    small = (sizes >= limits.min_file_size) & (sizes < largest) & (files.column("deleted_count").to_numpy() == 0)
    files = files.filter(pa.array(small & chosen(subject, files)))
    if files.num_rows < 2:
        return None
    groups = subject.maintenance.groups(subject.base, subject.table, files, MERGE)
    bins = [part for group in groups for part in _bins(group, target_size)]
    return _compact(subject, MERGE, bins[: limits.max_created])


def rewrite(subject: Subject, threshold: float | None = None, chosen: Chooser = anything) -> Done | None:
    """Write files anew of which at least this fraction of the rows is deleted (default: the table's option).

    None if there are none.
    """
    threshold = delete_threshold(subject) if threshold is None else threshold
    files = subject.base.files(subject.table)
    deleted, records = (files.column(name).to_numpy() for name in ("deleted_count", "record_count"))
    worth = (deleted > 0) & (deleted >= threshold * records)
    files = files.filter(pa.array(worth & chosen(subject, files)))
    if not files.num_rows:
        return None
    return _compact(subject, REWRITE, subject.maintenance.groups(subject.base, subject.table, files, REWRITE))


def delete_threshold(subject: Subject) -> float:
    """The fraction from which the table's files are worth to be rewritten, by its options."""
    text = option(subject.view.catalog, subject.table, "rewrite_delete_threshold") or "0.95"
    try:
        return float(text)
    except ValueError:
        raise ProgrammingError(f"rewrite_delete_threshold of {subject.table.name} is {text!r}: set a number") from None


def _bins(group: CompactionGroup, target_size: int) -> Iterator[CompactionGroup]:
    """Runs of at least two files that together are about as large as a file should be."""
    sizes = group.files.column("file_size_bytes").fill_null(0).to_numpy()
    start, total = 0, 0
    for number, size in enumerate(sizes.tolist()):
        total += size
        if total >= target_size or number == len(sizes) - 1:
            if number > start:
                yield replace(group, files=group.files.slice(start, number + 1 - start))
            start, total = number + 1, 0


def _compact(subject: Subject, kind: str, groups: Sequence[CompactionGroup]) -> Done | None:
    if not groups:
        return None
    report = subject.steps(f"{kind} {subject.schema.name}.{subject.table.name}", _total(groups, None), "files")
    paths: list[str] = []
    compacted = []
    with removing(subject, paths):
        for group in groups:
            written = _write(subject, kind, group)
            paths += [file.path for file in written]
            compacted.append(Compacted(group, written))
            report(group.files.num_rows)
        subject.maintenance.compact(subject.base, subject.table, kind, compacted)
    return Done(
        subject.schema.name,
        subject.table.name,
        files_removed=_total(groups, None),
        files_added=len(paths),
        bytes_removed=_total(groups, "file_size_bytes"),
        bytes_added=sum(file.file_size_bytes for part in compacted for file in part.written),
        deletes_removed=_total(groups, "deleted_count"),
    )


def _total(groups: Sequence[CompactionGroup], column: str | None) -> int:
    """The sum of a column of the groups' files; without one, their number."""
    if column is None:
        return sum(group.files.num_rows for group in groups)
    return sum(int(pc.sum(group.files.column(column), min_count=0).as_py()) for group in groups)


def _options(subject: Subject) -> WriteOptions:
    return write_options(subject.view.catalog, subject.schema, subject.table)


def _write(subject: Subject, kind: str, group: CompactionGroup) -> tuple[WrittenFile, ...]:
    """The live rows of the group's files in new ones, in the folder of the old."""
    table = group.table
    groups = subject.base.file_groups(table, group.files)
    live = int(
        np.sum(group.files.column("record_count").to_numpy()) - np.sum(group.files.column("deleted_count").to_numpy())
    )
    if not live:
        return ()
    options = write_options(subject.view.catalog, subject.schema, table)
    options = replace(
        options,
        directory=_directory(options.directory, group.files.column("path")[0].as_py()),
        partitioning=None,
        # Rows that are to stay visible in old snapshots lie in one file, whatever its size.
        target_file_size=None if kind == MERGE else options.target_file_size,
    )
    written = subject.context.engine.write(
        _query(subject, kind, group, Scan(table.schema, tuple(groups))),
        table.schema,
        options,
        row_ids=True,
        row_snapshots=kind == MERGE,
    )
    partition = group.partition_values if group.partition_id is not None else ()
    return tuple(replace(file, partition_id=group.partition_id, partition_values=partition) for file in written)


def _directory(table_directory: str, path: str) -> str:
    """The folder of a file, if it is one of the table's."""
    return path[: path.rindex("/") + 1] if path.startswith(table_directory) else table_directory


def _query(subject: Subject, kind: str, group: CompactionGroup, scan: Scan) -> Query:
    """The rows with their ids, and for a merge the first snapshot that sees each."""
    names = {kind: _unused(group, name) for kind, name in _EXTRA.items()}
    columns = [quote_identifier(field.name) for field in scan.schema.fields]
    columns.append(names[ROW_ID])
    if kind == MERGE:
        # Files of a rewrite are younger than the snapshots that may be embedded for their rows.
        begins = [begin for files in scan.files for begin in files.files.column("snapshot_id").to_pylist()]
        columns.append(f"greatest({names[ROW_SNAPSHOT]}, ({begins})[{names[PART]} + 1])")
    relation = RelationName(subject.view.alias, subject.schema.name, "_lake_compacted")
    sql = f"SELECT {', '.join(columns)} FROM {'.'.join(map(quote_identifier, relation))}"
    return Query(sql, {relation: ScanRelation(scan, names)}, search_path=subject.context.search_path)


_EXTRA = {ROW_ID: "_lake_row_id", ROW_SNAPSHOT: "_lake_row_snapshot", PART: "_lake_part"}


def _unused(group: CompactionGroup, name: str) -> str:
    while group.table.schema.get(name) is not None:
        name += "_"
    return name
