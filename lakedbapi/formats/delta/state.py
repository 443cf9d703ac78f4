"""`TableState`: a table at one version, made by replaying its log (protocol, "Action Reconciliation")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError
from lakedbapi.formats.delta.actions import DomainMetadata, Metadata, Protocol, Txn
from lakedbapi.formats.delta.columns import FILES, REMOVES
from lakedbapi.formats.delta.commits import Actions
from lakedbapi.formats.delta.paths import full_paths
from lakedbapi.formats.delta.per_file import PerFile
from lakedbapi.formats.delta.pieces import joined, taken, without

_NONE = np.array([], np.int64)


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

    @cached_property
    def per_file(self) -> PerFile:
        """Of `files`."""
        return PerFile()

    def __hash__(self) -> int:
        return hash((self.root, self.metadata.id, self.version))

    def after(self, actions: Actions, version: int, timestamp: datetime) -> TableState:
        """The state after the actions of the commits up to `version`."""
        replayed = _replayed(self, actions)
        domains = {**self.domains, **actions.domains}
        state = replace(
            self,
            version=version,
            timestamp=timestamp,
            protocol=actions.protocol or self.protocol,
            metadata=actions.metadata or self.metadata,
            txns={**self.txns, **actions.txns},
            domains={name: domain for name, domain in domains.items() if not domain.removed},
            files=replayed.files,
            tombstones=replayed.tombstones,
        )
        state._know(replayed.paths, replayed.tombstone_paths, self.per_file.after(replayed.gone))
        return state

    def at(self, timestamp: datetime) -> TableState:
        """The same with another time."""
        state = replace(self, timestamp=timestamp)
        state._know(self.paths, self.tombstone_paths, self.per_file)
        return state

    def _know(self, paths: pa.ChunkedArray, tombstone_paths: pa.ChunkedArray, per_file: PerFile) -> None:
        """What would be computed anew."""
        self.__dict__.update(paths=paths, tombstone_paths=tombstone_paths, per_file=per_file)


def first_state(root: str, actions: Actions, version: int, timestamp: datetime) -> TableState:
    """The state that the commits from version 0 on give; DataError when they lack what every table has."""
    return _empty(root, actions, version, timestamp).after(actions, version, timestamp)


def checkpoint_state(root: str, actions: Actions, version: int, timestamp: datetime) -> TableState:
    """The state that a checkpoint has: its actions are reconciled already."""
    return replace(
        _empty(root, actions, version, timestamp),
        txns=actions.txns,
        domains={name: domain for name, domain in actions.domains.items() if not domain.removed},
        files=joined(FILES.empty_table(), actions.adds.select(FILES.names)),
        tombstones=joined(REMOVES.empty_table(), actions.removes),
    )


def _empty(root: str, actions: Actions, version: int, timestamp: datetime) -> TableState:
    missing = "protocol" if actions.protocol is None else "metaData"
    if actions.protocol is None or actions.metadata is None:
        raise DataError(f"the log of Delta table {root} is damaged: it has no {missing} action up to version {version}")
    return TableState(root, version, timestamp, actions.protocol, actions.metadata)


@dataclass(frozen=True)
class _Replayed:
    """`files` and `tombstones` after some actions, the full paths of both, and which of the files before are `gone`."""

    files: pa.Table
    tombstones: pa.Table
    paths: pa.ChunkedArray
    tombstone_paths: pa.ChunkedArray
    gone: npt.NDArray[np.int64]


def _replayed(state: TableState, actions: Actions) -> _Replayed:
    """For each (file, deletion vector) the last action counts.

    In one commit an `add` counts more than a `remove` of the same, which no writer may put there together.
    """
    adds, removes = actions.adds.select(FILES.names), actions.removes
    if not (adds.num_rows or removes.num_rows):
        return _Replayed(state.files, state.tombstones, state.paths, state.tombstone_paths, _NONE)
    changed = pa.concat_tables([table.select(["path", "deletion_vector"]) for table in (removes, adds)])
    touched = pa.chunked_array([full_paths(state.root, changed["path"])])
    keys = _keys(touched, changed["deletion_vector"])
    versions = np.concatenate([_versions(removes), _versions(adds)])
    is_add = np.arange(len(keys)) >= removes.num_rows
    encoded = keys.dictionary_encode()
    outdated = np.zeros(len(keys), np.bool_)
    if len(encoded.dictionary) < len(keys):
        order = np.lexsort((np.arange(len(keys)), is_add, versions))
        last = np.empty(len(encoded.dictionary), np.int64)
        last[encoded.indices.to_numpy()[order]] = order
        outdated[:] = True
        outdated[last] = False
    old_removes = np.flatnonzero(outdated[: removes.num_rows])
    old_adds = np.flatnonzero(outdated[removes.num_rows :])
    removed, added = touched.slice(0, removes.num_rows), touched.slice(removes.num_rows)
    gone = _found(state.paths, state.files, touched, keys)
    expired = _found(state.tombstone_paths, state.tombstones, touched, keys)
    return _Replayed(
        joined(without(state.files, gone), without(adds, old_adds)),
        joined(without(state.tombstones, expired), without(removes, old_removes)),
        joined(without(state.paths, gone), without(added, old_adds)),
        joined(without(state.tombstone_paths, expired), without(removed, old_removes)),
        gone,
    )


def _found(paths: pa.ChunkedArray, files: pa.Table, touched: pa.ChunkedArray, keys: pa.Array) -> npt.NDArray[np.int64]:
    """Which of `files`, at `paths`, have one of `keys`. Only those at one of the paths `touched` can."""
    if not len(paths):  # pyarrow 16 crashes on an array without chunks.
        return _NONE
    numbers = np.flatnonzero(pc.is_in(paths, value_set=touched.combine_chunks()).to_numpy())
    if not len(numbers):
        return _NONE
    found = taken(pa.table({"path": paths, "deletion_vector": files["deletion_vector"]}), numbers)
    mine = pc.is_in(_keys(found["path"], found["deletion_vector"]), value_set=keys)
    gone: npt.NDArray[np.int64] = numbers[mine.to_numpy(zero_copy_only=False)]
    return gone


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
