"""`TableState`: a table at one version, made by replaying its log (protocol, "Action Reconciliation")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError
from lakedbapi.formats.delta.actions import DomainMetadata, Metadata, Protocol, Txn
from lakedbapi.formats.delta.columns import FILES, REMOVES
from lakedbapi.formats.delta.commits import Actions
from lakedbapi.formats.delta.paths import full_paths


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

    def __hash__(self) -> int:
        return hash((self.root, self.metadata.id, self.version))

    def after(self, actions: Actions, version: int, timestamp: datetime) -> TableState:
        """The state after the actions of the commits up to `version`."""
        files, tombstones = _replayed(self.root, self.files, self.tombstones, actions)
        domains = {**self.domains, **actions.domains}
        return replace(
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


def first_state(root: str, actions: Actions, version: int, timestamp: datetime) -> TableState:
    """The state that the commits from version 0 on give; DataError when they lack what every table has."""
    return _empty(root, actions, version, timestamp).after(actions, version, timestamp)


def checkpoint_state(root: str, actions: Actions, version: int, timestamp: datetime) -> TableState:
    """The state that a checkpoint has: its actions are reconciled already."""
    return replace(
        _empty(root, actions, version, timestamp),
        txns=actions.txns,
        domains={name: domain for name, domain in actions.domains.items() if not domain.removed},
        files=actions.adds.select(FILES.names).combine_chunks(),
        tombstones=actions.removes.combine_chunks(),
    )


def _empty(root: str, actions: Actions, version: int, timestamp: datetime) -> TableState:
    missing = "protocol" if actions.protocol is None else "metaData"
    if actions.protocol is None or actions.metadata is None:
        raise DataError(f"the log of Delta table {root} is damaged: it has no {missing} action up to version {version}")
    return TableState(root, version, timestamp, actions.protocol, actions.metadata)


def _replayed(root: str, files: pa.Table, tombstones: pa.Table, actions: Actions) -> tuple[pa.Table, pa.Table]:
    """Live files and tombstones after `actions`: for each (file, deletion vector) its last action counts.

    In one commit an `add` counts more than a `remove` of the same, which no writer may put there together.
    """
    if not (actions.adds.num_rows or actions.removes.num_rows):
        return files, tombstones
    adds = pa.concat_tables([files, actions.adds.select(FILES.names)])
    removes = pa.concat_tables([tombstones, actions.removes])
    keys = pa.concat_arrays([file_keys(root, removes), file_keys(root, adds)])
    versions = np.concatenate([_versions(removes), _versions(adds)])
    is_add = np.arange(len(keys)) >= removes.num_rows
    # What was live or removed before comes first; then by version, in it removes first. Else the order stays.
    before = np.concatenate(
        [np.arange(removes.num_rows) < tombstones.num_rows, np.arange(adds.num_rows) < files.num_rows]
    )
    order = np.lexsort((np.arange(len(keys)), is_add, versions, ~before))
    codes = keys.dictionary_encode().indices.to_numpy()
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    last[codes[order]] = order
    kept = np.zeros(len(keys), np.bool_)
    kept[last] = True
    live = adds.filter(pa.array(kept[removes.num_rows :]))
    gone = removes.filter(pa.array(kept[: removes.num_rows]))
    return live.combine_chunks(), gone.combine_chunks()


def _versions(table: pa.Table) -> Any:
    """A checkpoint has no versions, and comes before all commits that are replayed on it."""
    return pc.fill_null(table["version"], -1).to_numpy()


def file_keys(root: str, files: pa.Table) -> pa.Array:
    """What a file is known by, as text: its full path and the id of its deletion vector.

    Writers spell paths differently (`file:/x`, `/x`; escaped or not), so that the texts of the log do not do.
    """
    paths = full_paths(root, files["path"])
    vectors = files["deletion_vector"]
    if vectors.null_count == len(vectors):
        return paths
    vector = vectors.combine_chunks()
    offset = pc.fill_null(pc.binary_join_element_wise("@", pc.cast(vector.field("offset"), pa.string()), ""), "")
    id = pc.binary_join_element_wise(vector.field("storageType"), vector.field("pathOrInlineDv"), offset, "")
    return pc.if_else(vector.is_valid(), pc.binary_join_element_wise(paths, id, "\0"), paths)
