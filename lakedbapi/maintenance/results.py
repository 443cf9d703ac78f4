"""What maintenance returns, in DuckLake's columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakedbapi.engine.base import Result, TableResult
from lakedbapi.maintenance.compaction import Done
from lakedbapi.maintenance.flush import FlushDone
from lakedbapi.model.catalog import SnapshotInfo
from lakedbapi.query import SNAPSHOT_TYPES, snapshot_rows

_TEXT, _COUNT = pa.string(), pa.int64()


def compacted(done: Sequence[Done]) -> Result:
    columns = {
        "schema_name": pa.array([part.schema for part in done], _TEXT),
        "table_name": pa.array([part.table for part in done], _TEXT),
        "files_processed": pa.array([part.files_removed for part in done], _COUNT),
        "files_created": pa.array([part.files_added for part in done], _COUNT),
    }
    return TableResult(pa.table(columns), ["VARCHAR", "VARCHAR", "BIGINT", "BIGINT"])


def flushed(done: Sequence[FlushDone]) -> Result:
    columns = {
        "schema_name": pa.array([part.schema for part in done], _TEXT),
        "table_name": pa.array([part.table for part in done], _TEXT),
        "rows_flushed": pa.array([part.rows for part in done], pa.decimal128(38, 0)),
    }
    return TableResult(pa.table(columns), ["VARCHAR", "VARCHAR", "HUGEINT"])


def paths(found: Sequence[str]) -> Result:
    return TableResult(pa.table({"path": pa.array(found, _TEXT)}), ["VARCHAR"])


def counts(**numbers: int) -> Result:
    columns = {name: pa.array([number], _COUNT) for name, number in numbers.items()}
    return TableResult(pa.table(columns), ["BIGINT"] * len(columns))


def snapshots(infos: Sequence[SnapshotInfo]) -> Result:
    return TableResult(snapshot_rows(infos), SNAPSHOT_TYPES)


SUCCESS: Result = TableResult(pa.table({"Success": pa.array([], pa.bool_())}), ["BOOLEAN"])
"""Of what has nothing to tell."""
