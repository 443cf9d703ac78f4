"""What file lists say of deleted rows, also where it is not known without reading the files."""

from __future__ import annotations

import pyarrow as pa

from lakedbapi.model.scan import live_counts, most_deleted

FILES = pa.table({"record_count": pa.array([5, 7, 9]), "deleted_count": pa.array([0, 2, None], pa.int64())})


def test_rows_are_live_unless_they_are_known_to_be_deleted() -> None:
    assert live_counts(FILES).tolist() == [5, 5, 9]


def test_rows_may_be_deleted_unless_they_are_known_to_be_live() -> None:
    assert most_deleted(FILES).tolist() == [0, 2, 9]
