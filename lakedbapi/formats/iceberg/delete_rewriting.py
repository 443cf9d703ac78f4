"""Which delete files a table can do without, as they are or when others take their place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.formats.iceberg.manifests import EQUALITY_DELETES, POSITION_DELETES
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.model.scan import EqualityDeletes

Numbers = npt.NDArray[np.int64]


def worn(version: TableVersion, *, as_vectors: bool) -> Numbers:
    """The data files, by number, whose position delete files are better one (`as_vectors`: a deletion vector)."""
    index = version.deletes
    if as_vectors or len(index.shared_positions):
        return np.flatnonzero(index.may_have_positions)
    data, counts = np.unique(index.positions[0], return_counts=True)
    return data[counts > 1]


def needless(version: TableVersion, rewritten: Numbers) -> Numbers:
    """The delete files, by number, that reach no data file, or whose data files are all among `rewritten`."""
    deletes = version.live.deletes
    content = deletes.column("content").to_numpy()
    needed = np.zeros(deletes.num_rows, np.bool_)
    index = version.deletes
    needed[index.vectors[index.vectors >= 0]] = True
    data, rows = index.positions
    needed[rows[~np.isin(data, rewritten)]] = True
    left = np.setdiff1d(np.flatnonzero(index.may_have_positions), rewritten)
    for row in index.shared_positions.tolist() if len(left) else ():
        needed[row] = index.positions_apply(left, row).any()
    needed[reaching(version, content == EQUALITY_DELETES)] = True
    return np.flatnonzero(~needed & np.isin(content, (POSITION_DELETES, EQUALITY_DELETES)))


def reaching(version: TableVersion, chosen: npt.NDArray[np.bool_]) -> Numbers:
    """Those of the `chosen` equality delete files, by number, that reach some data file."""
    paths = version.live.deletes.column("path")
    found: list[int] = []
    for row in np.flatnonzero(chosen).tolist():
        if reached_by(version, pa.array([paths[row].as_py()], pa.string())).any():
            found.append(row)
    return np.array(found, np.int64)


def reached_by(version: TableVersion, paths: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Which data files the equality delete files at `paths` reach."""
    data = version.live.data
    reached = np.zeros(data.num_rows, np.bool_)
    for found in version.deletes.equality_files:
        chosen = pc.is_in(found.files.column("path"), value_set=_array(paths))
        files = pa.table({"scope": found.scopes, "sequence_number": found.sequence_numbers}).filter(chosen)
        if files.num_rows:
            scopes, numbers = (data.column(name).combine_chunks() for name in ("scope", "sequence_number"))
            reached |= EqualityDeletes((), files, scopes, numbers).reached()
    return reached


def _array(paths: pa.Array | pa.ChunkedArray) -> pa.Array:
    return paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
