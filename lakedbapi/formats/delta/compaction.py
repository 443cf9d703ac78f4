"""Compaction: rows move to other files, in a commit that changes none (protocol, "Add File", `dataChange`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakedbapi.formats.base import CommitResult
from lakedbapi.formats.delta import texts
from lakedbapi.formats.delta.commit import TableCommit
from lakedbapi.formats.delta.plan import Plan
from lakedbapi.formats.delta.snapshot import DeltaSnapshot
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.maintenance import Compacted, CompactionGroup
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation, RowChanges, StagedFile

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog


def compaction_groups(
    catalog: DeltaCatalog, state: TableState, table: TableInfo, files: pa.Table
) -> Sequence[CompactionGroup]:
    """See `Maintenance.groups`. Files of a partition have the same texts for its values in the log."""
    if not files.num_rows:
        return ()
    layout = catalog.file_layout(table) if catalog.has_row_ids(table) else None
    spec = table.partitioning
    if spec is None:
        return [CompactionGroup(table, files, layout=layout)]
    physical = catalog.physical_names(table)
    names = {field.id: physical.get(field.id, field.name) for field in table.schema.fields}
    maps = state.files["partition_values"].take(files["file_id"])
    keys = {str(number): texts.map_values(maps, names[key.field_id]) for number, key in enumerate(spec.fields)}
    numbered = pa.table({**keys, "row": pa.array(range(files.num_rows), pa.int64())})
    grouped = numbered.group_by(list(keys), use_threads=False).aggregate([("row", "list")])
    return [
        CompactionGroup(table, files.take(rows.values), spec.id, tuple(value or None for value in values), layout)
        for rows, *values in zip(
            grouped["row_list"].combine_chunks(), *(grouped[key].to_pylist() for key in keys), strict=True
        )
    ]


def compact(
    catalog: DeltaCatalog,
    base: DeltaSnapshot,
    table: TableInfo,
    compacted: Sequence[Compacted],
    operation: Operation,
) -> CommitResult:
    """See `Maintenance.compact`."""
    assert table.path is not None
    replaced = [id for part in compacted for id in part.group.files.column("file_id").to_pylist()]
    rows = RowChanges(
        files=tuple(StagedFile(file) for part in compacted for file in part.written), removed=frozenset(replaced)
    )
    state = base.state(table)
    plan = Plan(
        root=table.path,
        old=table,
        new=table,
        state=state,
        rows=rows,
        operations=(operation,),
        files=base.files(table),
    )
    commit = TableCommit(catalog, plan)
    version = commit.commit()
    return CommitResult(state.version if version is None else version, commit.attempts, is_new=version is not None)
