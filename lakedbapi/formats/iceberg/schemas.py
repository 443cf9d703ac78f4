"""Iceberg schemas, partition specs and sort orders as model values."""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pyiceberg import types as iceberg
from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.table.sorting import NullOrder, SortDirection, SortOrder

from lakedbapi.errors import NotSupportedError
from lakedbapi.model.catalog import PartitionField, PartitionSpec, SortField
from lakedbapi.model.sql_types import constant_expression, quote_identifier
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Schema, Struct, Type, walk

_SCALARS: Mapping[type[iceberg.IcebergType], str] = {
    iceberg.BooleanType: "boolean",
    iceberg.IntegerType: "int32",
    iceberg.LongType: "int64",
    iceberg.FloatType: "float32",
    iceberg.DoubleType: "float64",
    iceberg.DateType: "date",
    iceberg.TimeType: "time",
    iceberg.TimestampType: "timestamp",
    iceberg.TimestamptzType: "timestamptz",
    iceberg.TimestampNanoType: "timestamp_ns",
    iceberg.TimestamptzNanoType: "timestamptz_ns",
    iceberg.StringType: "varchar",
    iceberg.UUIDType: "uuid",
    iceberg.FixedType: "blob",
    iceberg.BinaryType: "blob",
    iceberg.UnknownType: "int32",  # All of its values are NULL, in no file.
}
_BINARY = (iceberg.FixedType, iceberg.BinaryType)
VERSION = "format-version"
"""The property that stands for the format version of a table (it is none of its metadata)."""
TRANSFORM = re.compile(r"(bucket|truncate)\[(\d+)\]")


def model_schema(schema: IcebergSchema) -> Schema:
    """NotSupportedError for a type that cannot be read."""
    return Schema(_fields(schema.fields))


def _fields(fields: Sequence[iceberg.NestedField]) -> tuple[Field, ...]:
    """Iceberg tells names apart by case and SQL does not: of two such names the later one gets a number."""
    taken: set[str] = set()
    found = []
    for field in map(model_field, fields):
        name = next(name for name in _spellings(field.name) if name.casefold() not in taken)
        taken.add(name.casefold())
        found.append(replace(field, name=name))
    return tuple(found)


def _spellings(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(1))


def model_field(field: iceberg.NestedField) -> Field:
    type = model_type(field.field_type, field.name)
    return Field(
        field.name,
        type,
        field.field_id,
        nullable=not field.required,
        default=_expression(field.field_type, field.write_default, type),
        initial_default=_text(field.field_type, field.initial_default),
        comment=field.doc,
    )


def model_type(type: iceberg.IcebergType, column: str) -> Type:
    if isinstance(type, iceberg.DecimalType):
        return Decimal(type.precision, type.scale)
    if isinstance(type, iceberg.StructType):
        return Struct(_fields(type.fields))
    if isinstance(type, iceberg.ListType):
        return List(model_field(type.element_field))
    if isinstance(type, iceberg.MapType):
        return Map(model_field(type.key_field), model_field(type.value_field))
    name = next((name for kind, name in _SCALARS.items() if isinstance(type, kind)), None)
    if name is None:
        raise NotSupportedError(f"column {column!r} has the Iceberg type {type}, which cannot be read here")
    return Scalar(name)


def _text(type: iceberg.IcebergType, value: object) -> str | None:
    """A default in the JSON encoding of the metadata, as text that casts to the column's type."""
    if value is None or isinstance(value, dict):
        return None  # The default of a struct is that of its fields.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(type, _BINARY):
        data = value if isinstance(value, bytes) else _bytes(str(value))
        return "".join(f"\\x{byte:02X}" for byte in data)
    return str(value)


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return base64.b64decode(text)


def _expression(type: iceberg.IcebergType, value: object, model: Type) -> str | None:
    text = _text(type, value)
    return None if text is None else constant_expression(text, model)


def transform_name(transform: object) -> str:
    """`bucket[16]` as `bucket(16)`."""
    return TRANSFORM.sub(r"\1(\2)", str(transform))


def model_partitioning(spec: IcebergSpec) -> PartitionSpec | None:
    fields = tuple(
        PartitionField(field.source_id, transform_name(field.transform), field.name) for field in spec.fields
    )
    return PartitionSpec(spec.spec_id, fields) if fields else None


def model_sorting(order: SortOrder, schema: IcebergSchema) -> tuple[SortField, ...]:
    """Sort keys that are plain columns."""
    names = {field.field_id: field.name for field in schema.fields}
    return tuple(
        SortField(
            quote_identifier(names[field.source_id]),
            field.direction == SortDirection.DESC,
            field.null_order == NullOrder.NULLS_FIRST,
        )
        for field in order.fields
        if str(field.transform) == "identity" and field.source_id in names
    )


def names_by_id(mapping: NameMapping, schema: Schema) -> Mapping[int, tuple[str, ...]]:
    """The names that fields have in files without ids; none for a field of `schema` that is not mapped. Fields that
    were dropped since are among them: equality deletes may be by these."""
    names: dict[int, tuple[str, ...]] = dict.fromkeys((field.id for field in walk(schema.fields)), ())

    def visit(fields: list[MappedField]) -> None:
        for field in fields:
            if field.field_id is not None:
                names[field.field_id] = tuple(field.names)
            visit(list(field.fields))

    visit(list(mapping.root))
    return names


def nested_fields(fields: Sequence[iceberg.NestedField]) -> Iterator[iceberg.NestedField]:
    """The fields and those in them."""
    for field in fields:
        yield field
        type = field.field_type
        if isinstance(type, iceberg.StructType):
            yield from nested_fields(type.fields)
        elif isinstance(type, iceberg.ListType):
            yield from nested_fields((type.element_field,))
        elif isinstance(type, iceberg.MapType):
            yield from nested_fields((type.key_field, type.value_field))
