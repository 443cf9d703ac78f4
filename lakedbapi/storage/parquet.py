"""Single columns of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakedbapi.errors import DataError, OperationalError
from lakedbapi.storage.filesystem import Storage


def read_field(storage: Storage, path: str, field_id: int, name: str) -> pa.ChunkedArray | None:
    """The top-level column with `field_id`, else one without field id called `name`; None if there is neither."""
    try:
        with storage.filesystem.open(path, "rb") as source, pq.ParquetFile(source) as file:
            column = _find(file.schema_arrow, field_id, name)
            return None if column is None else file.read(columns=[column]).column(0)
    except OSError as error:
        raise OperationalError(f"{path}: reading it failed: {error}") from error
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from error


def row_count(storage: Storage, path: str) -> int:
    """The rows of a file, from its footer."""
    try:
        with storage.filesystem.open(path, "rb") as source, pq.ParquetFile(source) as file:
            return int(file.metadata.num_rows)
    except OSError as error:
        raise OperationalError(f"{path}: reading it failed: {error}") from error
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from error


def _find(schema: pa.Schema, field_id: int, name: str) -> str | None:
    ids = {field.name: (field.metadata or {}).get(b"PARQUET:field_id") for field in schema}
    wanted = str(field_id).encode()
    return next((column for column, id in ids.items() if id == wanted), name if ids.get(name, b"") is None else None)


def read_fields(storage: Storage, path: str, field_ids: Sequence[int]) -> dict[int, pa.ChunkedArray]:
    """The top-level columns with these field ids, without those that the file does not have."""
    try:
        with storage.filesystem.open(path, "rb") as source, pq.ParquetFile(source) as file:
            found = {id: _find(file.schema_arrow, id, "") for id in field_ids}
            names = [name for name in found.values() if name]
            table = file.read(columns=names) if names else None
    except OSError as error:
        raise OperationalError(f"{path}: reading it failed: {error}") from error
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from error
    return {} if table is None else {id: table.column(name) for id, name in found.items() if name}
