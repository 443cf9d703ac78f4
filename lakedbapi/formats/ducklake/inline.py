"""Rows and deletes that are written into the catalog instead of into files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlalchemy import BigInteger, Column, MetaData, Table, func, select, update
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable, DropTable
from sqlalchemy.types import TypeEngine, UserDefinedType

from lakedbapi.errors import ConflictError
from lakedbapi.formats.ducklake import changes_made
from lakedbapi.formats.ducklake.attempt import Attempt
from lakedbapi.formats.ducklake.id_lists import among
from lakedbapi.formats.ducklake.inlined import quoted
from lakedbapi.formats.ducklake.text import to_text
from lakedbapi.formats.ducklake.versions import CREATED
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import StagedRows
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import RowGroup
from lakedbapi.model.sql_types import sql_type
from lakedbapi.model.types import Decimal, Field, Scalar, Type

_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"})
_POSTGRESQL = {
    "boolean": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "integer",
    "uint16": "integer",
    "uint32": "bigint",
    "float32": "real",
    "float64": "double precision",
    "time": "time",
    "timetz": "timetz",
    "interval": "interval",
    "uuid": "uuid",
    "varchar": "bytea",
    "json": "bytea",
    "blob": "bytea",
}


class _Verbatim(UserDefinedType[Any]):
    """A column type spelled as given; values go to the driver as they are."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


def create_table(attempt: Attempt, table: TableInfo) -> Table:
    """Create and register the place for rows of `table` as it is after this commit."""
    version = attempt.schema_version
    target = _rows_table(attempt, table, version)
    _create(attempt, target)
    attempt.add(attempt.tables.inlined_data_tables, table_id=table.id, table_name=target.name, schema_version=version)
    return target


def _create(attempt: Attempt, table: Table) -> None:
    if attempt.backend.transactional_ddl:
        attempt.connection.execute(CreateTable(table))
        return
    # Here DDL would commit what came before. A leftover of a commit that failed has a name that nobody else can have.
    with attempt.backend.engine.begin() as connection:
        connection.execute(DropTable(table, if_exists=True))
        connection.execute(CreateTable(table))


def insert_rows(attempt: Attempt, table: TableInfo, staged: Sequence[StagedRows], next_row_id: int) -> int:
    """Write rows; returns the next row id after them. Rows with an id of their own keep it."""
    target = _current_table(attempt, table)
    for group in staged:
        count = group.rows.num_rows
        ids = pa.nulls(count, pa.int64()) if group.row_ids is None else group.row_ids
        is_new = np.asarray(ids.is_null())
        row_ids = np.where(is_new, next_row_id + np.cumsum(is_new) - 1, np.asarray(ids.fill_null(0)))
        next_row_id += int(is_new.sum())
        columns = [
            encode(attempt.backend.kind, group.rows.column(n), field.type)
            for n, field in enumerate(table.schema.fields)
        ]
        keys = [f"c{n}" for n in range(len(columns))]
        for row_id, *values in zip(row_ids.tolist(), *columns, strict=True):
            attempt.add(
                target,
                row_id=row_id,
                begin_snapshot=attempt.snapshot_id,
                **dict(zip(keys, values, strict=True)),
            )
    attempt.made.add(changes_made.INLINED_INSERT, table.id)
    attempt.ids.file_id()  # Readers' caches take the counter as the sign that rows were added.
    return next_row_id


def _current_table(attempt: Attempt, table: TableInfo) -> Table:
    """The inlined table that has the columns of `table`, created if there is none."""
    registered, versions = attempt.tables.inlined_data_tables, attempt.tables.schema_versions
    pending = attempt.pending(registered, table_id=table.id)
    if pending:
        return _rows_table(attempt, table, int(pending[-1]["schema_version"]))
    found = attempt.connection.execute(
        select(
            select(func.max(registered.c.schema_version)).where(registered.c.table_id == table.id).scalar_subquery(),
            select(func.max(versions.c.schema_version)).where(versions.c.table_id == table.id).scalar_subquery(),
        )
    ).one()
    if found[0] is not None and found[0] >= (found[1] or 0):
        return _rows_table(attempt, table, found[0])
    attempt.schema_changed = True
    attempt.add(versions, begin_snapshot=attempt.snapshot_id, schema_version=attempt.schema_version, table_id=table.id)
    return create_table(attempt, table)


def end_rows(attempt: Attempt, table: TableInfo, groups: Iterable[tuple[RowGroup, DeleteVector]]) -> None:
    """End rows of inlined tables. ConflictError if one is not live any more."""
    for group, positions in groups:
        assert group.row_ids is not None
        assert group.snapshots is not None
        index = pa.array(positions.to_numpy())
        wanted = np.stack([np.asarray(group.row_ids.take(index)), np.asarray(group.snapshots.take(index))], axis=1)
        _end_pairs(attempt, table, group.key, wanted.astype(np.int64))
    attempt.made.add(changes_made.INLINED_DELETE, table.id)


def _end_pairs(attempt: Attempt, table: TableInfo, name: str, wanted: npt.NDArray[np.int64]) -> None:
    """`wanted`: (row id, begin snapshot) of each row."""
    registered = attempt.tables.inlined_data_tables.c
    known = select(registered.table_name).where(registered.table_id == table.id, registered.table_name == name)
    if attempt.connection.execute(known).first() is None:
        raise _gone(table)
    target = _system_table(attempt, name)
    live = attempt.connection.execute(
        select(target.c.row_id, target.c.begin_snapshot).where(
            target.c.end_snapshot.is_(None),
            target.c.row_id.between(int(wanted[:, 0].min()), int(wanted[:, 0].max())),
        )
    ).all()
    live_pairs = {(row_id, begin) for row_id, begin in live}
    pairs = [(row_id, begin) for row_id, begin in wanted.tolist()]
    if not live_pairs.issuperset(pairs):
        raise _gone(table)
    end = update(target).where(target.c.end_snapshot.is_(None)).values(end_snapshot=attempt.snapshot_id)
    if len({row_id for row_id, _ in live}) == len(live):
        for chosen in among(target.c.row_id, [row_id for row_id, _ in pairs]):
            attempt.connection.execute(end.where(chosen))
        return
    for row_id, begin in pairs:  # Row ids of other writers are not always unique.
        attempt.connection.execute(end.where(target.c.row_id == row_id, target.c.begin_snapshot == begin))


def _gone(table: TableInfo) -> ConflictError:
    return ConflictError(
        f"table {table.name}: another transaction changed the same rows, or moved them to a data file, since this one "
        "began; roll back and retry"
    )


def delete_positions(attempt: Attempt, table_id: int, deletes: Iterable[tuple[int, DeleteVector]]) -> None:
    """Note deleted positions of data files in the catalog, by data file id."""
    target = attempt.tables.inlined_delete(table_id)
    if not attempt.backend.has_table(attempt.connection, target.name):
        _create(attempt, target)
    for file_id, positions in deletes:
        for position in positions.to_numpy().tolist():
            attempt.add(target, file_id=file_id, row_id=position, begin_snapshot=attempt.snapshot_id)
    attempt.made.add(changes_made.INLINED_DELETE, table_id)


# Stored form


def encode(kind: str, column: pa.ChunkedArray, type: Type) -> list[Any]:
    """The values as a backend of this kind stores them."""
    name = type.name if isinstance(type, Scalar) else ""
    if name == "blob" or name in _INTEGERS:
        return list(column.to_pylist())
    if name == "boolean":
        number: Callable[[bool], Any] = bool if kind in ("postgresql", "duckdb") else int
        return [None if value is None else number(value) for value in column.to_pylist()]
    texts = to_text(column, type)
    if kind == "postgresql" and name in ("varchar", "json"):
        return [None if text is None else text.encode() for text in texts]
    return list(texts)


def _storage_type(kind: str, type: Type) -> TypeEngine[Any]:
    name = type.name if isinstance(type, Scalar) else ""
    if kind == "duckdb":
        return _Verbatim(sql_type(type))
    if kind == "postgresql":
        if isinstance(type, Decimal):
            return _Verbatim(f"numeric({type.precision},{type.scale})")
        return _Verbatim(_POSTGRESQL.get(name, "varchar"))
    if name in _INTEGERS or name == "boolean":
        return BigInteger()
    if kind == "mysql":
        return mysql.LONGBLOB() if name == "blob" else mysql.LONGTEXT()
    return _Verbatim("BLOB" if name == "blob" else "VARCHAR")


def _rows_table(attempt: Attempt, table: TableInfo, schema_version: int) -> Table:
    def column(number: int, field: Field) -> Column[Any]:
        return Column(quoted(field.name), _storage_type(attempt.backend.kind, field.type), key=f"c{number}")

    name = f"ducklake_inlined_data_{table.id}_{schema_version}"
    return _system_table(attempt, name, *(column(number, field) for number, field in enumerate(table.schema.fields)))


def _system_table(attempt: Attempt, name: str, *columns: Column[Any]) -> Table:
    """An inlined table; its first three columns have the keys `row_id`, `begin_snapshot` and `end_snapshot`."""
    names = attempt.tables.inlined_system_columns
    if attempt.tables.version not in CREATED and attempt.backend.has_table(attempt.connection, name):
        first, second, third = attempt.backend.column_names(attempt.connection, name)[:3]
        names = first, second, third  # Catalogs of development versions have both kinds.
    keys = "row_id", "begin_snapshot", "end_snapshot"
    system = [Column(name, BigInteger, key=key) for name, key in zip(names, keys, strict=True)]
    return Table(name, MetaData(schema=attempt.tables.schema_name), *system, *columns)
