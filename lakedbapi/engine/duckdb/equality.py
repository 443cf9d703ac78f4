"""Equality deletes as anti joins with the delete files' keys: one hash table for any number of delete files.

Which of them reaches a data file is part of the join, as the scope and sequence number of the files. Of equal keys in
one scope only the newest counts, so that a key that was deleted a thousand times is held once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.engine.duckdb.footers import file_schemas
from lakedbapi.engine.duckdb.mapping import found_in, needs_footers
from lakedbapi.engine.duckdb.perfile import PerFile
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.engine.duckdb.source import Piece, Source
from lakedbapi.model.scan import EqualityDeletes, FileGroup
from lakedbapi.model.types import Field, Scalar, Schema


def join(
    name: str, deletes: EqualityDeletes, piece: Piece, source: Source, per_file: PerFile, resources: Resources
) -> str:
    """What has to follow the `read_parquet` of `piece` in FROM, and the `per_file` values. `name` is unique in it."""
    data = _Files(piece.take(deletes.scopes), piece.take(deletes.sequence_numbers))
    by_scope = deletes.files.column("scope")
    joins = ""
    for suffix, scoped in (("g", False), ("s", True)):
        files = deletes.files.filter(by_scope.is_valid() if scoped else by_scope.is_null())
        files = data.reached_by(files, scoped=scoped)
        if files.num_rows:
            joins += _join(f"{name}{suffix}", deletes, files, data, source, per_file, resources, scoped=scoped)
    return joins


@dataclass(frozen=True)
class _Files:
    """The data files of a piece."""

    scopes: pa.Array
    sequence_numbers: pa.Array

    def reached_by(self, files: pa.Table, *, scoped: bool) -> pa.Table:
        """Those delete files that may reach any of the data files."""
        found = pc.greater(files.column("sequence_number"), pc.min(self.sequence_numbers))
        if scoped:
            found = pc.and_(found, pc.is_in(files.column("scope"), pc.unique(self.scopes)))
        return files.filter(found)


def _join(
    name: str,
    deletes: EqualityDeletes,
    files: pa.Table,
    data: _Files,
    source: Source,
    per_file: PerFile,
    resources: Resources,
    *,
    scoped: bool,
) -> str:
    conditions = [
        f"{_key(key, source, per_file)} IS NOT DISTINCT FROM {name}._lake_k{number}"
        for number, key in enumerate(deletes.keys)
    ]
    if scoped and len(pc.unique(data.scopes)) > 1:
        conditions.append(f"{per_file.value(data.scopes, 'BIGINT')} = {name}._lake_s")
    if pc.max(data.sequence_numbers).as_py() >= pc.min(files.column("sequence_number")).as_py():
        conditions.append(f"{per_file.value(data.sequence_numbers, 'BIGINT')} < {name}._lake_q")
    keys = ", ".join(f"_lake_k{number}" for number in range(len(deletes.keys)))
    rows = "\nUNION ALL ".join(_rows(deletes, files, resources))
    newest = f"SELECT {keys}, _lake_s, max(_lake_q) AS _lake_q FROM ({rows}) GROUP BY {keys}, _lake_s"
    kind = "SEMI" if deletes.is_choice else "ANTI"
    return f" {kind} JOIN ({newest}) AS {name} ON {' AND '.join(conditions)}"


def _key(key: Field, source: Source, per_file: PerFile) -> str:
    """Writers tell -0.0 from 0.0, as Java's collections do: the engine does so in their texts."""
    value = source.key(key, per_file)
    return f"CAST({value} AS VARCHAR)" if key.type in (Scalar("float32"), Scalar("float64")) else value


def _rows(deletes: EqualityDeletes, files: pa.Table, resources: Resources) -> list[str]:
    """SELECT statements of the delete files' keys, scopes and sequence numbers."""
    group = FileGroup(files, names_without_ids=deletes.names_without_ids)
    everything = np.arange(files.num_rows)
    none = np.full(files.num_rows, "none")
    if not needs_footers(Schema(deletes.keys), group):
        return [_select(deletes, Piece(group, everything, 0, none, None), resources)]
    return [
        _select(deletes, Piece(found_in(schema, group), rows, 0, none, schema), resources)
        for schema, rows in file_schemas(files, everything, resources)
    ]


def _select(deletes: EqualityDeletes, piece: Piece, resources: Resources) -> str:
    per_file, source = PerFile(resources), Source(piece)
    columns = [f"{_key(key, source, per_file)} AS _lake_k{number}" for number, key in enumerate(deletes.keys)]
    columns.append(f"{per_file.value(piece.column('scope'), 'BIGINT')} AS _lake_s")
    columns.append(f"{per_file.value(piece.column('sequence_number'), 'BIGINT')} AS _lake_q")
    return f"SELECT {', '.join(columns)} FROM {source.sql(resources)}{per_file.join()}"
