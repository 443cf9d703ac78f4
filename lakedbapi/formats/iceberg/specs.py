"""Partition specs: the types of their tuples, and what they are in the engine's words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, LongType, NestedField, StructType

from lakedbapi.errors import DataError, InternalError
from lakedbapi.formats.iceberg.values import parse
from lakedbapi.model.catalog import PartitionSpec

TRANSFORMS = frozenset({"identity", "bucket", "truncate", "year", "month", "day", "hour"})
_CALENDAR = {part: f"epoch_{part}" for part in ("year", "month", "day", "hour")}


def engine_partitioning(spec: PartitionSpec | None) -> PartitionSpec | None:
    """Years, months, days and hours are counted from 1970 on, buckets are Iceberg's (spec, Partition Transforms)."""
    if spec is None:
        return None
    return PartitionSpec(spec.id, tuple(replace(key, transform=_in_engine(key.transform)) for key in spec.fields))


def _in_engine(transform: str) -> str:
    return f"iceberg_{transform}" if transform.startswith("bucket(") else _CALENDAR.get(transform, transform)


def transform_of(name: str) -> Any:
    """`bucket(16)` as pyiceberg has it."""
    kind, _, argument = name.rstrip(")").partition("(")
    return parse_transform(f"{kind}[{argument}]" if argument else kind)


def partition_type(spec: IcebergSpec, metadata: TableMetadata) -> StructType:
    """Of the spec's tuples; a column that was dropped since has the type that it had last."""
    return StructType(
        *(
            NestedField(f.field_id, f.name, f.transform.result_type(_source(metadata, f.source_id)), required=False)
            for f in spec.fields
        )
    )


def _source(metadata: TableMetadata, field_id: int) -> IcebergType:
    newest = sorted(metadata.schemas, key=lambda schema: schema.schema_id, reverse=True)
    for schema in (metadata.schema(), *newest):
        if field_id in schema.field_ids:
            return schema.find_type(field_id)
    raise InternalError(f"no schema of the table has the field {field_id}, which it is partitioned by")


def partition_tuple(values: tuple[str | None, ...], spec: IcebergSpec, type: StructType) -> Record:
    """From text as in `WrittenFile.partition_values`."""
    found = []
    for text, key, field in zip(values, spec.fields, type.fields, strict=True):
        is_number = str(key.transform) in _CALENDAR
        value = parse(text, LongType() if is_number else field.field_type)
        if text is not None and value is None:
            raise DataError(
                f"{text!r} cannot be the value of the partition field {field.name!r} of an Iceberg table; "
                "partition it by another column, or keep such rows elsewhere"
            )
        found.append(value)
    return Record(*found)
