"""How SQLAlchemy's dialect suite makes and cleans lakes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.testing import provision

BACKENDS = ("lake", "ducklake", "delta", "iceberg")
"""What URLs of lakes begin with."""


@provision.post_configure_engine.for_db(*BACKENDS)
def _make_schemas(url: Any, engine: Any, follower_ident: str | None) -> None:
    with engine.begin() as connection:
        for schema in ("test_schema", "test_schema_2"):
            connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {schema}"))


@provision.temp_table_keyword_args.for_db(*BACKENDS)
def _temp_table_keyword_args(cfg: Any, eng: Any) -> dict[str, Any]:
    return {}


@provision.set_default_schema_on_connection.for_db(*BACKENDS)
def _set_default_schema(cfg: Any, dbapi_connection: Any, schema_name: str) -> None:
    dbapi_connection.execute(f"USE {schema_name}")


@provision.follower_url_from_main.for_db(*BACKENDS)
def _follower_url(url: Any, ident: str) -> Any:
    main = make_url(url)
    return main.set(database=f"{main.database}-{ident}")


@provision.create_db.for_db(*BACKENDS)
def _create_lake(cfg: Any, eng: Any, ident: str) -> None:
    """A lake is made by the first connection."""


@provision.drop_db.for_db(*BACKENDS)
def _drop_lake(cfg: Any, eng: Any, ident: str) -> None:
    path = Path(_follower_url(eng.url, ident).database)
    if path.is_dir():
        shutil.rmtree(path)
