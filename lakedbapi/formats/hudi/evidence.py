"""Checks that nothing is missing of what the commits say that a version consists of.

hudi-rs goes by the files that it finds. Where a file was cleaned up or lost, it would silently give older rows, or
fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lakedbapi.errors import DamagedFileError, Error, OperationalError, ProgrammingError
from lakedbapi.formats.hudi.commits import Commit, FileGroupId, FileSlice, Write, log_instant
from lakedbapi.formats.hudi.timeline import Instant, order


def check(
    root: str, at: Instant, commits: Iterable[Commit], slices: Sequence[FileSlice], *, with_logs: bool, layout: int
) -> None:
    """Compare `slices`, those of the version `at`, with all `commits` of the active timeline, in order.

    ProgrammingError where the files of a past version were cleaned up, OperationalError where a file is missing,
    DamagedFileError where one is shorter than it was.
    """
    commits = list(commits)
    found = {slice.group: slice for slice in slices}
    until = [commit for commit in commits if commit.instant.order <= at.order]
    later = commits[len(until) :]
    for error in (
        *_earlier(root, until, found, with_logs, layout, is_past=bool(later)),
        *_later(root, at, later, found),
    ):
        raise error


def _earlier(
    root: str,
    commits: Sequence[Commit],
    found: Mapping[FileGroupId, FileSlice],
    with_logs: bool,
    layout: int,
    is_past: bool,
) -> Iterator[Error]:
    """By what was written up to the version."""
    bases: dict[FileGroupId, tuple[Instant, Write]] = {}
    logs: dict[FileGroupId, list[tuple[Instant, Write]]] = {}
    for commit in commits:
        for group in commit.replaced:
            bases.pop(group, None)
            logs.pop(group, None)
        for write in commit.writes:
            if write.is_log:
                logs.setdefault(write.group, []).append((commit.instant, write))
            else:
                bases[write.group] = commit.instant, write
    for group, (_, write) in bases.items():
        slice = found.get(group)
        if slice is None or slice.base != write.name:
            yield _gone(root, write.path, is_past)
        elif 0 < slice.base_size < write.size:
            yield short(root + write.path, slice.base_size, write.size)
    for group, writes in logs.items() if with_logs else ():
        slice = found.get(group)
        for instant, write in writes:
            if slice is not None and not _follows(write, instant, slice, layout):
                continue
            if slice is None or write.name not in slice.logs:
                yield _gone(root, write.path, is_past)
            elif slice.logs[write.name] < write.size:
                yield short(root + write.path, slice.logs[write.name], write.size)


def _follows(log: Write, instant: Instant, slice: FileSlice, layout: int) -> bool:
    """Whether a log file belongs to the slice, rather than to one before its base file.

    In layout 1 its name has the instant of its base file, in layout 2 it counts when it was completed.
    """
    if layout == 1:
        return log_instant(log.name) >= slice.base_instant
    return order(instant.completed) >= order(slice.base_instant)


def _later(
    root: str, at: Instant, commits: Sequence[Commit], found: Mapping[FileGroupId, FileSlice]
) -> Iterator[Error]:
    """By what later commits replaced: that was there at the version."""
    born: set[FileGroupId] = set()
    rewritten: set[FileGroupId] = set()
    for commit in commits:
        for group in commit.replaced - born:
            if group not in found:
                yield _gone(root, f"{group.partition}/{group.file_id}".lstrip("/"), True)
        for write in commit.writes:
            if write.is_log or write.group in born or write.group in rewritten:
                continue
            if write.previous is None or order(write.previous) > at.order:
                born.add(write.group)
                continue
            rewritten.add(write.group)
            slice = found.get(write.group)
            if slice is None or (slice.base and slice.base_instant != write.previous):
                yield _gone(root, f"{write.group.partition}/{write.group.file_id}".lstrip("/"), True)


def _gone(root: str, path: str, is_past: bool) -> Error:
    if is_past:
        return ProgrammingError(
            f"{root}{path}: files of this version are gone, since Hudi's cleaner removes those that newer versions do "
            "not need: read a newer version, such as history('table') shows"
        )
    return OperationalError(f"{root}{path}: this file is missing, although the table's commits name it")


def short(path: str, size: int, expected: int) -> DamagedFileError:
    return DamagedFileError(f"{path}: the file is cut off: it has {size} of {expected} bytes")
