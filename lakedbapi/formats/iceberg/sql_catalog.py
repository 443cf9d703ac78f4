"""pyiceberg's catalog in a database, without what its commits do over again."""

from __future__ import annotations

import os
import posixpath
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pyiceberg.catalog.sql
from pyiceberg.io import FileIO
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Identifier
from sqlalchemy import select

from lakedbapi.formats.iceberg.paths import Paths
from lakedbapi.formats.iceberg.requests import updates as requests
from lakedbapi.storage.exclusive import link_complete

_KEPT = 64
_OF_SNAPSHOTS = (requests.AddSnapshotUpdate, requests.SetSnapshotRefUpdate)


class SqlCatalog(pyiceberg.catalog.sql.SqlCatalog):
    """Metadata files never change: those that were read or written last are kept, where pyiceberg reads and parses the
    file of a table twice for each commit, and copies what it made of all snapshots."""

    def __init__(self, name: str, **properties: str) -> None:
        self._known: OrderedDict[str, TableMetadata] = OrderedDict()
        self._lock = threading.Lock()
        super().__init__(name, **properties)

    def metadata_location(self, identifier: Identifier) -> str | None:
        """Where the metadata of a table is, which need not be readable; None where there is no such table."""
        *namespace, name = identifier
        tables = pyiceberg.catalog.sql.IcebergTables
        found = select(tables.metadata_location).where(
            tables.catalog_name == self.name,
            tables.table_namespace == self.namespace_to_string(tuple(namespace)),
            tables.table_name == name,
        )
        with self.engine.connect() as connection:
            return connection.execute(found).scalar()

    def _convert_orm_to_iceberg(self, orm_table: Any) -> Table:
        location = orm_table.metadata_location
        with self._lock:
            metadata = self._known.get(location)
        if metadata is None:
            table = super()._convert_orm_to_iceberg(orm_table)
            self._keep(location, table.metadata)
            return table
        identifier = (*self.identifier_to_tuple(orm_table.table_namespace), orm_table.table_name)
        return Table(identifier, metadata, location, self._load_file_io(metadata.properties, location), self)

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[Any, ...],
        updates: tuple[Any, ...],
    ) -> StagedTable:
        if current_table is None:
            return super()._update_and_stage_table(current_table, table_identifier, requirements, updates)
        old, location = current_table.metadata, current_table.metadata_location
        for requirement in requirements:
            requirement.validate(old)
        metadata = _updated(old, updates, location)
        number = self._parse_metadata_version(location) + 1
        provider = load_location_provider(metadata.location, metadata.properties)
        place = provider.new_table_metadata_file_location(number)
        if all(isinstance(update, _OF_SNAPSHOTS) for update in updates):
            self._keep(place, metadata)  # Other updates may make what is another model when it is read.
        return StagedTable(table_identifier, metadata, place, self._load_file_io(metadata.properties, place), self)

    def _write_metadata(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:  # type: ignore[override]
        """A local file appears whole, and is on disk before the database points to it."""
        path = Paths().full(metadata_path)
        if "://" in path:
            super()._write_metadata(metadata, io, metadata_path)
            return
        hidden = posixpath.join(posixpath.dirname(path), f".{uuid4().hex}-{posixpath.basename(path)}")
        try:
            super()._write_metadata(metadata, io, hidden)
            link_complete(hidden, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(hidden)

    def _keep(self, location: str, metadata: TableMetadata) -> None:
        with self._lock:
            self._known[location] = metadata
            self._known.move_to_end(location)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)


def _updated(metadata: TableMetadata, updates: tuple[Any, ...], location: str) -> TableMetadata:
    """As `update_table_metadata` of pyiceberg, but for its copy of everything, which nobody changes."""
    context = requests._TableMetadataUpdateContext()
    found = metadata
    for update in updates:
        found = requests._apply_table_update(update, found, context)
    if context.has_changes():
        found = requests._update_table_metadata_log(found, location, metadata.last_updated_ms)
        if found.last_updated_ms == metadata.last_updated_ms:
            found = found.model_copy(update={"last_updated_ms": time.time_ns() // 1_000_000})
    found.spec().check_compatible(found.schema())
    found.sort_order().check_compatible(found.schema())
    return found
