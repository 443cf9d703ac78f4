"""Data files as SELECT text: columns mapped to the table's, deleted rows left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.engine.base import FILENAME, PART, POSITION, ROW_ID, ROW_SNAPSHOT
from lakedbapi.engine.duckdb import deletions, equality
from lakedbapi.engine.duckdb.footers import file_schemas
from lakedbapi.engine.duckdb.mapping import found_in, needs_footers
from lakedbapi.engine.duckdb.perfile import PerFile
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.engine.duckdb.source import Piece, Source
from lakedbapi.model import scan as model
from lakedbapi.model.scan import FileGroup
from lakedbapi.model.sql_types import quote_identifier
from lakedbapi.model.types import Schema

_ROW_NUMBERS = {
    ROW_ID: (model.ROW_ID_FIELD, "row_id_start", " + file_row_number"),
    ROW_SNAPSHOT: (model.ROW_SNAPSHOT_FIELD, "snapshot_id", ""),
}
"""The field that may embed what each row has, the column of the file list that tells it else, and what to add there."""


def files_sql(
    schema: Schema,
    group: FileGroup,
    first_part: int,
    extra: Mapping[str, str],
    resources: Resources,
    *,
    in_order: bool,
) -> Sequence[str]:
    """SELECT statements that together give the live rows of the group; `in_order` as in `ScanRelation`."""
    pieces = _pieces(schema, group, first_part, resources, in_order=in_order)
    return [_piece_sql(schema, piece, extra, resources) for piece in pieces]


def _pieces(
    schema: Schema, group: FileGroup, first_part: int, resources: Resources, *, in_order: bool
) -> Iterator[Piece]:
    counts = group.files.column("record_count").to_numpy()
    vectors = [group.deletes.get(row) for row in range(len(counts))] if group.deletes else []
    methods = np.full(len(counts), deletions.NONE)
    if vectors:
        group.check_deletes()
        any_order = resources.any_order and not group.equality_deletes
        # A plan shows constants as text, a mask bit by bit: a second for each.
        methods = deletions.methods(
            vectors,
            counts,
            any_order=any_order,
            in_order=in_order,
            threads=resources.threads,
            masks=not resources.explained,
        )
        if deletions.STRIP in methods:
            resources.forget_order()
    together = deletions.read_together(methods, counts, threads=resources.threads)
    for rows in _keys_apart(group, _told_apart(group, together)):
        if not needs_footers(schema, group):
            yield Piece(group, rows, first_part, methods[rows], None)
            continue
        for file_schema, same in file_schemas(group.files, rows, resources, group.encryption_keys):
            yield Piece(found_in(file_schema, group), same, first_part, methods[same], file_schema)


def _told_apart(group: FileGroup, together: Sequence[npt.NDArray[np.int64]]) -> Iterator[npt.NDArray[np.int64]]:
    """Files that no equality delete reaches are kept out of the joins with them."""
    if not group.equality_deletes:
        yield from together
        return
    reached = np.logical_or.reduce([deletes.reached() for deletes in group.equality_deletes])
    for rows in together:
        yield from (part for part in (rows[~reached[rows]], rows[reached[rows]]) if len(part))


def _keys_apart(group: FileGroup, together: Iterable[npt.NDArray[np.int64]]) -> Iterator[npt.NDArray[np.int64]]:
    """Each encrypted file has a key of its own, and one `read_parquet` takes one key."""
    for rows in together:
        encrypted = np.isin(rows, list(group.encryption_keys))
        yield from np.split(rows[encrypted], np.arange(1, encrypted.sum())) if encrypted.any() else ()
        if not encrypted.all():
            yield rows[~encrypted]


def _piece_sql(schema: Schema, piece: Piece, extra: Mapping[str, str], resources: Resources) -> str:
    per_file = PerFile(resources)
    source = Source(piece)
    columns = [f"{source.value(f, per_file)} AS {quote_identifier(f.name)}" for f in schema.fields]
    columns += [f"{_extra(kind, piece, source, per_file)} AS {quote_identifier(name)}" for kind, name in extra.items()]
    left_out = deletions.Deletions()
    if piece.group.deletes:
        vectors = [piece.group.deletes.get(row) for row in piece.rows.tolist()]
        counts = piece.column("record_count").to_numpy()
        left_out = deletions.deletions(piece.methods, vectors, counts, resources)
    by_value = "".join(
        equality.join(f"_lake_e{number}", deletes, piece, source, per_file, resources)
        for number, deletes in enumerate(piece.group.equality_deletes)
    )
    conditions = [] if left_out.condition is None else [left_out.condition]
    if piece.group.max_row_snapshot is not None:
        snapshot = source.embedded(model.ROW_SNAPSHOT_FIELD)
        conditions.append(f"({snapshot} IS NULL OR {snapshot} <= {piece.group.max_row_snapshot})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(columns)} FROM {source.sql(resources)}{left_out.join}{per_file.join()}{by_value}{where}"


def _extra(kind: str, piece: Piece, source: Source, per_file: PerFile) -> str:
    if kind == PART:
        if piece.rows[-1] - piece.rows[0] == len(piece.rows) - 1:
            return f"CAST(file_index AS BIGINT) + {piece.first_part + int(piece.rows[0])}"
        return per_file.value(pa.array(piece.rows + piece.first_part), "BIGINT")
    if kind == POSITION:
        return "file_row_number"
    if kind == FILENAME:
        return "filename"
    embedded, listed, number = _ROW_NUMBERS[kind]
    values = piece.column(listed)
    if embedded not in piece.group.embedded:
        return f"({per_file.value(values, 'BIGINT')}{number})"
    if values.null_count == len(values):
        return source.embedded(embedded)
    return f"coalesce({source.embedded(embedded)}, {per_file.value(values, 'BIGINT')}{number})"
