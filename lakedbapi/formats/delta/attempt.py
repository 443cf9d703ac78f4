"""One try to commit a plan: its actions on top of the state that is the newest then."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakedbapi.errors import DataError, Error, InternalError, NotSupportedError
from lakedbapi.formats.delta import clustering, commit_info, row_tracking
from lakedbapi.formats.delta.actions import DomainMetadata
from lakedbapi.formats.delta.conflicts import SNAPSHOT, isolation_level, located, same_rows
from lakedbapi.formats.delta.definition import (
    Definition,
    changed_definition,
    new_definition,
    with_time_in_commits,
)
from lakedbapi.formats.delta.features import writer_features
from lakedbapi.formats.delta.file_actions import Action, add_again, add_of, new_file, remove_of
from lakedbapi.formats.delta.pieces import taken
from lakedbapi.formats.delta.plan import Plan
from lakedbapi.formats.delta.properties import IN_COMMIT
from lakedbapi.formats.delta.restored import restored_schema
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.vector_files import VectorFiles
from lakedbapi.formats.delta.writer_features import (
    check_writable,
    has_deletion_vectors,
    is_on,
    is_true,
    with_features,
)
from lakedbapi.formats.delta.written_stats import dumps, loosened, stats_text
from lakedbapi.formats.program import own_name
from lakedbapi.formats.properties import whole_number
from lakedbapi.model.changes import WrittenFile
from lakedbapi.model.sql_types import spelled

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog


class Attempt:
    """`head` is the newest state, None where there is no table yet."""

    def __init__(self, catalog: DeltaCatalog, plan: Plan, head: TableState | None, transaction_id: str) -> None:
        self._catalog = catalog
        self._plan = plan
        self._head = head
        self._transaction_id = transaction_id
        self._now = time.time_ns() // 1_000_000
        self._definition = self._timed(self._define())
        self._physical = catalog.physical_names(plan.table)
        self._vectors = VectorFiles(catalog.storage, plan.root, self._prefix_length())
        self._counts = commit_info.FileCounts()
        self._rows = 0
        """How many more rows the table has after the commit."""
        self.version = 0 if head is None else head.version + 1

    @property
    def written(self) -> Sequence[str]:
        """Paths of the files that this attempt alone needs."""
        return self._vectors.written

    @property
    def configuration(self) -> Mapping[str, str]:
        """The table's properties after the commit."""
        return self._definition.metadata.configuration

    def content(self) -> bytes | None:
        """The commit, a line for each action; None when it would change nothing. Writes deletion vectors."""
        removes, changed = self._changed_files()
        adds = self._new_files()
        again, unnumbered = self._without_ids(removes, changed)
        cdc = [self._change_file(file) for file in self._plan.rows.change_files]
        self._counts = replace(self._counts, change_files=len(cdc))
        clustered = self._clustering_domain()
        domains = [] if clustered is None else [clustered]
        fresh = [*unnumbered, *adds]
        if fresh and row_tracking.is_tracked(self._definition.protocol, self.configuration):
            mark = row_tracking.assign({} if self._head is None else self._head.domains, self.version, fresh)
            domains += [] if mark is None else [mark]
        definition = self._changed_definition()
        files = [
            *({"remove": action} for action in removes),
            *({"add": action} for action in (*changed, *again)),
            *({"add": action} for action, _ in adds),
            *({"cdc": action} for action in cdc),
        ]
        if not (files or definition or domains or self._plan.note):
            return None
        self._check(removes, [*changed, *again, *(action for action, _ in adds)])
        lines = [
            {"commitInfo": self._info()},
            *definition,
            *({"domainMetadata": domain.to_json()} for domain in domains),
            *files,
        ]
        return "".join(dumps(line) + "\n" for line in lines).encode()

    def _define(self) -> Definition:
        plan, head = self._plan, self._head
        physical = self._catalog.physical_names(plan.table)
        if head is None:
            return new_definition(plan.table, physical, self._now)
        if plan.is_replaced:
            fresh = new_definition(plan.table, physical, self._now)
            metadata = replace(fresh.metadata, id=head.metadata.id)
            return Definition(with_features(head.protocol, writer_features(fresh.protocol)), metadata)
        if plan.new is plan.old and not plan.marks:
            return Definition(head.protocol, head.metadata)
        return changed_definition(head, plan.table, physical, plan.marks, self._restored_schema())

    def _restored_schema(self) -> str | None:
        """The schema of the version that a RESTORE goes back to."""
        versions = [done.version for done in self._plan.operations if done.version is not None]
        if not versions or self._head is None:
            return None
        earlier = self._catalog.table(self._plan.root).at_version(versions[-1])
        return restored_schema(earlier.metadata, self._head.metadata)

    def _timed(self, definition: Definition) -> Definition:
        if self._head is None or definition.metadata == self._head.metadata:
            return definition
        return with_time_in_commits(definition, self._head, self._time)

    @cached_property
    def _time(self) -> int:
        """Of the commit, in milliseconds: after that of the version before."""
        previous = 0 if self._head is None else int(self._head.timestamp.timestamp() * 1000)
        return max(self._now, previous + 1)

    def _changed_definition(self) -> list[Action]:
        head, definition = self._head, self._definition
        check_writable(definition.protocol, self._plan.table.name)
        actions: list[Action] = []
        if head is None or definition.protocol != head.protocol:
            actions.append({"protocol": definition.protocol.to_json()})
        if head is None or definition.metadata != head.metadata:
            actions.append({"metaData": definition.metadata.to_json()})
        return actions

    def _clustering_domain(self) -> DomainMetadata | None:
        plan = self._plan
        if plan.new is None or plan.new is plan.old:
            return None
        return clustering.domain_of(plan.new, self._physical, self._head)

    def _prefix_length(self) -> int:
        configuration = self._definition.metadata.configuration
        if not is_true(configuration, "delta.randomizeFilePrefixes"):
            return 0
        return whole_number(configuration, "delta.randomPrefixLength", 2)

    def _changed_files(self) -> tuple[list[Action], list[Action]]:
        """What becomes of files of the snapshot: removes, and adds with other deletion vectors."""
        plan, head = self._plan, self._head
        if plan.state is None or head is None or not (plan.is_replaced or plan.rows.removed or plan.rows.deleted):
            return [], []
        gone = np.fromiter(sorted(plan.rows.removed), np.int64, len(plan.rows.removed))
        if plan.is_replaced:
            gone = np.arange(plan.state.files.num_rows)
        partly = np.fromiter(sorted(plan.rows.deleted), np.int64, len(plan.rows.deleted))
        removed = taken(head.files, located(plan, head, gone, whole=True)).to_pylist()
        self._count_removed(removed, gone)
        pairs = self._with_vectors(partly, taken(head.files, located(plan, head, partly, whole=False)))
        removes = [
            remove_of(row, self._now, data_change=not plan.moves_rows) for row in [*removed, *(row for row, _ in pairs)]
        ]
        return removes, [add for _, add in pairs if add is not None]

    def _count_removed(self, removed: Sequence[Mapping[str, Any]], rows: npt.NDArray[np.int64]) -> None:
        vectors = [row["deletion_vector"] for row in removed if row["deletion_vector"] is not None]
        self._rows -= int(self._plan.record_counts()[rows].sum()) if len(rows) else 0
        self._rows += sum(vector["cardinality"] for vector in vectors)
        self._counts = replace(
            self._counts,
            removed=self._counts.removed + len(removed),
            removed_bytes=self._counts.removed_bytes + sum(row["size"] or 0 for row in removed),
            vectors_removed=self._counts.vectors_removed + len(vectors),
        )

    def _with_vectors(
        self, rows: npt.NDArray[np.int64], files: pa.Table
    ) -> list[tuple[Mapping[str, Any], Action | None]]:
        """Each of `files`, which are at `rows` of the snapshot and lose rows, with the action that adds it again; None
        for one that has no row left, since others deleted the rest."""
        if not len(rows):
            return []
        plan = self._plan
        deletes = [plan.rows.deleted[number] for number in rows.tolist()]
        current = self._catalog.vectors.of(self._catalog.storage, plan.root, files)
        entries = files.to_pylist()
        for theirs, mine, entry in zip(current, deletes, entries, strict=True):
            if theirs & mine:
                raise same_rows(plan, entry["path"])
        merged = [old | new for old, new in zip(current, deletes, strict=True)]
        counts = plan.record_counts()[rows].tolist()
        left = [number for number, vector in enumerate(merged) if len(vector) < counts[number]]
        for number, vector in enumerate(merged):
            if vector.bitmap.max() >= counts[number]:
                raise InternalError(f"{entries[number]['path']}: row {vector.bitmap.max()} of {counts[number]} deleted")
        written = self._vectors.write([merged[number] for number in left])
        self._catalog.vectors.keep(plan.root, written, [merged[number] for number in left])
        descriptors = dict(zip(left, written, strict=True))
        self._rows -= sum(len(vector) for vector in deletes)
        updated = sum(entries[number]["deletion_vector"] is not None for number in left)
        had = sum(entry["deletion_vector"] is not None for entry in entries)
        ended = [entry for number, entry in enumerate(entries) if number not in descriptors]
        self._counts = replace(
            self._counts,
            vectors_added=self._counts.vectors_added + len(left),
            vectors_removed=self._counts.vectors_removed + had,
            vectors_updated=self._counts.vectors_updated + updated,
            removed=self._counts.removed + len(ended),
            removed_bytes=self._counts.removed_bytes + sum(entry["size"] or 0 for entry in ended),
            changed=len(left),
            changed_bytes=sum(entries[number]["size"] or 0 for number in left),
        )
        return [
            (
                entry,
                add_of(
                    entry,
                    self._partition_keys,
                    vector=descriptors[number],
                    stats=loosened(entry["stats"], counts[number]),
                )
                if number in descriptors
                else None,
            )
            for number, entry in enumerate(entries)
        ]

    def _without_ids(
        self, removes: Sequence[Action], changed: Sequence[Action]
    ) -> tuple[list[Action], list[tuple[Action, int]]]:
        """Where row tracking begins, all live files need ids: the actions that add again those without, and these with
        those of `changed` that have none, each with its number of physical rows."""
        head, old = self._head, self._plan.old
        before = head is not None and row_tracking.is_enabled(head.protocol, head.metadata.configuration)
        if (
            head is None
            or old is None
            or before
            or not row_tracking.is_enabled(self._definition.protocol, self.configuration)
        ):
            return [], []
        counts = self._catalog.contents(head, old).files["record_count"]
        waiting = head.files.append_column("rows", counts).filter(head.files["base_row_id"].is_null()).to_pylist()
        rows = {row["path"]: row["rows"] for row in waiting}
        gone = {action["path"] for action in removes}
        again = [add_again(row, self._partition_keys) for row in waiting if row["path"] not in gone]
        return again, [(action, rows[action["path"]]) for action in (*again, *changed) if action["path"] in rows]

    def _new_files(self) -> list[tuple[Action, int]]:
        """Adds of the files that the transaction wrote, each with its number of physical rows."""
        plan = self._plan
        schema, configuration = plan.table.schema, self._definition.metadata.configuration
        spec = plan.table.partitioning
        in_path = frozenset() if spec is None else frozenset(key.field_id for key in spec.fields)
        always = frozenset(path[-1].id for path in clustering.clustered_by(plan.table))
        staged = plan.rows.files
        vectors = iter(self._vectors.write([file.deletes for file in staged if file.deletes]))
        adds = []
        for entry in staged:
            file = entry.file
            stats = stats_text(file, schema, in_path, configuration, always)
            action = new_file(file, plan.root, plan.table, self._physical)
            action |= {"modificationTime": self._now, "dataChange": not plan.moves_rows, "stats": stats}
            if commit_info.is_clustered(plan.table, plan.operations):
                action["clusteringProvider"] = clustering.PROVIDER
            if entry.deletes:
                action |= {"stats": loosened(stats, file.record_count), "deletionVector": next(vectors)}
            adds.append((action, file.record_count))
        live = sum(entry.file.record_count - len(entry.deletes or ()) for entry in staged)
        self._rows += live
        self._counts = replace(
            self._counts,
            added=len(adds),
            added_sizes=tuple(entry.file.file_size_bytes for entry in staged),
            output_rows=live,
            vectors_added=self._counts.vectors_added + sum(bool(entry.deletes) for entry in staged),
        )
        return adds

    def _change_file(self, file: WrittenFile) -> Action:
        return {**new_file(file, self._plan.root, self._plan.table, self._physical), "dataChange": False}

    def _info(self) -> Action:
        plan, head = self._plan, self._head
        note = self._note()
        info: Action = {
            "timestamp": self._now,
            "operation": note.operation,
            "operationParameters": dict(note.parameters),
        }
        if plan.state is not None:
            info["readVersion"] = plan.state.version
        info |= {
            "isolationLevel": SNAPSHOT if plan.moves_rows else isolation_level(self._definition.metadata.configuration),
            "isBlindAppend": plan.is_blind_append,
            "operationMetrics": dict(note.metrics),
            "engineInfo": own_name("/"),
            "txnId": self._transaction_id,
        }
        said = {"userName": plan.author, "userMetadata": plan.message, "extraInfo": plan.extra_info}
        info |= {name: text for name, text in said.items() if text is not None}
        tracked = row_tracking.is_enabled(self._definition.protocol, self.configuration)
        if head is not None and tracked and row_tracking.keeps_ids(self.configuration) and not plan.is_blind_append:
            info["tags"] = {row_tracking.PRESERVED: str(bool(row_tracking.columns(self.configuration))).lower()}
        if is_on(self._definition.protocol, self.configuration, IN_COMMIT):
            info = {"inCommitTimestamp": self._time, **info}
        return info

    def _note(self) -> commit_info.Note:
        plan = self._plan
        if plan.note is not None:
            return plan.note
        old = None if plan.is_replaced else plan.old
        metadata = self._definition.metadata
        name = commit_info.named(old, plan.new, plan.operations, metadata, replaced=plan.is_replaced)
        metrics = commit_info.metrics(name.operation, plan.operations, self._with_those_left(self._counts))
        return commit_info.Note(name.operation, name.parameters, metrics)

    def _with_those_left(self, counts: commit_info.FileCounts) -> commit_info.FileCounts:
        if self._head is None:
            return counts
        files = self._head.files
        return replace(
            counts,
            left=files.num_rows + counts.added - counts.removed,
            left_bytes=pc.sum(files["size"], min_count=0).as_py() + counts.added_bytes - counts.removed_bytes,
        )

    def _check(self, removes: Sequence[Action], adds: Sequence[Action]) -> None:
        """What no commit may do, whatever led to it."""
        plan = self._plan
        added = [action["path"] for action in adds]
        if _has_repeated(added):
            raise self._fault("has two add actions for one file")
        if removes and self._head is not None:
            paths = self._head.files["path"]
            changed = paths.filter(pc.is_in(paths, value_set=pa.array(added, pa.string()))).to_pylist()
            if _has_repeated(changed):
                raise self._fault("changes one of two entries for one file")
        if _has_repeated([(action["path"], *_vector(action)) for action in removes]):
            raise self._fault("has two remove actions for one file")
        if any(set(action["partitionValues"]) != set(self._partition_keys) for action in adds):
            raise InternalError(f"a commit of Delta table {plan.root} adds a file with other partition columns")
        if any("deletionVector" in add for add in adds) and not self._vectors_allowed():
            raise InternalError(f"a commit of Delta table {plan.root} has deletion vectors, which it must not have")
        if removes and not plan.moves_rows and self._is_append_only():
            raise NotSupportedError(
                f"table {plan.table.name} is append-only (delta.appendOnly): its rows cannot be changed or deleted; "
                f"ALTER TABLE {spelled(plan.table.name)} SET ('delta.appendOnly' = 'false') to allow it"
            )
        expected = sum(done.inserted - done.deleted for done in plan.operations)
        if plan.operations and not plan.is_replaced and self._rows != expected:
            raise self._fault(f"would change the number of its rows by {self._rows}, the statements by {expected}")

    def _fault(self, what: str) -> Error:
        """Why a commit is not made that `what` is said of: what another writer left, else a fault of this one."""
        table, head = self._plan.table.name, self._head
        paths = pa.chunked_array([], pa.string()) if head is None else head.paths
        found = pc.value_counts(paths)
        twice = found.field("values").filter(pc.greater(found.field("counts"), 1)).to_pylist()
        if not twice:
            return InternalError(f"a commit of Delta table {self._plan.root} {what}")
        return DataError(
            f"table {table} names the file {twice[0]} twice, once with other deleted rows than the other time, so that "
            "nobody can tell which of its rows there are: a faulty writer left it so. CREATE OR REPLACE TABLE "
            f"{spelled(table)} AS SELECT … takes an earlier version, FROM {spelled(table)} FOR VERSION AS OF …, or "
            "what is read now"
        )

    def _is_append_only(self) -> bool:
        """Before the commit or after it: a replaced table loses rows as well."""
        found = [(self._definition.protocol, self._definition.metadata)]
        if self._head is not None and self._plan.is_replaced:
            found.append((self._head.protocol, self._head.metadata))
        return any(is_on(protocol, metadata.configuration, "delta.appendOnly") for protocol, metadata in found)

    def _vectors_allowed(self) -> bool:
        head = self._head
        before = head is not None and has_deletion_vectors(head.protocol, head.metadata.configuration)
        return before or has_deletion_vectors(self._definition.protocol, self._definition.metadata.configuration)

    @cached_property
    def _partition_keys(self) -> Sequence[str]:
        """What partition columns are called in the log."""
        table = self._plan.table
        if table.partitioning is None:
            return ()
        names = {field.id: self._physical.get(field.id, field.name) for field in table.schema.fields}
        return [names[key.field_id] for key in table.partitioning.fields]


def _vector(action: Action) -> tuple[Any, ...]:
    """What tells an action of a file with a deletion vector from others of the file."""
    vector = action.get("deletionVector")
    return () if vector is None else (vector["storageType"], vector["pathOrInlineDv"], vector.get("offset"))


def _has_repeated(keys: Sequence[object]) -> bool:
    return len(set(keys)) != len(keys)
