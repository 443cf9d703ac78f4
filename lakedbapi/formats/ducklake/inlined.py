"""Inlined data: rows of a table, and deletes of single rows of its files, that lie in the catalog itself."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlalchemy import Column, MetaData, String, Table, and_, cast, func, literal, or_, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement, TableClause, quoted_name

from lakedbapi.errors import DataError
from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.ducklake.columnar import fetch_columns
from lakedbapi.formats.ducklake.metadata import DuckDBType, Tables
from lakedbapi.formats.ducklake.objects import load_schema
from lakedbapi.formats.ducklake.values import default_array, evolve, typed_array
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.scan import RowGroup
from lakedbapi.model.types import Field, Scalar, Schema, Type, children

_VARIANT = Scalar("variant")
_TEMPORAL = ("date", "time", "interval")
"""How types begin whose Python values lose nanoseconds, months, 24:00:00, infinity, or years outside of 1 to 9999."""

_MOST_COLUMNS = {"sqlite": 1_900, "postgresql": 400, "mysql": 190}
"""Beside those of the system. A row of PostgreSQL and MySQL must fit into a page, with 18 or 40 bytes of each text."""
_POSTGRESQL_NAME = 63
_POSTGRESQL_COLUMNS = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})


@dataclass(frozen=True)
class InlinedTable:
    """One inlined table: `schema` is that of the lake's table when it was made, which its columns follow."""

    table: Table
    schema: Schema
    row_id: str
    begin: str
    end: str
    defined_at: int
    """The snapshot that gave the lake's table these columns."""


def inlined_tables(
    connection: Connection, backend: Backend, table_id: int, known: dict[str, InlinedTable], *, filled: bool = False
) -> Sequence[InlinedTable]:
    """All inlined tables of a table, or only those with rows, oldest schema first. `known` is filled: they never
    change."""
    registered = backend.tables.inlined_data_tables
    rows = connection.execute(
        select(registered.c.table_name, registered.c.schema_version)
        .where(registered.c.table_id == table_id)
        .order_by(registered.c.schema_version)
    ).all()
    if filled:
        rows = [row for row in rows if _has_rows(connection, backend, row.table_name)]
    for name, schema_version in rows:
        if name not in known:
            known[name] = _describe(connection, backend, table_id, name, schema_version)
    return [known[name] for name, _ in rows]


def _has_rows(connection: Connection, backend: Backend, name: str) -> bool:
    """Much sooner said than what the table's columns are."""
    some = select(literal(1)).select_from(TableClause(name, schema=backend.tables.schema_name)).limit(1)
    return connection.execute(some).first() is not None


def _describe(connection: Connection, backend: Backend, table_id: int, name: str, schema_version: int) -> InlinedTable:
    columns = backend.column_names(connection, name)
    # Format 1.1 renamed the three system columns; they always come first.
    table = Table(name, MetaData(schema=backend.tables.schema_name), *(Column(quoted(column)) for column in columns))
    snapshot = _definition_snapshot(connection, backend.tables, table_id, schema_version)
    schema = load_schema(connection, backend.tables, table_id, snapshot)
    return InlinedTable(table, schema, columns[0], columns[1], columns[2], snapshot)


def _definition_snapshot(connection: Connection, tables: Tables, table_id: int, schema_version: int) -> int:
    """The snapshot that gave the table the columns it had at `schema_version`."""
    versions = tables.schema_versions
    found = connection.execute(
        select(versions.c.begin_snapshot)
        .where(versions.c.table_id == table_id, versions.c.schema_version <= schema_version)
        .order_by(versions.c.schema_version.desc(), versions.c.begin_snapshot.desc())
        .limit(1)
    ).scalar()
    if found is None:
        found = connection.execute(
            select(func.min(tables.table.c.begin_snapshot)).where(tables.table.c.table_id == table_id)
        ).scalar()
    return int(found or 0)


def read_row_group(
    connection: Connection, backend: Backend, inlined: InlinedTable, table: TableInfo, snapshot: int
) -> RowGroup | None:
    """The rows of one inlined table that `snapshot` sees, in the columns of `table`; None if there are none."""
    begin, end = inlined.table.c[inlined.begin], inlined.table.c[inlined.end]
    visible = and_(begin <= snapshot, or_(end.is_(None), end > snapshot))
    group, _ = read_rows(connection, backend, inlined, table, visible)
    return group if group.rows.num_rows else None


def read_rows(
    connection: Connection, backend: Backend, inlined: InlinedTable, table: TableInfo, which: ColumnElement[bool]
) -> tuple[RowGroup, pa.Array]:
    """Rows of one inlined table, in the columns of `table`, and the snapshot that each ended at (NULL = live)."""
    source = inlined.table
    stored = {field.id: field for field in inlined.schema.fields}
    wanted = [stored[field.id] for field in table.schema.fields if field.id in stored]
    system = [source.c[name] for name in (inlined.row_id, inlined.begin, inlined.end)]
    selected = [_selected(source, field, backend) for field in wanted]
    _, columns = fetch_columns(connection, select(*system, *selected).where(which).order_by(*system[:2]))
    row_ids, begins, ends = (pa.array(values, pa.int64()) for values in columns[:3])
    values = {field.id: column for field, column in zip(wanted, columns[3:], strict=True)}
    arrays = [_column(field, stored.get(field.id), values, len(row_ids)) for field in table.schema.fields]
    rows = pa.Table.from_arrays(arrays, names=list(table.schema.names))
    return RowGroup(key=source.name, rows=rows, row_ids=row_ids, snapshots=begins), ends


def _selected(source: Table, field: Field, backend: Backend) -> Any:
    column = source.c[_matching(source, field.name)]
    if field.type == _VARIANT and backend.kind == "duckdb":
        return cast(cast(column, DuckDBType("JSON")), String)
    if backend.kind in ("postgresql", "duckdb") and _is_temporal(field.type):
        return cast(column, String)
    return column


def _is_temporal(type: Type) -> bool:
    """Also inside of it."""
    if isinstance(type, Scalar):
        return type.name.startswith(_TEMPORAL)
    return any(_is_temporal(child.type) for child in children(type))


def _matching(source: Table, name: str) -> str:
    if name in source.c:
        return name
    likely = (name.casefold(), _truncated(name).casefold())
    found = next((column.name for column in source.c if column.name.casefold() in likely), None)
    if found is None:
        raise DataError(f"the catalog is damaged: its table {source.name} has no column {name!r}")
    return found


def quoted(name: str) -> quoted_name:
    """The name of a column, always in quotes: SQLAlchemy leaves them out where a line break is the last character."""
    return quoted_name(name, True)


def _truncated(name: str) -> str:
    """What PostgreSQL makes of it, without a word."""
    return name.encode()[:_POSTGRESQL_NAME].decode(errors="ignore")


def _column(field: Field, stored: Field | None, values: Mapping[int, Sequence[Any]], length: int) -> pa.Array:
    if stored is None:
        return default_array(field, length)
    return evolve(typed_array(values[field.id], stored.type), stored, field)


def can_inline(schema: Schema, backend: Backend) -> bool:
    """Whether rows of a table with these columns can be kept in this catalog, and be read back by DuckDB."""
    reserved = backend.tables.inlined_system_columns
    return _can_name([field.name for field in schema.fields], backend.kind) and all(
        field.name.casefold() not in reserved
        and not field.name.casefold().startswith("_ducklake_")
        and _fits(field.type, backend.kind, nested=False)
        for field in schema.fields
    )


def _can_name(columns: Sequence[str], backend_kind: str) -> bool:
    """Whether a table of this database can have so many columns, called so."""
    if len(columns) > _MOST_COLUMNS.get(backend_kind, math.inf):
        return False
    if backend_kind == "postgresql":
        return all(name == _truncated(name) and name not in _POSTGRESQL_COLUMNS for name in columns)
    if backend_kind == "mysql":
        known = all(len(name) <= 64 and max(map(ord, name)) < 0x10000 and not name[-1].isspace() for name in columns)
        return known and len({_without_accents(name) for name in columns}) == len(columns)
    return True


def _without_accents(name: str) -> str:
    """MySQL takes names for the same that differ in accents."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    return plain.replace("ı", "i")


def _fits(type: Type, backend_kind: str, *, nested: bool) -> bool:
    inside = children(type)
    if inside:
        return all(_fits(child.type, backend_kind, nested=True) for child in inside)
    if not isinstance(type, Scalar):
        return True
    temporal = backend_kind == "postgresql" and type.name.startswith(_TEMPORAL)
    if nested and (type.name in ("blob", "json") or temporal):
        return False  # DuckDB cannot read back its own text of these.
    return type.name not in ("geometry", "variant")


class InlinedDeletes:
    """Deleted positions of data files that lie in the catalog: `file_ids` sorted, `positions` beside them."""

    def __init__(self, file_ids: npt.NDArray[np.int64], positions: npt.NDArray[np.int64]) -> None:
        self._files, starts = np.unique(file_ids, return_index=True)
        self._ends = np.append(starts[1:], len(file_ids))
        self._starts = starts
        self._positions = positions

    def positions(self, file_id: int) -> npt.NDArray[np.int64]:
        index = int(np.searchsorted(self._files, file_id))
        if index == len(self._files) or self._files[index] != file_id:
            return self._positions[:0]
        return self._positions[self._starts[index] : self._ends[index]]

    def counts(self, file_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Number of deletes for each of `file_ids`."""
        if not len(self._files):
            return np.zeros(len(file_ids), np.int64)
        index = np.minimum(np.searchsorted(self._files, file_ids), len(self._files) - 1)
        return np.where(self._files[index] == file_ids, self._ends[index] - self._starts[index], 0).astype(np.int64)


def read_inlined_deletes(connection: Connection, backend: Backend, table_id: int, snapshot: int) -> InlinedDeletes:
    """The inlined deletes of a table that `snapshot` sees."""
    table = backend.tables.inlined_delete(table_id)
    if not backend.has_table(connection, table.name):
        return InlinedDeletes(np.empty(0, np.int64), np.empty(0, np.int64))
    statement = select(table.c.file_id, table.c.row_id).where(table.c.begin_snapshot <= snapshot)
    _, columns = fetch_columns(connection, statement.distinct().order_by(table.c.file_id, table.c.row_id))
    return InlinedDeletes(np.array(columns[0], np.int64), np.array(columns[1], np.int64))
