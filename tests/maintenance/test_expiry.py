"""Expiry and cleanup: what a kept snapshot needs stays, the rest goes, and a dry run touches nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.dml.conftest import Lake


def test_inlined_rows_of_a_dropped_table_go_with_the_snapshots_that_saw_them(lake: Lake, tmp_path: Path) -> None:
    lake("CREATE TABLE t (k INTEGER)")
    lake("INSERT INTO t VALUES (1)")
    lake("INSERT INTO t VALUES (2)")
    lake("DROP TABLE t")
    lake("CALL ducklake_expire_snapshots('lake', versions => [3])")
    assert lake("SELECT * FROM t AT (VERSION => 2)") == [(1,)]
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.sqlite")) as catalog:
        assert catalog.execute("SELECT k FROM ducklake_inlined_data_1_1").fetchall() == [(1,)]
