"""`TableState`: a table at one version, made by replaying its log (protocol, "Action Reconciliation")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError
from lakedbapi.formats.delta.actions import DomainMetadata, Metadata, Protocol, Txn
from lakedbapi.formats.delta.columns import FILES, REMOVES
from lakedbapi.formats.delta.commits import Actions
from lakedbapi.formats.delta.paths import full_paths

_PIECES = 64
"""Pieces of memory that the file list may consist of."""
_FEW = 1000
"""Up to so many files it is one piece: to copy them costs less than each look at several."""


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

    @cached_property
    def paths(self) -> pa.ChunkedArray:
        """The full path of each file."""
        return pa.chunked_array([full_paths(self.root, self.files["path"])])

    @cached_property
    def tombstone_paths(self) -> pa.ChunkedArray:
        """The full path of each tombstone."""
        return pa.chunked_array([full_paths(self.root, self.tombstones["path"])])

    def __hash__(self) -> int:
        return hash((self.root, self.metadata.id, self.version))

    def after(self, actions: Actions, version: int, timestamp: datetime) -> TableState:
        """The state after the actions of the commits up to `version`."""
        files, tombstones, paths = _replayed(self, actions)
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
        state.__dict__.update(paths)  # What would be computed anew.
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


def _replayed(state: TableState, actions: Actions) -> tuple[pa.Table, pa.Table, Mapping[str, pa.ChunkedArray]]:
    """Live files and tombstones after `actions`, and the full paths of both, by the name of the property: for each
    (file, deletion vector) the last one counts.

    In one commit an `add` counts more than a `remove` of the same, which no writer may put there together.
    """
    adds, removes = actions.adds.select(FILES.names), actions.removes
    if not (adds.num_rows or removes.num_rows):
        return state.files, state.tombstones, {"paths": state.paths, "tombstone_paths": state.tombstone_paths}
    changed = pa.concat_tables([table.select(["path", "deletion_vector"]) for table in (removes, adds)])
    touched = full_paths(state.root, changed["path"])
    keys = _keys(touched, changed["deletion_vector"])
    versions = np.concatenate([_versions(removes), _versions(adds)])
    is_add = np.arange(len(keys)) >= removes.num_rows
    encoded = keys.dictionary_encode()
    kept = np.ones(len(keys), np.bool_)
    if len(encoded.dictionary) < len(keys):
        order = np.lexsort((np.arange(len(keys)), is_add, versions))
        last = np.empty(len(encoded.dictionary), np.int64)
        last[encoded.indices.to_numpy()[order]] = order
        kept[:] = False
        kept[last] = True
    gone, live = _mask(kept[: removes.num_rows]), _mask(kept[removes.num_rows :])
    removed, added = touched[: removes.num_rows], touched[removes.num_rows :]
    untouched = _untouched(state.paths, state.files, touched, keys)
    unexpired = _untouched(state.tombstone_paths, state.tombstones, touched, keys)
    return (
        _joined(_kept(state.files, untouched), _kept(adds, live)),
        _joined(_kept(state.tombstones, unexpired), _kept(removes, gone)),
        {
            "paths": _joined_paths(_kept(state.paths, untouched), _kept(added, live)),
            "tombstone_paths": _joined_paths(_kept(state.tombstone_paths, unexpired), _kept(removed, gone)),
        },
    )


def _untouched(paths: pa.ChunkedArray, files: pa.Table, touched: pa.Array, keys: pa.Array) -> pa.Array | None:
    """Which of `files`, at `paths`, have none of `keys`; None = all, as most commits only add.

    Only those at one of the paths `touched` can have one.
    """
    if not len(paths):  # pyarrow 16 crashes on an array without chunks.
        return None
    numbers = pc.indices_nonzero(pc.is_in(paths, value_set=touched))
    if not len(numbers):
        return None
    found = pc.is_in(_keys(paths.take(numbers), files["deletion_vector"].take(numbers)), value_set=keys)
    mask = np.ones(len(paths), np.bool_)
    mask[numbers.filter(found).to_numpy()] = False
    return _mask(mask)


_Rows = TypeVar("_Rows", pa.Table, pa.ChunkedArray, pa.Array)


def _kept(rows: _Rows, mask: pa.Array | None) -> _Rows:
    return rows if mask is None else rows.filter(mask)


def _mask(values: npt.NDArray[np.bool_]) -> pa.Array | None:
    """None = all: then nothing need be copied."""
    return None if values.all() else pa.array(values)


def _joined(old: pa.Table, new: pa.Table) -> pa.Table:
    """Both, in few enough pieces."""
    joined = pa.concat_tables([old, new])
    return joined.combine_chunks() if _is_scattered(joined.column(0)) else joined


def _joined_paths(old: pa.ChunkedArray, new: pa.Array) -> pa.ChunkedArray:
    joined = pa.chunked_array([*old.chunks, new], pa.string())
    return pa.chunked_array([joined.combine_chunks()]) if _is_scattered(joined) else joined


def _is_scattered(column: pa.ChunkedArray) -> bool:
    return bool(column.num_chunks > (1 if len(column) <= _FEW else _PIECES))


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
    kind, text, offset = (pc.struct_field(vector, name) for name in ("storageType", "pathOrInlineDv", "offset"))
    return pc.binary_join_element_wise(paths, kind, text, pc.cast(offset, pa.string()), "\0", null_handling="skip")
