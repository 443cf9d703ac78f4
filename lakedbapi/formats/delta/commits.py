"""Commits: the JSON files of the log, read into columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakedbapi.errors import DataError
from lakedbapi.formats.delta.actions import DomainMetadata, Metadata, Protocol, Txn
from lakedbapi.formats.delta.columns import ADDS, CDC, REMOVES, from_json


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


def parse_commits(commits: Sequence[tuple[int, str, bytes]]) -> Actions:
    """The actions of commits (version, path for errors, content), oldest first. Unknown actions are ignored."""
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
    try:
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
    except (pa.ArrowInvalid, pa.ArrowTypeError, AttributeError) as error:
        paths = commits[0][1] if len(commits) == 1 else f"{commits[0][1]} to {commits[-1][1]}"
        raise DataError(f"{paths}: the log has a file action with a value of the wrong type: {error}") from error


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


def _parsed(line: bytes, path: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        text = _shortened(line.decode("utf-8", "replace"))
        raise DataError(f"{path}: the commit has a line that is not JSON ({error}): {text}") from error


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + "…"
