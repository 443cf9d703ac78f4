"""The change feed: rows that changed between two versions (protocol, "Change Data Files" and "Reader Requirements for
AddCDCFile")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.base import CHANGE_TYPE, ChangeScan
from lakedbapi.formats.delta.actions import Metadata
from lakedbapi.formats.delta.columns import FILES, as_adds
from lakedbapi.formats.delta.commits import Actions
from lakedbapi.formats.delta.contents import TableContents
from lakedbapi.formats.delta.definition import FEED
from lakedbapi.formats.delta.feed_columns import lost_in
from lakedbapi.formats.delta.paths import full_paths
from lakedbapi.formats.delta.state import TableState, file_keys
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.formats.delta.vector_cache import VectorCache
from lakedbapi.formats.delta.writer_features import is_true
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import NAME, FileGroup, Scan
from lakedbapi.model.types import UNASSIGNED, Field, Scalar, Schema

_KIND = Field(CHANGE_TYPE, Scalar("varchar"), UNASSIGNED)


def table_changes(
    log: DeltaTable, state: TableState, table: TableInfo, vectors: VectorCache, start: int, end: int
) -> Sequence[ChangeScan]:
    """The changes of the versions from `start` to `end`, in the columns of `table`, which `state` is of."""
    actions = log.actions(range(max(start, 0), end + 1))
    _check_switched_on(log, actions)
    _check_columns(log, state.metadata, actions)
    return [
        change
        for version, done in actions.items()
        for change in _Version(log, state, table, vectors, version, done).changes()
    ]


def _check_switched_on(log: DeltaTable, actions: Mapping[int, Actions]) -> None:
    """Without the switch, a writer that copies rows leaves no trace of which of them it changed."""
    metadata = log.at_version(min(actions)).metadata
    for version, done in actions.items():
        metadata = done.metadata or metadata
        if not is_true(metadata.configuration, FEED):
            raise ProgrammingError(
                f"version {version} of Delta table {log.root} has no change feed: {FEED} was not true then; ask for "
                "later versions, or compare two versions"
            )


def _check_columns(log: DeltaTable, columns: Metadata, actions: Mapping[int, Actions]) -> None:
    """ProgrammingError where rows of a version would be shown with values that they never had: `columns` are not
    those that their files were written with, such as before a CREATE OR REPLACE TABLE."""
    metadata = log.at_version(min(actions)).metadata
    for version, done in actions.items():
        metadata = done.metadata or metadata
        for written in _metadata_of_files(log, version, done, metadata):
            reason = None if written == columns else lost_in(columns, written)
            if reason is not None:
                raise ProgrammingError(
                    f"the changes of version {version} of Delta table {log.root} cannot be shown in the columns of "
                    f"version {max(actions)}: {reason}; ask for the versions before and after the table changed on "
                    "their own, or compare two versions"
                )


def _metadata_of_files(log: DeltaTable, version: int, done: Actions, metadata: Metadata) -> Iterator[Metadata]:
    """Of the files whose rows a commit tells of, where `metadata` is that of the version: those that it removes are as
    the version before had them."""
    if done.cdc.num_rows or _changing(done.adds).num_rows:
        yield metadata
    if not done.cdc.num_rows and _changing(done.removes).num_rows:
        yield metadata if done.metadata is None else log.at_version(version - 1).metadata


@dataclass(frozen=True)
class _Version:
    """The changes of one commit."""

    log: DeltaTable
    state: TableState
    table: TableInfo
    vectors: VectorCache
    version: int
    actions: Actions

    def changes(self) -> Iterator[ChangeScan]:
        if self.actions.cdc.num_rows:
            # They cover all changes of the version.
            yield self._told()
            return
        adds, removes = _changing(self.actions.adds), self._complete(_changing(self.actions.removes))
        vectors = self.vectors.of(self.log.storage, self.log.root, pa.concat_tables([removes, adds]))
        gone, here = vectors[: removes.num_rows], vectors[removes.num_rows :]
        before = dict(zip(full_paths(self.log.root, removes["path"]).to_pylist(), gone, strict=True))
        after = dict(zip(full_paths(self.log.root, adds["path"]).to_pylist(), here, strict=True))
        yield from self._rows("delete", removes, before, after)
        yield from self._rows("insert", adds, after, before)

    def _told(self) -> ChangeScan:
        """The rows of change files, each of which says what happened to it."""
        files = as_adds(self.actions.cdc)
        # Change files have no field id for the kind of change.
        groups = tuple(
            replace(group, match=NAME, names={**group.names, _KIND.id: CHANGE_TYPE} if group.names else {})
            for group in self._groups(files)
        )
        return ChangeScan(None, self.version, Scan(Schema((*self.table.schema.fields, _KIND)), groups))

    def _rows(
        self,
        kind: str,
        files: pa.Table,
        own: dict[str, DeleteVector],
        other: dict[str, DeleteVector],
    ) -> Iterator[ChangeScan]:
        """Rows of `files` that are live by their own vector, and not by the other one of the same file."""
        if not files.num_rows:
            return
        groups = []
        for group in self._groups(files):
            counts = group.files["record_count"].to_numpy()
            deletes: dict[int, DeleteVector] = {}
            for number, path in enumerate(group.files["path"].to_pylist()):
                hidden = own[path]
                if path in other:
                    hidden = hidden | other[path].complement(int(counts[number]))
                if hidden:
                    deletes[number] = hidden
            groups.append(replace(group, deletes=deletes))
        yield ChangeScan(kind, self.version, Scan(self.table.schema, tuple(groups)))

    def _groups(self, files: pa.Table) -> Sequence[FileGroup]:
        """The files as they are read, without their deletes."""
        plain = files.select(FILES.names).set_column(
            FILES.get_field_index("deletion_vector"),
            FILES.field("deletion_vector"),
            pa.nulls(files.num_rows, FILES.field("deletion_vector").type),
        )
        state = replace(self.state, files=plain, version=self.version)
        contents = TableContents(self.log.storage, state, self.table, self.vectors)
        # Row ids are those of one version: between versions they say nothing.
        number = contents.files.schema.get_field_index("row_id_start")
        nothing = pa.nulls(files.num_rows, pa.int64())
        return contents.file_groups(contents.files.set_column(number, "row_id_start", nothing))

    def _complete(self, removes: pa.Table) -> pa.Table:
        """Removed files, with what the log told when it added them where it does not say it again."""
        if not self.table.partitioning or not removes["partition_values"].null_count:
            return as_adds(removes)
        before = self.log.at_version(self.version - 1)
        number = pc.index_in(file_keys(self.log.root, removes), file_keys(self.log.root, before.files))
        return as_adds(before.files.take(number.drop_null()))


def _changing(actions: pa.Table) -> pa.Table:
    """Those that change what the table says; the others only rearrange it."""
    return actions.filter(pc.fill_null(actions["data_change"], True))
