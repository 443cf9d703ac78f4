"""Parquet files: single columns, and what the footer tells."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakedbapi.errors import DamagedFileError, OperationalError
from lakedbapi.storage import encryption
from lakedbapi.storage.filesystem import Storage


def read_field(storage: Storage, path: str, field_id: int, name: str, key: str | None = None) -> pa.ChunkedArray | None:
    """The top-level column with `field_id`, else one without field id called `name`; None if there is neither.

    `key` is that of an encrypted file, in base64.
    """
    with _opened(storage, path, key) as (_, file):
        column = _find(file.schema_arrow, field_id, name)
        return None if column is None else file.read(columns=[column]).column(0)


def row_count(storage: Storage, path: str) -> int:
    """The rows of a file, from its footer."""
    with _opened(storage, path) as (_, file):
        return int(file.metadata.num_rows)


def _find(schema: pa.Schema, field_id: int, name: str) -> str | None:
    ids = {field.name: (field.metadata or {}).get(b"PARQUET:field_id") for field in schema}
    wanted = str(field_id).encode()
    return next((column for column, id in ids.items() if id == wanted), name if ids.get(name, b"") is None else None)


def read_fields(
    storage: Storage, path: str, field_ids: Sequence[int], key: str | None = None
) -> dict[int, pa.ChunkedArray]:
    """The top-level columns with these field ids, as far as the file has them; `key` as in `read_field`."""
    with _opened(storage, path, key) as (_, file):
        found = {id: _find(file.schema_arrow, id, "") for id in field_ids}
        names = [name for name in found.values() if name]
        table = file.read(columns=names) if names else None
    return {} if table is None else {id: table.column(name) for id, name in found.items() if name}


@dataclass(frozen=True)
class LeafStatistics:
    """Of one leaf column of a file; None = unknown. `lower` and `upper` are bounds, as Python values."""

    lower: Any
    upper: Any
    null_count: int | None
    value_count: int
    """With NULL."""
    size_bytes: int


@dataclass(frozen=True)
class Footer:
    """`leaves` and `logical_types` (`STRING`, `JSON`, `UUID`, …) are those of the leaf columns, depth first."""

    schema: pa.Schema
    record_count: int
    file_size_bytes: int
    footer_size: int
    row_group_count: int
    leaves: tuple[LeafStatistics, ...]
    logical_types: tuple[str, ...]


def read_footer(storage: Storage, path: str) -> Footer:
    """OperationalError when there is no such file, DamagedFileError when it is no Parquet file."""
    with _opened(storage, path) as (source, file):
        metadata = file.metadata
        size = source.seek(0, 2)
        source.seek(size - 8)
        footer_size = int.from_bytes(source.read(4), "little")
        columns = range(metadata.num_columns)
        return Footer(
            file.schema_arrow,
            metadata.num_rows,
            size,
            footer_size,
            metadata.num_row_groups,
            tuple(_leaf(metadata, number) for number in columns),
            tuple(metadata.schema.column(number).logical_type.type for number in columns),
        )


@contextmanager
def _opened(storage: Storage, path: str, key: str | None = None) -> Iterator[tuple[Any, pq.ParquetFile]]:
    try:
        with storage.filesystem.open(path, "rb") as stored:
            source = stored if key is None else io.BytesIO(encryption.decrypt(stored.read(), key, path))
            with pq.ParquetFile(source) as file:
                yield source, file
    except OSError as error:
        raise OperationalError(f"{path}: reading it failed: {error}") from error
    except pa.ArrowInvalid as error:
        raise DamagedFileError(f"{path}: not a readable Parquet file: {error}") from error


def _leaf(metadata: pq.FileMetaData, number: int) -> LeafStatistics:
    chunks = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
    statistics = [chunk.statistics for chunk in chunks]
    nulls = [s.null_count if s is not None and s.has_null_count else None for s in statistics]
    lows, highs = zip(*(_bounds(s) for s in statistics if not _is_empty(s)), strict=True) if statistics else ((), ())
    known = bool(lows) and None not in lows and None not in highs
    return LeafStatistics(
        min(lows) if known else None,
        max(highs) if known else None,
        None if None in nulls else sum(count for count in nulls if count is not None),
        sum(chunk.num_values for chunk in chunks),
        sum(chunk.total_compressed_size for chunk in chunks),
    )


def _is_empty(statistics: pq.Statistics | None) -> bool:
    """Whether there are only NULLs."""
    return statistics is not None and statistics.has_null_count and not statistics.num_values


def _bounds(statistics: pq.Statistics | None) -> tuple[Any, Any]:
    if statistics is None or not statistics.has_min_max:
        return None, None
    lower, upper = statistics.min, statistics.max
    is_nan = isinstance(lower, float) and (lower != lower or upper != upper)
    return (None, None) if is_nan else (lower, upper)
