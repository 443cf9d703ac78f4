"""The kinds of tables that can be written: what SQL a program says is the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from lakedbapi.formats.base import Capabilities

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Kind:
    """A format, and with which properties its tables are made."""

    name: str
    url: str
    """With `{}` for a directory."""
    properties: Mapping[str, str] = field(default_factory=dict)
    feed: Mapping[str, str] = field(default_factory=dict)
    """Properties that a table needs for a change feed."""
    evolution: Mapping[str, str] = field(default_factory=dict)
    """Properties that a table needs for columns that are renamed, dropped and widened."""
    renames: bool = True
    """Whether a table can have another name."""
    setup: str = ""
    """A statement that makes a new place keep all rows in files."""

    @property
    def format(self) -> str:
        return self.url.partition(":")[0].partition("+")[0]

    def location(self, directory: Path) -> str:
        return self.url.format(directory)

    def options(self, **more: str) -> str:
        """The clause of CREATE TABLE that sets the properties of this kind, and `more`."""
        pairs = ", ".join(f"'{name}' = '{value}'" for name, value in {**self.properties, **more}.items())
        return f"WITH ({pairs})" if pairs else ""


def capabilities(format: str) -> Capabilities:
    """What the format can do."""
    module = import_module(f"lakedbapi.formats.{format}.catalog")
    found: Capabilities = module.CAPABILITIES
    return found


_MAPPED = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
_FEED = {"delta.enableChangeDataFeed": "true"}
DUCKLAKE = Kind(
    "ducklake",
    "ducklake:///{0}/catalog.sqlite?data_path={0}/data/",
    setup="CALL set_option('lake', 'data_inlining_row_limit', '0')",
)
DELTA = Kind("delta", "delta:///{0}", {}, _FEED, _MAPPED, renames=False)
DELTA_REWRITING = Kind(
    "delta-copy-on-write", "delta:///{0}", {"delta.enableDeletionVectors": "false"}, _FEED, _MAPPED, renames=False
)
KINDS = [DUCKLAKE, DELTA, DELTA_REWRITING]
