"""Compaction: which data files are worth it, told from the counts in the catalog, and how the engine rewrites them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.dml.writing import option, write_options
from lakedbapi.engine.base import PART, POSITION, ROW_ID, ROW_SNAPSHOT, Query, RelationName, ScanRelation, WriteOptions
from lakedbapi.errors import DataError, ProgrammingError
from lakedbapi.formats.maintenance import MERGE, REWRITE, Compacted, CompactionGroup
from lakedbapi.maintenance.scope import Subject, removing
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation, WrittenFile
from lakedbapi.model.scan import FileGroup, Scan, live_counts, most_deleted
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Schema

Mask = npt.NDArray[np.bool_]
Chooser = Callable[[Subject, pa.Table], Mask]
"""Which of a table's data files may be compacted."""

_FULL = 512_000_000
"""Bytes of a file that is full, where the table does not say so."""
_CLUSTERS = 16
"""Bits of the number that tells where a value lies among all of its column."""


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


@dataclass(frozen=True)
class CompactionLimits:
    """Bytes of a file (default: the table's option), and how many small ones are worth to be put together."""

    target_size: int | None = None
    min_files: int = 2


def anything(subject: Subject, files: pa.Table) -> Mask:
    return np.ones(files.num_rows, np.bool_)


def merge(subject: Subject, limits: MergeLimits, chosen: Chooser = anything) -> Done | None:
    """Make one file of small ones that have no deletes. None if there are none to merge."""
    files = subject.base.files(subject.table)
    target_size = _target_size(subject)
    largest = target_size if limits.max_file_size is None else min(limits.max_file_size, target_size)
    sizes = files.column("file_size_bytes").fill_null(largest).to_numpy()
    small = (sizes >= limits.min_file_size) & (sizes < largest) & (most_deleted(files) == 0)
    files = files.filter(pa.array(small & chosen(subject, files)))
    if files.num_rows < 2:
        return None
    kind = MERGE if subject.maintenance.merges_in_history else REWRITE
    groups = subject.maintenance.groups(subject.base, subject.table, files, kind)
    bins = [part for group in groups for part in _bins(group, target_size)]
    return _compact(subject, kind, bins[: limits.max_created], _optimize(subject))


def compact(
    subject: Subject,
    worn: Chooser,
    chosen: Chooser = anything,
    predicate: str | None = None,
    limits: CompactionLimits = CompactionLimits(),
) -> Done | None:
    """Make one file of small ones, and of those that are `worn`, which are written anew in any case: at once, where a
    format need not keep the two apart. Rows are clustered as the table asks for it."""
    maintenance, files = subject.maintenance, subject.base.files(subject.table)
    columns = tuple(maintenance.clustering(subject.base, subject.table))
    if columns:
        files = files.filter(pa.array(~maintenance.clustered_elsewhere(subject.base, subject.table, files)))
    target_size = limits.target_size or _target_size(subject)
    is_worn = worn(subject, files)
    small = files.column("file_size_bytes").fill_null(target_size).to_numpy() < target_size
    worn_ids = frozenset(files.column("file_id").filter(pa.array(is_worn)).to_pylist())
    files = files.filter(pa.array((small | is_worn) & chosen(subject, files)))
    groups = maintenance.groups(subject.base, subject.table, files, REWRITE)
    bins = [part for group in groups for part in _bins(group, target_size, worn_ids, limits.min_files)]
    operation = _optimize(subject, predicate, columns)
    return _compact(subject, REWRITE, bins, operation, target_size=limits.target_size)


def cluster(
    subject: Subject, columns: tuple[str, ...], chosen: Chooser = anything, predicate: str | None = None
) -> Done | None:
    """Write all files anew with rows that are alike in `columns` next to each other, partition by partition."""
    files = subject.base.files(subject.table)
    files = files.filter(pa.array(chosen(subject, files)))
    if not files.num_rows:
        return None
    groups = subject.maintenance.groups(subject.base, subject.table, files, REWRITE)
    return _compact(subject, REWRITE, groups, _optimize(subject, predicate, columns), target_size=_target_size(subject))


def _optimize(subject: Subject, predicate: str | None = None, order: tuple[str, ...] = ()) -> Operation:
    return Operation("optimize", subject.table.id, predicate, order=order)


def rewrite(
    subject: Subject,
    threshold: float | None = None,
    chosen: Chooser = anything,
    *,
    kind: str = "optimize",
    predicate: str | None = None,
) -> Done | None:
    """Write files anew of which at least this fraction of the rows is deleted (default: the table's option).

    None if there are none. `kind` is that of the operation.
    """
    threshold = delete_threshold(subject) if threshold is None else threshold
    files = subject.base.files(subject.table)
    deleted, records = most_deleted(files), files.column("record_count").to_numpy()
    worth = (deleted > 0) & (deleted >= threshold * records)
    files = files.filter(pa.array(worth & chosen(subject, files)))
    if not files.num_rows:
        return None
    return _compact(
        subject,
        REWRITE,
        subject.maintenance.groups(subject.base, subject.table, files, REWRITE),
        Operation(kind, subject.table.id, predicate),
        target_size=_target_size(subject),
    )


def delete_threshold(subject: Subject) -> float:
    """The fraction from which the table's files are worth to be rewritten, by its options."""
    text = option(subject.view.catalog, subject.table, "rewrite_delete_threshold") or "0.95"
    try:
        return float(text)
    except ValueError:
        raise ProgrammingError(f"rewrite_delete_threshold of {subject.table.name} is {text!r}: set a number") from None


def _bins(
    group: CompactionGroup, target_size: int, alone: frozenset[int] = frozenset(), least: int = 2
) -> Iterator[CompactionGroup]:
    """Runs of files which together are about as large as a file should be: of at least so many, or with one that may be
    `alone`."""
    sizes = group.files.column("file_size_bytes").fill_null(0).to_numpy()
    ids = group.files.column("file_id").to_pylist()
    start, total = 0, 0
    for number, size in enumerate(sizes.tolist()):
        total += size
        if total >= target_size or number == len(sizes) - 1:
            if number + 1 - start >= least or not alone.isdisjoint(ids[start : number + 1]):
                yield replace(group, files=group.files.slice(start, number + 1 - start))
            start, total = number + 1, 0


def _compact(
    subject: Subject,
    kind: str,
    groups: Sequence[CompactionGroup],
    operation: Operation,
    *,
    target_size: int | None = None,
) -> Done | None:
    """Each group goes to one file; with `target_size` to several of about so many bytes."""
    if not groups:
        return None
    report = subject.steps(f"{kind} {subject.schema.name}.{subject.table.name}", _total(groups, None), "files")
    paths: list[str] = []
    compacted = []
    with removing(subject, paths):
        for group in groups:
            written = _write(subject, kind, group, target_size, operation.order)
            paths += [file.path for file in written]
            compacted.append(Compacted(group, written))
            report(group.files.num_rows)
        subject.note(subject.maintenance.compact(subject.base, subject.table, kind, compacted, operation))
    return Done(
        subject.schema.name,
        subject.table.name,
        files_removed=_total(groups, None),
        files_added=len(paths),
        bytes_removed=_total(groups, "file_size_bytes"),
        bytes_added=sum(file.file_size_bytes for part in compacted for file in part.written),
        deletes_removed=_total(groups, "record_count") - sum(f.record_count for p in compacted for f in p.written),
    )


def _total(groups: Sequence[CompactionGroup], column: str | None) -> int:
    """The sum of a column of the groups' files; without one, their number."""
    if column is None:
        return sum(group.files.num_rows for group in groups)
    return sum(int(pc.sum(group.files.column(column), min_count=0).as_py()) for group in groups)


def _options(subject: Subject) -> WriteOptions:
    return write_options(subject.view.catalog, subject.schema, subject.table)


def _target_size(subject: Subject) -> int:
    return _options(subject).target_file_size or _FULL


def _write(
    subject: Subject, kind: str, group: CompactionGroup, target_size: int | None, order: Sequence[str]
) -> tuple[WrittenFile, ...]:
    """The live rows of the group's files in new ones, in the folder of the old."""
    table = group.table
    schema = _in_files(subject, table)
    groups = [
        subject.base.with_row_versions(table, files) or files for files in subject.base.file_groups(table, group.files)
    ]
    if not live_counts(group.files).any():
        return ()
    options = write_options(subject.view.catalog, subject.schema, table)
    options = replace(
        options,
        layout=group.layout or options.layout,
        directory=_directory(options.directory, group.files.column("path")[0].as_py()),
        partitioning=None,
        target_file_size=target_size,
        sort_by=() if order else options.sort_by,
    )
    scan = Scan(schema, tuple(groups))
    row_ids = options.layout.row_id_column is not None
    row_snapshots = kind == MERGE or group.layout is not None

    def write(*, row_ids: bool, adjoining: bool = False) -> tuple[WrittenFile, ...]:
        query = _query(subject, group, scan, order, row_ids=row_ids, row_snapshots=row_snapshots, adjoining=adjoining)
        return subject.context.engine.write(query, schema, options, row_ids=row_ids, row_snapshots=row_snapshots)

    written: tuple[WrittenFile, ...] | None = None
    if kind == MERGE and not options.sort_by and _adjoin(group.files) and subject.context.engine.keeps_order(scan):
        with suppress(DataError):  # Only reading tells whether files embed other row ids.
            written = write(row_ids=False, adjoining=True)
    if written is None:
        written = write(row_ids=row_ids)
    partition = group.partition_values if group.partition_id is not None else ()
    return tuple(replace(file, partition_id=group.partition_id, partition_values=partition) for file in written)


def _adjoin(files: pa.Table) -> bool:
    """Whether the row ids of each file begin where those of the file before it end, unless files embed other ones."""
    starts, counts = (files.column(name) for name in ("row_id_start", "record_count"))
    if starts.null_count:
        return False
    ends = starts.to_numpy() + counts.to_numpy()
    return bool((starts.to_numpy()[1:] == ends[:-1]).all())


def _in_files(subject: Subject, table: TableInfo) -> Schema:
    """The columns that data files have."""
    if table.partitioning is None or subject.view.catalog.file_layout(table).partition_columns:
        return table.schema
    keys = {key.field_id for key in table.partitioning.fields}
    return Schema(tuple(field for field in table.schema.fields if field.id not in keys))


def _directory(table_directory: str, path: str) -> str:
    """The folder of a file, if it is one of the table's."""
    return path[: path.rindex("/") + 1] if path.startswith(table_directory) else table_directory


def _query(
    subject: Subject,
    group: CompactionGroup,
    scan: Scan,
    order: Sequence[str],
    *,
    row_ids: bool,
    row_snapshots: bool,
    adjoining: bool,
) -> Query:
    """The rows, with their ids and with the first snapshot that sees each if asked for.

    With `adjoining` it is a DataError if a file embeds ids of rows.
    """
    names = {kind: _unused(group, name) for kind, name in _EXTRA.items()}
    columns = [quote_identifier(field.name) for field in scan.schema.fields]
    ids, snapshots = names[ROW_ID], names[ROW_SNAPSHOT]
    if row_snapshots and group.layout is None:
        # All files differ in these, and to look that up in a list costs less than what tells it in a scan.
        embedded = ids
        ids = f"coalesce({embedded}, {_of_file(scan, 'row_id_start', names[PART])} + {names[POSITION]})"
        # Files of a rewrite are younger than the snapshots that may be embedded for their rows.
        snapshots = f"greatest({snapshots}, {_of_file(scan, 'snapshot_id', names[PART])})"
        if adjoining:
            snapshots = f"CASE WHEN {embedded} IS NULL THEN {snapshots} ELSE error('rows have ids of their own') END"
        scan = replace(scan, files=tuple(map(_embedded_only, scan.files)))
    if row_ids:
        columns.append(ids)
    if row_snapshots:
        columns.append(snapshots)
    relation = RelationName.local("_lake_compacted")
    source = relation.sql
    if order:
        curve = _unused(group, "_lake_curve")
        source = f"(SELECT *, {_curve(order)} AS {curve} FROM {source}) ORDER BY {curve}"
    sql = f"SELECT {', '.join(columns)} FROM {source}"
    relations = {relation: ScanRelation(scan, names, in_order=not order)}
    return Query(sql, relations, search_path=subject.context.search_path)


def _of_file(scan: Scan, column: str, part: str) -> str:
    """SQL for the BIGINT that the file of a row has in a column of the file list; `part` is SQL for its number."""
    values = [value for files in scan.files for value in files.files.column(column).to_pylist()]
    if values == list(range(values[0] or 0, (values[0] or 0) + len(values))):
        return f"({part} + {values[0]})"  # A statement after the other wrote one each.
    listed = ", ".join("NULL" if value is None else str(value) for value in values)
    return f"CAST([{listed}] AS BIGINT[])[{part} + 1]"


def _embedded_only(files: FileGroup) -> FileGroup:
    """The files with no other row ids and snapshots of rows than embedded ones."""
    listed = files.files
    for name in ("row_id_start", "snapshot_id"):
        place = listed.schema.get_field_index(name)
        listed = listed.set_column(place, listed.schema.field(place), pa.nulls(listed.num_rows, pa.int64()))
    return replace(files, files=listed)


def _curve(columns: Sequence[str]) -> str:
    """SQL for where a row lies on the Z-order curve: the bits of where its values lie among all, interleaved."""
    bits = min(_CLUSTERS, 62 // len(columns))
    ranks = [f"(ntile({1 << bits}) OVER (ORDER BY {quote_identifier(name)}) - 1)" for name in columns]
    terms = [
        f"((({rank} >> {bit}) & 1) << {bit * len(columns) + len(columns) - 1 - number})"
        for number, rank in enumerate(ranks)
        for bit in range(bits)
    ]
    return " + ".join(terms)


_EXTRA = {
    ROW_ID: "_lake_row_id",
    ROW_SNAPSHOT: "_lake_row_snapshot",
    PART: "_lake_part",
    POSITION: "_lake_position",
}


def _unused(group: CompactionGroup, name: str) -> str:
    while group.table.schema.get(name) is not None:
        name += "_"
    return name
