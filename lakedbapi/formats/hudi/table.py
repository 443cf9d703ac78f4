"""`HudiTable`: one table as its timeline was at one moment, readable at each of its commits."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lakedbapi.errors import DataError, NotSupportedError, ProgrammingError
from lakedbapi.formats.hudi import properties, rust
from lakedbapi.formats.hudi.commits import Commit
from lakedbapi.formats.hudi.properties import Properties
from lakedbapi.formats.hudi.schema import table_schema
from lakedbapi.formats.hudi.slices import Slices
from lakedbapi.formats.hudi.timeline import Instant, Timeline, instant_at, instant_of, time_of
from lakedbapi.model.catalog import AsOf
from lakedbapi.model.types import Schema
from lakedbapi.storage.filesystem import Storage

_KEEPS_SCHEMA = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})
"""Operations whose commits say nothing new about the schema."""
_ATTEMPTS = 5
_KEPT = 16
"""Versions whose file lists are kept at hand."""


class HudiTable:
    """Immutable; `renewed` gives the table as it is now."""

    def __init__(
        self,
        storage: Storage,
        options: Mapping[str, Any],
        properties: Properties,
        timeline: Timeline,
        reader: Any,
        commits: dict[Instant, Commit],
    ) -> None:
        self.storage = storage
        self.root = properties.root
        self.properties = properties
        self.timeline = timeline
        self.reader = reader
        self._options = options
        self._commits = commits
        self._lock = threading.RLock()
        self._slices: OrderedDict[tuple[Instant, bool], Slices] = OrderedDict()

    @classmethod
    def open(cls, storage: Storage, options: Mapping[str, Any], root: str, known: HudiTable | None = None) -> HudiTable:
        """The table in the directory `root` as it is now; `known` itself if nothing was committed since.

        ProgrammingError when there is none, NotSupportedError for what cannot be read right, DataError for a damaged
        one.
        """
        for _ in range(_ATTEMPTS):
            found = Properties.parse(root, _read_properties(storage, root))
            found.check()
            timeline = _list_timeline(storage, found)
            if known is not None and known.properties == found and known.timeline == timeline:
                return known
            reader = rust.open_table(root, storage, options)
            if _list_timeline(storage, found) == timeline:  # else hudi-rs may know of other commits than we do
                commits = {} if known is None else dict(known._commits)
                kept = {instant: commits[instant] for instant in timeline.commits if instant in commits}
                return cls(storage, options, found, timeline, reader, kept)
        raise DataError(f"{root}: its timeline changes faster than it can be read; try again")

    def __repr__(self) -> str:
        return f"<HudiTable {self.root}>"

    def at(self, point: AsOf | None) -> Instant | None:
        """The commit that a reader at `point` (None = now) sees; None for a table without commits.

        ProgrammingError for a point before the first one.
        """
        commits = self.timeline.commits
        if point is None:
            return commits[-1] if commits else None
        if point.timestamp is not None:
            wanted = instant_at(point.timestamp, is_local=self.properties.is_local_time)
        else:
            assert point.version is not None
            wanted = instant_of(point.version)
        found = self.timeline.at(wanted)
        if found is None:
            kept = f"its first one is {commits[0].begun}" if commits else "it has none"
            raise ProgrammingError(f"{self.root}: the table has no commit at or before {wanted}: {kept}")
        return found

    def commit(self, instant: Instant) -> Commit:
        with self._lock:
            found = self._commits.get(instant)
            if found is None:
                found = self._commits[instant] = Commit.parse(instant, self._metadata(instant), self.root)
            return found

    def commits(self) -> Sequence[Commit]:
        """Those of the active timeline, in order."""
        return [self.commit(instant) for instant in self.timeline.commits]

    def _metadata(self, instant: Instant) -> str:
        with rust.mapped(f"{self.root}: {instant.action} of {instant.begun}"):
            timeline = self.reader.get_timeline()
            listed = getattr(timeline, f"get_completed_{instant.action}s")()
            handle = next((handle for handle in listed if handle.timestamp == instant.begun), None)
            if handle is None:
                raise DataError(f"{self.root}: the {instant.action} of {instant.begun} cannot be read")
            return str(timeline.get_instant_metadata_in_json(handle))

    def time(self, instant: Instant) -> datetime:
        return time_of(instant.begun, is_local=self.properties.is_local_time)

    def schema(self, at: Instant | None) -> Schema:
        """The columns after the commit `at`, without those that Hudi adds."""
        return table_schema(self._avro(at), self.root)

    def _avro(self, at: Instant | None) -> str:
        instants = [] if at is None else [i for i in self.timeline.commits if i.order <= at.order]
        for instant in reversed(instants):
            commit = self.commit(instant)
            if commit.has_internal_schema:
                raise NotSupportedError(
                    f"{self.root}: Hudi tables with schema-on-read evolution (columns renamed, moved or dropped with "
                    "hoodie.schema.on.read.enable) cannot be read here: rewrite the table with Spark"
                )
            if commit.schema is not None and commit.operation not in _KEEPS_SCHEMA:
                return commit.schema
        created = self.properties.values.get("hoodie.table.create.schema")
        if created is None:
            raise DataError(f"{self.root}: neither its commits nor {properties.FILE} have the table's schema")
        return created

    def slices(self, at: Instant, *, read_optimized: bool) -> Slices:
        """What the table consists of after the commit `at`; with `read_optimized` without log files."""
        key = at, read_optimized
        with self._lock:
            if key not in self._slices:
                self._slices[key] = Slices.find(self, at, read_optimized=read_optimized)
                while len(self._slices) > _KEPT:
                    self._slices.popitem(last=False)
            return self._slices[key]


def _read_properties(storage: Storage, root: str) -> bytes:
    path = root + properties.FILE
    if not storage.exists(path):
        raise ProgrammingError(f"{root} is no Hudi table: there is no {properties.FILE}")
    return storage.read_bytes(path)


def _list_timeline(storage: Storage, properties: Properties) -> Timeline:
    return Timeline.of(entry.name for entry in storage.entries(properties.timeline_directory))
