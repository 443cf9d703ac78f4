"""Compaction: rows move to other files, in a snapshot with the operation `replace`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakedbapi.formats.base import CommitResult
from lakedbapi.formats.iceberg.commit import TableCommit
from lakedbapi.formats.iceberg.files import Partition
from lakedbapi.formats.iceberg.plan import Plan
from lakedbapi.formats.iceberg.snapshot import IcebergSnapshot
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.formats.maintenance import Compacted, CompactionGroup
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import Operation, RowChanges, StagedFile

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.catalog import IcebergCatalog


def compaction_groups(catalog: IcebergCatalog, table: TableInfo, files: pa.Table) -> Sequence[CompactionGroup]:
    """See `Maintenance.groups`. New files have the spec and partition of those that they replace."""
    layout = catalog.file_layout(table) if catalog.has_row_ids(table) else None
    scopes = files.column("partition_id").to_numpy()
    return [
        CompactionGroup(table, files.filter(pa.array(scopes == scope)), layout=layout)
        for scope in np.unique(scopes).tolist()
    ]


def compact(
    catalog: IcebergCatalog,
    base: IcebergSnapshot,
    table: TableInfo,
    compacted: Sequence[Compacted],
    operation: Operation,
) -> CommitResult:
    """See `Maintenance.compact`."""
    version = base.version_of(table)
    placed: Mapping[str, Partition] = {
        file.path: version.live.partitions[part.group.files.column("partition_id")[0].as_py()]
        for part in compacted
        for file in part.written
    }
    replaced = [id for part in compacted for id in part.group.files.column("file_id").to_pylist()]
    rows = RowChanges(
        files=tuple(StagedFile(file) for part in compacted for file in part.written), removed=frozenset(replaced)
    )
    namespace = catalog.named(table.schema_id)
    plan = Plan(
        namespace=namespace,
        old=table,
        new=table,
        base=version,
        rows=rows,
        operations=(operation,),
        placed=placed,
    )
    assert isinstance(catalog.source, CatalogSource)
    commit = TableCommit(catalog, catalog.source, plan, "", version.storage)
    snapshot = commit.commit()
    return CommitResult(
        version.snapshot_id if snapshot is None else snapshot, commit.attempts, is_new=snapshot is not None
    )
