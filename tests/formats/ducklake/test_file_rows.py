"""The file list of a snapshot, brought up to date from that of an earlier one."""

from __future__ import annotations

from pathlib import Path

import lakedbapi


def test_files_that_compaction_wrote_for_old_snapshots_hide_no_changes(tmp_path: Path) -> None:
    """Such a file has a greater id than files of later snapshots, and here as many files come as go."""
    connection = lakedbapi.connect(tmp_path / "lake", autocommit=True)
    connection.execute("CREATE TABLE t (id INTEGER)")
    connection.execute("INSERT INTO t VALUES (1)")  # Inlined.
    connection.execute("INSERT INTO t SELECT range FROM range(100, 200)")
    (before,) = connection.execute("SELECT max(snapshot_id) FROM snapshots()").fetchone() or ()
    with lakedbapi.connect(tmp_path / "lake") as transaction:
        transaction.execute("DELETE FROM t WHERE id >= 100")
        transaction.execute("INSERT INTO t SELECT range FROM range(300, 350)")
        transaction.commit()
    after = before + 1
    connection.execute("CALL ducklake_flush_inlined_data('lake')")
    connection.close()

    count = "SELECT count(*), max(id) FROM t AT (VERSION => {})"
    for order in ([before, after], [after, before], [before, after, after + 1]):
        with lakedbapi.connect(tmp_path / "lake") as reader:
            found = [reader.execute(count.format(snapshot)).fetchone() for snapshot in order]
        assert found == [(101, 199) if snapshot == before else (51, 349) for snapshot in order]
