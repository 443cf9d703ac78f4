"""Commits merge small manifests, as the properties of the table say."""

from __future__ import annotations

from pathlib import Path

from tests.formats.iceberg.writing import Lake, values


def test_commits_merge_manifests(tmp_path: Path) -> None:
    place = Lake(tmp_path)
    lake = place.connect()
    place.create(lake)
    lake.execute("ALTER TABLE t SET ('commit.manifest.min-count-to-merge' = '3')")
    for number in range(6):
        lake.execute(f"INSERT INTO t VALUES ({number}, 's')")
    assert len(place.manifests()) <= 3
    lake.execute("ALTER TABLE t SET ('commit.manifest-merge.enabled' = 'false')")
    for number in range(6, 9):
        lake.execute(f"INSERT INTO t VALUES ({number}, 's')")
    assert len(place.manifests()) >= 4
    lake.execute("ALTER TABLE t SET ('commit.manifest-merge.enabled' = 'true')")
    lake.execute("DELETE FROM t WHERE a = 7")
    assert len(place.manifests()) == 1
    assert values(lake, "SELECT a FROM t") == [0, 1, 2, 3, 4, 5, 6, 8]
    assert place.table().scan().to_arrow().num_rows == 8
    place.close()
