"""What a commit says that it did (the files it wrote, the file groups it replaced, the schema), and what is found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from lakedbapi.errors import DataError
from lakedbapi.formats.hudi.timeline import Instant


class FileGroupId(NamedTuple):
    """The files that hold the same rows, one after the other: a base file, log files, the next base file…"""

    partition: str
    file_id: str


class FileSlice(NamedTuple):
    """A file group at one version. `base` is a file name ("" = none), written by the commit begun at `base_instant`.

    `logs` has the sizes of the log files by name: what was changed since.
    """

    group: FileGroupId
    base: str
    base_instant: str
    base_size: int
    logs: Mapping[str, int]

    @property
    def base_path(self) -> str:
        """Within the table; "" = none."""
        return self._path(self.base) if self.base else ""

    @property
    def log_paths(self) -> Mapping[str, int]:
        """Size by path within the table."""
        return {self._path(name): size for name, size in self.logs.items()}

    @property
    def path(self) -> str:
        """The base file, or where there is none the first log file."""
        return self.base_path or next(iter(self.log_paths))

    @property
    def is_merged(self) -> bool:
        """Whether an engine cannot read it by itself."""
        return bool(self.logs) or not self.base.endswith(".parquet")

    def _path(self, name: str) -> str:
        return f"{self.group.partition}/{name}" if self.group.partition else name


def log_instant(name: str) -> str:
    """The instant in the name of a log file: in layout 1 that of its base file, in layout 2 that of the commit."""
    return name.rpartition(".log.")[0].rpartition("_")[2]


@dataclass(frozen=True)
class Write:
    """One file written. `previous` is the instant of the base file that a base file replaces, None for the first."""

    group: FileGroupId
    path: str
    size: int
    row_count: int
    previous: str | None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_log(self) -> bool:
        return self.name.startswith(".")


@dataclass(frozen=True)
class Commit:
    instant: Instant
    metadata: Mapping[str, Any]

    @classmethod
    def parse(cls, instant: Instant, text: str, source: str) -> Commit:
        """From JSON; `source` is the table, for the DataError that it is none."""
        try:
            metadata = json.loads(text)
            commit = cls(instant, metadata)
            _ = commit.writes, commit.replaced
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{source}: the {instant.action} of {instant.begun} is damaged: {error!r}") from error
        return commit

    @property
    def operation(self) -> str | None:
        return self.metadata.get("operationType")

    @cached_property
    def writes(self) -> tuple[Write, ...]:
        by_partition: Mapping[str, Any] = self.metadata.get("partitionToWriteStats") or {}
        return tuple(
            Write(
                FileGroupId(partition, write["fileId"]),
                write["path"],
                write.get("fileSizeInBytes") or 0,
                write.get("numWrites") or 0,
                None if write.get("prevCommit") in (None, "", "null") else write["prevCommit"],
            )
            for partition, writes in by_partition.items()
            for write in writes
            if write.get("path")
        )

    @cached_property
    def replaced(self) -> frozenset[FileGroupId]:
        by_partition: Mapping[str, Any] = self.metadata.get("partitionToReplaceFileIds") or {}
        return frozenset(FileGroupId(partition, id) for partition, ids in by_partition.items() for id in ids)

    @property
    def schema(self) -> str | None:
        """The table's schema after the commit, as Avro; None where the commit does not say."""
        return self._extra.get("schema") or None

    @property
    def has_internal_schema(self) -> bool:
        """Whether columns were renamed, moved or dropped by Hudi's schema-on-read evolution."""
        return bool(self._extra.get("latest_schema"))

    @property
    def sums(self) -> Mapping[str, int]:
        """`numInserts`, `numUpdateWrites`, `numDeletes` over all files."""
        by_partition: Mapping[str, Any] = self.metadata.get("partitionToWriteStats") or {}
        stats = [write for writes in by_partition.values() for write in writes]
        return {
            name: sum(write.get(name) or 0 for write in stats)
            for name in ("numInserts", "numUpdateWrites", "numDeletes")
        }

    @property
    def _extra(self) -> Mapping[str, str]:
        return self.metadata.get("extraMetadata") or {}
