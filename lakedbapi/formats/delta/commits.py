"""Commits: the JSON files of the log, read into columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
        for line in content.splitlines():
            if not line.strip():
                continue
            kind, action = _action(line, path)
            if action is None:
                continue
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


def _action(line: bytes, path: str) -> tuple[str, dict[str, Any] | None]:
    """The kind and content of one line; the content is None for what is no action at all."""
    try:
        parsed = json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}: the commit has a line that is not JSON ({error}): {_shortened(line)}") from error
    if not isinstance(parsed, dict):
        raise DataError(f"{path}: the commit has a line that is no action: {_shortened(line)}")
    for kind, action in parsed.items():
        if isinstance(action, dict):
            return kind, action
    return "", None


def _shortened(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if len(text) <= 100 else text[:100] + "…"
