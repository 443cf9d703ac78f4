"""Which tables a directory has: the directory itself, or those below it, as `table` (in schema `main`) and
`schema/table`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property

from lakedbapi.storage.filesystem import Storage

MAIN = "main"


def is_visible(name: str) -> bool:
    """Whether a directory of this name can be a table or a schema: hidden ones and those of partitions are not."""
    return bool(name) and "/" not in name and "\0" not in name and not name.startswith((".", "_")) and "=" not in name


def is_for_tables(storage: Storage, path: str) -> bool:
    """Whether a directory, which is no table, can be a schema: not when it has nothing but the files of a table that is
    being made, or was not made to the end."""
    entries = storage.entries(path)
    may_be_tables = any(entry.is_directory and is_visible(entry.name) for entry in entries)
    return may_be_tables or not any(entry.name.endswith(".parquet") or "=" in entry.name for entry in entries)


class Tree:
    """The tables below `storage.root` at one time. Each directory is looked at when it is first needed.

    A table is a directory that has a directory called `marker`.
    """

    def __init__(self, storage: Storage, marker: str) -> None:
        self._storage = storage
        self._marker = marker
        self._tables: dict[str, Mapping[str, str]] = {}
        self._lock = threading.Lock()

    @cached_property
    def is_table(self) -> bool:
        """Whether the root itself is a table, the only one."""
        return self._is_table(self._storage.root)

    @cached_property
    def schemas(self) -> Mapping[str, str]:
        """Directory of each schema, by name."""
        found = {MAIN: self._storage.root}
        if not self.is_table:
            _, others = self._below
            found |= {name: path for name, path in others.items() if is_for_tables(self._storage, path)}
        return found

    @cached_property
    def _below(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The directories right below the root, by name: of tables, and others."""
        found = self._directories(self._storage.root)
        tables = {name: path for name, path in found.items() if self._is_table(path)}
        return tables, {name: path for name, path in found.items() if name not in tables}

    def tables(self, schema: str) -> Mapping[str, str]:
        """Directory of each table of a schema, by name."""
        with self._lock:
            found = self._tables.get(schema)
        if found is None:
            found = self._read_tables(schema)
            with self._lock:
                self._tables[schema] = found
        return found

    def _read_tables(self, schema: str) -> Mapping[str, str]:
        root = self._storage.root
        if self.is_table:
            return {root.rstrip("/").rpartition("/")[2]: root}
        found: dict[str, str] = {}
        if schema == MAIN:
            found = dict(self._below[0])
        directory = f"{root}{schema}/"
        if directory in self.schemas.values():
            below = self._directories(directory)
            found |= {name: path for name, path in below.items() if self._is_table(path)}
        return found

    def _directories(self, path: str) -> Mapping[str, str]:
        return {
            entry.name: entry.path + "/"
            for entry in self._storage.entries(path)
            if entry.is_directory and is_visible(entry.name)
        }

    def _is_table(self, path: str) -> bool:
        return self._storage.is_directory(path + self._marker)
