"""A scan as SELECT text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lakedbapi.engine.base import FILENAME, PART, POSITION, ROW_ID, ROW_SNAPSHOT, ScanRelation
from lakedbapi.engine.duckdb.files import files_sql
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.engine.duckdb.values import from_arrow
from lakedbapi.model.scan import RowGroup, Scan
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type

_EXTRA_TYPES = {PART: "BIGINT", POSITION: "BIGINT", ROW_ID: "BIGINT", ROW_SNAPSHOT: "BIGINT", FILENAME: "VARCHAR"}


def scan_sql(relation: ScanRelation, resources: Resources) -> str:
    """SELECT of the scan's columns by name, then of the `extra` ones, in their order."""
    scan, extra = relation.scan, relation.extra
    branches: list[str] = []
    part = 0
    for group in scan.files:
        if group.files.num_rows:
            branches += files_sql(scan.schema, group, part, extra, resources, in_order=relation.in_order)
        part += group.files.num_rows
    for rows in scan.rows:
        branches.append(_rows_sql(scan, rows, part, extra, resources))
        part += 1
    return "\nUNION ALL ".join(branches) if branches else _nothing(scan, extra)


def _nothing(scan: Scan, extra: Mapping[str, str]) -> str:
    columns = [f"CAST(NULL AS {sql_type(f.type)}) AS {quote_identifier(f.name)}" for f in scan.schema.fields]
    columns += [f"CAST(NULL AS {_EXTRA_TYPES[kind]}) AS {quote_identifier(name)}" for kind, name in extra.items()]
    return f"SELECT {', '.join(columns)} WHERE false"


def _rows_sql(scan: Scan, group: RowGroup, part: int, extra: Mapping[str, str], resources: Resources) -> str:
    """Rows in memory. They are registered under column numbers, since a name may be anything."""
    fields = scan.schema.fields
    arrays: list[pa.ChunkedArray | pa.Array] = [group.rows.column(f.name) for f in fields]
    columns = [f"{from_arrow(f'c{i}', f.type)} AS {quote_identifier(f.name)}" for i, f in enumerate(fields)]
    count = group.rows.num_rows
    for kind, name in extra.items():
        if kind == PART:
            expression = f"CAST({part} AS BIGINT)"
        elif kind == FILENAME:
            expression = f"CAST({'NULL' if group.path is None else quote_literal(group.path)} AS VARCHAR)"
        else:
            expression = f"c{len(arrays)}"
            arrays.append(_row_numbers(group, kind, count))
        columns.append(f"{expression} AS {quote_identifier(name)}")
    arrays.append(pa.nulls(count, pa.bool_()))  # a table without columns would have no rows
    table = pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])
    if group.deletes:
        table = table.filter(pa.array(~group.deletes.mask(count)))
    return f"SELECT {', '.join(columns)} FROM {resources.register(table)}"


def _row_numbers(group: RowGroup, kind: str, count: int) -> pa.Array | pa.ChunkedArray:
    if kind == POSITION:
        return pa.array(np.arange(count, dtype=np.int64))
    numbers = group.row_ids if kind == ROW_ID else group.snapshots
    assert kind in (ROW_ID, ROW_SNAPSHOT)
    return pa.nulls(count, pa.int64()) if numbers is None else numbers
