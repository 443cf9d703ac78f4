"""Places for lakes that two programs share: a catalog on SQLite or PostgreSQL, data in a folder."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

POSTGRESQL = os.environ.get("LAKE_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/postgres")


@dataclass(frozen=True)
class Place:
    """Where a lake is: `url` for lakedbapi, `location` for DuckDB's ATTACH, `data_path` for both (ends in `/`)."""

    backend: str
    url: str
    location: str
    data_path: str

    @property
    def data_files(self) -> list[Path]:
        """Every Parquet and Puffin file there is, registered or not."""
        return sorted(p for p in Path(self.data_path).rglob("*") if p.suffix in {".parquet", ".puffin"})


def on_sqlite(folder: Path) -> Place:
    data = folder / "data"
    catalog = folder / "catalog.sqlite"
    return Place("sqlite", f"ducklake:///{catalog}?data_path={data}/", f"ducklake:sqlite:{catalog}", f"{data}/")


@contextmanager
def on_postgresql(folder: Path) -> Iterator[Place]:
    """In a database of its own, dropped at the end."""
    import psycopg

    name = f"lake_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(POSTGRESQL, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        info = server.info
        try:
            yield Place(
                "postgresql",
                f"ducklake+postgresql://{info.user}@{info.host}:{info.port}/{name}?data_path={folder / 'data'}/",
                f"ducklake:postgres:dbname={name} host={info.host} port={info.port} user={info.user}",
                f"{folder / 'data'}/",
            )
        finally:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
