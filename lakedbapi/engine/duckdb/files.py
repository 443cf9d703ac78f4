"""Data files as SELECT text: columns mapped, deleted rows left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.engine.base import FILENAME, PART, POSITION, ROW_ID, ROW_SNAPSHOT
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.errors import NotSupportedError
from lakedbapi.model import scan as model
from lakedbapi.model.scan import FileGroup
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field, Scalar, Schema

_VIRTUAL = frozenset({"file_index", "file_row_number", "filename"})


@dataclass(frozen=True)
class Piece:
    """Files of one group that one `read_parquet` reads: `rows` are their row numbers in the group."""

    group: FileGroup
    rows: npt.NDArray[np.int64]
    first_part: int


def files_sql(
    schema: Schema, group: FileGroup, first_part: int, extra: Mapping[str, str], resources: Resources
) -> Sequence[str]:
    """SELECT statements that together give the live rows of the group."""
    if group.encryption_keys:
        raise NotSupportedError("Data files of this table are encrypted, and reading encrypted files is not supported.")
    piece = Piece(group, np.arange(group.files.num_rows), first_part)
    return [_piece_sql(schema, piece, extra, resources)]


def _piece_sql(schema: Schema, piece: Piece, extra: Mapping[str, str], resources: Resources) -> str:
    constants = _FileConstants(piece)
    source = _Source(piece)
    columns = [f"{_column(f, piece, source, constants)} AS {quote_identifier(f.name)}" for f in schema.fields]
    columns += [f"{_extra(kind, piece, source, constants)} AS {quote_identifier(name)}" for kind, name in extra.items()]
    conditions: list[str] = []
    if piece.group.max_row_snapshot is not None:
        snapshot = source.embedded(model.ROW_SNAPSHOT_FIELD)
        conditions.append(f"({snapshot} IS NULL OR {snapshot} <= {piece.group.max_row_snapshot})")
    joins = constants.join(resources)
    if deleted := _deleted_positions(piece):
        joins += f" ANTI JOIN {resources.register(deleted)} AS _lake_d ON _lake_d.f = file_index AND _lake_d.p = file_row_number"
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(columns)} FROM {source.sql(resources)}{joins}{where}"


def _column(field: Field, piece: Piece, source: _Source, constants: _FileConstants) -> str:
    name = str(field.id)
    if piece.group.constants is not None and name in piece.group.constants.column_names:
        return f"CAST({constants.value('k' + name, piece.group.constants.column(name))} AS {sql_type(field.type)})"
    return source.column(field)


def _extra(kind: str, piece: Piece, source: _Source, constants: _FileConstants) -> str:
    files = piece.group.files
    if kind == PART:
        if len(piece.rows) == piece.rows[-1] - piece.rows[0] + 1:
            return f"CAST(file_index AS BIGINT) + {piece.first_part + int(piece.rows[0])}"
        return constants.value("part", pa.array(np.arange(files.num_rows, dtype=np.int64) + piece.first_part))
    if kind == POSITION:
        return "file_row_number"
    if kind == FILENAME:
        return "filename"
    if kind == ROW_ID:
        number = f"{constants.value('row_id', files.column('row_id_start'))} + file_row_number"
        embedded = model.ROW_ID_FIELD
    else:
        assert kind == ROW_SNAPSHOT
        number = constants.value("snapshot", files.column("snapshot_id"))
        embedded = model.ROW_SNAPSHOT_FIELD
    return f"coalesce({source.embedded(embedded)}, {number})" if piece.group.embedded else f"({number})"


class _FileConstants:
    """Values that are the same in all rows of a file: literals where all files agree, else from a table joined on the file's number."""

    def __init__(self, piece: Piece) -> None:
        self._rows = piece.rows
        self._columns: dict[str, pa.Array] = {}

    def value(self, name: str, values: pa.Array | pa.ChunkedArray) -> str:
        """SQL for the file's value; `values` has one for each file of the group."""
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        values = values.take(pa.array(self._rows))
        if pa.types.is_int64(values.type) and len(values.unique()) == 1:
            value = values[0].as_py()
            return "CAST(NULL AS BIGINT)" if value is None else f"CAST({value} AS BIGINT)"
        self._columns[name] = values
        return f"_lake_k.{name}"

    def join(self, resources: Resources) -> str:
        if not self._columns:
            return ""
        index = pa.array(np.arange(len(self._rows), dtype=np.uint64))
        table = pa.table({"f": index, **self._columns})
        return f" JOIN {resources.register(table)} AS _lake_k ON _lake_k.f = file_index"


class _Source:
    """The `read_parquet` call: collects the columns that are asked for."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._columns: dict[str, str] = {}

    def column(self, field: Field) -> str:
        """SQL for a column of the table as this source gives it."""
        group = self._piece.group
        name = field.name if field.name.casefold() not in _VIRTUAL else f"_lake_{field.id}"
        read_type, expression = sql_type(field.type), quote_identifier(name)
        if field.type == Scalar("json"):
            read_type, expression = "VARCHAR", f"CAST({expression} AS JSON)"
        key = quote_literal(group.names.get(field.id, field.name)) if group.match == model.NAME else str(field.id)
        default = "NULL" if field.initial_default is None else quote_literal(field.initial_default)
        self._columns[key] = f"{{name: {quote_literal(name)}, type: {quote_literal(read_type)}, default_value: {default}}}"
        return expression

    def embedded(self, field_id: int) -> str:
        name = f"_lake_{field_id}"
        self._columns[str(field_id)] = f"{{name: '{name}', type: 'BIGINT', default_value: NULL}}"
        return quote_identifier(name)

    def sql(self, resources: Resources) -> str:
        paths = self._piece.group.files.column("path").take(pa.array(self._piece.rows))
        # Without any column DuckDB would want to know the files' own ones, which the table may lack.
        columns = self._columns or {"0": "{name: '_lake_none', type: 'BOOLEAN', default_value: NULL}"}
        schema = ", ".join(f"{key}: {column}" for key, column in columns.items())
        return f"read_parquet({resources.paths(paths)}, schema = MAP {{{schema}}})"


def _deleted_positions(piece: Piece) -> pa.Table | None:
    index, positions = [], []
    for number, row in enumerate(piece.rows.tolist()):
        if vector := piece.group.deletes.get(row):
            values = vector.to_numpy()
            positions.append(values)
            index.append(np.full(len(values), number, dtype=np.uint64))
    if not positions:
        return None
    return pa.table({"f": np.concatenate(index), "p": np.concatenate(positions)})
