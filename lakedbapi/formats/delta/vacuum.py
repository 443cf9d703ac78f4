"""Vacuum: the files of a table that no version within the retention needs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import Error
from lakedbapi.formats.delta.checkpoint_writer import retention_of
from lakedbapi.formats.delta.checkpoints import SIDECARS
from lakedbapi.formats.delta.commit import TableCommit
from lakedbapi.formats.delta.commit_info import Note
from lakedbapi.formats.delta.deletion_vectors import file_path
from lakedbapi.formats.delta.log import LOG, commit_times
from lakedbapi.formats.delta.paths import full_paths
from lakedbapi.formats.delta.plan import Plan
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.formats.delta.writer_features import check_writable
from lakedbapi.model.catalog import TableInfo
from lakedbapi.storage.exclusive import TEMPORARY
from lakedbapi.storage.filesystem import Storage

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog

_logger = logging.getLogger("lakedbapi.delta")

CHANGE_DATA = "_change_data/"
_HIDDEN = r"(^|/)[_.][^/=]*(/|$)"
"""Of readers and writers of other kinds. A partition's directory may begin so, too."""


@dataclass(frozen=True)
class Needless:
    """`files`, as `Storage.list` has them, of a table in so many `directories`."""

    files: pa.Table
    directories: int

    @property
    def paths(self) -> list[str]:
        found: list[str] = self.files["path"].to_pylist()
        return found


def needless(catalog: DeltaCatalog, table: TableInfo, cutoff: datetime, unknown: datetime) -> Needless:
    """Files below the table's directory that no version since `cutoff` needs.

    Files that the log does not name may belong to a commit under way: of these, only such as were last changed before
    `unknown`. NotSupportedError for a table that cannot be written here.
    """
    assert table.path is not None
    log = catalog.table(table.path)
    # Listed before the log is read: what is committed in between is known then.
    files = stored_files(catalog.storage, table.path)
    state = log.latest()
    check_writable(state.protocol, table.name)
    recent = _first_since(log, cutoff)
    kept = _kept(state, cutoff, recent)
    known = named(state, state.tombstones)
    paths = files["path"]
    is_known = pc.is_in(paths, value_set=known).to_numpy()
    needed = pc.is_in(paths, value_set=kept).to_numpy()
    is_old = np.where(is_known, _changed_before(files, cutoff, default=True), _changed_before(files, unknown))
    going = _without_change_files(log, files.filter(pa.array(~needed & is_old)), recent)
    directories = pc.unique(pc.replace_substring_regex(paths, r"[^/]*$", ""))
    return Needless(going, len(directories))


def stored_files(storage: Storage, root: str) -> pa.Table:
    """All files below the table's directory that may be its own, as `Storage.list` has them: without the log, without
    what is hidden, but for files that were never finished, and without tables below it."""
    found = storage.list(root)
    relative = pc.utf8_slice_codeunits(found["path"], len(root))
    below = nested(relative)
    shown = pc.replace_substring_regex(relative, TEMPORARY, r"\1unfinished")
    shown = pc.replace_substring_regex(shown, f"^{LOG}({SIDECARS})?unfinished$", "unfinished")
    shown = pc.replace_substring_regex(shown, f"^{CHANGE_DATA}", "")
    foreign = pc.or_(pc.match_substring_regex(shown, _HIDDEN), pc.starts_with(relative, "metadata/"))
    for directory in below:
        foreign = pc.or_(foreign, pc.starts_with(relative, directory))
    return found.filter(pc.invert(foreign))


def nested(relative: pa.ChunkedArray) -> list[str]:
    """Directories of tables below this one."""
    logs = relative.filter(pc.match_substring(relative, f"/{LOG}"))
    return sorted({path[: path.index(f"/{LOG}") + 1] for path in logs.to_pylist()})


def named(state: TableState, files: pa.Table) -> pa.Array:
    """Full paths of files of the log and of their deletion vectors; as the log has them as well, since not all writers
    escape paths."""
    plain = pc.binary_join_element_wise(state.root, files["path"].combine_chunks(), "")
    vectors = pa.array(vector_files(state.root, files["deletion_vector"]), pa.string())
    return pa.concat_arrays([full_paths(state.root, files["path"]), plain, vectors])


def vector_files(root: str, vectors: pa.ChunkedArray) -> list[str]:
    """Full paths of the files that deletion vectors lie in."""
    descriptors = vectors.combine_chunks()
    found: list[str | None] = []
    for kind in ("u", "p"):
        stored = descriptors.filter(pc.fill_null(pc.equal(descriptors.field("storageType"), kind), False))
        names = pc.unique(stored.field("pathOrInlineDv")).to_pylist()
        found += [file_path(root, {"storageType": kind, "pathOrInlineDv": name}) for name in names]
    return [path for path in found if path is not None]


def _first_since(log: DeltaTable, cutoff: datetime) -> int:
    """The first version that was committed at `cutoff` or since; a number that no version has if there is none."""
    times = commit_times(log.listing().commits)
    return min((version for version, time in times.items() if time >= cutoff), default=1 << 62)


def _kept(state: TableState, cutoff: datetime, recent: int) -> pa.Array:
    """What is live, or was removed at `cutoff` or since."""
    stamps = pc.fill_null(state.tombstones["deletion_timestamp"], 0).to_numpy()
    versions = pc.fill_null(state.tombstones["version"], -1).to_numpy()
    lately = (stamps >= cutoff.timestamp() * 1000) | (versions >= recent)
    return pa.concat_arrays([named(state, state.files), named(state, state.tombstones.filter(pa.array(lately)))])


def _changed_before(files: pa.Table, instant: datetime, *, default: bool = False) -> npt.NDArray[np.bool_]:
    """`default`: of files of unknown age."""
    old = pc.less(files["mtime"], pa.scalar(instant, pa.timestamp("us", "UTC")))
    result: npt.NDArray[np.bool_] = pc.fill_null(old, default).to_numpy()
    return result


def _without_change_files(log: DeltaTable, going: pa.Table, recent: int) -> pa.Table:
    """`going` without the change files of versions from `recent` on."""
    if not pc.any(pc.starts_with(going["path"], log.root + CHANGE_DATA)).as_py():
        return going
    versions = [version for version in log.listing().commits if version >= recent]
    changes = [actions.cdc["path"] for actions in log.actions(versions).values()]
    needed = [path for paths in changes for path in full_paths(log.root, paths).to_pylist()]
    return going.filter(pc.invert(pc.is_in(going["path"], value_set=pa.array(needed, pa.string()))))


def remove(catalog: DeltaCatalog, table: TableInfo, found: Needless, kept: timedelta | None) -> None:
    """Remove files. `kept`: how old what goes must be, where the statement says so.

    Commits before and after it tell of it, as Spark's do, whose history shows a vacuum.
    """
    if not found.files.num_rows:
        return
    milliseconds = {"defaultRetentionMillis": retention_of(table.properties)}
    if kept is not None:
        milliseconds["specifiedRetentionMillis"] = round(kept / timedelta(milliseconds=1))
    sizes = pc.sum(found.files["size"]).as_py() or 0
    _tell(
        catalog,
        table,
        Note(
            "VACUUM START",
            {"retentionCheckEnabled": "true", **{name: str(value) for name, value in milliseconds.items()}},
            {"numFilesToDelete": str(found.files.num_rows), "sizeOfDataToDelete": str(sizes)},
        ),
    )
    counts = {"numDeletedFiles": str(found.files.num_rows), "numVacuumedDirectories": str(found.directories)}
    try:
        delete(catalog.storage, found.paths)
    except Error:
        _tell_the_end(catalog, table, Note("VACUUM END", {"status": "FAILED"}, {}))
        raise
    _tell_the_end(catalog, table, Note("VACUUM END", {"status": "COMPLETED"}, counts))


def delete(storage: Storage, paths: Sequence[str]) -> None:
    """Remove files, and the partitions' directories that become empty."""
    storage.delete(paths)
    storage.remove_value_folders(paths)


def _tell(catalog: DeltaCatalog, table: TableInfo, note: Note) -> None:
    assert table.path is not None
    TableCommit(
        catalog, Plan(root=table.path, old=table, new=table, state=catalog.table(table.path).latest(), note=note)
    ).commit()


def _tell_the_end(catalog: DeltaCatalog, table: TableInfo, note: Note) -> None:
    """The files are gone, whether or not the log says so."""
    try:
        _tell(catalog, table, note)
    except Error as error:
        _logger.warning("%s: the end of a VACUUM could not be committed: %s", table.path, error)
