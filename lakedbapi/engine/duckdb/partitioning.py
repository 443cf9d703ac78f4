"""Partition keys of written rows: their values, and the names that they have in folders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakedbapi.engine.duckdb import driver
from lakedbapi.errors import NotSupportedError
from lakedbapi.model.bucket import buckets, iceberg_buckets
from lakedbapi.model.catalog import PartitionField, PartitionSpec
from lakedbapi.model.layout import FileLayout
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Decimal, Field, Scalar, Schema, Type

# Plain parts are those of the calendar, in UTC like all sessions; the epoch ones count units since 1970-01-01.
_SQL = {
    "identity": "{0}",
    "year": "year({0})",
    "month": "month({0})",
    "day": "day({0})",
    "hour": "hour({0})",
    "epoch_year": "year({0}) - 1970",
    "epoch_month": "(year({0}) - 1970) * 12 + month({0}) - 1",
    "epoch_day": "CAST({0} AS DATE) - DATE '1970-01-01'",
    "epoch_hour": "CAST(floor(epoch({0}) / 3600) AS BIGINT)",
    "void": "NULL",
}
_BUCKET = re.compile(r"(iceberg_)?bucket\((\d+)\)")
_TRUNCATE = re.compile(r"truncate\((\d+)\)")


@dataclass(frozen=True)
class Key:
    """`name` is the folder's; `buckets` is N of a bucket transform, which SQL cannot compute, else `sql` does.

    `is_iceberg`: it hashes values as Iceberg does.
    """

    name: str
    column: Field
    sql: str | None
    buckets: int | None = None
    is_iceberg: bool = False

    def bucket_of(self, values: pa.Array) -> pa.Array:
        """The number of the bucket of each value."""
        assert self.buckets is not None
        if self.is_iceberg:
            return iceberg_buckets(values, self.buckets, self.column.type)
        return buckets(values, self.buckets, self.column.type)


def partition_keys(spec: PartitionSpec | None, schema: Schema, layout: FileLayout) -> tuple[Key, ...]:
    """The keys in order, with distinct names; NotSupportedError for an unknown transform."""
    if spec is None:
        return ()
    by_id = {f.id: f for f in schema.fields}
    keys: list[Key] = []
    taken = {layout.name(f).casefold() for f in schema.fields} if not only_identity(spec) else set()
    for field in spec.fields:
        column = by_id.get(field.field_id)
        if column is None:
            raise NotSupportedError(
                "The table is partitioned by a field inside a struct, which cannot be written. Partition it by columns."
            )
        name = _name(field, layout.name(column), taken)
        taken.add(name.casefold())
        keys.append(_key(name, field.transform, column))
    return tuple(keys)


def only_identity(spec: PartitionSpec) -> bool:
    """Then the columns themselves are the keys, and the files keep them."""
    return all(field.transform == "identity" for field in spec.fields)


def _key(name: str, transform: str, column: Field) -> Key:
    if bucket := _BUCKET.fullmatch(transform):
        return Key(name, column, None, int(bucket.group(2)), is_iceberg=bucket.group(1) is not None)
    if truncate := _TRUNCATE.fullmatch(transform):
        return Key(name, column, _truncated(quote_identifier(column.name), column.type, int(truncate.group(1))))
    if transform not in _SQL:
        raise NotSupportedError(
            f"The table is partitioned by {transform} of {column.name!r}, which cannot be written. Partition it by"
            " identity, year, month, day, hour, bucket(N) or truncate(N)."
        )
    return Key(name, column, _SQL[transform].format(quote_identifier(column.name)))


def _truncated(column: str, type: Type, width: int) -> str:
    """Text and bytes to a length, numbers down to a multiple; decimals to one of units in the last place."""
    if isinstance(type, Decimal):
        step = f"CAST('{width}e-{type.scale}' AS DECIMAL(38, {type.scale}))"
        return f"CAST({column} - (({column} % {step}) + {step}) % {step} AS {sql_type(type)})"
    name = type.name if isinstance(type, Scalar) else ""
    if name in ("varchar", "json"):
        return f"left({column}, {width})"
    if name == "blob":
        return f"{column}[1:{width}]"
    return f"({column} - (({column} % {width}) + {width}) % {width})"


def _name(field: PartitionField, column: str, taken: set[str]) -> str:
    """`year`, a second one `year_<column>`, then with a number."""
    base = column if field.transform == "identity" else field.transform.split("(")[0]
    candidates = [base, f"{base}_{column}"] if field.transform != "identity" else [base]
    for candidate in candidates:
        if candidate.casefold() not in taken:
            return candidate
    number = 1
    while f"{candidates[-1]}_{number}".casefold() in taken:
        number += 1
    return f"{candidates[-1]}_{number}"


NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a directory is called for the value NULL. DuckDB 1 has another word for it, and has to be given this one."""


def as_text(column: str, type: Type) -> str:
    """SQL for a value as `FileLayout.partition_columns` spells it."""
    text = _text(column, type)
    return text if driver.MAJOR >= 2 else f"coalesce({text}, {quote_literal(NULL)})"


def without_null_text(text: str | None) -> str | None:
    """A value that `as_text` gave, as COPY tells it."""
    return None if text == NULL and driver.MAJOR < 2 else text


def _text(column: str, type: Type) -> str:
    name = type.name if isinstance(type, Scalar) else ""
    if name in ("varchar", "json"):
        return f"nullif(CAST({column} AS VARCHAR), '')"
    if name == "timestamptz":
        return f"strftime(CAST({column} AS TIMESTAMP), '%Y-%m-%dT%H:%M:%S.%fZ')"
    if name == "timestamp":
        return f"strftime({column}, '%Y-%m-%d %H:%M:%S.%f')"
    if name in ("float32", "float64"):
        return (
            f"CASE WHEN isnan({column}) THEN 'NaN' WHEN isinf({column}) THEN if({column} > 0, 'Infinity', '-Infinity') "
            f"ELSE CAST({column} AS VARCHAR) END"
        )
    return f"CAST({column} AS VARCHAR)"


def with_buckets(reader: pa.RecordBatchReader, keys: Sequence[Key], schema: Schema) -> pa.RecordBatchReader:
    """The rows of `reader`, whose columns start with those of `schema`, with a column more for each bucket key."""
    counted = [(schema.fields.index(key.column), key) for key in keys if key.buckets is not None]
    fields = list(reader.schema) + [pa.field(f"_lake_b{i}", pa.int64()) for i in range(len(counted))]

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            added = [key.bucket_of(batch.column(index)) for index, key in counted]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=pa.schema(fields))

    return pa.RecordBatchReader.from_batches(pa.schema(fields), batches())
