"""`commitInfo`: what a commit says of itself, in Spark's words, so that every history shows it alike."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakedbapi.formats.delta.actions import Metadata
from lakedbapi.formats.delta.alteration_info import Named, alteration, cluster_by
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.changes import MergeClause, Operation

_ROWS = {
    "insert": "WRITE",
    "delete": "DELETE",
    "update": "UPDATE",
    "merge": "MERGE",
    "truncate": "TRUNCATE",
    "restore": "RESTORE",
    "optimize": "OPTIMIZE",
    "reorg": "REORG",
}
_PARAMETER = {
    "matched": "matchedPredicates",
    "not matched": "notMatchedPredicates",
    "not matched by source": "notMatchedBySourcePredicates",
}


@dataclass(frozen=True)
class FileCounts:
    """What a commit does to files. A file that only gets another deletion vector is neither added nor removed."""

    added: int = 0
    added_sizes: tuple[int, ...] = ()
    removed: int = 0
    removed_bytes: int = 0
    output_rows: int = 0
    vectors_added: int = 0
    vectors_removed: int = 0
    vectors_updated: int = 0
    change_files: int = 0
    changed: int = 0
    """Files that get another deletion vector."""
    changed_bytes: int = 0
    left: int = 0
    """Files of the table after the commit."""
    left_bytes: int = 0

    @property
    def added_bytes(self) -> int:
        return sum(self.added_sizes)


@dataclass(frozen=True)
class Note:
    """What a commit says that has no actions; all values are text."""

    operation: str
    parameters: Mapping[str, str | None]
    metrics: Mapping[str, str]


def named(
    old: TableInfo | None,
    new: TableInfo | None,
    operations: Sequence[Operation],
    metadata: Metadata,
    *,
    replaced: bool = False,
) -> Named:
    """What a commit is called that made `new`, with `metadata`, of `old` and did `operations` to its rows."""
    if new is not None and old is None:
        return _creation(new, metadata, operations, replaced)
    if operations:
        return _row_operation(new or old, operations)
    if old is not None and new is not None:
        return alteration(old, new, metadata.schema_string)
    return Named("WRITE", {})


def _creation(table: TableInfo, metadata: Metadata, operations: Sequence[Operation], replaced: bool) -> Named:
    verb = "CREATE OR REPLACE TABLE" if replaced else "CREATE TABLE"
    parameters = {
        "isManaged": "false",
        "description": metadata.description,
        "partitionBy": _partition_by(table),
        "clusterBy": json.dumps(cluster_by(table)),
        "properties": json.dumps(dict(metadata.configuration)),
    }
    return Named(verb + " AS SELECT" * bool(operations), parameters)


def _row_operation(table: TableInfo | None, operations: Sequence[Operation]) -> Named:
    kinds = {operation.kind for operation in operations}
    if len(kinds) > 1:
        words = [_ROWS[operation.kind] for operation in operations]
        return Named("TRANSACTION", {"operations": json.dumps(words)})
    (kind,) = kinds
    if kind == "insert":
        return Named("WRITE", {"mode": "Append", "partitionBy": _partition_by(table)})
    if kind == "truncate":
        return Named("TRUNCATE", {})
    if kind == "restore":
        return Named("RESTORE", {"version": str(operations[-1].version), "timestamp": None})
    if operations[-1].moves_rows:
        return Named(_ROWS[kind], _moved(kind, table, operations))
    predicates = list(dict.fromkeys(operation.predicate or "true" for operation in operations))
    parameters = {"predicate": json.dumps(predicates)}
    if kind == "merge":
        clauses = [clause for operation in operations for clause in operation.clauses]
        parameters |= {
            name: json.dumps([_clause(clause) for clause in clauses if clause.when == when])
            for when, name in _PARAMETER.items()
        }
    return Named(_ROWS[kind], parameters)


def _moved(kind: str, table: TableInfo | None, operations: Sequence[Operation]) -> dict[str, str]:
    operation = operations[-1]
    predicates = [] if operation.predicate is None else [operation.predicate]
    parameters = {"predicate": json.dumps(predicates)}
    if kind == "reorg":
        return parameters | {"applyPurge": "true"}
    order = list(operation.order)
    columns = ([], order) if is_clustered(table, operations) else (order, [])
    return parameters | {"zOrderBy": json.dumps(columns[0]), "clusterBy": json.dumps(columns[1]), "auto": "false"}


def is_clustered(table: TableInfo | None, operations: Sequence[Operation]) -> bool:
    """Whether rows were moved into the order of the table's own clustering columns."""
    order = operations[-1].order if operations and operations[-1].moves_rows else ()
    return bool(order) and list(order) == cluster_by(table)


def _clause(clause: MergeClause) -> dict[str, str]:
    found = {} if clause.condition is None else {"predicate": clause.condition}
    return {**found, "actionType": clause.action}


def _partition_by(table: TableInfo | None) -> str:
    if table is None or table.partitioning is None:
        return "[]"
    names = {field.id: field.name for field in table.schema.fields}
    return json.dumps([names[key.field_id] for key in table.partitioning.fields])


def metrics(operation: str, operations: Sequence[Operation], files: FileCounts) -> dict[str, str]:
    """The metrics that Spark gives an operation of this name."""
    inserted = sum(done.inserted for done in operations)
    updated = sum(done.updated for done in operations)
    deleted = sum(done.deleted for done in operations)
    copied = max(files.output_rows - inserted - updated, 0)
    if operation in ("WRITE", "CREATE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT"):
        found = {"numFiles": files.added, "numOutputRows": files.output_rows, "numOutputBytes": files.added_bytes}
    elif operation == "MERGE":
        found = _merge_metrics(operations, files, inserted, updated, deleted, copied)
    elif operation == "RESTORE":
        found = {
            "numRestoredFiles": files.added + files.changed,
            "restoredFilesSize": files.added_bytes + files.changed_bytes,
            "numRemovedFiles": files.removed + files.changed,
            "removedFilesSize": files.removed_bytes + files.changed_bytes,
            "numOfFilesAfterRestore": files.left,
            "tableSizeAfterRestore": files.left_bytes,
        }
    elif operation in ("OPTIMIZE", "REORG"):
        found = _compaction_metrics(files)
    elif operations:
        found = {
            "numRemovedFiles": files.removed,
            "numRemovedBytes": files.removed_bytes,
            "numAddedFiles": files.added,
            "numAddedBytes": files.added_bytes,
            "numCopiedRows": copied,
            "numAddedChangeFiles": files.change_files,
            "numDeletionVectorsAdded": files.vectors_added,
            "numDeletionVectorsRemoved": files.vectors_removed,
            "numDeletionVectorsUpdated": files.vectors_updated,
        }
        counts = {"numDeletedRows": deleted, "numUpdatedRows": updated, "numOutputRows": files.output_rows}
        shown = {"DELETE": ["numDeletedRows"], "TRUNCATE": ["numDeletedRows"], "UPDATE": ["numUpdatedRows"]}
        found |= {name: counts[name] for name in shown.get(operation, list(counts))}
    else:
        found = {}
    return {name: str(value) for name, value in found.items()}


def _compaction_metrics(files: FileCounts) -> dict[str, int]:
    sizes = sorted(files.added_sizes)
    spread = {"p25FileSize": 1, "p50FileSize": 2, "p75FileSize": 3}
    return {
        "numAddedFiles": files.added,
        "numAddedBytes": files.added_bytes,
        "numRemovedFiles": files.removed,
        "numRemovedBytes": files.removed_bytes,
        "numDeletionVectorsRemoved": files.vectors_removed,
        "minFileSize": sizes[0] if sizes else 0,
        **{name: sizes[len(sizes) * quarter // 4] if sizes else 0 for name, quarter in spread.items()},
        "maxFileSize": sizes[-1] if sizes else 0,
    }


def _merge_metrics(
    operations: Sequence[Operation], files: FileCounts, inserted: int, updated: int, deleted: int, copied: int
) -> dict[str, int]:
    def clauses(when: str, action: str) -> int:
        done = (clause for operation in operations for clause in operation.clauses)
        return sum(clause.rows for clause in done if (clause.when, clause.action) == (when, action))

    return {
        "numTargetRowsInserted": inserted,
        "numTargetRowsUpdated": updated,
        "numTargetRowsDeleted": deleted,
        "numTargetRowsCopied": copied,
        "numTargetRowsMatchedUpdated": clauses("matched", "update"),
        "numTargetRowsMatchedDeleted": clauses("matched", "delete"),
        "numTargetRowsNotMatchedBySourceUpdated": clauses("not matched by source", "update"),
        "numTargetRowsNotMatchedBySourceDeleted": clauses("not matched by source", "delete"),
        "numOutputRows": files.output_rows,
        "numTargetFilesAdded": files.added,
        "numTargetFilesRemoved": files.removed,
        "numTargetBytesAdded": files.added_bytes,
        "numTargetBytesRemoved": files.removed_bytes,
        "numTargetChangeFilesAdded": files.change_files,
        "numTargetDeletionVectorsAdded": files.vectors_added,
        "numTargetDeletionVectorsRemoved": files.vectors_removed,
        "numTargetDeletionVectorsUpdated": files.vectors_updated,
    }
