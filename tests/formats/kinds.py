"""The kinds of tables: what SQL a program says is the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import lakedbapi
from lakedbapi.formats.base import Capabilities
from tests.formats.needs import need_pyiceberg

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
    checks: bool = True
    """Whether a table can have CHECK constraints."""
    defaults: bool = True
    """Whether a column of a new table can have a default."""
    follows_rows: bool = True
    """Whether the change feed knows the old and the new values of an updated row for those of one row."""
    counts_deleted: bool = True
    """Whether metadata tell how many rows of a file are deleted."""
    starts_empty: bool = True
    """Whether the table as CREATE TABLE left it is a version of it."""
    setup: str = ""
    """A statement that makes a new place keep all rows in files."""

    @property
    def format(self) -> str:
        return self.url.partition(":")[0].partition("+")[0]

    def location(self, directory: Path) -> str:
        return self.url.format(quote(str(directory)))

    def options(self, **more: str) -> str:
        """The clause of CREATE TABLE that sets the properties of this kind, and `more`."""
        pairs = ", ".join(f"'{name}' = '{value}'" for name, value in {**self.properties, **more}.items())
        return f"WITH ({pairs})" if pairs else ""


def capabilities(connection: lakedbapi.Connection) -> Capabilities:
    """What the connection's catalog can do."""
    return connection.session.context().transaction.view("lake").catalog.capabilities


def connect(kind: Kind, directory: Path, **options: Any) -> lakedbapi.Connection:
    """A connection to the tables in a directory. Skips the test where they can only be read."""
    if kind.format == "iceberg":
        need_pyiceberg()
    connection = lakedbapi.connect(kind.location(directory), **options)
    if not capabilities(connection).row_changes:
        connection.close()
        pytest.skip(f"tables of format {kind.format} can only be read")
    return connection


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
ICEBERG = [
    Kind(
        f"iceberg-v{version}",
        "iceberg+sqlite:///{0}/catalog.db?warehouse=file://{0}/warehouse",
        {"format-version": str(version)},
        checks=False,
        defaults=version >= 3,
        follows_rows=version >= 3,
        counts_deleted=version >= 3,
        starts_empty=False,
    )
    for version in (2, 3)
]
KINDS = [DUCKLAKE, DELTA, ICEBERG[-1], DELTA_REWRITING, ICEBERG[0]]
