"""What a commit says of itself agrees with its actions, and with what the statement did, in Spark's words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.formats.delta.committed import commit, info, of_kind
from tests.formats.delta.conftest import Connect

MERGE = (
    "MERGE INTO t USING (SELECT i FROM range(10, 52) r(i)) u ON t.i = u.i AND t.i < 50 "
    "WHEN MATCHED AND u.i < 15 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'm' "
    "WHEN NOT MATCHED AND u.i > 47 THEN INSERT VALUES (u.i + 1000, 'n', 9) "
    "WHEN NOT MATCHED BY SOURCE AND t.i = 0 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND t.i IN (1, 2, 3) THEN UPDATE SET s = 'b'"
)
"""Of 20 rows each in the partitions 0 to 3: 5 + 1 go, 35 + 3 are updated, 2 come."""
MERGED = {
    "RowsInserted": 2,
    "RowsUpdated": 38,
    "RowsDeleted": 6,
    "RowsMatchedUpdated": 35,
    "RowsMatchedDeleted": 5,
    "RowsNotMatchedBySourceUpdated": 3,
    "RowsNotMatchedBySourceDeleted": 1,
}
STATEMENTS: list[tuple[str, Mapping[str, int], int]] = [
    ("INSERT INTO t SELECT i, 'x', 5 FROM range(7) r(i)", {"numOutputRows": 7}, 0),
    ("DELETE FROM t WHERE i IN (1, 2, 25)", {"numDeletedRows": 3}, 37),
    ("DELETE FROM t WHERE p = 1", {"numDeletedRows": 20}, 0),
    ("DELETE FROM t WHERE p = 1 OR i = 5", {"numDeletedRows": 21}, 19),
    ("TRUNCATE t", {"numDeletedRows": 80}, 0),
    ("UPDATE t SET s = 'u' WHERE i IN (1, 2, 25)", {"numUpdatedRows": 3}, 37),
    ("UPDATE t SET s = 'u' WHERE p = 2", {"numUpdatedRows": 20}, 0),
    (MERGE, {f"numTarget{name}": count for name, count in MERGED.items()}, 16),
]
"""Each with the counts that its metrics must have, and the rows that are copied where files are rewritten."""


@pytest.mark.parametrize("feed", ["false", "true"], ids=["", "feed"])
@pytest.mark.parametrize("vectors", ["true", "false"], ids=["vectors", "rewriting"])
@pytest.mark.parametrize(("sql", "counts", "copied"), STATEMENTS, ids=lambda given: str(given).split(" ")[0])
def test_metrics(
    tmp_path: Path, connect: Connect, sql: str, counts: Mapping[str, int], copied: int, vectors: str, feed: str
) -> None:
    lake, table = connect(tmp_path, autocommit=True), tmp_path / "t"
    lake.execute(
        "CREATE TABLE t (i BIGINT, s VARCHAR, p INTEGER) PARTITIONED BY (p) WITH "
        f"('delta.enableDeletionVectors' = '{vectors}', 'delta.enableChangeDataFeed' = '{feed}', "
        "'lake.rewrite_deleted_fraction' = '1.0')"
    )
    lake.execute("INSERT INTO t SELECT i, 'old', i // 20 FROM range(80) r(i)")
    lake.execute("DELETE FROM t WHERE i = 79")
    lake.execute("INSERT INTO t VALUES (79, 'old', 3)")
    done = lake.execute(sql)
    found, actions = info(table)["operationMetrics"], commit(table)
    assert info(table)["isBlindAppend"] is sql.startswith("INSERT")
    assert all(isinstance(value, str) for value in found.values())
    assert {name: int(found[name]) for name in counts} == counts
    assert done.rowcount == sum(count for name, count in counts.items() if "atched" not in name)

    adds = {add["path"]: add for add in of_kind(actions, "add")}
    removes = {remove["path"]: remove for remove in of_kind(actions, "remove")}
    came, went = adds.keys() - removes.keys(), removes.keys() - adds.keys()
    again = adds.keys() & removes.keys()
    expected = {
        "FilesAdded": len(came),
        "BytesAdded": sum(adds[path]["size"] for path in came),
        "FilesRemoved": len(went),
        "BytesRemoved": sum(removes[path]["size"] for path in went),
        "ChangeFilesAdded": len(of_kind(actions, "cdc")),
        "DeletionVectorsAdded": sum("deletionVector" in add for add in adds.values()),
        "DeletionVectorsRemoved": sum("deletionVector" in remove for remove in removes.values()),
        "DeletionVectorsUpdated": sum("deletionVector" in removes[path] for path in again),
    }
    if sql.startswith("INSERT"):
        assert {int(found["numFiles"]), int(found["numOutputBytes"])} == {len(came), expected["BytesAdded"]}
        return
    merged = sql is MERGE
    rewritten = copied if vectors == "false" else 0
    assert int(found["numTargetRowsCopied" if merged else "numCopiedRows"]) == rewritten
    for name, value in expected.items():
        kind = name.removesuffix("Added").removesuffix("Removed")
        verb = name[len(kind) :]
        plain = f"num{name}" if "Vectors" in name else f"num{verb}{kind}"
        assert int(found[f"numTarget{name}" if merged else plain]) == value, name
    if merged:
        assert int(found["numOutputRows"]) == 2 + 38 + rewritten
