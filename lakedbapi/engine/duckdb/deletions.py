"""How deleted rows are left out of a scan. docs/engine.md has the measurements behind the numbers here.

An anti join with the positions costs little when there are few of them, and grows with their number. A bit mask for
each file costs the same however many rows are deleted. A column beside the rows that says which are deleted (a
POSITIONAL JOIN) costs next to nothing, but no condition passes it to prune files and row groups, and each join runs in
one thread: it is for whole scans in any order, in strips of files that the threads share out. Files without deletes
pay for none of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakedbapi.engine.duckdb.perfile import MAX_LEAVES, case_tree
from lakedbapi.engine.duckdb.resources import Resources
from lakedbapi.model.delete_vector import DeleteVector

STRIP_SCAN = 500_000
"""Rows in files with deletes from which on a whole scan reads in strips."""
STRIP_ROWS = 500_000
"""Rows of a strip at least, while there are files for it."""
STRIPS_PER_THREAD = 3
"""Strips at most: more of them can be shared out more evenly."""
STRIP_COST = 100_000
"""Rows that a thread reads in the time that it takes to plan one strip (1.5 ms), before any of them runs."""
BYTE_ROWS = 1 << 25
"""Rows of a strip up to which a byte says for each whether it is deleted, which DuckDB reads 1 ns faster than a bit."""
STRIP_SKEW = 1.5
"""How many times a thread's share of the rows one file may have: masks cost that many times as much as strips do, but
all threads can share a file."""
MASK_TOTAL = 10_000
"""Deleted positions of a scan from which on it uses masks: here a join costs as much (10 ns a row)."""
MASK_ROWS = 100_000
"""Rows to a mask at least, for all of a scan together: each takes 0.6 ms to plan."""
MASK_DENSITY = 0.001
"""Share of a file's rows that are deleted from which on it gets a mask, where not every file can have one."""
BLOCK_ROWS = 1 << 20
"""Rows of a mask at most. DuckDB copies a constant for each vector of 2048 rows, which costs 3 ns a row for 128 KB and
30 for 1 MB; but to find the right block costs 2 ns a row and level too."""
SHARED_ROWS = 1 << 18
"""Rows up to which files share a mask."""

ORDERLY_FILES = 1000
"""Files and blocks up to which a scan uses no join, which forgets the order of rows, if they are wanted in it."""

NONE, JOIN, MASK, STRIP = "none", "join", "mask", "strip"


@dataclass(frozen=True)
class Deletions:
    """What has to be added to a `read_parquet`: a join after it in FROM, and a condition."""

    join: str = ""
    condition: str | None = None


def methods(
    deletes: Sequence[DeleteVector | None],
    record_counts: npt.NDArray[np.int64],
    *,
    any_order: bool = False,
    in_order: bool = False,
    threads: int = 1,
    masks: bool = True,
) -> npt.NDArray[np.str_]:
    """The method for each file: `NONE`, `JOIN`, `MASK` if `masks`, or `STRIP` if rows may come in `any_order`; rather
    no `JOIN` if they are wanted `in_order`.

    A scan that uses joins and masks pays for both, so that masks are for all files with deletes as long as there are
    not too many, of too few rows.
    """
    counts = np.fromiter(
        (0 if vector is None else len(vector) for vector in deletes), dtype=np.int64, count=len(deletes)
    )
    some = counts > 0
    chosen = np.where(some, JOIN, NONE)
    if any_order and record_counts[some].sum() >= STRIP_SCAN:
        share = record_counts.sum() / threads
        if record_counts[some].max() <= STRIP_SKEW * share:
            return np.where(some, STRIP, NONE)
    leaves = -(-record_counts // BLOCK_ROWS)
    if masks and in_order and leaves[some].sum() <= ORDERLY_FILES:
        return np.where(some, MASK, NONE)
    if masks and counts.sum() >= MASK_TOTAL:
        worthwhile = (counts >= record_counts * MASK_DENSITY) & (record_counts >= MASK_ROWS)
        for masked in (some, some & worthwhile):
            if leaves[masked].sum() <= min(MAX_LEAVES, record_counts[masked].sum() // MASK_ROWS):
                return np.where(masked, MASK, chosen)
    return chosen


def read_together(
    chosen: npt.NDArray[np.str_], record_counts: npt.NDArray[np.int64], *, threads: int = 1
) -> Sequence[npt.NDArray[np.int64]]:
    """The file numbers that each `read_parquet` is to read.

    One for all is best: over a UNION ALL, `count(*)` reads a column for nothing (10 ns a row). Only where most rows lie
    in files that need no join they are kept out of it (3 ns a row), and strips are.
    """
    if STRIP in chosen:
        whole = np.flatnonzero(chosen != STRIP)
        return [*([whole] if len(whole) else []), *_strips(np.flatnonzero(chosen == STRIP), record_counts, threads)]
    joined = chosen == JOIN
    groups = [np.flatnonzero(~joined), np.flatnonzero(joined)]
    if record_counts[joined].sum() * 2 >= record_counts.sum():
        groups = [np.arange(len(chosen))]
    return [group for group in groups if len(group)]


def _strips(
    numbers: npt.NDArray[np.int64], record_counts: npt.NDArray[np.int64], threads: int
) -> Sequence[npt.NDArray[np.int64]]:
    """Runs of the files `numbers` with about as many rows each, as many as are read soonest."""
    counts = record_counts[numbers]
    total = int(counts.sum())

    def runs(number: int) -> Sequence[npt.NDArray[np.int64]]:
        strip = (np.cumsum(counts) - counts) // max(STRIP_ROWS, -(-total // number))
        return np.split(numbers, np.flatnonzero(strip[1:] != strip[:-1]) + 1)

    def end(strips: Sequence[npt.NDArray[np.int64]]) -> int:
        rows = [0] * threads
        for strip in strips:
            heapq.heapreplace(rows, rows[0] + int(record_counts[strip].sum()))
        return max(rows) + STRIP_COST * len(strips)

    return min((runs(threads * several) for several in range(1, STRIPS_PER_THREAD + 1)), key=end)


def deletions(
    chosen: npt.NDArray[np.str_],
    deletes: Sequence[DeleteVector | None],
    record_counts: npt.NDArray[np.int64],
    resources: Resources,
) -> Deletions:
    """Leave out the deleted rows of the files of one `read_parquet`, in its order."""
    if STRIP in chosen:
        return _strip(deletes, record_counts, resources)
    join = _join([d if m == JOIN else None for d, m in zip(deletes, chosen, strict=True)], resources)
    masked = [d if m == MASK else None for d, m in zip(deletes, chosen, strict=True)]
    return Deletions(join, _mask(masked, record_counts, resources))


def _strip(
    deletes: Sequence[DeleteVector | None], record_counts: npt.NDArray[np.int64], resources: Resources
) -> Deletions:
    # Vectors of rows line up with those of the files, and so need not be copied, when there is a chunk for each file.
    encode = _bytes if record_counts.sum() <= BYTE_ROWS else _bits
    chunks = [
        encode((vector or DeleteVector()).mask(count))
        for vector, count in zip(deletes, record_counts.tolist(), strict=True)
    ]
    name = resources.register(pa.table({"_lake_deleted": pa.chunked_array(chunks)}))
    return Deletions(f" POSITIONAL JOIN {name}", "NOT _lake_deleted" if encode is _bits else "_lake_deleted = 0")


def _bytes(values: npt.NDArray[np.bool_]) -> pa.Array:
    """As 0 and 1, which DuckDB reads where they are."""
    return pa.Array.from_buffers(pa.uint8(), len(values), [None, pa.py_buffer(values)])


def _bits(values: npt.NDArray[np.bool_]) -> pa.Array:
    """As `pa.array`, ten times faster."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def _join(deletes: Sequence[DeleteVector | None], resources: Resources) -> str:
    positions = [np.empty(0, dtype=np.int64) if vector is None else vector.to_numpy() for vector in deletes]
    counts = [len(p) for p in positions]
    if not any(counts):
        return ""
    index = np.repeat(np.arange(len(positions), dtype=np.uint64), counts)
    name = resources.register(pa.table({"f": index, "p": np.concatenate(positions)}))
    return f" ANTI JOIN {name} AS _lake_d ON _lake_d.f = file_index AND _lake_d.p = file_row_number"


def _mask(
    deletes: Sequence[DeleteVector | None], record_counts: npt.NDArray[np.int64], resources: Resources
) -> str | None:
    if not any(vector is not None for vector in deletes):
        return None
    shares = _shares(deletes, record_counts)
    masks = iter(resources.bits([mask for share in shares for mask in share.masks]))
    leaves = [share.leaf([next(masks) for _ in share.masks]) for share in shares]
    return f"{case_tree([f'file_index < {share.first}' for share in shares], leaves)} = 0"


class _Share:
    """Files one after the other, from number `first` on, that share a mask; a large file alone, which has several; or
    files without deletes, which have none."""

    def __init__(self, first: int, deleted: npt.NDArray[np.bool_] | None) -> None:
        self.first = first
        self._rows = [] if deleted is None else [deleted]
        self._size = 0 if deleted is None else len(deleted)

    def takes(self, deleted: npt.NDArray[np.bool_] | None, count: int) -> bool:
        """Whether the next file, of `count` rows, was taken in."""
        if not self._rows:
            return deleted is None
        if self._size + count > min(SHARED_ROWS, BLOCK_ROWS):
            return False
        self._rows.append(np.zeros(count, np.bool_) if deleted is None else deleted)
        self._size += count
        return True

    @property
    def masks(self) -> Sequence[bytes]:
        if not self._rows:
            return []
        deleted = np.concatenate(self._rows)
        return [
            np.packbits(deleted[start : start + BLOCK_ROWS]).tobytes() for start in range(0, self._size, BLOCK_ROWS)
        ]

    def leaf(self, masks: Sequence[str]) -> str:
        """SQL that is 1 where a row is deleted, else 0."""
        if not masks:
            return "0"
        if len(self._rows) > 1:
            offsets = np.cumsum([0, *map(len, self._rows[:-1])]).tolist()
            number = f"file_row_number + {offsets}[CAST(file_index AS BIGINT) - {self.first - 1}]"
            return f"get_bit({masks[0]}, CAST({number} AS INTEGER))"
        starts = range(0, self._size, BLOCK_ROWS)
        leaves = [
            f"get_bit({mask}, CAST(file_row_number - {start} AS INTEGER))"
            for start, mask in zip(starts, masks, strict=True)
        ]
        return case_tree([f"file_row_number < {start}" for start in starts], leaves)


def _shares(deletes: Sequence[DeleteVector | None], record_counts: npt.NDArray[np.int64]) -> Sequence[_Share]:
    shares: list[_Share] = []
    for index, (vector, count) in enumerate(zip(deletes, record_counts.tolist(), strict=True)):
        deleted = None if vector is None else vector.mask(count)
        if not (shares and shares[-1].takes(deleted, count)):
            shares.append(_Share(index, deleted))
    return shares
