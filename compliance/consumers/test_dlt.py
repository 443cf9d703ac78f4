"""dlt reads a lake, and loads into one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from compliance.consumers.conftest import tool

dlt = tool("dlt")
sources = tool("dlt.sources.sql_database")
psycopg = tool("psycopg")


@pytest.mark.parametrize(
    ("backend", "table", "rows"), [("sqlalchemy", "orders", 3), ("pyarrow", "customer", 2), ("pandas", "customer", 2)]
)
def test_tables_are_extracted(url: str, tmp_path: Path, backend: str, table: str, rows: int) -> None:
    destination = dlt.destinations.duckdb(str(tmp_path / "out.duckdb"))
    pipeline = dlt.pipeline("out", destination=destination, dataset_name="copy", pipelines_dir=str(tmp_path / "dlt"))
    pipeline.run(sources.sql_table(url, table=table, backend=backend)).raise_on_failed_jobs()
    with pipeline.sql_client() as client:
        assert client.execute_sql(f"SELECT count(*), count(DISTINCT id) FROM {table}") == [(rows, rows)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """dlt wants a destination with a host: a DuckLake with its catalog in PostgreSQL."""
    server = os.environ.get("LAKE_POSTGRESQL", "host=127.0.0.1 user=postgres dbname=postgres")
    database = f"dlt_{uuid4().hex[:8]}"
    try:
        connection = psycopg.connect(server, autocommit=True)
    except psycopg.OperationalError as error:
        if os.environ.get("LAKE_CI"):
            raise
        pytest.skip(f"no PostgreSQL: {error}")
    with connection:
        info = connection.info
        connection.execute(f"CREATE DATABASE {database}")
        try:
            password = f":{info.password}" if info.password else ""
            yield f"ducklake+postgresql://{info.user}{password}@{info.host}:{info.port}/{database}?data_path={tmp_path}/data/"
        finally:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)")


def test_rows_are_merged_appended_and_replaced(served: str, tmp_path: Path) -> None:
    destination = dlt.destinations.sqlalchemy(served)
    pipeline = dlt.pipeline("into", destination=destination, dataset_name="loaded", pipelines_dir=str(tmp_path / "dlt"))

    def load(disposition: str, *rows: tuple[int, str]) -> list[Any]:
        data = [{"id": id, "name": name} for id, name in rows]
        info = pipeline.run(data, table_name="t", primary_key="id", write_disposition=disposition)
        info.raise_on_failed_jobs()
        engine = sa.create_engine(served)
        with engine.connect() as connection:
            found = connection.execute(sa.text("SELECT id, name FROM loaded.t ORDER BY id")).fetchall()
        engine.dispose()
        return [tuple(row) for row in found]

    assert load("merge", (1, "a"), (2, "b")) == [(1, "a"), (2, "b")]
    assert load("merge", (2, "bb"), (3, "c")) == [(1, "a"), (2, "bb"), (3, "c")]
    assert load("append", (4, "d")) == [(1, "a"), (2, "bb"), (3, "c"), (4, "d")]
    assert load("replace", (9, "z")) == [(9, "z")]
