"""Arrow data from whatever a program holds its rows in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakedbapi.errors import InterfaceError


def arrow_data(data: Any) -> pa.Table | pa.RecordBatchReader:
    """A table, or a stream that can be read once, of Arrow, pandas or polars data, a dataset or any Arrow C stream."""
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    if hasattr(data, "scanner"):
        data = data.scanner()
    if hasattr(data, "to_reader"):
        reader: pa.RecordBatchReader = data.to_reader()
        return reader
    if hasattr(data, "to_arrow"):
        return arrow_data(data.to_arrow())
    raise InterfaceError(
        f"{type(data).__name__} holds no Arrow data: pass a pyarrow table or dataset, a pandas or polars frame, "
        "or an object with __arrow_c_stream__"
    )
