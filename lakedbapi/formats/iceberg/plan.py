"""`Plan`: what a transaction does to one table, as it was at the transaction's snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakedbapi.formats.iceberg.files import Partition
from lakedbapi.formats.iceberg.sources import Namespace
from lakedbapi.formats.iceberg.table import TableVersion
from lakedbapi.formats.table_by_table import TablePlan
from lakedbapi.model.changes import Operation

SERIALIZABLE, SNAPSHOT = "serializable", "snapshot"
_KINDS = {"delete": "delete", "truncate": "delete", "update": "update", "merge": "merge", "restore": "merge"}
"""The words that properties have for statements."""


@dataclass(frozen=True, kw_only=True)
class Plan(TablePlan):
    """`base` is the version of `old`."""

    namespace: Namespace
    base: TableVersion | None
    placed: Mapping[str, Partition] = field(default_factory=dict)
    """The partitions of written files, by full path, that take the place of others in a compaction."""

    rewrites_manifests: bool = False
    """Whether manifests are merged, and tell of live files only."""
    rewrites_deletes: bool = False
    """Whether position delete files become one for each data file, and delete files go that reach none."""

    @property
    def is_compaction(self) -> bool:
        """Whether rows only move."""
        return any(operation.moves_rows for operation in self.operations)

    @property
    def name(self) -> str:
        return ".".join((*self.namespace, self.table.name))

    @property
    def is_altered(self) -> bool:
        return self.new is not self.old

    @property
    def only_deletes(self) -> bool:
        """Whether rows that went have no successors, in this table or as rows that were copied."""
        return all(operation.kind in ("delete", "truncate", "insert") for operation in self.operations)

    @property
    def serializable(self) -> Sequence[Operation]:
        """The statements that chose rows, and must have chosen the same behind others' commits, by
        `write.{delete,update,merge}.isolation-level`."""
        return [
            operation
            for operation in self.operations
            if operation.kind in _KINDS and isolation_level(self.table.properties, operation.kind) == SERIALIZABLE
        ]


def isolation_level(properties: Mapping[str, str], kind: str) -> str:
    """Of a statement of this kind (as in `Operation`)."""
    found = properties.get(f"write.{_KINDS[kind]}.isolation-level", SERIALIZABLE)
    return SNAPSHOT if found.casefold() == SNAPSHOT else SERIALIZABLE
