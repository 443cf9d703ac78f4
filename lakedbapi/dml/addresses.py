"""Rows that a statement touches, as addresses in the target's scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.model.scan import Scan
from lakedbapi.transaction import Parts

Positions = npt.NDArray[np.int64]

_POSITION_BITS = 40
"""A part has fewer rows than 2^40 and a scan fewer parts than 2^23, so an address fits in one int64."""

_NOTHING = np.empty(0, np.int64)
_FEW_DELETED = 0.5


def has_few_deleted(scan: Scan, parts: Parts) -> bool:
    """Whether rows that were deleted before are told apart by their addresses once they are found: that costs less than
    to leave them out while files are read, as far as a condition chooses few of them."""
    count = sum(map(len, scan.deleted.values()))
    return 0 < count <= int(parts.live.sum()) * _FEW_DELETED


@dataclass(frozen=True)
class Addresses:
    """Arrays of one length: part number, and position in the part."""

    part: Positions
    position: Positions

    @classmethod
    def of(cls, rows: pa.Table | pa.RecordBatch) -> Addresses:
        """From the first two columns of `rows`."""
        return cls(rows.column(0).to_numpy(), rows.column(1).to_numpy())

    @classmethod
    def joined(cls, pieces: Sequence[Addresses]) -> Addresses:
        return cls(
            np.concatenate([_NOTHING, *(piece.part for piece in pieces)]),
            np.concatenate([_NOTHING, *(piece.position for piece in pieces)]),
        )

    @property
    def keys(self) -> Positions:
        """One number an address, in the order of addresses."""
        return (self.part << _POSITION_BITS) | self.position

    def __len__(self) -> int:
        return len(self.part)

    @property
    def by_part(self) -> Mapping[int, DeleteVector]:
        """The positions in each part that occurs."""
        return {part: DeleteVector.of(positions) for part, positions in _split(self)}

    def among(self, positions: Mapping[int, DeleteVector]) -> npt.NDArray[np.bool_]:
        """Which of these are at one of `positions`, by part."""
        found = np.zeros(len(self), np.bool_)
        if not len(self):
            return found
        order = np.argsort(self.part, kind="stable")
        parts, starts = np.unique(self.part[order], return_index=True)
        for part, rows in zip(parts.tolist(), np.split(order, starts[1:]), strict=True):
            own = self.position[rows]
            if part in positions and (common := DeleteVector.of(own) & positions[part]):
                found[rows] = np.isin(own, common.to_numpy())
        return found

    def take(self, rows: npt.NDArray[np.int64]) -> Addresses:
        return Addresses(self.part[rows], self.position[rows])


class Repeats:
    """Finds addresses that come more than once in a stream, and whether they come with the same fingerprint."""

    def __init__(self) -> None:
        self._seen = BitMap64()
        self._kept: list[tuple[Positions, npt.NDArray[np.uint64]]] = []
        self._repeated: list[tuple[Positions, npt.NDArray[np.uint64]]] = []

    def first(self, keys: Positions, fingerprints: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Indexes of those `keys` that come for the first time, ascending."""
        _, first = np.unique(keys, return_index=True)
        first.sort()
        known = BitMap64(keys) & self._seen
        if known:
            first = first[~np.isin(keys[first], np.fromiter(known, np.int64, len(known)))]
        self._seen |= BitMap64(keys)
        self._kept.append((keys[first], fingerprints[first]))
        if len(first) < len(keys):
            rest = np.ones(len(keys), np.bool_)
            rest[first] = False
            self._repeated.append((keys[rest], fingerprints[rest]))
        return first

    @property
    def ambiguous(self) -> int:
        """How many addresses came with different fingerprints."""
        if not self._repeated:
            return 0
        keys, fingerprints = (np.concatenate(column) for column in zip(*self._kept, strict=True))
        order = np.argsort(keys)
        repeated, others = (np.concatenate(column) for column in zip(*self._repeated, strict=True))
        firsts = fingerprints[order][np.searchsorted(keys[order], repeated)]
        return len(np.unique(repeated[firsts != others]))


def positions_by_part(rows: Iterable[pa.RecordBatch]) -> Mapping[int, DeleteVector]:
    """As `Addresses.by_part`, of addresses that are the first two columns of `rows` and are forgotten as they come: all
    of them together would take a hundred times as much memory."""
    found: dict[int, BitMap64] = {}
    for batch in rows:
        for part, positions in _split(Addresses.of(batch)):
            some = DeleteVector.of(positions).bitmap
            if part in found:
                found[part] |= some
            else:
                found[part] = some
    return {part: DeleteVector(found[part]) for part in sorted(found)}


def _split(addresses: Addresses) -> Iterator[tuple[int, Positions]]:
    """(part number, its positions) for every part that occurs."""
    part, position = addresses.part, addresses.position
    if not len(part):
        return
    if np.any(part[1:] < part[:-1]):
        order = np.argsort(part, kind="stable")
        part, position = part[order], position[order]
    starts = np.flatnonzero(np.r_[True, part[1:] != part[:-1]])
    yield from zip(part[starts].tolist(), np.split(position, starts[1:]), strict=True)


def first_of_each(addresses: Addresses) -> npt.NDArray[np.int64]:
    """Indexes of the first occurrence of every address, ascending."""
    _, first = np.unique(addresses.keys, return_index=True)
    first.sort()
    return first
