from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from lakedbapi.engine.base import Query, RelationName, ScanRelation, WriteOptions
from lakedbapi.engine.duckdb import DuckDBEngine
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import FileGroup, Scan
from lakedbapi.model.types import Field, Scalar, Schema
from tests.places import tmp_path

__all__ = ["ask", "directory", "engine", "group", "rows", "tmp_path", "write"]

T = RelationName("lake", "main", "t")
SCHEMA = Schema((Field("id", Scalar("int64"), 1), Field("name", Scalar("varchar"), 2)))


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return f"{tmp_path}/data/"


@pytest.fixture
def engine(directory: str) -> Iterator[DuckDBEngine]:
    opened = DuckDBEngine([directory], [], ["lake"])
    yield opened
    opened.close()


Ask = Callable[..., list[tuple[object, ...]]]


@pytest.fixture
def ask(engine: DuckDBEngine) -> Ask:
    """Rows of a query over the table `t`."""

    def run(
        sql: str, scan: Scan | None = None, extra: dict[str, str] | None = None, **parameters: object
    ) -> list[tuple[object, ...]]:
        relations = {} if scan is None else {T: ScanRelation(scan, extra or {})}
        return rows(engine.fetch(Query(sql, relations, parameters, ("lake", "main"))))

    return run


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def write(
    engine: DuckDBEngine, directory: str, sql: str, schema: Schema = SCHEMA, **options: object
) -> tuple[WrittenFile, ...]:
    return engine.write(Query(sql), schema, WriteOptions(directory, **options))  # type: ignore[arg-type]


def group(files: Sequence[WrittenFile], deletes: dict[int, Sequence[int]] | None = None, **more: object) -> FileGroup:
    """Files with row ids counted through, added by the snapshots 1, 2, …"""
    starts, total = [], 0
    for file in files:
        starts.append(total)
        total += file.record_count
    table = pa.table(
        {
            "file_id": range(len(files)),
            "path": [file.path for file in files],
            "record_count": [file.record_count for file in files],
            "file_size_bytes": [file.file_size_bytes for file in files],
            "row_id_start": starts,
            "snapshot_id": range(1, len(files) + 1),
        }
    )
    vectors = {row: DeleteVector.of(positions) for row, positions in (deletes or {}).items()}
    return FileGroup(table, vectors, **more)  # type: ignore[arg-type]
