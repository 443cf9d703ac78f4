"""How a table format wants its data files to be written, and so how they are read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakedbapi.model.types import Field


@dataclass(frozen=True)
class FileLayout:
    """Names and contents of the files of one table."""

    prefix: str = "ducklake-"
    suffix: str = ""
    """What stands in a file's name between its unique part and `.parquet`."""
    field_ids: bool = True
    """Whether files carry the ids of columns and of the fields in them."""
    names: Mapping[int, str] = field(default_factory=dict)
    """What a column, or a field in one, is called in files, by its field id; without an entry, as in the table."""
    partition_columns: bool = True
    """Whether files keep the columns that their directory gives the value of (identity partitioning).

    If not, the text in the directory and in `WrittenFile.partition_values` is all there is of the value: plain
    decimals, `YYYY-MM-DD`, UTC instants as `YYYY-MM-DDTHH:MM:SS.ffffffZ`, and NULL for the empty string.
    """
    row_id_column: str | None = "_ducklake_internal_row_id"
    """The column that keeps the row ids of rows that existed before; None = files embed none."""
    encrypted: bool = False
    """Whether each file is encrypted, with a new key of its own."""
    row_snapshot_column: str = "_ducklake_internal_snapshot_id"

    def name(self, field: Field) -> str:
        return self.names.get(field.id, field.name)


OWN_LAYOUT = FileLayout()
"""Of formats that do not say otherwise."""
