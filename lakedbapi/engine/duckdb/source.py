"""Files that one `read_parquet` reads, and the call itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.engine.duckdb.footers import FileSchema
from lakedbapi.engine.duckdb.mapping import Mapped, map_field
from lakedbapi.engine.duckdb.perfile import PerFile
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.model.scan import FileGroup
from lakedbapi.model.sql_types import quote_identifier, quote_literal, sql_type
from lakedbapi.model.types import Field

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


class Source:
    """The `read_parquet` call; it reads the columns that it was asked for."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._columns: dict[str, str] = {}
        self._known: dict[int, str] = {}
        """SQL for the columns read so far, by field id."""

    def value(self, field: Field, per_file: PerFile) -> str:
        """SQL for a column of the table, wherever its values are kept."""
        constants = self._piece.group.constants
        if constants is not None and self._is_constant(field):
            return per_file.value(self._piece.take(constants.column(str(field.id))), sql_type(field.type))
        return self.column(field)

    def column(self, field: Field) -> str:
        """SQL for a column of the table that is read from the files."""
        # The own name makes errors and plans readable.
        name = field.name if field.name.casefold() not in _VIRTUAL else f"_lake_{field.id}"
        mapped = map_field(field, quote_identifier(name), self._piece.group, self._piece.schema)
        self._add(name, mapped)
        self._known[field.id] = mapped.expression
        return mapped.expression

    def _is_constant(self, field: Field) -> bool:
        constants = self._piece.group.constants
        return constants is not None and str(field.id) in constants.column_names

    def key(self, field: Field, per_file: PerFile) -> str:
        """SQL for a key of equality deletes, which is no column of the table any more, perhaps."""
        known = self._known.get(field.id)
        if known is not None:
            return known
        if self._is_constant(field):
            return self.value(field, per_file)
        return self.column(replace(field, name=f"_lake_key_{field.id}"))

    def embedded(self, field_id: int) -> str:
        name = f"_lake_{field_id}"
        stored = self._piece.group.embedded_names.get(field_id)
        key = str(field_id) if stored is None else quote_literal(stored)
        self._add(name, Mapped(key, "BIGINT", None, quote_identifier(name)))
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
        paths = self._piece.column("path")
        key = self._piece.group.encryption_keys.get(int(self._piece.rows[0]))
        encryption = "" if key is None else f", {resources.encryption(key, paths[0].as_py())}"
        # NaN is greater than all numbers here, and no statistics of Parquet files include it.
        options = f"schema = MAP {{{schema}}}, can_have_nan = true{encryption}"
        return f"read_parquet({resources.paths(paths)}, {options})"
