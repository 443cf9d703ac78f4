"""Which delete files apply to which data files (spec, Scan Planning)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.deletes.parquet import ICEBERG_PATH_FIELD
from lakedbapi.errors import DataError
from lakedbapi.formats.iceberg.files import LiveFiles
from lakedbapi.formats.iceberg.manifests import EQUALITY_DELETES, POSITION_DELETES

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EqualityFiles:
    """The equality delete files with the same keys. `scopes` is NULL for those that reach every data file."""

    field_ids: tuple[int, ...]
    files: pa.Table
    scopes: pa.Array
    sequence_numbers: pa.Array


class DeleteIndex:
    """Rows are named by their number in `files.data` and `files.deletes`.

    `global_specs` are the ids of the partition specs without fields.
    """

    def __init__(self, files: LiveFiles, global_specs: frozenset[int]) -> None:
        self._data = files.data
        self._deletes = files.deletes
        self._global_specs = global_specs

    @cached_property
    def vectors(self) -> Numbers:
        """For each data file its deletion vector, -1 = none. DataError when it has two, or one contradicts it."""
        found = np.full(self._data.num_rows, -1, np.int64)
        rows = self._rows(POSITION_DELETES, puffin=True)
        vectors = self._deletes.take(pa.array(rows))
        referenced = vectors.column("referenced_data_file")
        if referenced.null_count:
            path = vectors.filter(referenced.is_null()).column("raw_path")[0]
            raise DataError(f"The metadata is corrupt: the deletion vector in {path} names no data file.")
        if len(pc.unique(referenced)) < len(referenced):
            counts = pc.value_counts(referenced)
            twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0]
            raise DataError(f"The metadata is corrupt: data file {twice.as_py()!r} has two deletion vectors.")
        places = pc.index_in(referenced, self._data.column("raw_path"))
        alive = places.is_valid().to_numpy()
        rows, places = rows[alive], places.drop_null().to_numpy().astype(np.int64)
        older = self._numbers(rows) < self._data_numbers[places]
        elsewhere = self._scope(rows) != self._data_scopes[places]
        if (older | elsewhere).any():
            wrong = self._data.column("raw_path")[int(places[older | elsewhere][0])]
            raise DataError(
                f"The metadata is corrupt: the deletion vector of {wrong} is older than it, or in another partition."
            )
        found[places] = rows
        return found

    @cached_property
    def positions(self) -> tuple[Numbers, Numbers]:
        """(data file, position delete file that is about this one alone) of all pairs that apply."""
        data, rows = self.about_one
        applies = self.positions_apply(data, rows)
        return data[applies], rows[applies]

    @cached_property
    def about_one(self) -> tuple[Numbers, Numbers]:
        """(data file, position delete file that is about this one alone), whether it applies or not."""
        rows = self._position_rows[self._targets.is_valid().to_numpy(zero_copy_only=False)]
        place = pc.index_in(self._targets.drop_null(), self._data.column("raw_path").combine_chunks())
        rows = rows[place.is_valid().to_numpy(zero_copy_only=False)]
        return place.drop_null().to_numpy().astype(np.int64), rows

    @cached_property
    def shared_positions(self) -> Numbers:
        """The position delete files that may be about several data files; they say so themselves."""
        shared: npt.NDArray[np.bool_] = self._targets.is_null().to_numpy(zero_copy_only=False)
        return self._position_rows[shared]

    def positions_apply(self, data: Numbers, rows: Numbers | int) -> npt.NDArray[np.bool_]:
        """Whether position delete files may apply to these data files; a deletion vector replaces them all."""
        applies: npt.NDArray[np.bool_] = (
            (self.vectors[data] < 0)
            & (self._delete_numbers[rows] >= self._data_numbers[data])
            & (self._delete_scopes[rows] == self._data_scopes[data])
        )
        return applies

    @cached_property
    def may_have_positions(self) -> npt.NDArray[np.bool_]:
        """For each data file whether some position delete file may apply."""
        found: npt.NDArray[np.bool_] = np.zeros(self._data.num_rows, np.bool_)
        found[self.positions[0]] = True
        shared = self.shared_positions
        if len(shared):
            scopes, numbers = self._delete_scopes[shared], self._delete_numbers[shared]
            order = np.lexsort((numbers, scopes))
            last = order[np.r_[scopes[order][1:] != scopes[order][:-1], True]]
            place = np.minimum(np.searchsorted(scopes[last], self._data_scopes), len(last) - 1)
            found |= (scopes[last][place] == self._data_scopes) & (numbers[last][place] >= self._data_numbers)
        found[self.vectors >= 0] = False
        return found

    @cached_property
    def equality_files(self) -> tuple[EqualityFiles, ...]:
        rows = self._rows(EQUALITY_DELETES)
        by_keys: dict[tuple[int, ...], list[int]] = {}
        for row, ids in zip(
            rows.tolist(), self._deletes.column("equality_ids").take(pa.array(rows)).to_pylist(), strict=True
        ):
            if not ids:
                path = self._deletes.column("raw_path")[row]
                raise DataError(f"The metadata is corrupt: the equality delete file {path} names no columns.")
            by_keys.setdefault(tuple(sorted(ids)), []).append(row)
        return tuple(self._equality(keys, np.array(group, np.int64)) for keys, group in by_keys.items())

    def _equality(self, keys: tuple[int, ...], rows: Numbers) -> EqualityFiles:
        files = self._deletes.take(pa.array(rows))
        everywhere = np.isin(files.column("spec_id").to_numpy(), list(self._global_specs))
        scopes = pa.array(files.column("scope").to_numpy(), mask=everywhere)
        return EqualityFiles(keys, files, scopes, files.column("sequence_number").combine_chunks())

    def _rows(self, content: int, puffin: bool | None = None) -> Numbers:
        found = self._deletes.column("content").to_numpy() == content
        if puffin is not None:
            is_puffin = pc.equal(self._deletes.column("file_format"), "puffin").to_numpy()
            found &= is_puffin == puffin
        return np.flatnonzero(found).astype(np.int64)

    @cached_property
    def _position_rows(self) -> Numbers:
        return self._rows(POSITION_DELETES, puffin=False)

    @cached_property
    def _targets(self) -> pa.Array:
        """The one data file that each position delete file is about, NULL = it may be about several."""
        files = self._deletes.take(pa.array(self._position_rows))
        lower, upper = path_bounds(files)
        same = pc.if_else(pc.fill_null(pc.equal(lower, upper), False), lower, pa.scalar(None, pa.binary()))
        return pc.coalesce(files.column("referenced_data_file").combine_chunks(), same.cast(pa.string()))

    @cached_property
    def _data_numbers(self) -> Numbers:
        return _int64(self._data, "sequence_number")

    @cached_property
    def _data_scopes(self) -> Numbers:
        return _int64(self._data, "scope")

    @cached_property
    def _delete_numbers(self) -> Numbers:
        return _int64(self._deletes, "sequence_number")

    @cached_property
    def _delete_scopes(self) -> Numbers:
        return _int64(self._deletes, "scope")

    def _numbers(self, rows: Numbers) -> Numbers:
        return self._delete_numbers[rows]

    def _scope(self, rows: Numbers) -> Numbers:
        return self._delete_scopes[rows]


def path_bounds(files: pa.Table) -> tuple[pa.Array, pa.Array]:
    """The least and the greatest data file that each position delete file names, or prefixes that bound them."""
    key = pa.scalar(ICEBERG_PATH_FIELD, pa.int32())
    lower, upper = (
        pc.map_lookup(files.column(name).combine_chunks(), key, "first") for name in ("lower_bounds", "upper_bounds")
    )
    return lower, upper


def _int64(table: pa.Table, name: str) -> Numbers:
    values: Numbers = table.column(name).to_numpy()
    return values
