"""The text of `ducklake_snapshot_changes.changes_made`: which objects a snapshot touched, and how.

Only words of DuckLake's own vocabulary are ever written: DuckDB refuses a lake with an unknown one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

DROPPED_SCHEMA = "dropped_schema"
DROPPED_TABLE = "dropped_table"
DROPPED_VIEW = "dropped_view"
DROPPED_SCALAR_MACRO = "dropped_scalar_macro"
DROPPED_TABLE_MACRO = "dropped_table_macro"
CREATED_SCHEMA = "created_schema"
CREATED_TABLE = "created_table"
CREATED_VIEW = "created_view"
CREATED_SCALAR_MACRO = "created_scalar_macro"
CREATED_TABLE_MACRO = "created_table_macro"
INSERTED = "inserted_into_table"
DELETED = "deleted_from_table"
ALTERED_TABLE = "altered_table"
ALTERED_VIEW = "altered_view"
INLINED_INSERT = "inlined_insert"
INLINED_DELETE = "inlined_delete"
FLUSHED = "inline_flush"
MERGED = "merge_adjacent"
REWRITTEN = "rewrite_delete"

_COMPACTIONS = (MERGED, REWRITTEN, "compacted_table")
_ORDER = (
    DROPPED_SCHEMA,
    DROPPED_TABLE,
    DROPPED_VIEW,
    DROPPED_SCALAR_MACRO,
    DROPPED_TABLE_MACRO,
    CREATED_SCHEMA,
    CREATED_TABLE,
    CREATED_VIEW,
    CREATED_SCALAR_MACRO,
    CREATED_TABLE_MACRO,
    INSERTED,
    DELETED,
    ALTERED_TABLE,
    ALTERED_VIEW,
    INLINED_INSERT,
    INLINED_DELETE,
    FLUSHED,
    MERGED,
    REWRITTEN,
)

_ENTRY = re.compile(r'\s*(?P<word>[^:,]+):(?P<object>(?:"(?:[^"]|"")*"|[^,"])*)(?:,|$)')


class ChangesMade:
    """Collects the entries of one commit, each once."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, None]] = {word: {} for word in _ORDER}

    def add(self, word: str, *names_or_id: str | int) -> None:
        """`names_or_id` is one id, or the names of what was created, those of its schemas first."""
        entry = ".".join(str(part) if isinstance(part, int) else _quote(part) for part in names_or_id)
        self._entries[word][entry] = None

    def __bool__(self) -> bool:
        return any(self._entries.values())

    def __str__(self) -> str:
        return ",".join(f"{word}:{entry}" for word, entries in self._entries.items() for entry in entries)


def parse(text: str | None) -> Mapping[str, tuple[str, ...]]:
    """Word -> the ids or quoted names it stands with, in order. Unknown words are kept."""
    changes: dict[str, list[str]] = {}
    for match in _ENTRY.finditer(text or ""):
        changes.setdefault(match["word"], []).append(match["object"])
    return {word: tuple(objects) for word, objects in changes.items()}


def compacts(text: str | None, table_id: int) -> bool:
    """Whether the snapshot only moved rows of the table between files."""
    made = parse(text)
    return any(str(table_id) in made.get(word, ()) for word in _COMPACTIONS)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
