"""SQLAlchemy dialect for lakehouse tables, on top of `lakedbapi`."""

from __future__ import annotations

import sys

from sqlalchemy_lake.dialect import LakeDialect
from sqlalchemy_lake.maintenance import Checkpoint, Optimize, Restore, Vacuum
from sqlalchemy_lake.merge import Merge, merge
from sqlalchemy_lake.orm import LakeSession
from sqlalchemy_lake.timetravel import AsOf, as_of
from sqlalchemy_lake.types import (
    GEOMETRY,
    HUGEINT,
    INTERVAL,
    LIST,
    MAP,
    STRUCT,
    TIMESTAMP_MS,
    TIMESTAMP_NS,
    TIMESTAMP_S,
    TINYINT,
    UBIGINT,
    UHUGEINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    UUID,
    VARIANT,
)
from sqlalchemy_lake.upsert import Insert, insert, lake_upsert

__all__ = [
    "GEOMETRY",
    "HUGEINT",
    "INTERVAL",
    "LIST",
    "MAP",
    "STRUCT",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP_S",
    "TINYINT",
    "UBIGINT",
    "UHUGEINT",
    "UINTEGER",
    "USMALLINT",
    "UTINYINT",
    "UUID",
    "VARIANT",
    "AsOf",
    "Checkpoint",
    "Insert",
    "LakeDialect",
    "LakeSession",
    "Merge",
    "Optimize",
    "Restore",
    "Vacuum",
    "as_of",
    "insert",
    "lake_upsert",
    "merge",
]

if "alembic" in sys.modules:  # before 1.18 Alembic has no plugins
    import sqlalchemy_lake.alembic  # noqa: F401
