"""Commits: the JSON files of the log, read into columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lakedbapi.errors import DataError
from lakedbapi.formats.delta.actions import DomainMetadata, Metadata, Protocol, Txn
from lakedbapi.formats.delta.bulk import read_lines, split_lines
from lakedbapi.formats.delta.columns import ADDS, CDC, REMOVES, from_json

Commit = tuple[int, str, bytes]
"""Version, path (for errors) and content of a commit."""
_KINDS = frozenset({"add", "remove", "cdc", "protocol", "metaData", "txn", "domainMetadata", "sidecar"})
_BULK = 1 << 20
"""Bytes from which on reading file actions at once pays."""
_PIECE = 16 << 20
"""Bytes that a thread reads at once."""


@dataclass(frozen=True)
class Actions:
    """The actions of a run of commits, or of a checkpoint: what came last counts for those that a table has one of."""

    adds: pa.Table = field(default_factory=ADDS.empty_table)
    removes: pa.Table = field(default_factory=REMOVES.empty_table)
    cdc: pa.Table = field(default_factory=CDC.empty_table)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: Mapping[str, Txn] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    infos: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """commitInfo by version."""
    sidecars: tuple[str, ...] = ()
    """Of a v2 checkpoint: the paths of the files that have its file actions."""


def parse_commits(commits: Sequence[Commit]) -> Actions:
    """The actions of `commits`, oldest first. Unknown actions are ignored."""
    if sum(len(content) for _, _, content in commits) < _BULK:
        return _parse(commits)
    with ThreadPoolExecutor() as pool:
        return _joined(list(pool.map(_parse_bulk, _pieces(commits))))


def _pieces(commits: Sequence[Commit]) -> Iterator[Sequence[Commit]]:
    """Runs of commits with about as many bytes each."""
    piece: list[Commit] = []
    size = 0
    for commit in commits:
        piece.append(commit)
        size += len(commit[2])
        if size >= _PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _joined(found: Sequence[Actions]) -> Actions:
    """What runs of commits did, one after the other."""
    return Actions(
        pa.concat_tables([actions.adds for actions in found]),
        pa.concat_tables([actions.removes for actions in found]),
        pa.concat_tables([actions.cdc for actions in found]),
        next((actions.protocol for actions in reversed(found) if actions.protocol is not None), None),
        next((actions.metadata for actions in reversed(found) if actions.metadata is not None), None),
        {id: txn for actions in found for id, txn in actions.txns.items()},
        {name: domain for actions in found for name, domain in actions.domains.items()},
        {version: info for actions in found for version, info in actions.infos.items()},
        tuple(path for actions in found for path in actions.sidecars),
    )


def _parse_bulk(commits: Sequence[Commit]) -> Actions:
    """Reads adds and removes all at once, where none of them is unusual."""
    versions = [version for version, _, _ in commits]
    lines, rest = split_lines([content for _, _, content in commits])
    adds = read_lines("add", lines["add"], versions, ADDS)
    removes = read_lines("remove", lines["remove"], versions, REMOVES)
    if adds is None or removes is None:
        return _parse(commits)
    few = _parse([(version, path, content) for (version, path, _), content in zip(commits, rest, strict=True)])
    return replace(few, adds=pa.concat_tables([few.adds, adds]), removes=pa.concat_tables([few.removes, removes]))


def _parse(commits: Sequence[Commit]) -> Actions:
    try:
        return _read(commits)
    except (DataError, KeyError, TypeError, ValueError, OverflowError, AttributeError, pa.ArrowException) as error:
        if str(error).startswith(tuple(path for _, path, _ in commits)):
            raise
        paths = commits[0][1] if len(commits) == 1 else f"{commits[0][1]} to {commits[-1][1]}"
        raise DataError(f"{paths}: the log has an action with a value missing or of the wrong type: {error}") from error


def _read(commits: Sequence[Commit]) -> Actions:
    files: dict[str, tuple[list[dict[str, Any]], list[int]]] = {kind: ([], []) for kind in ("add", "remove", "cdc")}
    found: dict[str, Any] = {}
    txns: dict[str, Txn] = {}
    domains: dict[str, DomainMetadata] = {}
    infos: dict[int, Mapping[str, Any]] = {}
    sidecars: list[str] = []
    for version, path, content in commits:
        for kind, action in _actions(content, path):
            if kind in files:
                files[kind][0].append(action)
                files[kind][1].append(version)
            elif kind in ("protocol", "metaData"):
                found[kind] = action
            elif kind == "txn":
                txns[action["appId"]] = Txn.from_json(action)
            elif kind == "domainMetadata":
                domains[action["domain"]] = DomainMetadata.from_json(action)
            elif kind == "commitInfo":
                infos[version] = action
            elif kind == "sidecar":
                sidecars.append(action["path"])
    return Actions(
        from_json(*files["add"], ADDS),
        from_json(*files["remove"], REMOVES),
        from_json(*files["cdc"], CDC),
        Protocol.from_json(found["protocol"]) if "protocol" in found else None,
        Metadata.from_json(found["metaData"]) if "metaData" in found else None,
        txns,
        domains,
        infos,
        tuple(sidecars),
    )


def _actions(content: bytes, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and content of each action of a commit. Its lines are read as one list, which costs half of what each alone
    does."""
    lines = [line for line in content.splitlines() if line.strip()]
    try:
        parsed = json.loads(b"[" + b",".join(lines) + b"]")
    except ValueError:
        parsed = [_parsed(line, path) for line in lines]
    for entry in parsed:
        if not isinstance(entry, dict):
            raise DataError(f"{path}: the commit has a line that is no action: {_shortened(json.dumps(entry))}")
        for kind, action in entry.items():
            if isinstance(action, dict):
                yield kind, action
            elif action is not None and kind in _KINDS:
                raise DataError(f"{path}: the commit has a line that is no action: {_shortened(json.dumps(entry))}")


def _parsed(line: bytes, path: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        text = _shortened(line.decode("utf-8", "replace"))
        raise DataError(f"{path}: the commit has a line that is not JSON ({error}): {text}") from error


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + "…"
