"""The table functions that describe a lake."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.context import Context
from lakedbapi.engine.base import Relation, View
from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats.base import Catalog
from lakedbapi.model.catalog import OptionInfo, TableInfo
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.query.change_feed import CHANGES, DELETIONS, INSERTIONS, change_feed
from lakedbapi.query.constants import evaluate
from lakedbapi.query.history import history_rows, snapshot_rows
from lakedbapi.query.names import ResolvedTable, catalog_alias, resolve_catalog, resolve_table
from lakedbapi.query.travel import timestamp_of, version_of
from lakedbapi.sql.references import PREFIX, is_procedure
from lakedbapi.sql.statements import Function, Name
from lakedbapi.transaction import CatalogView

_SPELLED = {"schema_name": "schema"}
"""What DuckDB's functions call the same argument differently, one from the other."""


@dataclass(frozen=True)
class _Call:
    """A call with its arguments computed. `alias` is the catalog; `shown` the hidden columns that the query uses."""

    context: Context
    text: str
    alias: str
    arguments: Mapping[str, Any]
    special: str
    shown: frozenset[str]

    @property
    def catalog(self) -> Catalog:
        return self.context.transaction.catalogs[self.alias]

    @property
    def view(self) -> CatalogView:
        return self.context.transaction.view(self.alias, self.context.as_of)

    @property
    def table_name(self) -> Name:
        """The table that the arguments name, in full where no schema has the first part: that may be a catalog, too."""
        table = self.arguments.get("table_name")
        if not isinstance(table, str):
            raise ProgrammingError(f"{self.text} needs the table's name as text")
        parts = _parts(table) if "schema" not in self.arguments else (self.arguments["schema"], table)
        alias, schema = self.context.search_path
        if len(parts) == 1:
            parts = (schema if alias == self.alias else "main", *parts)
        elif len(parts) == 2 and "schema" not in self.arguments and self.view.schema(parts[0]) is None:
            other = catalog_alias(self.context, parts[0])
            parts = parts if other is None else (other, schema if alias == other else "main", parts[1])
        is_full = len(parts) > 2 and catalog_alias(self.context, parts[0]) is not None
        return Name(parts if is_full else (self.alias, *parts))

    def table(self) -> ResolvedTable:
        return resolve_table(self.context, self.table_name)

    def result(self, columns: Mapping[str, pa.DataType], rows: Sequence[Mapping[str, Any]]) -> dict[str, Relation]:
        schema = pa.schema([pa.field(name, type) for name, type in columns.items()])
        return {self.special: pa.Table.from_pylist(list(rows), schema)}


_PART = re.compile(r'(?:^|\.)(?:"((?:[^"]|"")*)"(?=\.|\Z)|([^.]*))')


def _parts(name: str) -> tuple[str, ...]:
    """Between dots. A part with a dot stands in quotes, as in a statement."""
    return tuple(plain or quoted.replace('""', '"') for quoted, plain in _PART.findall(name))


def lake_function(
    context: Context, special: str, function: Function, shown: frozenset[str] = frozenset()
) -> dict[str, Relation]:
    """The relation that a call stands for, as `special`, and relations that it reads, by local name."""
    name = function.of.last.casefold()
    made = _FUNCTIONS.get(name.removeprefix(PREFIX))
    if is_procedure(function):
        raise ProgrammingError(
            f"{function.of} changes the lake, so it runs by itself: CALL {function.of}(…) or SELECT … FROM "
            f"{function.of}(…), without other relations"
        )
    if made is None:
        raise ProgrammingError(f"there is no procedure {function.of}; functions of SQL are called in a SELECT")
    values = evaluate(context, [*function.arguments, *(value for _, value in function.named)])
    positional, named = values[: len(function.arguments)], values[len(function.arguments) :]
    arguments = {_SPELLED.get(key, key): value for (key, _), value in zip(function.named, named, strict=True)}
    alias = None
    if len(function.of.parts) > 1:
        alias = function.of.parts[0]
    elif name.startswith(PREFIX) or made.takes_catalog:
        alias = arguments.pop("catalog", None)
        if alias is None and positional and (name.startswith(PREFIX) or _is_catalog(context, positional[0])):
            alias = positional.pop(0)
        if alias is None and name.startswith(PREFIX):
            raise ProgrammingError(f"{function.of} needs the catalog's name as its first argument")
    alias = context.search_path[0] if alias is None else str(alias)
    names = made.full_arguments if name.startswith(PREFIX) else made.arguments
    if len(positional) > len(names):
        raise ProgrammingError(f"{function.of} takes at most {len(names)} arguments: {', '.join(names) or 'none'}")
    arguments = {**dict(zip(names, positional, strict=False)), **arguments}
    unknown = sorted(set(arguments) - set(made.arguments) - set(made.full_arguments))
    if unknown:
        raise ProgrammingError(f"{function.of} has no argument {unknown[0]!r}; it has: {', '.join(made.arguments)}")
    call = _Call(context, str(function.of), resolve_catalog(context, alias), arguments, special, shown)
    if isinstance(arguments.get("table_name"), str) and len(call.table_name.parts) > 2:
        call = replace(call, alias=resolve_catalog(context, call.table_name.parts[0]))
    return made.run(call)


def _is_catalog(context: Context, value: Any) -> bool:
    return isinstance(value, str) and catalog_alias(context, value) is not None


def _snapshots(call: _Call) -> dict[str, Relation]:
    """All snapshots, or those that touched a table."""
    table = call.table().table if "table_name" in call.arguments else None
    return {call.special: snapshot_rows(call.catalog.history(table))}


def _history(call: _Call) -> dict[str, Relation]:
    """The snapshots that touched the table, or all."""
    table = call.table().table if "table_name" in call.arguments else None
    return {call.special: history_rows(call.catalog.history(table))}


def _current_snapshot(call: _Call) -> dict[str, Relation]:
    return call.result({"id": pa.uint64()}, [{"id": call.view.snapshot.id}])


def _last_committed_snapshot(call: _Call) -> dict[str, Relation]:
    """NULL where the connection has not committed anything yet."""
    return call.result({"id": pa.uint64()}, [{"id": call.context.transaction.committed.get(call.alias)}])


def _files(call: _Call) -> dict[str, Relation]:
    """The live data files of a table."""
    _, view, _, table = call.table()
    files = view.contents(table).files
    shown = [
        "path",
        "record_count",
        "deleted_count",
        "file_size_bytes",
        "row_id_start",
        "snapshot_id",
        "partition_id",
        "file_id",
    ]
    return {call.special: files.select(shown)}


def _delete_files(call: _Call) -> dict[str, Relation]:
    _, view, _, table = call.table()
    return {call.special: view.snapshot.delete_files(table)} if table.id >= 0 else {call.special: _no_delete_files()}


def _metadata(name: str) -> Callable[[_Call], dict[str, Relation]]:
    def run(call: _Call) -> dict[str, Relation]:
        if name not in call.catalog.capabilities.metadata_tables:
            raise NotSupportedError(f"{call.text}: tables of format {call.catalog.format!r} have no {name}")
        _, view, _, table = call.table()
        return {call.special: view.snapshot.metadata_table(table, name)}

    return run


def _no_delete_files() -> pa.Table:
    text, number = pa.string(), pa.int64()
    return pa.schema(
        [
            ("data_file", text),
            ("path", text),
            ("format", text),
            ("delete_count", number),
            ("file_size_bytes", number),
            ("snapshot_id", number),
        ]
    ).empty_table()


def _list_files(call: _Call) -> dict[str, Relation]:
    """Data files side by side with their delete files, as DuckLake's own function gives them."""
    arguments = call.arguments
    point = None
    if None not in (arguments.get("snapshot_version"), arguments.get("snapshot_time")):
        raise ProgrammingError(f"{call.text}: give one of snapshot_version and snapshot_time")
    if arguments.get("snapshot_version") is not None:
        point = version_of(call.catalog, call.text, arguments["snapshot_version"])
    elif arguments.get("snapshot_time") is not None:
        point = timestamp_of(call.context, call.catalog, arguments["snapshot_time"])
    _, view, _, table = resolve_table(replace(call.context, as_of=point or call.context.as_of), call.table_name)
    files = view.contents(table).files
    deletes = view.snapshot.delete_files(table) if table.id >= 0 else _no_delete_files()
    number = pc.index_in(files.column("path"), deletes.column("data_file"))
    count, uint64 = files.num_rows, pa.uint64()
    return {
        call.special: pa.table(
            {
                "data_file": files.column("path"),
                "data_file_size_bytes": files.column("file_size_bytes").cast(uint64),
                "data_file_footer_size": _optional(files, "footer_size", uint64),
                "data_file_encryption_key": pa.nulls(count, pa.binary()),
                "delete_file": deletes.column("path").take(number),
                "delete_file_size_bytes": deletes.column("file_size_bytes").take(number).cast(uint64),
                "delete_file_footer_size": _optional(files, "delete_footer_size", uint64),
                "delete_file_encryption_key": pa.nulls(count, pa.binary()),
            }
        )
    }


def _optional(table: pa.Table, column: str, type: pa.DataType) -> pa.ChunkedArray | pa.Array:
    return table.column(column).cast(type) if column in table.column_names else pa.nulls(table.num_rows, type)


def _table_info(call: _Call) -> dict[str, Relation]:
    number, rows = pa.int64(), f"{call.special}:rows"
    columns = {
        "table_name": pa.string(),
        "schema_id": number,
        "table_id": number,
        "table_uuid": pa.string(),
        "file_count": number,
        "file_size_bytes": number,
        "delete_file_count": number,
        "delete_file_size_bytes": number,
    }
    table = pa.Table.from_pylist([_sizes(call.view, table) for table in call.view.tables.values()], pa.schema(columns))
    # Arrow has no UUID that every version knows.
    text = f"SELECT * REPLACE (table_uuid::UUID AS table_uuid) FROM {quote_identifier(rows)}"
    return {rows: table, call.special: View(text)}


def _sizes(view: CatalogView, table: TableInfo) -> dict[str, Any]:
    files = view.contents(table).files
    deletes = view.snapshot.delete_files(table) if table.id >= 0 else _no_delete_files()
    return {
        "table_name": table.name,
        "schema_id": table.schema_id,
        "table_id": table.id,
        "table_uuid": table.uuid,
        "file_count": files.num_rows,
        "file_size_bytes": pc.sum(files.column("file_size_bytes"), min_count=0).as_py(),
        "delete_file_count": deletes.num_rows,
        "delete_file_size_bytes": pc.sum(deletes.column("file_size_bytes"), min_count=0).as_py(),
    }


_OPTIONS: Mapping[str, str] = {
    "created_by": "Tool used to write the DuckLake",
    "data_path": "Path to data files",
    "encrypted": "Whether or not to encrypt Parquet files written to the data path",
    "version": "DuckLake format version",
    "data_inlining_row_limit": "Greatest number of rows that an insert keeps in the catalog instead of a data file",
    "target_file_size": "Size in bytes that data files aim at",
    "parquet_compression": "Compression of data files",
    "parquet_compression_level": "Level of that compression",
    "parquet_version": "Version of the Parquet format",
    "parquet_row_group_size": "Rows in a row group of a data file",
    "parquet_row_group_size_bytes": "Bytes in a row group of a data file",
    "hive_file_pattern": "Whether partitions have folders of their own",
    "require_commit_message": "Whether a commit needs a message",
    "rewrite_delete_threshold": "Fraction of deleted rows from which a file is rewritten",
    "delete_older_than": "Age from which unused files are removed",
    "expire_older_than": "Age from which snapshots expire",
    "auto_compact": "Whether maintenance may compact the table",
    "per_thread_output": "Whether each thread of DuckDB writes a file of its own",
    "sort_on_insert": "Whether new rows are sorted by the table's sort keys",
    "write_deletion_vectors": "Whether deletes are written as deletion vectors",
}


def _options(call: _Call) -> dict[str, Relation]:
    columns = dict.fromkeys(("option_name", "description", "value", "scope", "scope_entry"), pa.string())
    return call.result(columns, [_option(option) for option in call.catalog.options()])


def _option(option: OptionInfo) -> dict[str, str | None]:
    entry = ".".join(part for part in (option.schema, option.table) if part is not None)
    return {
        "option_name": option.name,
        "description": _OPTIONS.get(option.name),
        "value": option.value,
        "scope": "TABLE" if option.table is not None else "SCHEMA" if option.schema is not None else "GLOBAL",
        "scope_entry": entry or None,
    }


def _settings(call: _Call) -> dict[str, Relation]:
    columns = dict.fromkeys(("catalog_type", "extension_version", "data_path"), pa.string())
    roots = call.catalog.data_roots()
    row = {
        "catalog_type": call.catalog.catalog_type,
        "data_path": call.catalog.option("data_path") or next(iter(roots), None),
    }
    return call.result(columns, [row])


def _changes(kind: str) -> Callable[[_Call], dict[str, Relation]]:
    def run(call: _Call) -> dict[str, Relation]:
        missing = [name for name in ("start_snapshot", "end_snapshot") if call.arguments.get(name) is None]
        if missing:
            raise ProgrammingError(f"{call.text} needs the table's name, the first and the last snapshot (id or time)")
        bounds = call.arguments["start_snapshot"], call.arguments["end_snapshot"]
        return change_feed(call.context, kind, call.catalog, call.table_name, bounds, call.special, call.shown)

    return run


@dataclass(frozen=True)
class _Function:
    """`arguments` in order; `full_arguments` those of the `ducklake_` form after the catalog.

    `takes_catalog`: the form without prefix may start with the name of an attached catalog, too.
    """

    run: Callable[[_Call], dict[str, Relation]]
    arguments: tuple[str, ...] = ()
    full: tuple[str, ...] | None = None
    takes_catalog: bool = False

    @property
    def full_arguments(self) -> tuple[str, ...]:
        return self.arguments if self.full is None else self.full


_TABLE = ("table_name", "schema")
_RANGE = ("table_name", "start_snapshot", "end_snapshot")

_FUNCTIONS: Mapping[str, _Function] = {
    "snapshots": _Function(_snapshots, _TABLE, full=(), takes_catalog=True),
    "history": _Function(_history, _TABLE),
    "files": _Function(_files, _TABLE),
    "delete_files": _Function(_delete_files, _TABLE),
    **{name: _Function(_metadata(name), _TABLE) for name in ("manifests", "partitions", "refs")},
    "list_files": _Function(_list_files, ("table_name", "schema", "snapshot_version", "snapshot_time")),
    "table_info": _Function(_table_info),
    "options": _Function(_options),
    "settings": _Function(_settings),
    "current_snapshot": _Function(_current_snapshot),
    "last_committed_snapshot": _Function(_last_committed_snapshot),
    **{kind: _Function(_changes(kind), _RANGE, ("schema", *_RANGE)) for kind in (CHANGES, INSERTIONS, DELETIONS)},
}


def reveals(function: Function) -> bool:
    """Whether the relation has `snapshot_id` and `rowid` as hidden columns."""
    return function.of.last.casefold().removeprefix(PREFIX) in (INSERTIONS, DELETIONS)
