"""Which manifests a commit writes anew as fewer ones, so that planning a query opens few files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakedbapi.formats.iceberg.manifest_files import Row
from lakedbapi.formats.iceberg.manifests import ManifestFile
from lakedbapi.formats.properties import whole_number

_TARGET = "commit.manifest.target-size-bytes"
_LEAST = "commit.manifest.min-count-to-merge"
_ENABLED = "commit.manifest-merge.enabled"

Listed = tuple[Row, ManifestFile]
"""A manifest as its list has it, as it is written again and as it is read."""


@dataclass(frozen=True)
class Merging:
    """`target` is the size of a manifest in bytes, `least` the number of small ones that are worth it.

    `everything`: also full ones that are alone are written anew if they tell of files that are gone.
    """

    target: int
    least: int
    everything: bool

    @classmethod
    def of(cls, properties: Mapping[str, str], *, everything: bool) -> Merging:
        """By the properties of the table, in the defaults of the Java library."""
        is_enabled = properties.get(_ENABLED, "true").casefold() == "true"
        least = whole_number(properties, _LEAST, 100) if is_enabled else 1 << 62
        return cls(whole_number(properties, _TARGET, 8 << 20), 2 if everything else max(least, 2), everything)

    def groups(self, manifests: Sequence[Listed]) -> Iterator[tuple[Sequence[Listed], bool]]:
        """The manifests by what may lie in one, and whether they are to be written anew; the others one by one."""
        small: dict[tuple[int, int], list[Listed]] = {}
        for listed in manifests:
            file = listed[1]
            if file.length < self.target:
                small.setdefault((file.content, file.spec_id), []).append(listed)
            else:
                yield [listed], self._is_stale(file)
        for group in small.values():
            if len(group) >= self.least:
                yield group, True
            else:
                for listed in group:
                    yield [listed], self._is_stale(listed[1])

    def _is_stale(self, file: ManifestFile) -> bool:
        return self.everything and file.counts[2] != 0

    def parts(self, entries: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
        """`entries`, which took `size` bytes in all, partition by partition in parts of about the target's size."""
        ordered = sorted(entries, key=_partition)
        count = max(1, min(len(ordered), self.target * len(ordered) // max(size, 1)))
        for start in range(0, len(ordered), count):
            yield ordered[start : start + count]


def _partition(entry: Row) -> tuple[tuple[bool, str], ...]:
    values = entry["data_file"]["partition"]
    return tuple((values[i] is None, str(values[i])) for i in range(len(values)))
