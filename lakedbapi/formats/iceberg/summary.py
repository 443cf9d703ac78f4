"""The summary of a snapshot: what it did, in numbers (spec, Snapshots; the counters are those of the Java library)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.table.snapshots import Operation, Summary

from lakedbapi.formats.iceberg.manifests import DATA_FILE, EQUALITY_DELETES
from lakedbapi.formats.program import own_version
from lakedbapi.formats.table_by_table import TablePlan

_ADDED, _REMOVED = ("added-data-files", "added-records"), ("deleted-data-files", "deleted-records")

AUTHOR, MESSAGE, EXTRA_INFO = "author", "message", "extra-info"
"""What a transaction says of itself."""


@dataclass
class Counters:
    """What a commit does to files; `partitions` are those that it changes."""

    values: dict[str, int] = field(default_factory=dict)
    partitions: set[Any] = field(default_factory=set)

    def add(self, file: Mapping[str, Any], spec_id: int) -> None:
        self._count(file, spec_id, "added", _ADDED)

    def remove(self, file: Mapping[str, Any], spec_id: int) -> None:
        self._count(file, spec_id, "removed", _REMOVED)

    def _count(self, file: Mapping[str, Any], spec_id: int, verb: str, data: tuple[str, str]) -> None:
        is_puffin = str(file["file_format"]).casefold() == "puffin"
        records = file["record_count"]
        self.partitions.add((spec_id, repr(file["partition"])))
        # A Puffin file has many vectors: each counts with its own part.
        size = file["content_size_in_bytes"] if is_puffin else file["file_size_in_bytes"]
        self._increase(f"{verb}-files-size", size)
        if file["content"] == DATA_FILE:
            self._increase(data[0], 1)
            self._increase(data[1], records)
            return
        self._increase(f"{verb}-delete-files", 1)
        kind = "equality" if file["content"] == EQUALITY_DELETES else "position"
        self._increase(f"{verb}-dvs" if is_puffin else f"{verb}-{kind}-delete-files", 1)
        self._increase(f"{verb}-{kind}-deletes", records)

    def _increase(self, name: str, by: int) -> None:
        self.values[name] = self.values.get(name, 0) + by

    @property
    def operation(self) -> Operation:
        adds, removes = self.values.get("added-data-files"), self.values.get("deleted-data-files")
        deletes = self.values.get("added-delete-files")
        if not adds:
            return Operation.DELETE
        return Operation.OVERWRITE if removes or deletes else Operation.APPEND

    def summary(self, parent: Summary | None, is_first: bool, operation: Operation, plan: TablePlan) -> Summary:
        before: Mapping[str, str] = {} if parent is None else parent.additional_properties
        found = {name: str(value) for name, value in sorted(self.values.items()) if value}
        for name, added, removed in _TOTALS:
            known = "0" if is_first else before.get(name)
            if known is not None:
                found[name] = str(int(known) + self.values.get(added, 0) - self.values.get(removed, 0))
        if self.partitions:
            found["changed-partition-count"] = str(len(self.partitions))
        found |= {"engine-name": "lakedbapi", "engine-version": own_version() or "unknown"}
        told = {AUTHOR: plan.author, MESSAGE: plan.message, EXTRA_INFO: plan.extra_info}
        found |= {name: text for name, text in told.items() if text is not None}
        return Summary(operation, **found)


_TOTALS: Sequence[tuple[str, str, str]] = (
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)
