"""What pyiceberg 0.12 gets wrong or refuses, mended in place."""

from __future__ import annotations

from typing import Any

from pyiceberg.avro import STRUCT_DOUBLE
from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.reader import DoubleReader
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel

from lakedbapi.formats.iceberg.requests import updates


def read_doubles() -> None:
    """Its compiled decoder gives doubles the precision of floats, which changes partition values."""
    DoubleReader.read = _read_double  # type: ignore[method-assign, assignment]


def _read_double(reader: DoubleReader, decoder: BinaryDecoder) -> float:
    value: float = STRUCT_DOUBLE.unpack(decoder.read(8))[0]
    return value


def allow_version_3() -> None:
    """Catalogs whose clients write the metadata can from now on hold tables of version 3, of which it has the model."""
    TableMetadataV3.model_dump_json = _dump  # type: ignore[method-assign, assignment]
    updates.SUPPORTED_TABLE_FORMAT_VERSION = max(3, updates.SUPPORTED_TABLE_FORMAT_VERSION)


def _dump(metadata: TableMetadataV3, **options: Any) -> str:
    if metadata.next_row_id is None:
        metadata = metadata.model_copy(update={"next_row_id": next_row_id(metadata)})
    return IcebergBaseModel.model_dump_json(metadata, **options)


def next_row_id(metadata: Any) -> int:
    """The first row id that no snapshot has taken. Of a table that has just become one of version 3: 0."""
    known: int | None = getattr(metadata, "next_row_id", None)
    if known is not None:
        return known
    return max(((s.first_row_id or 0) + (s.added_rows or 0) for s in metadata.snapshots), default=0)
