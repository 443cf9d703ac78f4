"""The end of all older versions of a table: its log begins anew, with a checkpoint that names live files only.

A commit that does nothing takes the next version, so that no commit that is kept names a file that is gone. Older
checkpoints and the commit of version 0 are removed, from which on no older version can be read. The other commits are
overwritten, not removed: a writer that is behind must find its version taken, and an altered table there, which every
writer takes for a conflict. They go when the log is cleaned up next.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from lakedbapi.errors import ConflictError
from lakedbapi.formats.delta.checkpoint_writer import LAST, write_checkpoint
from lakedbapi.formats.delta.checkpoints import sidecar_path
from lakedbapi.formats.delta.conflicts import SNAPSHOT
from lakedbapi.formats.delta.log import LOG, commit_path
from lakedbapi.formats.delta.log_cleanup import VERSIONED
from lakedbapi.formats.delta.properties import IN_COMMIT
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.writer_features import is_on
from lakedbapi.formats.delta.written_stats import dumps
from lakedbapi.formats.program import own_name
from lakedbapi.storage.filesystem import Storage

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog

_KNOWN = re.compile(rf"{VERSIONED.pattern}|(?:.*/)?\.[^/]+\.crc")
"""Files that are about versions, and the checksums that Hadoop writes beside files on a local disk."""


def cut_log(catalog: DeltaCatalog, state: TableState, sidecars: Sequence[str]) -> int:
    """End all versions up to that of `state`, the newest; returns the one that the log begins at.

    `sidecars` are those of old checkpoints. ConflictError when another commit comes first.
    """
    storage, root = catalog.storage, state.root
    version = state.version + 1
    try:
        storage.put_if_absent(commit_path(root, version), _lines({"commitInfo": _info(state)}))
    except FileExistsError:
        raise ConflictError(
            f"Delta table {root}: another transaction committed version {version} first; purge again"
        ) from None
    write_checkpoint(storage, replace(state, version=version))
    _remove_before(storage, state, version, sidecars)
    catalog.forget(root)
    return version


def _remove_before(storage: Storage, state: TableState, version: int, sidecars: Sequence[str]) -> None:
    """In this order: no version can be read any more before its commit loses what it did."""
    root = state.root
    found = {entry.name: VERSIONED.fullmatch(entry.name) for entry in storage.entries(root + LOG)}
    old = [name for name, match in found.items() if match is not None and int(match[1]) < version]
    commits = [name for name in old if name == f"{name[:20]}.json"]
    first = commit_path("", 0).removeprefix(LOG)
    storage.delete(
        [
            *(sidecar_path(root, name) for name in sidecars),
            *(f"{root}{LOG}{name}" for name in old if name not in commits or name == first),
        ]
    )
    ended = _lines(
        {"commitInfo": _info(state)},
        {
            "metaData": replace(
                state.metadata, configuration={}, description=f"versions before {version} were purged"
            ).to_json()
        },
    )
    for name in commits:
        if name != first:
            storage.overwrite(f"{root}{LOG}{name}", ended)


def _info(state: TableState) -> dict[str, Any]:
    now = time.time_ns() // 1_000_000
    info: dict[str, Any] = {
        "timestamp": now,
        "operation": "PURGE",
        "operationParameters": {},
        "readVersion": state.version,
        "isolationLevel": SNAPSHOT,
        "isBlindAppend": False,
        "operationMetrics": {},
        "engineInfo": own_name("/"),
        "txnId": str(uuid.uuid4()),
    }
    if is_on(state.protocol, state.metadata.configuration, IN_COMMIT):
        info = {"inCommitTimestamp": max(now, int(state.timestamp.timestamp() * 1000) + 1), **info}
    return info


def _lines(*actions: dict[str, Any]) -> bytes:
    return "".join(dumps(action) + "\n" for action in actions).encode()


def unknown_files(storage: Storage, root: str) -> list[str]:
    """Files of the log that nobody reads, such as those of writers that died: what they tell is not known."""
    found = storage.list(root + LOG)
    listing = found.filter(pc.not_equal(found["size"], 0))["path"].to_pylist()
    names = {path: path[len(root + LOG) :] for path in listing}
    return [path for path, name in names.items() if name != LAST and not _KNOWN.fullmatch(name)]
