"""`DeltaTable`: one table's log, with the states of it that were asked for."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from lakedbapi.errors import DataError, OperationalError, ProgrammingError
from lakedbapi.formats.delta.checkpoints import read_checkpoint
from lakedbapi.formats.delta.commits import Actions, parse_commits
from lakedbapi.formats.delta.log import (
    LogListing,
    LogSegment,
    commit_path,
    commit_times,
    from_millis,
    list_log,
    modified,
)
from lakedbapi.formats.delta.properties import IN_COMMIT, IN_COMMIT_VERSION
from lakedbapi.formats.delta.state import TableState, checkpoint_state, first_state
from lakedbapi.formats.delta.writer_features import is_on
from lakedbapi.formats.properties import whole_number
from lakedbapi.storage.filesystem import Entry, Storage

_KEPT = 8
"""States of a table that are kept at hand."""


class DeltaTable:
    """The table at `root` (its full path, ending in `/`). Safe to share by threads."""

    def __init__(self, storage: Storage, root: str) -> None:
        self.storage = storage
        self.root = root
        self._lock = threading.Lock()
        self._states: OrderedDict[int, tuple[Entry | None, TableState]] = OrderedDict()
        """By version, with the commit's file: another one there means that the table was made anew."""
        self._latest: tuple[Entry, TableState] | None = None

    def __repr__(self) -> str:
        return f"<DeltaTable {self.root}>"

    def latest(self) -> TableState:
        """The newest state, as of now; two looks at the store when nothing changed since the last call."""
        with self._lock:
            known = self._latest
        if known is not None and self._is_newest(*known):
            return known[1]
        listing = self._listing()
        state = self._state(listing, listing.latest)
        # Stores may tell times in a list more exactly than of one file, by which it is compared.
        known_as = self.storage.entry(commit_path(self.root, state.version))
        with self._lock:
            self._latest = None if known_as is None else (known_as, state)
        return state

    def follow(self, head: TableState, version: int, content: bytes) -> None:
        """Know the commit of `version` that was just made on `head`, the newest state until then, without a look at the
        whole log."""
        with self._lock:
            known = self._latest
        path = commit_path(self.root, version)
        entry = self.storage.entry(path)
        if known is None or known[1] is not head or self.storage.entry(known[0].path) != known[0]:
            return  # `head` may be of a table that was here before.
        if entry is None or entry.size != len(content):
            return
        actions = parse_commits([(version, path, content)])
        time = max(commit_times({version: entry})[version], head.timestamp + timedelta(milliseconds=1))
        state = self._timed(head.after(actions, version, time), actions)
        if _first_recorded(head) is not None and _first_recorded(state) is None:
            return  # The times of files count again, which are those of all of them.
        with self._lock:
            self._latest = entry, state
        self._keep(entry, state)

    def at_version(self, version: int) -> TableState:
        """The state at `version`; ProgrammingError when it is not there (any more)."""
        return self._state(self._listing(), version)

    def at_time(self, instant: datetime) -> TableState:
        """The newest state that is not later than `instant`; ProgrammingError for one before the first."""
        listing = self._listing()
        state = self._state(listing, listing.latest)
        times = _comparable(self.times(listing, state), state, instant)
        # Times are kept in milliseconds.
        index = bisect_right([time for _, time in times], instant)
        if index == 0:
            first = (
                f"the first version that can be read, {times[0][0]}, is of {times[0][1]}" if times else "none is left"
            )
            raise ProgrammingError(f"Delta table {self.root} has no version at {instant}: {first}")
        return self._state(listing, times[index - 1][0])

    def times(self, listing: LogListing, state: TableState) -> Sequence[tuple[int, datetime]]:
        """The versions whose commits are in the log, with their times, ascending (protocol, "In-Commit Timestamps").

        Versions before the first that can be read are left out.
        """
        times = dict(commit_times(listing.commits))
        recorded = _first_recorded(state)
        if recorded is not None:
            versions = [version for version in listing.commits if version >= recorded]
            for version, info in self.infos(versions).items():
                times[version] = _recorded_time(info, self.root, version)
        return [(version, time) for version, time in times.items() if version >= listing.earliest]

    def infos(self, versions: Sequence[int]) -> Mapping[int, Mapping[str, Any]]:
        """commitInfo of commits; empty for one without."""
        commits = self._read([(version, commit_path(self.root, version)) for version in versions])
        found = parse_commits(commits).infos if commits else {}
        return {version: found.get(version, {}) for version in versions}

    def actions(self, versions: Iterable[int]) -> Mapping[int, Actions]:
        """What the commit of each version did; ProgrammingError when the log does not have it (any more)."""
        listing = self._listing()
        missing = [version for version in versions if version not in listing.commits]
        if missing:
            raise ProgrammingError(
                f"the log of Delta table {self.root} does not have the commit of version {missing[0]} (any more)"
            )
        commits = self._read([(version, listing.commits[version].path) for version in versions])
        return {commit[0]: parse_commits([commit]) for commit in commits}

    def listing(self) -> LogListing:
        """What is in the log now."""
        return self._listing()

    def _is_newest(self, entry: Entry, state: TableState) -> bool:
        return (
            self.storage.entry(commit_path(self.root, state.version + 1)) is None
            and self.storage.entry(entry.path) == entry
        )

    def _listing(self) -> LogListing:
        listing = list_log(self.storage, self.root)
        if listing.empty:
            raise ProgrammingError(f"{self.root} is no Delta table: it has no _delta_log with commits or checkpoints")
        return listing

    def _state(self, listing: LogListing, version: int) -> TableState:
        entry = listing.commits.get(version)
        with self._lock:
            known = self._states.get(version)
            if known is not None and known[0] == entry and entry is not None:
                self._states.move_to_end(version)
                return known[1]
        state = self._replay(listing, version)
        self._keep(entry, state)
        return state

    def _keep(self, entry: Entry | None, state: TableState) -> None:
        with self._lock:
            self._states[state.version] = entry, state
            while len(self._states) > _KEPT:
                self._states.popitem(last=False)

    def _replay(self, listing: LogListing, version: int) -> TableState:
        try:
            segment = listing.segment(version, self.root)
            return self._apply(listing, segment)
        except _BadCheckpoint as bad:
            # Its commits, or an older checkpoint, may still be there.
            others = {number: found for number, found in listing.checkpoints.items() if number != bad.version}
            try:
                return self._replay(replace(listing, checkpoints=others), version)
            except ProgrammingError:
                raise bad.error from bad.error.__cause__

    def _apply(self, listing: LogListing, segment: LogSegment) -> TableState:
        state = self._known_before(listing, segment)
        if state is None and segment.checkpoint is not None:
            checkpoint = segment.checkpoint
            try:
                actions = read_checkpoint(self.storage, self.root, checkpoint)
                state = checkpoint_state(self.root, actions, checkpoint.version, modified(checkpoint.files[0]))
            except (DataError, OperationalError) as error:
                raise _BadCheckpoint(checkpoint.version, error) from error
        commits = [(number, entry.path) for number, entry in segment.commits if state is None or number > state.version]
        if commits:
            actions = parse_commits(self._read(commits))
            time = commit_times(_until(listing.commits, segment.version))[segment.version]
            if state is None:
                state = first_state(self.root, actions, segment.version, time)
            else:
                state = state.after(actions, segment.version, time)
            return self._timed(state, actions)
        assert state is not None
        return self._of_checkpoint(listing, state)

    def _of_checkpoint(self, listing: LogListing, state: TableState) -> TableState:
        """`state` with the time of its commit, which a checkpoint does not tell."""
        commit = listing.commits.get(state.version)
        if commit is None:
            return state
        state = state.at(commit_times(_until(listing.commits, state.version))[state.version])
        if _first_recorded(state) is None:
            return state
        return self._timed(state, parse_commits(self._read([(state.version, commit.path)])))

    def _timed(self, state: TableState, actions: Actions) -> TableState:
        """`state` with the time that its commit, the last of `actions`, has in it, where that is switched on."""
        recorded = _first_recorded(state)
        if recorded is None or state.version < recorded:
            return state
        info = actions.infos.get(state.version, {})
        return state.at(_recorded_time(info, self.root, state.version))

    def _known_before(self, listing: LogListing, segment: LogSegment) -> TableState | None:
        """The newest state at hand that the log after it leads to the wanted version from."""
        first = 0 if segment.checkpoint is None else segment.checkpoint.version
        with self._lock:
            known = [
                state
                for version, (entry, state) in self._states.items()
                if first <= version <= segment.version and entry is not None and listing.commits.get(version) == entry
            ]
        return max(known, key=lambda state: state.version, default=None)

    def _read(self, commits: Sequence[tuple[int, str]]) -> list[tuple[int, str, bytes]]:
        contents = self.storage.read_many([path for _, path in commits])
        return [(version, path, content) for (version, path), content in zip(commits, contents, strict=True)]


class _BadCheckpoint(Exception):
    def __init__(self, version: int, error: DataError | OperationalError) -> None:
        super().__init__(version)
        self.version = version
        self.error = error


def _comparable(
    times: Sequence[tuple[int, datetime]], state: TableState, instant: datetime
) -> Sequence[tuple[int, datetime]]:
    """Those of `times` among which the version of an `instant` is: files that were copied are younger than the times in
    later commits."""
    recorded = _first_recorded(state)
    if recorded is None:
        return times
    older, newer = ([item for item in times if (item[0] >= recorded) is since] for since in (False, True))
    return newer if not older or (newer and newer[0][1] <= instant) else older


def _until(commits: Mapping[int, Entry], version: int) -> Mapping[int, Entry]:
    return {number: entry for number, entry in commits.items() if number <= version}


def _first_recorded(state: TableState) -> int | None:
    """The first version whose commit has its own time in it; None when that is not switched on."""
    configuration = state.metadata.configuration
    if not is_on(state.protocol, configuration, IN_COMMIT):
        return None
    return whole_number(configuration, IN_COMMIT_VERSION, 0)


def _recorded_time(info: Mapping[str, Any], root: str, version: int) -> datetime:
    millis = info.get("inCommitTimestamp")
    if not isinstance(millis, int):
        raise DataError(
            f"version {version} of Delta table {root} has no inCommitTimestamp, which its properties ask for"
        )
    return from_millis(millis).astimezone(timezone.utc)
