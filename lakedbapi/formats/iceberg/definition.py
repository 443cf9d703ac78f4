"""A table's definition as Iceberg metadata: of a new table, and the updates that make one of another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from pyiceberg import types as iceberg
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.partitioning import PartitionField as IcebergKey
from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import NullOrder, SortDirection, SortOrder
from pyiceberg.table.sorting import SortField as IcebergSortField
from pyiceberg.transforms import IdentityTransform

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats import keys
from lakedbapi.formats.iceberg.places import DATA_PATH, METADATA_PATH
from lakedbapi.formats.iceberg.requests import updates
from lakedbapi.formats.iceberg.schemas import VERSION, model_field, nested_fields
from lakedbapi.formats.iceberg.specs import transform_of
from lakedbapi.formats.iceberg.values import parse
from lakedbapi.formats.sort_keys import sort_paths
from lakedbapi.model.catalog import PartitionSpec, TableInfo, ViewInfo
from lakedbapi.model.sql_types import constant_text, quote_literal, spelled, sql_type
from lakedbapi.model.table_options import CODEC, CODEC_LEVEL, PARQUET_VERSION, check_option
from lakedbapi.model.types import UNASSIGNED, Decimal, Field, List, Map, Scalar, Schema, Struct, Type, walk

DEFAULT_VERSION = 2
_COMMENT = "comment"
LOCATION = "location"
"""The property that says where a new table goes."""
_FIRST_KEY = 1000
"""Ids of partition fields start here."""

_TYPES: Mapping[str, iceberg.IcebergType] = {
    "boolean": iceberg.BooleanType(),
    "int32": iceberg.IntegerType(),
    "int64": iceberg.LongType(),
    "float32": iceberg.FloatType(),
    "float64": iceberg.DoubleType(),
    "date": iceberg.DateType(),
    "time": iceberg.TimeType(),
    "timestamp": iceberg.TimestampType(),
    "timestamptz": iceberg.TimestamptzType(),
    "timestamp_ns": iceberg.TimestampNanoType(),
    "timestamptz_ns": iceberg.TimestamptzNanoType(),
    "varchar": iceberg.StringType(),
    "uuid": iceberg.UUIDType(),
    "blob": iceberg.BinaryType(),
}
_WIDENED: Mapping[str, str] = {
    "int8": "int32",
    "int16": "int32",
    "uint8": "int32",
    "uint16": "int32",
    "uint32": "int64",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "json": "varchar",
}
"""Types that Iceberg does not have, as those that hold all of their values."""
_INSTEAD: Mapping[str, str] = {
    "int128": "DECIMAL(38, 0)",
    "uint128": "VARCHAR",
    "uint64": "DECIMAL(20, 0)",
    "time_ns": "TIME",
    "timetz": "VARCHAR",
    "interval": "VARCHAR",
    "geometry": "BLOB",
    "variant": "VARCHAR",
}
_PROMOTIONS = frozenset({("int32", "int64"), ("float32", "float64")})


@dataclass(frozen=True)
class Definition:
    """`updates` lead from the metadata that there was to `metadata`."""

    metadata: TableMetadata
    updates: tuple[Any, ...] = ()


def format_version(properties: Mapping[str, str]) -> int:
    """ProgrammingError for a version that cannot be written."""
    text = properties.get(VERSION, str(DEFAULT_VERSION))
    if text not in ("1", "2", "3"):
        raise ProgrammingError(f"{VERSION} is {text!r}: tables of version 2 and 3 can be written here")
    return int(text)


def new_definition(table: TableInfo, location: str) -> Definition:
    schema = _schema(table, None)
    version = format_version(table.properties)
    spec = _spec(table.partitioning, table.schema, (), _FIRST_KEY - 1, 0)
    changes: list[Any] = [
        updates.AssignUUIDUpdate(uuid=UUID(table.uuid)),
        updates.UpgradeFormatVersionUpdate(format_version=version),
        updates.AddSchemaUpdate(schema_=schema),
        updates.SetCurrentSchemaUpdate(schema_id=-1),
        updates.AddPartitionSpecUpdate(spec=spec),
        updates.SetDefaultSpecUpdate(spec_id=-1),
        updates.AddSortOrderUpdate(sort_order=_sort_order(table, 1 if table.sorting else 0)),
        updates.SetDefaultSortOrderUpdate(sort_order_id=-1),
        updates.SetLocationUpdate(location=location),
        updates.SetPropertiesUpdate(updates=_properties(table)),
    ]
    return Definition(
        updates.update_table_metadata(MetastoreCatalog._empty_table_metadata(), tuple(changes)), tuple(changes)
    )


def changed_definition(base: TableMetadata, old: TableInfo, new: TableInfo) -> Definition:
    """What makes `new` of `old`, on top of `base`."""
    changes = [
        *_version_updates(base, new),
        *_schema_updates(base, old, new),
        *_spec_updates(base, old, new),
        *_sort_updates(base, old, new),
        *_property_updates(old, new),
    ]
    if not changes:
        return Definition(base)
    return Definition(updates.update_table_metadata(base, tuple(changes)), tuple(changes))


def with_unpartitioned(definition: Definition) -> tuple[Definition, int]:
    """The definition with a spec without fields, and its id."""
    metadata = definition.metadata
    known = [spec.spec_id for spec in metadata.partition_specs if not spec.fields]
    if known:
        return definition, metadata.default_spec_id if metadata.default_spec_id in known else known[-1]
    spec = IcebergSpec(spec_id=max(spec.spec_id for spec in metadata.partition_specs) + 1)
    change = updates.AddPartitionSpecUpdate(spec=spec)
    changed = updates.update_table_metadata(metadata, (change,))
    return Definition(changed, (*definition.updates, change)), spec.spec_id


def _version_updates(base: TableMetadata, new: TableInfo) -> Iterator[Any]:
    version = format_version({VERSION: str(base.format_version), **new.properties})
    if version < base.format_version:
        raise ProgrammingError(f"table {new.name} has {VERSION} {base.format_version}, which cannot go back")
    if version > base.format_version:
        yield updates.UpgradeFormatVersionUpdate(format_version=version)


def _schema_updates(base: TableMetadata, old: TableInfo, new: TableInfo) -> Iterator[Any]:
    if (old.schema, _key(old)) == (new.schema, _key(new)):
        return
    schema = _schema(new, base)
    yield updates.AddSchemaUpdate(schema_=schema)
    yield updates.SetCurrentSchemaUpdate(schema_id=-1)


def _spec_updates(base: TableMetadata, old: TableInfo, new: TableInfo) -> Iterator[Any]:
    if old.partitioning == new.partitioning:
        return
    spec = _spec(
        new.partitioning,
        new.schema,
        base.partition_specs,
        base.last_partition_id or _FIRST_KEY - 1,
        max(spec.spec_id for spec in base.partition_specs) + 1,
    )
    same = next((known for known in base.partition_specs if known.fields == spec.fields), None)
    if same is None:
        yield updates.AddPartitionSpecUpdate(spec=spec)
    yield updates.SetDefaultSpecUpdate(spec_id=(same or spec).spec_id)


def _sort_updates(base: TableMetadata, old: TableInfo, new: TableInfo) -> Iterator[Any]:
    if old.sorting == new.sorting:
        return
    order = _sort_order(new, max(order.order_id for order in base.sort_orders) + 1 if new.sorting else 0)
    if all(known.order_id != order.order_id for known in base.sort_orders):
        yield updates.AddSortOrderUpdate(sort_order=order)
    yield updates.SetDefaultSortOrderUpdate(sort_order_id=order.order_id)


def _property_updates(old: TableInfo, new: TableInfo) -> Iterator[Any]:
    before, after = _properties(old), _properties(new)
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    removed = [name for name in before if name not in after]
    if changed:
        yield updates.SetPropertiesUpdate(updates=changed)
    if removed:
        yield updates.RemovePropertiesUpdate(removals=removed)


_OWN = (VERSION, LOCATION, keys.PROPERTY, _COMMENT)


def _properties(table: TableInfo) -> dict[str, str]:
    found = {name: value for name, value in table.properties.items() if name not in _OWN}
    stated = keys.print_keys([key for key in table.constraints if key.name is not None or key.kind != "primary key"])
    if stated is not None:
        found[keys.PROPERTY] = stated
    if table.comment is not None:
        found[_COMMENT] = table.comment
    return found


def _key(table: TableInfo) -> tuple[str, ...]:
    return next((key.columns for key in table.constraints if key.kind == "primary key"), ())


def _schema(table: TableInfo, base: TableMetadata | None) -> IcebergSchema:
    before = None if base is None else base.schema()
    known = {} if before is None else {field.field_id: field for field in nested_fields(before.fields)}
    fields = [_field(field, known.get(field.id), table) for field in table.schema.fields]
    identifier = [field.id for field in table.schema.fields if field.name in _key(table)]
    schema_id = 0 if base is None else max(schema.schema_id for schema in base.schemas) + 1
    return IcebergSchema(*fields, schema_id=schema_id, identifier_field_ids=identifier)


def _field(field: Field, before: iceberg.NestedField | None, table: TableInfo) -> iceberg.NestedField:
    as_before = None if before is None else model_field(before)
    name = field.name
    initial = write = None
    if before is not None and as_before is not None:
        name = before.name if field.name == as_before.name else field.name
        initial = before.initial_default
        write = before.write_default if field.default == as_before.default else _write_default(field)
    else:
        initial, write = _json_default(field, field.initial_default), _write_default(field)
    return iceberg.NestedField(
        field.id,
        name,
        _type(field, before, table),
        required=not field.nullable,
        doc=field.comment,
        initial_default=initial,
        write_default=write,
    )


def _write_default(field: Field) -> Any:
    return _json_default(field, None if field.default is None else constant_text(field.default))


def _json_default(field: Field, text: str | None) -> Any:
    """A default, None when it is none that metadata can tell: JSON has no NaN and no infinity, and defaults of nested
    types are those of their fields (spec, Default Values)."""
    if text is None or not isinstance(field.type, (Scalar, Decimal)):
        return None
    value = parse(text, _scalar(field))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _type(field: Field, before: iceberg.NestedField | None, table: TableInfo) -> iceberg.IcebergType:
    type = field.type
    old = None if before is None else before.field_type

    def child(inner: Field) -> iceberg.NestedField:
        known = {} if before is None else {f.field_id: f for f in nested_fields((before,))}
        return _field(inner, known.get(inner.id), table)

    if isinstance(type, Struct):
        return iceberg.StructType(*map(child, type.fields))
    if isinstance(type, List):
        return iceberg.ListType(
            type.element.id, child(type.element).field_type, element_required=not type.element.nullable
        )
    if isinstance(type, Map):
        return iceberg.MapType(
            type.key.id,
            child(type.key).field_type,
            type.value.id,
            child(type.value).field_type,
            value_required=not type.value.nullable,
        )
    if before is not None and old is not None and model_field(before).type == type:
        return old  # A fixed length, which a model type does not tell.
    return _scalar(field)


def _scalar(field: Field) -> iceberg.IcebergType:
    if isinstance(field.type, Decimal):
        return iceberg.DecimalType(field.type.precision, field.type.scale)
    assert isinstance(field.type, Scalar)
    return _TYPES[field.type.name]


def _spec(
    partitioning: PartitionSpec | None, schema: Schema, known: Sequence[IcebergSpec], last_id: int, spec_id: int
) -> IcebergSpec:
    """Keys that some earlier spec had keep their ids (spec, Partition Evolution)."""
    if partitioning is None:
        return IcebergSpec(spec_id=spec_id)
    names = {field.id: field.name for field in schema.fields}
    columns = {field.name.casefold(): field.id for field in schema.fields}
    before = {(key.source_id, str(key.transform)): key for spec in known for key in spec.fields}
    found: list[IcebergKey] = []
    taken: set[str] = set()
    for key in partitioning.fields:
        transform = transform_of(key.transform)
        old = before.get((key.field_id, str(transform)))
        column = names[key.field_id]
        name = old.name if old is not None else _key_name(column, key.transform)
        while name in taken or columns.get(name.casefold(), key.field_id) != key.field_id:
            name += "_"
        taken.add(name)
        if old is None:
            last_id += 1
        found.append(IcebergKey(key.field_id, last_id if old is None else old.field_id, transform, name))
    return IcebergSpec(*found, spec_id=spec_id)


def _key_name(column: str, transform: str) -> str:
    """As the Java library calls it."""
    kind = transform.partition("(")[0]
    return column if kind == "identity" else f"{column}_{'trunc' if kind == 'truncate' else kind}"


def _sort_order(table: TableInfo, order_id: int) -> SortOrder:
    paths = sort_paths(table.schema)
    fields = []
    for key in table.sorting:
        path = paths.get(key.expression.strip().casefold(), ())
        if len(path) != 1:
            raise NotSupportedError(
                f"Iceberg table {table.name!r} cannot be SORTED BY {key.expression}: sort it by columns"
            )
        fields.append(
            IcebergSortField(
                path[0].id,
                IdentityTransform(),
                SortDirection.DESC if key.descending else SortDirection.ASC,
                NullOrder.NULLS_FIRST if key.nulls_first else NullOrder.NULLS_LAST,
            )
        )
    return SortOrder(*fields, order_id=order_id)


WRITE_OPTIONS = {
    CODEC: "write.parquet.compression-codec",
    CODEC_LEVEL: "write.parquet.compression-level",
    PARQUET_VERSION: "write.parquet.page-version",
    "parquet_row_group_size_bytes": "write.parquet.row-group-size-bytes",
    "target_file_size": "write.target-file-size-bytes",
}
"""What properties are called that say how files are written."""
ENCRYPTION_KEY = "encryption.key-id"
"""The property of a table whose files and manifests are encrypted (table properties, Encryption)."""
OTHER_CODECS = {"none": "uncompressed", "lz4": "lz4_raw"}
"""Iceberg's words for them."""


def check_new(table: TableInfo) -> None:
    """Errors, each with the way out, for what an Iceberg table cannot be."""
    _check_common(table, None)
    _sort_order(table, 0)
    if format_version(table.properties) < DEFAULT_VERSION:
        raise NotSupportedError(f"table {table.name!r}: tables of {VERSION} 1 can only be read here; use 2 or 3")


def view_schema(view: ViewInfo) -> IcebergSchema:
    """The columns of a new view. NotSupportedError for types that views cannot have."""
    assert view.schema is not None
    columns = TableInfo(view.id, view.schema_id, view.name, numbered(view.schema, 0))
    for field in walk(columns.schema.fields):
        _check_type(columns, field, 3)
    return _schema(columns, None)


_ANEW = (
    "CREATE TABLE another with it as NOT NULL (SHOW CREATE TABLE {0} has the rest), and INSERT INTO that SELECT … "
    "FROM {0}"
)


def check_altered(base: TableMetadata, old: TableInfo, new: TableInfo) -> None:
    """As `check_new`, of changes to a table that is there."""
    _check_common(new, old)
    _sort_order(new, 0)
    list(_version_updates(base, new))
    before = {field.id: field for field in walk(old.schema.fields)}
    for field in walk(new.schema.fields):
        known = before.get(field.id)
        if known is None:
            if not field.nullable and field.initial_default is None and base.snapshots:
                raise NotSupportedError(
                    f"column {field.name!r} cannot be added to Iceberg table {old.name!r} as NOT NULL: its older "
                    f"snapshots would have no value for it; add it nullable, or {_ANEW.format(spelled(old.name))}"
                )
            continue
        if known.nullable and not field.nullable and base.snapshots:
            raise NotSupportedError(
                f"column {field.name!r} of Iceberg table {old.name!r} cannot become NOT NULL, since its older "
                f"snapshots may have NULL in it: {_ANEW.format(spelled(old.name))}"
            )
        if known.type != field.type and not isinstance(field.type, (Struct, List, Map)):
            _check_promotion(old, known, field)


def _check_promotion(table: TableInfo, old: Field, new: Field) -> None:
    """Spec, Schema Evolution."""
    if isinstance(old.type, Decimal) and isinstance(new.type, Decimal):
        return
    names = getattr(old.type, "name", ""), getattr(new.type, "name", "")
    if names not in _PROMOTIONS:
        raise NotSupportedError(
            f"column {old.name!r} of Iceberg table {table.name!r} cannot become {sql_type(new.type)}: only INTEGER "
            "becomes BIGINT, FLOAT becomes DOUBLE, and decimals get more digits. Add a column, UPDATE it, DROP the old "
            "one and RENAME the new one"
        )


def _check_common(table: TableInfo, old: TableInfo | None) -> None:
    version = format_version(table.properties)
    if ENCRYPTION_KEY in table.properties:
        raise NotSupportedError(f"Iceberg table {table.name!r} cannot be encrypted here: leave out {ENCRYPTION_KEY}")
    for option, name in WRITE_OPTIONS.items():
        value = table.properties.get(name)
        if value is not None and (old is None or value != old.properties.get(name)):
            check_option(option, OTHER_CODECS.get(value, value), name)
    for name in (LOCATION, DATA_PATH, METADATA_PATH):
        if "\0" in table.properties.get(name, ""):
            raise ProgrammingError(f"{name} of Iceberg table {table.name!r} has a NUL, which no path can have")
    known = {} if old is None else {field.id: field.default for field in walk(old.schema.fields)}
    for field in walk(table.schema.fields):
        _check_type(table, field, version)
        is_set = field.default is not None and field.default != known.get(field.id)
        if is_set and (version < 3 or _write_default(field) is None):
            raise _default_refused(table, field)
    if table.partitioning is not None and (old is None or old.partitioning != table.partitioning):
        _check_keys(table, table.partitioning)
    for constraint in table.constraints:
        if constraint.kind == "check":
            raise NotSupportedError(
                f"Iceberg table {table.name!r} cannot have CHECK constraints, which no writer would know of: leave it "
                "out, and check rows before you insert them"
            )


def _check_keys(table: TableInfo, partitioning: PartitionSpec) -> None:
    fields = {field.id: field for field in table.schema.fields}
    for key in partitioning.fields:
        field = fields[key.field_id]
        if key.transform != "identity" and not transform_of(key.transform).can_transform(_scalar(field)):
            kind = key.transform.partition("(")[0]
            raise NotSupportedError(
                f"Iceberg table {table.name!r} cannot be partitioned by {kind} of {field.name!r}: "
                f"{sql_type(field.type)} has none; use another column or transform"
            )


_WAY_TO_DEFAULTS = f"make it one, WITH ('{VERSION}' = '3') or by ALTER TABLE … SET ('{VERSION}' = '3'), or "


def _default_refused(table: TableInfo, field: Field) -> NotSupportedError:
    text = constant_text(field.default or "")
    shown = field.default if text is None else quote_literal(text)
    return NotSupportedError(
        f"column {field.name!r} of Iceberg table {table.name!r} cannot have the default {shown}: tables of "
        f"{VERSION} 3 have defaults, which are finite constants without parts; "
        f"{_WAY_TO_DEFAULTS if format_version(table.properties) < 3 else ''}give the value in INSERT"
    )


def _check_type(table: TableInfo, field: Field, version: int) -> None:
    name = getattr(field.type, "name", "")
    if name in _INSTEAD:
        raise NotSupportedError(
            f"column {field.name!r} of {table.name!r}: Iceberg tables cannot hold {sql_type(field.type)} here; use "
            f"{_INSTEAD[name]}, in CREATE TABLE AS with CAST({field.name} AS {_INSTEAD[name]})"
        )
    if name in ("timestamp_ns", "timestamptz_ns") and version < 3:
        raise NotSupportedError(
            f"column {field.name!r} of {table.name!r}: {sql_type(field.type)} needs {VERSION} 3; use TIMESTAMP, or "
            f"WITH ('{VERSION}' = '3')"
        )


def numbered(schema: Schema, highest: int) -> Schema:
    """The schema with Iceberg's types, and ids after `highest` for fields that have none: columns first."""
    last = [max([highest, *(field.id for field in walk(schema.fields))])]

    def number(field: Field) -> Field:
        if field.id != UNASSIGNED:
            return field
        last[0] += 1
        return replace(field, id=last[0])

    def below(type: Type) -> Type:
        if isinstance(type, Struct):
            fields = [number(field) for field in type.fields]
            return Struct(tuple(replace(field, type=below(field.type)) for field in fields))
        if isinstance(type, List):
            element = number(type.element)
            return List(replace(element, type=below(element.type)))
        if isinstance(type, Map):
            key, value = number(type.key), number(type.value)
            return Map(replace(key, type=below(key.type)), replace(value, type=below(value.type)))
        return Scalar(_WIDENED[type.name]) if isinstance(type, Scalar) and type.name in _WIDENED else type

    columns = [number(field) for field in schema.fields]
    return Schema(tuple(replace(field, type=below(field.type)) for field in columns))
