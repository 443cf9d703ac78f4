"""What lies in the `_delta_log` of a table: commits, checkpoints, and which of them give the state at a version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

import numpy as np

from lakedbapi.errors import OperationalError, ProgrammingError
from lakedbapi.storage.filesystem import Entry, Storage

LOG = "_delta_log/"

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9a-fA-F-]{36}))?\.(?P<kind>parquet|json)"
)


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint: one file, or all parts of it, in order."""

    version: int
    files: tuple[Entry, ...]


@dataclass(frozen=True)
class LogListing:
    """The commits and complete checkpoints of a log, by version, ascending."""

    commits: Mapping[int, Entry] = field(default_factory=dict)
    checkpoints: Mapping[int, Checkpoint] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not (self.commits or self.checkpoints)

    @property
    def latest(self) -> int:
        return max([*self.commits, *self.checkpoints])

    @property
    def earliest(self) -> int:
        """The first version that can be read: the first checkpoint, or version 0 while its commit is there."""
        return 0 if 0 in self.commits else min(self.checkpoints, default=-1)

    def segment(self, version: int, table: str) -> LogSegment:
        """What gives the state at `version`; ProgrammingError when the log does not reach there, OperationalError
        when commits are missing in between."""
        start = max((known for known in self.checkpoints if known <= version), default=None)
        first = 0 if start is None else start + 1
        in_log = not self.empty and 0 <= version <= self.latest
        wanted = range(first, version + 1) if in_log else range(0)  # Numbers that are none may be huge.
        missing = [number for number in wanted if number not in self.commits]
        if not in_log or (start is None and 0 in missing):
            ended = " any more, since its log was cleaned up or purged" if 0 <= version < self.earliest else ""
            raise ProgrammingError(
                f"Delta table {table} has no version {version}{ended} (DELTA_VERSION_NOT_FOUND): {self.range_text}"
            )
        if missing:
            raise OperationalError(
                f"the log of Delta table {table} is damaged: version {missing[0]} is missing, version {version} cannot "
                "be read (DELTA_VERSIONS_NOT_CONTIGUOUS)"
            )
        commits = [(number, self.commits[number]) for number in wanted]
        return LogSegment(version, None if start is None else self.checkpoints[start], commits)

    @property
    def range_text(self) -> str:
        return f"versions {self.earliest} to {self.latest} can be read" if self.earliest >= 0 else "none can be read"


@dataclass(frozen=True)
class LogSegment:
    """A checkpoint, if there is one, and all commits after it up to `version`."""

    version: int
    checkpoint: Checkpoint | None
    commits: Sequence[tuple[int, Entry]]


def list_log(storage: Storage, root: str) -> LogListing:
    """The log of the table at `root`; empty when there is none. Names that mean nothing here are skipped."""
    commits: dict[int, Entry] = {}
    others: list[Entry] = []
    for entry in storage.entries(root + LOG):
        commit = _COMMIT.fullmatch(entry.name)
        if commit is not None and not entry.is_directory:
            commits[int(commit[1])] = entry
        else:
            others.append(entry)
    return LogListing(dict(sorted(commits.items())), {found.version: found for found in _checkpoints(others)})


def all_checkpoints(storage: Storage, root: str) -> Sequence[Checkpoint]:
    """The complete ones, several of a version among them."""
    return _checkpoints(storage.entries(root + LOG))


def _checkpoints(entries: Sequence[Entry]) -> Sequence[Checkpoint]:
    found: dict[tuple[int, str], list[tuple[int, int, Entry]]] = {}
    for entry in entries:
        match = _CHECKPOINT.fullmatch(entry.name)
        if match is not None and entry.size:  # A checkpoint of zero bytes was never finished.
            kind = match["uuid"] or match["parts"] or ""
            number = (int(match["part"] or 1), int(match["parts"] or 1), entry)
            found.setdefault((int(match["version"]), kind), []).append(number)
    complete = []
    for (version, _), parts in sorted(found.items(), key=lambda item: item[0]):
        parts.sort(key=lambda part: part[0])
        if [number for number, _, _ in parts] == list(range(1, parts[0][1] + 1)):
            complete.append(Checkpoint(version, tuple(entry for _, _, entry in parts)))
    return complete


def commit_path(root: str, version: int) -> str:
    return f"{root}{LOG}{version:020}.json"


def commit_times(commits: Mapping[int, Entry]) -> Mapping[int, datetime]:
    """When each commit was made, by the store's clock, strictly ascending as versions are: to the millisecond."""
    versions = np.fromiter(commits, np.int64, len(commits))
    steps = np.arange(len(versions))
    millis = np.array([round(modified(entry).timestamp() * 1000) for entry in commits.values()], np.int64)
    ascending = np.maximum.accumulate(millis - steps) + steps
    return {version: from_millis(time) for version, time in zip(versions.tolist(), ascending.tolist(), strict=True)}


def from_millis(millis: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=millis)


def modified(entry: Entry) -> datetime:
    """When a commit was written, as the store says; OperationalError when the store keeps no times."""
    if entry.mtime is None:
        raise OperationalError(f"{entry.path}: the store keeps no modification times, so there is no travel by time")
    return entry.mtime
