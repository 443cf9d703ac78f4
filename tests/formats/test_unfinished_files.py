"""What writers that were killed leave beside the files of a table, on every kind of table on a local disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.formats.lake import Lake

_KILLED = """
import os, sys
import lakedbapi
url, statement, left = sys.argv[1], sys.argv[2], int(sys.argv[3])

def counted(call):
    def run(*arguments):
        global left
        if not left:
            os._exit(9)
        left -= 1
        return call(*arguments)
    return run

with lakedbapi.connect(url) as connection:
    connection.execute(statement)
    os.link, os.replace = counted(os.link), counted(os.replace)
    connection.commit()
"""
"""Commits a statement, and ends when one of its files is about to get its name: that with the number `left`."""
CALLS = (
    "VACUUM t RETAIN 168 HOURS",
    "CALL ducklake_delete_orphaned_files('lake', older_than => now() - INTERVAL 7 DAY)",
    "CALL remove_orphan_files(table => 't', older_than => now() - INTERVAL 7 DAY)",
)


def test_unfinished_files_go_when_they_are_old(lake: Lake) -> None:
    lake.create("CREATE TABLE t (id INTEGER, v VARCHAR)")
    lake("INSERT INTO t SELECT i, i FROM range(5000) r(i)")
    lake.commit()
    before = set(lake.directory.rglob("*"))
    unfinished = _killed(lake) - before
    assert unfinished
    for call in CALLS:
        assert not {line[0] for line in lake(call)} & set(map(str, unfinished)), "a transaction may be under way"
        lake.commit()
    contents = {path: path.read_bytes() for path in unfinished}
    for call in CALLS:
        for path, content in contents.items():
            path.write_bytes(content)
            os.utime(path, (1_700_000_000,) * 2)
        assert {line[0] for line in lake(call)} >= set(map(str, unfinished))
        lake.commit()
        assert not any(path.exists() for path in unfinished)
        assert all(path.exists() for path in before)
    assert lake("SELECT count(*) FROM t WHERE id > 9") == [(4990,)]


def _killed(lake: Lake) -> set[Path]:
    """The hidden files beside those of the table, after writers were killed before the first, second, … of their files
    had its name."""
    for left in range(9):
        statement = f"DELETE FROM t WHERE id = {left}"
        arguments = [lake.kind.location(lake.directory), statement, str(left)]
        done = subprocess.run([sys.executable, "-c", _KILLED, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 9), done.stderr
        if not done.returncode:
            break
    return set(lake.directory.rglob(".*"))
