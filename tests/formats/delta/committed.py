"""What tests of writing share: commits as they stand in the log, and rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lakedbapi

Action = dict[str, Any]


def commit(table: Path, version: int | None = None) -> list[Action]:
    """The actions of a version; without one, of the newest."""
    log = sorted((table / "_delta_log").glob("[0-9]*.json"))
    path = log[-1] if version is None else table / "_delta_log" / f"{version:020}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]


def of_kind(actions: Iterable[Action], kind: str) -> list[Action]:
    return [action[kind] for action in actions if kind in action]


def info(table: Path, version: int | None = None) -> Action:
    (found,) = of_kind(commit(table, version), "commitInfo")
    return found


def versions(table: Path) -> list[int]:
    return sorted(int(path.stem) for path in (table / "_delta_log").glob("[0-9]*.json"))


def rows(connection: lakedbapi.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def values(connection: lakedbapi.Connection, sql: str) -> list[Any]:
    return [row[0] for row in rows(connection, sql)]
