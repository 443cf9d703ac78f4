"""Places for lakes: a catalog on SQLite, PostgreSQL or MySQL, or in a DuckDB file, and data in a folder."""

from __future__ import annotations

import atexit
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POSTGRESQL = os.environ.get("LAKE_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/postgres")

MYSQL: dict[str, Any] = {
    "host": os.environ.get("LAKE_MYSQL_HOST", "127.0.0.1"),
    "port": int(os.environ.get("LAKE_MYSQL_PORT", "3306")),
    "user": os.environ.get("LAKE_MYSQL_USER", "root"),
    "password": os.environ.get("LAKE_MYSQL_PASSWORD", ""),
}


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
    """In a database that is empty and used by nobody else. A new one takes ten times longer than to empty one."""
    import psycopg

    with psycopg.connect(POSTGRESQL, autocommit=True) as server:
        info = server.info
        name = _databases.pop() if _databases else _new_database(server)
        # The pools that this process keeps by address have connections of earlier tests, which are cut.
        options = f"application_name={uuid.uuid4().hex[:12]}&data_path={folder / 'data'}/"
        try:
            yield Place(
                "postgresql",
                f"ducklake+postgresql://{info.user}@{info.host}:{info.port}/{name}?{options}",
                f"ducklake:postgres:dbname={name} host={info.host} port={info.port} user={info.user}",
                f"{folder / 'data'}/",
            )
        finally:
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            with psycopg.connect(POSTGRESQL, dbname=name, autocommit=True) as database:
                schemas = database.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_)'")
                for (schema,) in schemas.fetchall():
                    database.execute(f'DROP SCHEMA "{schema}" CASCADE')
                database.execute("CREATE SCHEMA public")
            _databases.append(name)


_databases: list[str] = []
"""Those of this process that are free."""


def _new_database(server: Any) -> str:
    if not _made:
        atexit.register(_drop_databases)
    name = f"lake_{uuid.uuid4().hex[:12]}"
    server.execute(f"CREATE DATABASE {name}")
    _made.append(name)
    return name


_made: list[str] = []


def _drop_databases() -> None:
    import psycopg

    with psycopg.connect(POSTGRESQL, autocommit=True) as server:
        for name in _made:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextmanager
def on_mysql(folder: Path) -> Iterator[Place]:
    """In a database of its own, dropped at the end. DuckDB is not to open it."""
    import pymysql

    name = f"lake_{uuid.uuid4().hex[:12]}"
    with pymysql.connect(**MYSQL, autocommit=True) as server:
        cursor = server.cursor()
        cursor.execute(f"CREATE DATABASE {name}")
        login = f"{MYSQL['user']}:{MYSQL['password']}@{MYSQL['host']}:{MYSQL['port']}"
        url = f"ducklake+mysql://{login}/{name}?data_path={folder / 'data'}/"
        try:
            yield Place("mysql", url, "", f"{folder / 'data'}/")
        finally:
            cursor.execute(f"DROP DATABASE {name}")


def on_duckdb(folder: Path) -> Place:
    """A file that a test leaves open is not to be taken for one of the next test."""
    file, data = folder / f"{uuid.uuid4().hex}.ducklake", folder / "data"
    return Place("duckdb", f"ducklake+duckdb:///{file}?data_path={data}/", f"ducklake:{file}", f"{data}/")


@contextmanager
def on_backend(kind: str, folder: Path) -> Iterator[Place]:
    """By the name of the catalog's database."""
    if kind in ("postgresql", "mysql"):
        with (on_postgresql if kind == "postgresql" else on_mysql)(folder) as place:
            yield place
    else:
        yield on_sqlite(folder) if kind == "sqlite" else on_duckdb(folder)
