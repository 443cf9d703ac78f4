"""Whether a transaction still holds after what others committed since its snapshot (protocol-free: Spark's conflict
checker is the model, row-level changes of one file are told apart by their deletion vectors)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import ConflictError
from lakedbapi.formats.delta import clustering
from lakedbapi.formats.delta.commits import Actions
from lakedbapi.formats.delta.paths import full_paths
from lakedbapi.formats.delta.pieces import taken
from lakedbapi.formats.delta.plan import Plan
from lakedbapi.formats.delta.state import TableState, file_keys

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog

SERIALIZABLE, WRITE_SERIALIZABLE, SNAPSHOT = "Serializable", "WriteSerializable", "SnapshotIsolation"


def isolation_level(configuration: Mapping[str, str]) -> str:
    """`delta.isolationLevel`; Spark's default is Serializable."""
    found = configuration.get("delta.isolationLevel", SERIALIZABLE)
    return WRITE_SERIALIZABLE if found.casefold() == WRITE_SERIALIZABLE.casefold() else SERIALIZABLE


def check_commit(plan: Plan, version: int, actions: Actions) -> None:
    """ConflictError when the commit of `version` by another writer leaves no place for `plan` behind it.

    Files that both change are the part of `located`, those that are new the part of `check_new_files`.
    """
    assert plan.state is not None
    if plan.is_replaced:
        raise _conflict(plan, version, "changed the table, which this one replaces", "ConcurrentWrite")
    if actions.protocol is not None and actions.protocol != plan.state.protocol:
        raise _conflict(plan, version, "changed the table's protocol", "ProtocolChanged")
    clustered = actions.domains.get(clustering.DOMAIN, plan.state.domains.get(clustering.DOMAIN))
    is_altered = actions.metadata is not None and actions.metadata != plan.state.metadata
    if is_altered or clustered != plan.state.domains.get(clustering.DOMAIN):
        raise _conflict(plan, version, "altered the table", "MetadataChanged")
    adds, removes = _data_changes(actions.adds), _data_changes(actions.removes)
    if plan.reads_table and (adds.num_rows or removes.num_rows):
        came = pc.invert(pc.is_in(adds["path"], value_set=removes["path"].combine_chunks()))
        kind = "ConcurrentAppend" if pc.any(came).as_py() else "ConcurrentDeleteRead"
        raise _conflict(plan, version, "changed rows of the table, which this one read", kind)


def check_new_files(catalog: DeltaCatalog, plan: Plan, head: TableState, since: Mapping[int, Actions]) -> None:
    """ConflictError when rows of `head` that were not there at the snapshot may be such as the transaction would have
    changed as well, or must not have. `since` is what others did, by version."""
    assert plan.state is not None
    new = _with_new_rows(plan.state, head, since) | _with_rows_back(catalog, plan.state, head, since)
    if not new.any():
        return
    if plan.new is not plan.old:
        raise _conflict(plan, head.version, "added rows that the altered table was not checked on", "ConcurrentAppend")
    if isolation_level(plan.state.metadata.configuration) == WRITE_SERIALIZABLE:
        blind = [
            version for version, actions in since.items() if actions.infos.get(version, {}).get("isBlindAppend") is True
        ]
        new &= ~np.isin(head.files["version"].fill_null(-1).to_numpy(), blind)
    choosing = [operation for operation in plan.operations if operation.kind != "insert" and not operation.moves_rows]
    for operation in choosing if new.any() else ():
        found = operation.may_match
        if found is None or (new & found(catalog.snapshot_of(head, plan.table))).any():
            raise _conflict(
                plan, head.version, "added rows that this one may have to change as well", "ConcurrentAppend"
            )


def _with_new_rows(base: TableState, head: TableState, since: Mapping[int, Actions]) -> npt.NDArray[np.bool_]:
    """Which files of `head` may have rows that are in none of `base`: those that were added, and those that such files
    were compacted into."""
    new = pa.array([], pa.string())
    for _, actions in sorted(since.items()):
        paths = full_paths(base.root, actions.adds["path"])
        moved = full_paths(base.root, _moves(actions.removes)["path"])
        if not pc.any(pc.is_in(moved, value_set=new)).as_py():
            paths = paths.filter(pc.fill_null(actions.adds["data_change"], True).combine_chunks())
        new = pa.concat_arrays([new, paths.filter(pc.invert(pc.is_in(paths, value_set=base.paths.combine_chunks())))])
    found: npt.NDArray[np.bool_] = pc.is_in(head.paths, value_set=new).to_numpy()
    return found


def _with_rows_back(
    catalog: DeltaCatalog, base: TableState, head: TableState, since: Mapping[int, Actions]
) -> npt.NDArray[np.bool_]:
    """Which files of `head` have rows that are deleted in `base`, as RESTORE leaves them."""
    found = np.zeros(head.files.num_rows, np.bool_)
    added = pa.concat_arrays([full_paths(base.root, actions.adds["path"]) for actions in since.values()])
    touched = pc.and_(pc.is_in(base.paths, value_set=added), base.files["deletion_vector"].is_valid())
    place = pc.index_in(base.paths.filter(touched), value_set=head.paths.combine_chunks())
    before, after = base.files.filter(touched).filter(place.is_valid()), head.files.take(place.drop_null())
    vectors = (
        catalog.vectors.of(catalog.storage, state.root, files) for state, files in ((base, before), (head, after))
    )
    found[place.drop_null().to_numpy()] = [bool(old - new) for old, new in zip(*vectors, strict=True)]
    return found


def _data_changes(files: pa.Table) -> pa.Table:
    return files.filter(pc.fill_null(files["data_change"], True))


def _moves(files: pa.Table) -> pa.Table:
    return files.filter(pc.invert(pc.fill_null(files["data_change"], True)))


def located(plan: Plan, head: TableState, rows: npt.NDArray[np.int64], *, whole: bool) -> npt.NDArray[np.int64]:
    """Where the files at `rows` of the plan's state are in `head`.

    ConflictError when one is gone, or, with `whole` (the transaction takes it away as it was), has lost rows since.
    """
    assert plan.state is not None
    if head is plan.state or not len(rows):
        return rows
    files = taken(plan.state.files, rows)
    before, after = (
        (file_keys(plan.state.root, files), file_keys(head.root, head.files))
        if whole
        else (full_paths(plan.state.root, files["path"]), full_paths(head.root, head.files["path"]))
    )
    found = pc.index_in(before, value_set=after)
    if found.null_count:
        path = files["path"].filter(found.is_null())[0].as_py()
        raise ConflictError(
            f"table {plan.table.name}: another transaction changed rows of {path} that this one changes as well "
            "(ConcurrentDeleteDelete); roll back and retry"
        )
    positions: npt.NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return positions


def same_rows(plan: Plan, path: str) -> ConflictError:
    """The error when two transactions deleted or updated one row."""
    return ConflictError(
        f"table {plan.table.name}: another transaction deleted or updated some of the same rows of {path} first "
        "(ConcurrentDeleteDelete); roll back and retry"
    )


def _conflict(plan: Plan, version: int, what: str, kind: str) -> ConflictError:
    return ConflictError(
        f"table {plan.table.name}: another transaction {what}, with version {version} ({kind}); roll back and retry"
    )
