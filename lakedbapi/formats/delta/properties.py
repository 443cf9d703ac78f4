"""Table properties that are known here: how each is spelled, and which values it takes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from lakedbapi.errors import ProgrammingError
from lakedbapi.formats.delta.intervals import milliseconds

IN_COMMIT = "delta.enableInCommitTimestamps"
IN_COMMIT_VERSION = "delta.inCommitTimestampEnablementVersion"
IN_COMMIT_TIME = "delta.inCommitTimestampEnablementTimestamp"
MAX_ID = "delta.columnMapping.maxColumnId"

KEPT_BY_WRITERS = (IN_COMMIT_VERSION, IN_COMMIT_TIME, MAX_ID)
_FOR_THE_PROTOCOL = ("delta.minreaderversion", "delta.minwriterversion", "delta.feature.")


def is_for_the_protocol(name: str) -> bool:
    """Whether a property asks for a protocol and is not stored."""
    return name.casefold().startswith(_FOR_THE_PROTOCOL)


def check_properties(table: str, properties: Mapping[str, str]) -> None:
    """ProgrammingError for a property that is spelled otherwise, a value that it cannot have, and for those that
    writers keep themselves. Unknown ones are let through, unless they look like a slip of a known one."""
    for name, value in properties.items():
        own = _BY_FOLDED.get(name.casefold())
        if own is None:
            meant = _meant(name.casefold())
            if meant is not None:
                raise ProgrammingError(f"property {name!r} of {table!r} is not known; did you mean {meant!r}?")
            continue
        if own != name:
            raise ProgrammingError(f"property {name!r} of {table!r} is spelled {own!r}; other programs overlook it")
        if own in KEPT_BY_WRITERS:
            raise ProgrammingError(f"property {name!r} of {table!r} is kept by writers: leave it out")
        fits, expected = _VALUES[own]
        if not fits(value.strip().casefold()):
            raise ProgrammingError(f"property {name!r} of {table!r} cannot be {value!r}: it is {expected}")


def _meant(folded: str) -> str | None:
    """The known property of which a name has left out `delta.`, or a letter or two."""
    if not folded.startswith("delta."):
        return _BY_FOLDED.get(f"delta.{folded}")
    near = difflib.get_close_matches(folded, _BY_FOLDED, n=1, cutoff=0.93)
    return _BY_FOLDED[near[0]] if near else None


Rule = tuple[Callable[[str], bool], str]


def _one_of(*words: str) -> Rule:
    return {word.casefold() for word in words}.__contains__, " or ".join(words)


def _number(least: int) -> Rule:
    return lambda text: text.lstrip("-").isdecimal() and int(text) >= least, f"a whole number, {least} or more"


def _is_interval(text: str) -> bool:
    try:
        return milliseconds(text) >= 0
    except ProgrammingError:
        return False


_BOOLEAN = _one_of("true", "false")
_INTERVAL: Rule = _is_interval, "an interval such as 'interval 30 days'"
_ANY: Rule = lambda text: True, "any text"
_VALUES: Mapping[str, Rule] = {
    **dict.fromkeys(
        (
            "delta.appendOnly",
            "delta.checkpoint.writeStatsAsJson",
            "delta.checkpoint.writeStatsAsStruct",
            "delta.enableChangeDataFeed",
            "delta.enableDeletionVectors",
            "delta.enableExpiredLogCleanup",
            IN_COMMIT,
            "delta.enableRowTracking",
            "delta.enableTypeWidening",
            "delta.randomizeFilePrefixes",
            "delta.rowTrackingSuspended",
        ),
        _BOOLEAN,
    ),
    **dict.fromkeys(
        (
            "delta.deletedFileRetentionDuration",
            "delta.logRetentionDuration",
            "delta.setTransactionRetentionDuration",
        ),
        _INTERVAL,
    ),
    "delta.checkpointInterval": _number(1),
    "delta.randomPrefixLength": _number(1),
    "delta.dataSkippingNumIndexedCols": _number(-1),
    "delta.dataSkippingStatsColumns": _ANY,
    "delta.columnMapping.mode": _one_of("none", "name", "id"),
    "delta.checkpointPolicy": _one_of("classic", "v2"),
    "delta.isolationLevel": _one_of("Serializable", "WriteSerializable"),
    "delta.parquet.compression.codec": _one_of(
        "snappy", "zstd", "gzip", "brotli", "lz4", "lz4_raw", "uncompressed", "none"
    ),
    **dict.fromkeys(KEPT_BY_WRITERS, _ANY),
}
_BY_FOLDED = {name.casefold(): name for name in _VALUES}
