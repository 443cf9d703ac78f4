"""Whether a transaction still holds after what others committed since its snapshot (protocol-free: Spark's conflict
checker is the model, row-level changes of one file are told apart by their deletion vectors)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import ConflictError
from lakedbapi.formats.delta.commits import Actions
from lakedbapi.formats.delta.paths import full_paths
from lakedbapi.formats.delta.plan import Plan
from lakedbapi.formats.delta.state import TableState, file_keys

SERIALIZABLE, WRITE_SERIALIZABLE = "Serializable", "WriteSerializable"


def isolation_level(configuration: Mapping[str, str]) -> str:
    """`delta.isolationLevel`; Spark's default is Serializable."""
    found = configuration.get("delta.isolationLevel", SERIALIZABLE)
    return WRITE_SERIALIZABLE if found.casefold() == WRITE_SERIALIZABLE.casefold() else SERIALIZABLE


def check_commit(plan: Plan, version: int, actions: Actions) -> None:
    """ConflictError when the commit of `version` by another writer leaves no place for `plan` behind it.

    Files that both change are the part of `located`.
    """
    assert plan.state is not None
    if plan.new is None or plan.is_replaced:
        raise _conflict(plan, version, "changed the table, which this one drops or replaces", "ConcurrentWrite")
    if actions.protocol is not None and actions.protocol != plan.state.protocol:
        raise _conflict(plan, version, "changed the table's protocol", "ProtocolChanged")
    if actions.metadata is not None and actions.metadata != plan.state.metadata:
        raise _conflict(plan, version, "altered the table", "MetadataChanged")
    adds, removes = _data_changes(actions.adds), _data_changes(actions.removes)
    if plan.reads_table and (adds.num_rows or removes.num_rows):
        raise _conflict(plan, version, "changed rows of the table, which this one read", "ConcurrentAppend")
    if not _has_new_files(plan.state, adds):
        return
    if plan.new is not plan.old:
        raise _conflict(plan, version, "added rows that the altered table was not checked on", "ConcurrentAppend")
    blind = actions.infos.get(version, {}).get("isBlindAppend") is True
    if plan.read and not (blind and isolation_level(plan.state.metadata.configuration) == WRITE_SERIALIZABLE):
        raise _conflict(plan, version, "added rows that this one may have to change as well", "ConcurrentAppend")


def _data_changes(files: pa.Table) -> pa.Table:
    return files.filter(pc.fill_null(files["data_change"], True))


def _has_new_files(state: TableState, adds: pa.Table) -> bool:
    """Whether there are files that `state` does not have under any deletion vector."""
    if not adds.num_rows:
        return False
    known = full_paths(state.root, state.files["path"])
    return not pc.all(pc.is_in(full_paths(state.root, adds["path"]), value_set=known)).as_py()


def located(plan: Plan, head: TableState, rows: npt.NDArray[np.int64], *, whole: bool) -> npt.NDArray[np.int64]:
    """Where the files at `rows` of the plan's state are in `head`.

    ConflictError when one is gone, or, with `whole` (the transaction takes it away as it was), has lost rows since.
    """
    assert plan.state is not None
    if head is plan.state or not len(rows):
        return rows
    files = plan.state.files.take(pa.array(rows))
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
