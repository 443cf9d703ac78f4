"""`TableState`: a table at one version, made by replaying its log (protocol, "Action Reconciliation")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError
from lakedbapi.formats.delta.actions import DomainMetadata, Metadata, Protocol, Txn
from lakedbapi.formats.delta.columns import FILES, REMOVES
from lakedbapi.formats.delta.commits import Actions
from lakedbapi.formats.delta.paths import full_paths

_PIECES = 64
"""Pieces of memory that the file list may consist of."""


@dataclass(frozen=True)
class TableState:
    """A table at `version`, whose directory is `root` (ending in `/`).

    `files` (`columns.FILES`) are the live files, `tombstones` (`columns.REMOVES`) those removed, as far as the log
    still tells of them. `timestamp` is the time of the commit. A file's `file_id` is its row number in `files`.
    """

    root: str
    version: int
    timestamp: datetime
    protocol: Protocol
    metadata: Metadata
    txns: Mapping[str, Txn] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    """Without those that were removed."""
    files: pa.Table = field(default_factory=FILES.empty_table, repr=False, compare=False)
    tombstones: pa.Table = field(default_factory=REMOVES.empty_table, repr=False, compare=False)
    _paths: pa.ChunkedArray | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def paths(self) -> pa.ChunkedArray:
        """The full path of each file."""
        if self._paths is None:
            object.__setattr__(self, "_paths", pa.chunked_array([full_paths(self.root, self.files["path"])]))
        return self._paths

    def __hash__(self) -> int:
        return hash((self.root, self.metadata.id, self.version))

    def after(self, actions: Actions, version: int, timestamp: datetime) -> TableState:
        """The state after the actions of the commits up to `version`."""
        files, paths, tombstones = _replayed(self, actions)
        domains = {**self.domains, **actions.domains}
        state = replace(
            self,
            version=version,
            timestamp=timestamp,
            protocol=actions.protocol or self.protocol,
            metadata=actions.metadata or self.metadata,
            txns={**self.txns, **actions.txns},
            domains={name: domain for name, domain in domains.items() if not domain.removed},
            files=files,
            tombstones=tombstones,
        )
        object.__setattr__(state, "_paths", paths)
        return state


def first_state(root: str, actions: Actions, version: int, timestamp: datetime) -> TableState:
    """The state that the commits from version 0 on give; DataError when they lack what every table has."""
    return _empty(root, actions, version, timestamp).after(actions, version, timestamp)


def checkpoint_state(root: str, actions: Actions, version: int, timestamp: datetime) -> TableState:
    """The state that a checkpoint has: its actions are reconciled already."""
    return replace(
        _empty(root, actions, version, timestamp),
        txns=actions.txns,
        domains={name: domain for name, domain in actions.domains.items() if not domain.removed},
        files=_joined(FILES.empty_table(), actions.adds.select(FILES.names)),
        tombstones=_joined(REMOVES.empty_table(), actions.removes),
    )


def _empty(root: str, actions: Actions, version: int, timestamp: datetime) -> TableState:
    missing = "protocol" if actions.protocol is None else "metaData"
    if actions.protocol is None or actions.metadata is None:
        raise DataError(f"the log of Delta table {root} is damaged: it has no {missing} action up to version {version}")
    return TableState(root, version, timestamp, actions.protocol, actions.metadata)


def _replayed(state: TableState, actions: Actions) -> tuple[pa.Table, pa.ChunkedArray, pa.Table]:
    """Live files, their full paths, and tombstones after `actions`: for each (file, deletion vector) the last one
    counts.

    In one commit an `add` counts more than a `remove` of the same, which no writer may put there together.
    """
    adds, removes = actions.adds.select(FILES.names), actions.removes
    if not (adds.num_rows or removes.num_rows):
        return state.files, state.paths, state.tombstones
    paths = full_paths(state.root, adds["path"])
    keys = pa.concat_arrays([file_keys(state.root, removes), _keys(paths, adds["deletion_vector"])])
    versions = np.concatenate([_versions(removes), _versions(adds)])
    is_add = np.arange(len(keys)) >= removes.num_rows
    order = np.lexsort((np.arange(len(keys)), is_add, versions))
    codes = keys.dictionary_encode().indices.to_numpy()
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    last[codes[order]] = order
    kept = np.zeros(len(keys), np.bool_)
    kept[last] = True
    live, gone = pa.array(kept[removes.num_rows :]), pa.array(kept[: removes.num_rows])
    untouched = pc.invert(pc.is_in(_keys(state.paths, state.files["deletion_vector"]), value_set=keys))
    expired = pc.invert(pc.is_in(file_keys(state.root, state.tombstones), value_set=keys))
    return (
        _joined(_kept(state.files, untouched), adds.filter(live)),
        pa.chunked_array([*_kept(state.paths, untouched).chunks, paths.filter(live)], pa.string()),
        _joined(_kept(state.tombstones, expired), removes.filter(gone)),
    )


_Rows = TypeVar("_Rows", pa.Table, pa.ChunkedArray)


def _kept(rows: _Rows, mask: pa.Array | pa.ChunkedArray) -> _Rows:
    """Most commits only add, and then nothing need be copied."""
    return rows if pc.all(mask).as_py() else rows.filter(mask)


def _joined(old: pa.Table, new: pa.Table) -> pa.Table:
    """Both, in few enough pieces."""
    joined = pa.concat_tables([old, new])
    return joined if joined.column(0).num_chunks <= _PIECES else joined.combine_chunks()


def _versions(table: pa.Table) -> Any:
    """A checkpoint has no versions, and comes before all commits that are replayed on it."""
    return pc.fill_null(table["version"], -1).to_numpy()


def file_keys(root: str, files: pa.Table) -> pa.Array:
    """What a file is known by, as text: its full path and the id of its deletion vector.

    Writers spell paths differently (`file:/x`, `/x`; escaped or not), so that the texts of the log do not do.
    """
    return _keys(full_paths(root, files["path"]), files["deletion_vector"])


def _keys(paths: pa.Array | pa.ChunkedArray, vectors: pa.ChunkedArray) -> pa.Array:
    paths = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
    if vectors.null_count == len(vectors):
        return paths
    vector = vectors.combine_chunks()
    offset = pc.fill_null(pc.binary_join_element_wise("@", pc.cast(vector.field("offset"), pa.string()), ""), "")
    id = pc.binary_join_element_wise(vector.field("storageType"), vector.field("pathOrInlineDv"), offset, "")
    return pc.if_else(vector.is_valid(), pc.binary_join_element_wise(paths, id, "\0"), paths)
