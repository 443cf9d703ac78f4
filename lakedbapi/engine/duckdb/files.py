"""Data files as SELECT text: columns mapped to the table's, deleted rows left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.engine.base import FILENAME, PART, POSITION, ROW_ID, ROW_SNAPSHOT
from lakedbapi.engine.duckdb import deletions
from lakedbapi.engine.duckdb.footers import FileSchema, file_schemas
from lakedbapi.engine.duckdb.mapping import Mapped, map_field, needs_footers
from lakedbapi.engine.duckdb.perfile import PerFile
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.errors import NotSupportedError
from lakedbapi.model import scan as model
from lakedbapi.model.scan import FileGroup
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field, Schema

_VIRTUAL = frozenset({"file_index", "file_row_number", "filename"})


@dataclass(frozen=True)
class Piece:
    """Files of a group that one `read_parquet` reads.

    `rows` are their row numbers in the group, `methods` how the deletes of each are applied, `schema` is what they have
    in common where that had to be looked up.
    """

    group: FileGroup
    rows: npt.NDArray[np.int64]
    first_part: int
    methods: npt.NDArray[np.str_]
    schema: FileSchema | None

    def column(self, name: str) -> pa.Array:
        """A column of the file list, for the files of the piece."""
        return self.take(self.group.files.column(name))

    def take(self, values: pa.ChunkedArray | pa.Array) -> pa.Array:
        taken = values.take(pa.array(self.rows))
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


def files_sql(
    schema: Schema,
    group: FileGroup,
    first_part: int,
    extra: Mapping[str, str],
    resources: Resources,
    *,
    exhaustive: bool,
) -> Sequence[str]:
    """SELECT statements that together give the live rows of the group."""
    if group.encryption_keys:
        raise NotSupportedError("Data files of this table are encrypted, and reading encrypted files is not supported.")
    pieces = _pieces(schema, group, first_part, resources, exhaustive)
    return [_piece_sql(schema, piece, extra, resources) for piece in pieces]


def _pieces(
    schema: Schema, group: FileGroup, first_part: int, resources: Resources, exhaustive: bool
) -> Iterator[Piece]:
    counts = group.files.column("record_count").to_numpy()
    vectors = [group.deletes.get(row) for row in range(len(counts))] if group.deletes else []
    methods = np.full(len(counts), deletions.NONE)
    if vectors:
        methods = deletions.methods(vectors, counts, exhaustive=exhaustive, threads=resources.threads)
    for rows in deletions.read_together(methods, counts, threads=resources.threads):
        if not needs_footers(schema, group):
            yield Piece(group, rows, first_part, methods[rows], None)
            continue
        for file_schema, same in file_schemas(group.files.column("path"), rows, resources):
            yield Piece(group, same, first_part, methods[same], file_schema)


def _piece_sql(schema: Schema, piece: Piece, extra: Mapping[str, str], resources: Resources) -> str:
    per_file = PerFile(resources)
    source = _Source(piece)
    columns = [f"{_column(f, piece, source, per_file)} AS {quote_identifier(f.name)}" for f in schema.fields]
    columns += [f"{_extra(kind, piece, source, per_file)} AS {quote_identifier(name)}" for kind, name in extra.items()]
    left_out = deletions.Deletions()
    if piece.group.deletes:
        vectors = [piece.group.deletes.get(row) for row in piece.rows.tolist()]
        counts = piece.column("record_count").to_numpy()
        left_out = deletions.deletions(piece.methods, vectors, counts, resources)
    conditions = [] if left_out.condition is None else [left_out.condition]
    if piece.group.max_row_snapshot is not None:
        snapshot = source.embedded(model.ROW_SNAPSHOT_FIELD)
        conditions.append(f"({snapshot} IS NULL OR {snapshot} <= {piece.group.max_row_snapshot})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(columns)} FROM {source.sql(resources)}{left_out.join}{per_file.join()}{where}"


def _column(field: Field, piece: Piece, source: _Source, per_file: PerFile) -> str:
    constants = piece.group.constants
    if constants is not None and str(field.id) in constants.column_names:
        return per_file.value(piece.take(constants.column(str(field.id))), sql_type(field.type))
    return source.column(field)


def _extra(kind: str, piece: Piece, source: _Source, per_file: PerFile) -> str:
    if kind == PART:
        if piece.rows[-1] - piece.rows[0] == len(piece.rows) - 1:
            return f"CAST(file_index AS BIGINT) + {piece.first_part + int(piece.rows[0])}"
        return per_file.value(pa.array(piece.rows + piece.first_part), "BIGINT")
    if kind == POSITION:
        return "file_row_number"
    if kind == FILENAME:
        return "filename"
    if kind == ROW_ID:
        number = f"{per_file.value(piece.column('row_id_start'), 'BIGINT')} + file_row_number"
        embedded = model.ROW_ID_FIELD
    else:
        assert kind == ROW_SNAPSHOT
        number = per_file.value(piece.column("snapshot_id"), "BIGINT")
        embedded = model.ROW_SNAPSHOT_FIELD
    return f"coalesce({source.embedded(embedded)}, {number})" if piece.group.embedded else f"({number})"


class _Source:
    """The `read_parquet` call; it reads the columns that it was asked for."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._columns: dict[str, str] = {}

    def column(self, field: Field) -> str:
        """SQL for a column of the table."""
        # The own name makes errors and plans readable.
        name = field.name if field.name.casefold() not in _VIRTUAL else f"_lake_{field.id}"
        mapped = map_field(field, quote_identifier(name), self._piece.group, self._piece.schema)
        self._add(name, mapped)
        return mapped.expression

    def embedded(self, field_id: int) -> str:
        name = f"_lake_{field_id}"
        self._add(name, Mapped(str(field_id), "BIGINT", None, quote_identifier(name)))
        return quote_identifier(name)

    def _add(self, name: str, mapped: Mapped) -> None:
        default = "NULL" if mapped.default is None else quote_literal(mapped.default)
        self._columns[mapped.key] = (
            f"{{name: {quote_literal(name)}, type: {quote_literal(mapped.read_type)}, default_value: {default}}}"
        )

    def sql(self, resources: Resources) -> str:
        # A schema without columns is not allowed.
        columns = self._columns or {"0": "{name: '_lake_0', type: 'BOOLEAN', default_value: NULL}"}
        schema = ", ".join(f"{key}: {column}" for key, column in columns.items())
        return f"read_parquet({resources.paths(self._piece.column('path'))}, schema = MAP {{{schema}}})"
