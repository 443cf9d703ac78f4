"""A catalog that is written to, as lakedbapi and as pyiceberg see it."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroFile
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record

import lakedbapi
from lakedbapi.formats.iceberg.manifest_files import Row, read_list, read_manifest


@dataclass
class Lake:
    """A catalog in SQLite; tables are made in `main` with the given format version."""

    root: Path
    version: int = 2
    connections: list[lakedbapi.Connection] = field(default_factory=list)

    def connect(self, **options: Any) -> lakedbapi.Connection:
        warehouse = self.root / "warehouse"
        warehouse.mkdir(exist_ok=True)
        url = f"iceberg+sqlite:///{self.root}/catalog.db?warehouse=file://{warehouse}"
        connection = lakedbapi.connect(url, **{"autocommit": True, **options})
        self.connections.append(connection)
        return connection

    def create(
        self, lake: lakedbapi.Connection, name: str = "t", columns: str = "a BIGINT, s VARCHAR", **more: str
    ) -> None:
        properties = {
            "format-version": str(self.version),
            **{key.replace("_", "-"): text for key, text in more.items()},
        }
        shown = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        lake.execute(f"CREATE TABLE {name} ({columns}) WITH ({shown})")

    @property
    def catalog(self) -> Catalog:
        warehouse = f"file://{self.root}/warehouse"
        return load_catalog("default", type="sql", uri=f"sqlite:///{self.root}/catalog.db", warehouse=warehouse)

    def table(self, name: str = "t") -> Table:
        return self.catalog.load_table(f"main.{name}")

    def snapshots(self, name: str = "t") -> list[Snapshot]:
        return list(self.table(name).metadata.snapshots)

    def summary(self, name: str = "t") -> dict[str, str]:
        snapshot = self.snapshots(name)[-1]
        assert snapshot.summary is not None
        return {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}

    def manifests(self, name: str = "t") -> list[Row]:
        path = self.snapshots(name)[-1].manifest_list
        return read_list(path, _read(path))

    def entries(self, name: str = "t", *, deleted: bool = False) -> list[Row]:
        """Entries of the newest snapshot, each with the row of its manifest."""
        found = []
        for row in self.manifests(name):
            for entry in read_manifest(row["manifest_path"], _read(row["manifest_path"])).entries:
                if deleted or entry["status"] != 2:
                    found.append({**entry, "manifest": row})
        return found

    def files(self, content: int, name: str = "t") -> list[Row]:
        """The live files of a content."""
        return [e["data_file"] for e in self.entries(name) if e["data_file"]["content"] == content]

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


def _read(name: str) -> bytes:
    return Path(name.removeprefix("file://")).read_bytes()


def read_parquet(name: str) -> Any:
    return pq.read_table(io.BytesIO(_read(name)))


def avro_metadata(name: str) -> dict[str, str]:
    with AvroFile[Record](PyArrowFileIO().new_input(name)) as file:
        return dict(file.header.meta)


def values(lake: lakedbapi.Connection, sql: str) -> list[Any]:
    """The first column, sorted."""
    return sorted(row[0] for row in lake.execute(sql).fetchall())


def rows(lake: lakedbapi.Connection, sql: str = "SELECT * FROM t") -> list[tuple[Any, ...]]:
    return sorted(lake.execute(sql).fetchall(), key=str)
