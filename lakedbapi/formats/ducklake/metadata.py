"""The catalog tables of DuckLake, as SQLAlchemy Core objects.

Column types hide what the backends store: in Python booleans are `bool`, timestamps are aware UTC `datetime`s and UUIDs
are lower-case dashed text, whatever the backend makes of them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, MetaData, String, Table
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

from lakedbapi.formats.ducklake.versions import has_1_1

_TIMESTAMP = re.compile(
    r"(?P<date>\d{4,}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d+))?"
    r"\s*(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?$"
)


def parse_timestamp(text: str) -> datetime:
    """The instant that a timestamp text of a SQLite catalog means; ValueError if it is none. No zone = UTC."""
    match = _TIMESTAMP.match(text.strip())
    if match is None:
        raise ValueError(f"not a timestamp: {text!r}")
    zone = match["zone"] or "Z"
    offset = timedelta()
    if zone != "Z":
        minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
        offset = timedelta(minutes=-minutes if zone[0] == "-" else minutes)
    naive = datetime.fromisoformat(f"{match['date']} {match['time']}")
    micros = int((match["fraction"] or "").ljust(6, "0")[:6])
    return naive.replace(microsecond=micros, tzinfo=timezone(offset)).astimezone(timezone.utc)


def format_timestamp(instant: datetime) -> str:
    """`instant` (aware) as DuckDB writes it into a SQLite catalog: `2026-11-29 22:08:46.1+00`."""
    text = instant.astimezone(timezone.utc).replace(tzinfo=None).isoformat(" ")
    return (text.rstrip("0") if "." in text else text) + "+00"


class DuckDBType(UserDefinedType[Any]):
    """A DuckDB type, spelled as given."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


class Instant(TypeDecorator[datetime]):
    """TIMESTAMPTZ: an aware `datetime` in UTC."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        if dialect.name == "mysql":
            # DuckDB's own MySQL catalogs keep whole seconds; microseconds are a superset of that.
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        if dialect.name == "duckdb":
            return dialect.type_descriptor(DuckDBType("TIMESTAMPTZ"))
        return dialect.type_descriptor(String())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if dialect.name == "mysql":
            return value.astimezone(timezone.utc).replace(tzinfo=None)
        if dialect.name in ("postgresql", "duckdb"):
            return value
        return format_timestamp(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if isinstance(value, str):
            return parse_timestamp(value)
        instant: datetime = value
        if instant.tzinfo is None:
            return instant.replace(tzinfo=timezone.utc)
        return instant.astimezone(timezone.utc)


class Flag(TypeDecorator[bool]):
    """BOOLEAN; SQLite and MySQL store 0 and 1."""

    impl = Boolean
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(Boolean(create_constraint=False))

    def process_bind_param(self, value: bool | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        return int(value) if dialect.name == "sqlite" else bool(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> bool | None:
        return None if value is None else bool(value)


class Uuid(TypeDecorator[str]):
    """UUID: lower-case dashed text."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.UUID(as_uuid=False))
        if dialect.name == "duckdb":
            return dialect.type_descriptor(DuckDBType("UUID"))
        return dialect.type_descriptor(_TEXT)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else str(value)


# MySQL's TEXT ends at 64 KB, which a change list or a view can exceed.
_TEXT = String().with_variant(mysql.LONGTEXT(), "mysql")


# Whatever the server's defaults are: transactions, all of Unicode, and names that compare exactly.
_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _big(name: str) -> Column[Any]:
    return Column(name, BigInteger)


def _text(name: str) -> Column[Any]:
    return Column(name, _TEXT)


def _flag(name: str) -> Column[Any]:
    return Column(name, Flag)


def _uuid(name: str) -> Column[Any]:
    return Column(name, Uuid)


def _instant(name: str) -> Column[Any]:
    return Column(name, Instant)


def _key(name: str) -> Column[Any]:
    return Column(name, BigInteger, primary_key=True, autoincrement=False)


def _span() -> tuple[Column[Any], Column[Any]]:
    return _big("begin_snapshot"), _big("end_snapshot")


ADDED_IN_1_1 = frozenset({"row_group_count", "min_is_exact", "max_is_exact", "parent_schema_id"})
"""Columns that catalogs of earlier versions do not have."""


class Tables:
    """All catalog tables of a format version in one database schema (`schema` None = the backend's default).

    Attributes are named after the tables without their prefix; columns stand in the order that DuckDB creates them in.
    `lacking` are (table, column) that a catalog of a development version does not have yet.
    """

    def __init__(self, schema: str | None, version: str, lacking: frozenset[tuple[str, str]] = frozenset()) -> None:
        self.schema_name = schema
        self.version = version
        self.collection = MetaData(schema=schema)
        self._lacking = lacking
        self.inlined_system_columns = (
            ("_ducklake_row_id", "_ducklake_begin_snapshot", "_ducklake_end_snapshot")
            if has_1_1(version)
            else ("row_id", "begin_snapshot", "end_snapshot")
        )
        """What the first three columns of new inlined tables are called."""
        self.metadata = self._table(
            "metadata",
            Column("key", _TEXT, nullable=False),
            Column("value", _TEXT, nullable=False),
            _text("scope"),
            _big("scope_id"),
        )
        self.snapshot = self._table(
            "snapshot",
            _key("snapshot_id"),
            _instant("snapshot_time"),
            _big("schema_version"),
            _big("next_catalog_id"),
            _big("next_file_id"),
        )
        self.snapshot_changes = self._table(
            "snapshot_changes",
            _key("snapshot_id"),
            _text("changes_made"),
            _text("author"),
            _text("commit_message"),
            _text("commit_extra_info"),
        )
        self.schema = self._table(
            "schema",
            _key("schema_id"),
            _uuid("schema_uuid"),
            *_span(),
            _text("schema_name"),
            _text("path"),
            _flag("path_is_relative"),
            *self._since_1_1(_big("parent_schema_id")),
        )
        self.table = self._table(
            "table",
            _big("table_id"),
            _uuid("table_uuid"),
            *_span(),
            _big("schema_id"),
            _text("table_name"),
            _text("path"),
            _flag("path_is_relative"),
        )
        self.view = self._table(
            "view",
            _big("view_id"),
            _uuid("view_uuid"),
            *_span(),
            _big("schema_id"),
            _text("view_name"),
            _text("dialect"),
            _text("sql"),
            _text("column_aliases"),
        )
        self.column = self._table(
            "column",
            _big("column_id"),
            *_span(),
            _big("table_id"),
            _big("column_order"),
            _text("column_name"),
            _text("column_type"),
            _text("initial_default"),
            _text("default_value"),
            _flag("nulls_allowed"),
            _big("parent_column"),
            _text("default_value_type"),
            _text("default_value_dialect"),
        )
        self.tag = self._table("tag", _big("object_id"), *_span(), _text("key"), _text("value"))
        self.column_tag = self._table(
            "column_tag", _big("table_id"), _big("column_id"), *_span(), _text("key"), _text("value")
        )
        self.data_file = self._table(
            "data_file",
            _key("data_file_id"),
            _big("table_id"),
            *_span(),
            _big("file_order"),
            _text("path"),
            _flag("path_is_relative"),
            _text("file_format"),
            _big("record_count"),
            _big("file_size_bytes"),
            _big("footer_size"),
            _big("row_id_start"),
            _big("partition_id"),
            _text("encryption_key"),
            _big("mapping_id"),
            _big("partial_max"),
            *self._since_1_1(_big("row_group_count")),
        )
        self.delete_file = self._table(
            "delete_file",
            _key("delete_file_id"),
            _big("table_id"),
            *_span(),
            _big("data_file_id"),
            _text("path"),
            _flag("path_is_relative"),
            _text("format"),
            _big("delete_count"),
            _big("file_size_bytes"),
            _big("footer_size"),
            _text("encryption_key"),
            _big("partial_max"),
            *self._since_1_1(_big("row_group_count")),
        )
        self.file_column_stats = self._table(
            "file_column_stats",
            _big("data_file_id"),
            _big("table_id"),
            _big("column_id"),
            _big("column_size_bytes"),
            _big("value_count"),
            _big("null_count"),
            _text("min_value"),
            _text("max_value"),
            _flag("contains_nan"),
            _text("extra_stats"),
            *self._since_1_1(_flag("min_is_exact"), _flag("max_is_exact")),
        )
        self.file_variant_stats = self._table(
            "file_variant_stats",
            _big("data_file_id"),
            _big("table_id"),
            _big("column_id"),
            _text("variant_path"),
            _text("shredded_type"),
            _big("column_size_bytes"),
            _big("value_count"),
            _big("null_count"),
            _text("min_value"),
            _text("max_value"),
            _flag("contains_nan"),
            _text("extra_stats"),
        )
        self.table_stats = self._table(
            "table_stats", _big("table_id"), _big("record_count"), _big("next_row_id"), _big("file_size_bytes")
        )
        self.table_column_stats = self._table(
            "table_column_stats",
            _big("table_id"),
            _big("column_id"),
            _flag("contains_null"),
            _flag("contains_nan"),
            _text("min_value"),
            _text("max_value"),
            _text("extra_stats"),
            *self._since_1_1(_flag("min_is_exact"), _flag("max_is_exact")),
        )
        self.partition_info = self._table("partition_info", _big("partition_id"), _big("table_id"), *_span())
        self.partition_column = self._table(
            "partition_column",
            _big("partition_id"),
            _big("table_id"),
            _big("partition_key_index"),
            _big("column_id"),
            _text("transform"),
        )
        self.file_partition_value = self._table(
            "file_partition_value",
            _big("data_file_id"),
            _big("table_id"),
            _big("partition_key_index"),
            _text("partition_value"),
        )
        self.files_scheduled_for_deletion = self._table(
            "files_scheduled_for_deletion",
            _big("data_file_id"),
            _text("path"),
            _flag("path_is_relative"),
            _instant("schedule_start"),
        )
        self.inlined_data_tables = self._table(
            "inlined_data_tables", _big("table_id"), _text("table_name"), _big("schema_version")
        )
        self.column_mapping = self._table("column_mapping", _big("mapping_id"), _big("table_id"), _text("type"))
        self.name_mapping = self._table(
            "name_mapping",
            _big("mapping_id"),
            _big("column_id"),
            _text("source_name"),
            _big("target_field_id"),
            _big("parent_column"),
            _flag("is_partition"),
        )
        self.schema_versions = self._table(
            "schema_versions", _big("begin_snapshot"), _big("schema_version"), _big("table_id")
        )
        self.macro = self._table("macro", _big("schema_id"), _big("macro_id"), _text("macro_name"), *_span())
        self.macro_impl = self._table(
            "macro_impl", _big("macro_id"), _big("impl_id"), _text("dialect"), _text("sql"), _text("type")
        )
        self.macro_parameters = self._table(
            "macro_parameters",
            _big("macro_id"),
            _big("impl_id"),
            _big("column_id"),
            _text("parameter_name"),
            _text("parameter_type"),
            _text("default_value"),
            _text("default_value_type"),
        )
        self.sort_info = self._table("sort_info", _big("sort_id"), _big("table_id"), *_span())
        self.sort_expression = self._table(
            "sort_expression",
            _big("sort_id"),
            _big("table_id"),
            _big("sort_key_index"),
            _text("expression"),
            _text("dialect"),
            _text("sort_direction"),
            _text("null_order"),
        )
        self.view_column_tag: Table | None = None
        """Came with 1.1, but not with its first development versions."""
        if has_1_1(version) and ("ducklake_view_column_tag", "view_id") not in lacking:
            self.view_column_tag = self._table(
                "view_column_tag",
                _big("view_id"),
                _text("column_name"),
                *_span(),
                _text("key"),
                _text("value"),
            )

    @property
    def nests_schemas(self) -> bool:
        """Whether schemas can lie in others."""
        return "parent_schema_id" in self.schema.c

    def inlined_delete(self, table_id: int) -> Table:
        """Deletes of single rows of data files: `row_id` is the position in the file. Exists once it was needed."""
        return _inlined_delete(self.schema_name, table_id)

    def _since_1_1(self, *columns: Column[Any]) -> Sequence[Column[Any]]:
        return columns if has_1_1(self.version) else ()

    def _table(self, name: str, *columns: Column[Any]) -> Table:
        name = f"ducklake_{name}"
        present = (column for column in columns if (name, column.name) not in self._lacking)
        return Table(name, self.collection, *present, **_MYSQL)


@functools.lru_cache(maxsize=64)
def tables(schema: str | None, version: str, lacking: frozenset[tuple[str, str]] = frozenset()) -> Tables:
    """The catalog tables of a format version in the database schema `schema`."""
    return Tables(schema, version, lacking)


@functools.lru_cache(maxsize=4096)
def _inlined_delete(schema: str | None, table_id: int) -> Table:
    return Table(
        f"ducklake_inlined_delete_{table_id}",
        MetaData(schema=schema),
        _big("file_id"),
        _big("row_id"),
        _big("begin_snapshot"),
    )
