"""Table schemas, which Hudi keeps as Avro schemas in JSON."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.model.types import Decimal, Field, List, Map, Scalar, Schema, Struct, Type, walk

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_OPERATION = "_hoodie_operation"

_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "bytes": "blob",
    "string": "varchar",
    "fixed": "blob",
    "enum": "varchar",
}
_LOGICAL = {
    ("int", "date"): "date",
    ("int", "time-millis"): "time",
    ("long", "time-micros"): "time",
    ("long", "timestamp-millis"): "timestamptz",
    ("long", "timestamp-micros"): "timestamptz",
    ("long", "local-timestamp-millis"): "timestamp_ms",
    ("long", "local-timestamp-micros"): "timestamp",
    ("string", "uuid"): "varchar",
}


def table_schema(avro: str, source: str) -> Schema:
    """The columns of an Avro record schema, without those that Hudi adds.

    `source` is where the text comes from, for the DataError that it is none.
    """
    try:
        record = json.loads(avro)
        columns = [column for column in record["fields"] if column["name"] not in (*META_COLUMNS, _OPERATION)]
        fields = tuple(_Reader(source).fields(columns))
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{source}: its table schema is no Avro record: {error!r}") from error
    return Schema(fields)


def meta_fields(schema: Schema) -> tuple[Field, ...]:
    """The columns that Hudi adds to those of `schema`."""
    first = max((field.id for field in walk(schema.fields)), default=0) + 1
    return tuple(Field(name, Scalar("varchar"), first + number) for number, name in enumerate(META_COLUMNS))


class _Reader:
    """Numbers the fields in the order in which they stand; data files match by name."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._ids = itertools.count(1)
        self._named: dict[str, Any] = {}

    def fields(self, columns: list[Any]) -> Iterator[Field]:
        for column in columns:
            id = next(self._ids)
            type, nullable = self.type(column["type"], column["name"])
            yield Field(column["name"], type, id, nullable, comment=column.get("doc"))

    def type(self, avro: Any, path: str) -> tuple[Type, bool]:
        """The type and whether it may be NULL."""
        if isinstance(avro, list):
            members = [member for member in avro if member != "null"]
            if len(members) != 1:
                raise self._unknown(path, avro)
            return self.type(members[0], path)[0], len(members) < len(avro)
        if isinstance(avro, str):
            if avro in self._named:
                return self.type(self._named[avro], path)
            avro = {"type": avro}
        return self._type(avro, path), False

    def _type(self, avro: Mapping[str, Any], path: str) -> Type:
        name, logical = avro["type"], avro.get("logicalType")
        if isinstance(name, (dict, list)):
            return self.type(name, path)[0]
        if "name" in avro:
            self._named[avro["name"]] = avro
            self._named[f"{avro.get('namespace', '')}.{avro['name']}"] = avro
        if logical == "decimal":
            return Decimal(avro["precision"], avro.get("scale", 0))
        if name == "record":
            return Struct(tuple(self.fields(avro["fields"])))
        if name == "array":
            return List(self._inner("element", avro["items"], path))
        if name == "map":
            key = Field("key", Scalar("varchar"), next(self._ids), nullable=False)
            return Map(key, self._inner("value", avro["values"], path))
        scalar = _PRIMITIVES.get(name) if logical is None else _LOGICAL.get((name, logical))
        if scalar is None:
            raise self._unknown(path, avro)
        return Scalar(scalar)

    def _inner(self, name: str, avro: Any, path: str) -> Field:
        id = next(self._ids)
        type, nullable = self.type(avro, path)
        return Field(name, type, id, nullable)

    def _unknown(self, path: str, avro: Any) -> NotSupportedError:
        return NotSupportedError(f"{self._source}: column {path!r} has the Avro type {json.dumps(avro)}, unknown here")
