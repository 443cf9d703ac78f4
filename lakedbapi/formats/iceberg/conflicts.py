"""Whether a transaction still holds after what others committed since its snapshot.

The two snapshots are compared, however many lie between them: what came and went in between left no trace, but for new
rows that were compacted together with others. The rules are those of the Java library's validations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from lakedbapi.errors import ConflictError
from lakedbapi.formats.iceberg.manifests import EQUALITY_DELETES
from lakedbapi.formats.iceberg.plan import Plan
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.iceberg.travel import lineage

if TYPE_CHECKING:
    from lakedbapi.formats.iceberg.catalog import IcebergCatalog

Numbers = npt.NDArray[np.int64]


def check(catalog: IcebergCatalog, plan: Plan, head: TableVersion) -> None:
    """ConflictError when `head`, the newest snapshot, leaves no place for `plan` behind it."""
    base = plan.base
    assert base is not None
    if base.metadata.table_uuid != head.metadata.table_uuid:
        raise conflict(plan, "dropped the table and made another one")
    _check_definition(plan, base.metadata, head.metadata)
    if base.snapshot_id == head.snapshot_id:
        return
    if plan.is_replaced:
        raise conflict(plan, "changed the table, which this one replaces")
    since = _since(base, head)
    if since is None and (plan.reads_table or plan.rows.deleted or plan.rows.removed):
        raise conflict(plan, "rolled the table back, or expired the snapshot that this one read")
    added, deletes = _added_data(base, head, since or ()), _new_deletes(base, head)
    if plan.reads_table and (added.any() or deletes.num_rows or _removed(base, head)):
        raise conflict(plan, "changed rows of the table, which this one read")
    if added.any() and plan.is_altered:
        raise conflict(plan, "added rows that the altered table was not checked on")
    for operation in plan.serializable if added.any() else ():
        found = operation.may_match
        if found is None or (added & found(catalog.snapshot_of(head, plan.table))).any():
            raise conflict(plan, "added rows that this one may have to change as well")
    # Compacted files keep the sequence number that they were read at, so that newer equality deletes apply to them.
    if not plan.is_compaction and (not plan.only_deletes or plan.rows.removed):
        _check_equality_deletes(plan, base, head, deletes)


def _check_definition(plan: Plan, before: TableMetadata, after: TableMetadata) -> None:
    same = all(
        getattr(before, name) == getattr(after, name)
        for name in ("current_schema_id", "default_spec_id", "default_sort_order_id", "properties", "format_version")
    )
    if same:
        return
    if plan.is_altered:
        raise conflict(plan, "altered the table, too")
    if before.current_schema_id != after.current_schema_id:
        raise conflict(plan, "changed the table's columns")


def _since(base: TableVersion, head: TableVersion) -> Sequence[Snapshot] | None:
    """The snapshots from `base` to `head`, oldest first; None where `head` was not made of `base`."""
    line = lineage(head.metadata, head.snapshot_id)
    ids = [snapshot.snapshot_id for snapshot in line]
    if base.snapshot_id == -1:
        return line[::-1]
    return line[: ids.index(base.snapshot_id)][::-1] if base.snapshot_id in ids else None


def _added_data(base: TableVersion, head: TableVersion, since: Sequence[Snapshot]) -> npt.NDArray[np.bool_]:
    """Which data files of `head` are new since `base` and may have rows that were not there before."""
    data = head.live.data
    known = pc.is_in(data.column("raw_path"), base.live.data.column("raw_path"))
    # Files that were compacted once there were new rows may have some of these.
    same_rows = takewhile(lambda snapshot: _operation(snapshot) in (Operation.REPLACE, Operation.DELETE), since)
    compacted = [snapshot.snapshot_id for snapshot in same_rows if _operation(snapshot) == Operation.REPLACE]
    moved = pc.is_in(data.column("snapshot_id"), pa.array(compacted, pa.int64()))
    new: npt.NDArray[np.bool_] = pc.invert(pc.or_(known, moved)).to_numpy()
    return new


def _operation(snapshot: Snapshot) -> Operation | None:
    return None if snapshot.summary is None else snapshot.summary.operation


def _removed(base: TableVersion, head: TableVersion) -> bool:
    before, after = base.live.data.column("raw_path"), head.live.data.column("raw_path")
    return not bool(pc.all(pc.is_in(before, after)).as_py() in (True, None))


def _new_deletes(base: TableVersion, head: TableVersion) -> pa.Table:
    """Places in files tell deletion vectors apart."""
    known = {*_places(base.live.deletes)}
    new = [place not in known for place in _places(head.live.deletes)]
    return head.live.deletes.filter(pa.array(new, pa.bool_()))


def _places(deletes: pa.Table) -> list[tuple[str, int | None]]:
    paths, offsets = deletes.column("raw_path").to_pylist(), deletes.column("content_offset").to_pylist()
    return list(zip(paths, offsets, strict=True))


def _check_equality_deletes(plan: Plan, base: TableVersion, head: TableVersion, deletes: pa.Table) -> None:
    """Rows that were copied may have been deleted by value, which no position tells."""
    if not pc.any(pc.equal(deletes.column("content"), EQUALITY_DELETES)).as_py():
        return
    ids = sorted({*plan.rows.removed, *plan.rows.deleted})
    paths = base.live.data.column("raw_path").take(pa.array(ids, pa.int64()))
    numbers = np.flatnonzero(pc.is_in(head.live.data.column("raw_path"), paths).to_numpy(zero_copy_only=False))
    new = pc.unique(deletes.column("path"))
    for found in head.equality_deletes(numbers.astype(np.int64)):
        recent = found.files.filter(pc.is_in(found.files.column("path"), new))
        if recent.num_rows and type(found)(found.keys, recent, found.scopes, found.sequence_numbers).reached().any():
            raise conflict(plan, "deleted rows by their values in files that this one changes as well")


def located(plan: Plan, head: TableVersion, rows: Numbers) -> Numbers:
    """Where the data files with these ids at the plan's snapshot are in `head`; ConflictError when one is gone."""
    base = plan.base
    assert base is not None
    if head.snapshot_id == base.snapshot_id or not len(rows):
        return rows
    paths = base.live.data.column("raw_path").combine_chunks().take(pa.array(rows))
    found = pc.index_in(paths, head.live.data.column("raw_path").combine_chunks())
    if found.null_count:
        path = paths.filter(found.is_null())[0].as_py()
        raise conflict(plan, f"rewrote or removed {path}, of which this one changes rows as well")
    positions: Numbers = found.to_numpy().astype(np.int64)
    return positions


def conflict(plan: Plan, what: str) -> ConflictError:
    return ConflictError(f"table {plan.name}: another transaction {what}, since this one began; roll back and retry")
