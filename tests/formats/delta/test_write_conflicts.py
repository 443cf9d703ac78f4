"""Two writers of one table: what goes together is merged, what does not is told apart, nothing is lost or doubled."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fsspec import AbstractFileSystem

import lakedbapi
from lakedbapi.errors import CommitUnknownError, ConflictError, OperationalError
from lakedbapi.storage import exclusive
from lakedbapi.storage.filesystem import Storage
from tests.formats.delta.committed import Action, commit, info, of_kind, values, versions
from tests.formats.delta.conftest import Connect

Pair = tuple[lakedbapi.Connection, lakedbapi.Connection]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t"


@pytest.fixture
def pair(tmp_path: Path, connect: Connect) -> Pair:
    """Two connections with a transaction each; the table has two files of 100 rows."""
    setup = connect(tmp_path, autocommit=True)
    setup.execute("CREATE TABLE t (i BIGINT, s VARCHAR)")
    for start in (0, 100):
        setup.execute(f"INSERT INTO t SELECT i, 'a' FROM range({start}, {start + 100}) r(i)")
    first, second = (connect(tmp_path, autocommit=False) for _ in range(2))
    for connection in (first, second):
        assert values(connection, "SELECT count(*) FROM t") == [200]
    return first, second


def begin(connection: lakedbapi.Connection, *statements: str) -> None:
    """Run statements on the state that was there before anybody commits."""
    connection.rollback()
    for sql in statements:
        connection.execute(sql)


def fresh_values(table: Path, sql: str) -> list[object]:
    with lakedbapi.connect(f"delta:///{table.parent}") as connection:
        return values(connection, sql)


def test_deletes_of_different_rows_of_one_file_are_merged(pair: Pair, table: Path) -> None:
    first, second = pair
    begin(first, "DELETE FROM t WHERE i IN (1, 2)")
    begin(second, "DELETE FROM t WHERE i IN (3, 150)")
    first.commit()
    second.commit()
    assert fresh_values(table, "SELECT count(*) FROM t") == [196]
    (one, two) = of_kind(commit(table), "add")
    assert sorted(add["deletionVector"]["cardinality"] for add in (one, two)) == [1, 3]
    removed = {remove["path"]: remove.get("deletionVector") for remove in of_kind(commit(table), "remove")}
    (before,) = of_kind(commit(table, 3), "add")
    assert removed[before["path"]] == before["deletionVector"]
    assert info(table)["readVersion"] == 2


def test_vectors_that_leave_nothing_end_the_file(pair: Pair, table: Path) -> None:
    first, second = pair
    begin(first, "DELETE FROM t WHERE i < 60")
    begin(second, "DELETE FROM t WHERE i BETWEEN 60 AND 99")
    first.commit()
    second.commit()
    assert of_kind(commit(table), "add") == []
    (gone,) = of_kind(commit(table), "remove")
    told = info(table)["operationMetrics"]
    assert (told["numRemovedFiles"], told["numRemovedBytes"]) == ("1", str(gone["size"]))
    assert (told["numDeletionVectorsAdded"], told["numDeletionVectorsRemoved"]) == ("0", "1")
    assert fresh_values(table, "SELECT count(*) FROM t") == [100]


def test_the_same_row_is_deleted_once(pair: Pair, table: Path) -> None:
    first, second = pair
    begin(first, "DELETE FROM t WHERE i = 7")
    begin(second, "DELETE FROM t WHERE i = 7 OR i = 8")
    first.commit()
    with pytest.raises(ConflictError, match="same rows"):
        second.commit()
    assert fresh_values(table, "SELECT count(*) FROM t") == [199]
    assert not list(table.glob("*.bin"))


WRITE_SERIALIZABLE = "ALTER TABLE t SET ('delta.isolationLevel' = 'WriteSerializable')"

COMMUTE = [
    ("INSERT INTO t VALUES (1000, 'x')", "INSERT INTO t VALUES (1001, 'x')"),
    ("DELETE FROM t WHERE i = 1", "INSERT INTO t VALUES (1001, 'x')"),
    ("UPDATE t SET s = 'u' WHERE i = 1", "INSERT INTO t VALUES (1001, 'x')"),
    ("DELETE FROM t WHERE i < 100", "INSERT INTO t VALUES (1001, 'x')"),
    ("DELETE FROM t WHERE i = 1", "UPDATE t SET s = 'u' WHERE i = 2"),
    ("DELETE FROM t WHERE i < 100", "DELETE FROM t WHERE i >= 100"),
    # Statistics tell that the new rows are of no concern.
    ("INSERT INTO t VALUES (1000, 'x')", "DELETE FROM t WHERE i = 1"),
    ("UPDATE t SET s = 'u' WHERE i = 1", "UPDATE t SET s = 'v' WHERE i = 150"),
    ("UPDATE t SET s = 'u' WHERE i = 1", "UPDATE t SET s = 'v' WHERE i = 2"),
    (
        "UPDATE t SET s = 'u' WHERE i = 1",
        "MERGE INTO t USING (VALUES (2)) u(i) ON t.i = u.i AND t.i = 2 WHEN MATCHED THEN DELETE",
    ),
]
CONFLICT = [
    ("UPDATE t SET s = 'u' WHERE i = 1", "DELETE FROM t WHERE s = 'u' OR i = 3"),
    ("DELETE FROM t WHERE i < 100", "DELETE FROM t WHERE i = 5"),
    ("DELETE FROM t WHERE i = 5", "DELETE FROM t WHERE i < 100"),
    ("DELETE FROM t WHERE i = 5", "DELETE FROM t"),
    ("DELETE FROM t WHERE i = 5", "INSERT INTO t SELECT i + 500, s FROM t"),
    ("DELETE FROM t WHERE i < 100", "INSERT INTO t SELECT i + 500, s FROM t"),
    ("INSERT INTO t VALUES (1000, 'x')", "INSERT INTO t SELECT i + 500, s FROM t"),
    ("INSERT INTO t VALUES (1, 'x')", "DELETE FROM t WHERE i IN (SELECT max(i) FROM t)"),
    ("INSERT INTO t VALUES (1, 'x')", "DELETE FROM t WHERE i = 1"),
    ("ALTER TABLE t ADD COLUMN x INTEGER", "INSERT INTO t VALUES (1001, 'x')"),
    ("ALTER TABLE t ADD COLUMN x INTEGER", "DELETE FROM t WHERE i = 1"),
    ("INSERT INTO t VALUES (1000, NULL)", "ALTER TABLE t ALTER COLUMN s SET NOT NULL"),
    ("COMMENT ON TABLE t IS 'x'", "COMMENT ON TABLE t IS 'y'"),
    ("UPDATE t SET i = 2 WHERE i = 1", "UPDATE t SET s = 'v' WHERE i = 2"),
    ("INSERT INTO t VALUES (1000, 'x')", "DELETE FROM t"),
    ("INSERT INTO t VALUES (1000, 'x')", "DELETE FROM t WHERE s || 'y' = 'xy' OR i = 1"),
    ("INSERT INTO t VALUES (1000, 'x')", "CREATE OR REPLACE TABLE t (j INTEGER)"),
    ("DROP TABLE t", "DELETE FROM t WHERE i = 1"),
    ("INSERT INTO t VALUES (1000, NULL)", "DROP TABLE t"),
]


@pytest.mark.parametrize(("theirs", "ours"), COMMUTE)
def test_what_commutes_goes_together(pair: Pair, table: Path, theirs: str, ours: str) -> None:
    first, second = pair
    begin(first, theirs)
    begin(second, ours)
    first.commit()
    second.commit()
    # The second one came after the first.
    assert versions(table) == [0, 1, 2, 3, 4]
    with lakedbapi.connect(f"delta:///{table.parent}") as fresh:
        found = values(fresh, "SELECT i FROM t")
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(("theirs", "ours"), CONFLICT)
def test_what_does_not_is_a_conflict(pair: Pair, theirs: str, ours: str) -> None:
    first, second = pair
    begin(first, theirs)
    begin(second, ours)
    first.commit()
    with pytest.raises(OperationalError) as caught:
        second.commit()
    assert caught.value.retryable


def test_deletes_of_a_file_that_has_lost_rows_before_are_merged(pair: Pair, table: Path, connect: Connect) -> None:
    connect(table.parent, autocommit=True).execute("DELETE FROM t WHERE i = 7")
    first, second = pair
    begin(first, "DELETE FROM t WHERE i = 1")
    begin(second, "DELETE FROM t WHERE i = 2")
    first.commit()
    second.commit()
    assert fresh_values(table, "SELECT i FROM t WHERE i < 9 ORDER BY i") == [0, 3, 4, 5, 6, 8]


def test_what_another_program_says_again_is_no_conflict(pair: Pair, table: Path) -> None:
    """Some writers repeat the table's definition with their rows."""
    _, second = pair
    begin(second, "DELETE FROM t WHERE i = 5")
    again = [action for action in commit(table, 0) if "protocol" in action or "metaData" in action]
    path = table / "_delta_log" / f"{3:020}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in again))
    second.commit()
    assert fresh_values(table, "SELECT count(*) FROM t") == [199]


def test_a_table_is_not_replaced_that_changed_since(pair: Pair, table: Path) -> None:
    first, second = pair
    begin(first, "INSERT INTO t VALUES (1000, 'x')")
    begin(second, "CREATE OR REPLACE TABLE t (j INTEGER)")
    first.commit()
    with pytest.raises(ConflictError, match="which this one replaces"):
        second.commit()
    assert fresh_values(table, "SELECT count(*) FROM t") == [201]


def test_rows_do_not_get_into_another_table_of_the_name(pair: Pair, table: Path, connect: Connect) -> None:
    _, second = pair
    begin(second, "INSERT INTO t VALUES (1000, 'x')")
    setup = connect(table.parent, autocommit=True)
    setup.execute("DROP TABLE t")
    setup.execute("CREATE TABLE t (i BIGINT, s VARCHAR)")
    for number in range(4):
        setup.execute("INSERT INTO t VALUES (?, 'other')", [number])
    with pytest.raises(ConflictError, match="dropped by another transaction"):
        second.commit()
    assert fresh_values(table, "SELECT i FROM t ORDER BY i") == [0, 1, 2, 3]


def test_rows_do_not_get_into_a_table_that_was_put_back(pair: Pair, table: Path) -> None:
    """A copy of its directory from before, with fewer versions."""
    _, second = pair
    begin(second, "INSERT INTO t VALUES (1000, 'x')")
    (table / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(ConflictError, match="dropped by another transaction"):
        second.commit()
    assert fresh_values(table, "SELECT count(*) FROM t") == [100]


@pytest.mark.parametrize(
    ("theirs", "kind"),
    [
        ("INSERT INTO t VALUES (1000, 'x')", "ConcurrentAppend"),
        ("UPDATE t SET s = 'u' WHERE i = 5", "ConcurrentAppend"),
        ("DELETE FROM t WHERE i = 5", "ConcurrentDeleteRead"),
        ("DELETE FROM t WHERE i < 100", "ConcurrentDeleteRead"),
    ],
)
def test_a_conflict_says_what_was_read(pair: Pair, theirs: str, kind: str) -> None:
    first, second = pair
    begin(first, theirs)
    begin(second, "INSERT INTO t SELECT i + 500, s FROM t")
    first.commit()
    with pytest.raises(ConflictError, match=rf"which this one read.*\({kind}\)"):
        second.commit()


def test_rows_that_were_only_moved_are_no_conflict(pair: Pair, table: Path) -> None:
    """As OPTIMIZE does with files that the other one does not touch."""
    first, second = pair
    begin(second, "DELETE FROM t WHERE i < 100 AND s = 'a'")
    add = of_kind(commit(table, 2), "add")[0]
    moved = table / "moved.parquet"
    moved.write_bytes((table / add["path"]).read_bytes())
    remove = {**add, "deletionTimestamp": 1, "dataChange": False}
    actions = [{"remove": remove}, {"add": {**add, "path": moved.name, "dataChange": False}}]
    (table / "_delta_log" / f"{3:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    second.commit()
    assert fresh_values(table, "SELECT count(*) FROM t") == [100]
    begin(first, "DELETE FROM t WHERE i = 150")
    first.commit()
    assert fresh_values(table, "SELECT count(*) FROM t") == [99]


def test_new_rows_that_were_moved_since_are_new_rows(tmp_path: Path, connect: Connect) -> None:
    """Compaction writes rows that were there and rows that were not into one file."""
    setup = connect(tmp_path, autocommit=True)
    setup.execute("CREATE TABLE t (p INTEGER, i BIGINT) PARTITIONED BY (p)")
    setup.execute("INSERT INTO t SELECT 1, i FROM range(100) r(i)")
    setup.execute("INSERT INTO t VALUES (2, 1000)")
    late = connect(tmp_path, autocommit=False)
    late.execute("DELETE FROM t WHERE i BETWEEN 50 AND 60")
    setup.execute("INSERT INTO t VALUES (2, 55)")
    setup.execute("OPTIMIZE t WHERE p = 2")
    setup.execute("INSERT INTO t VALUES (3, 1000)")
    with pytest.raises(ConflictError, match="added rows"):
        late.commit()
    late.rollback()
    late.execute("DELETE FROM t WHERE i = 5")
    setup.execute("INSERT INTO t VALUES (2, 2000)")
    setup.execute("OPTIMIZE t WHERE p IN (2, 3)")
    late.commit()
    assert fresh_values(tmp_path / "t", "SELECT count(*) FROM t") == [103]


def test_rows_that_another_program_brought_back_are_new_rows(pair: Pair, table: Path, connect: Connect) -> None:
    """As its RESTORE does, which gives a file an earlier deletion vector."""
    _, second = pair
    setup = connect(table.parent, autocommit=True)
    setup.execute("DELETE FROM t WHERE i = 7")
    begin(second, "DELETE FROM t WHERE i IN (7, 8)")
    (shrunk,) = of_kind(commit(table), "add")
    (whole,) = [add for add in of_kind(commit(table, 1), "add") if add["path"] == shrunk["path"]]
    removed = {**shrunk, "deletionTimestamp": 1, "stats": None}
    actions = [{"remove": removed}, {"add": whole}]
    (table / "_delta_log" / f"{4:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    with pytest.raises(ConflictError, match="added rows"):
        second.commit()
    begin(second, "DELETE FROM t WHERE i IN (7, 8)")
    second.commit()
    assert fresh_values(table, "SELECT count(*) FROM t") == [198]


@pytest.mark.parametrize("ours", ["ADD COLUMN x INTEGER", "CLUSTER BY NONE", "SET ('owner' = 'me')"])
def test_an_altered_table_keeps_the_clustering_that_another_one_gave_it(
    pair: Pair, table: Path, connect: Connect, ours: str
) -> None:
    _, second = pair
    setup = connect(table.parent, autocommit=True)
    setup.execute("ALTER TABLE t CLUSTER BY (i)")
    begin(second, f"ALTER TABLE t {ours}")
    setup.execute("ALTER TABLE t CLUSTER BY (s)")
    with pytest.raises(ConflictError, match="altered"):
        second.commit()


@pytest.mark.parametrize("level", ["WriteSerializable", "writeserializable"])
def test_blind_appends_pass_by_a_delete_where_that_is_allowed(
    pair: Pair, table: Path, connect: Connect, level: str
) -> None:
    connect(table.parent, autocommit=True).execute(f"ALTER TABLE t SET ('delta.isolationLevel' = '{level}')")
    first, second = pair
    begin(first, "INSERT INTO t VALUES (5, 'late')")
    begin(second, "DELETE FROM t WHERE i = 5")
    first.commit()
    second.commit()
    assert info(table)["isolationLevel"] == "WriteSerializable"
    assert fresh_values(table, "SELECT s FROM t WHERE i = 5") == ["late"]


def test_rows_of_others_that_read_the_table_do_not_pass_by(pair: Pair, table: Path, connect: Connect) -> None:
    connect(table.parent, autocommit=True).execute(WRITE_SERIALIZABLE)
    first, second = pair
    begin(first, "INSERT INTO t SELECT i + 1000, 'copied' FROM t WHERE i = 5")
    begin(second, "DELETE FROM t WHERE i % 1000 = 5")
    first.commit()
    with pytest.raises(ConflictError, match="added rows"):
        second.commit()


def test_rows_of_writers_that_do_not_tell_what_they_read_do_not_pass_by(
    pair: Pair, table: Path, connect: Connect
) -> None:
    connect(table.parent, autocommit=True).execute(WRITE_SERIALIZABLE)
    first, second = pair
    begin(first, "INSERT INTO t VALUES (5, 'late')")
    begin(second, "DELETE FROM t WHERE i = 5")
    first.commit()
    path = table / "_delta_log" / f"{versions(table)[-1]:020}.json"
    path.write_text(path.read_text().replace('"isBlindAppend":true,', ""))
    with pytest.raises(ConflictError, match="added rows"):
        second.commit()


def test_rows_of_writers_that_do_not_tell_whether_they_are_new_are_new(pair: Pair, table: Path) -> None:
    first, second = pair
    begin(first, "INSERT INTO t VALUES (1000, 'x')")
    begin(second, "INSERT INTO t SELECT i + 500, s FROM t")
    first.commit()
    path = table / "_delta_log" / f"{3:020}.json"
    path.write_text(path.read_text().replace('"dataChange":true,', ""))
    assert "dataChange" not in of_kind(commit(table), "add")[0]
    with pytest.raises(ConflictError, match="which this one read"):
        second.commit()


def test_a_protocol_that_another_writer_raised_is_a_conflict(pair: Pair, table: Path) -> None:
    _, second = pair
    begin(second, "DELETE FROM t WHERE i = 5")
    (protocol,) = of_kind(commit(table, 0), "protocol")
    raised = {**protocol, "writerFeatures": [*protocol["writerFeatures"], "checkConstraints"]}
    path = table / "_delta_log" / f"{versions(table)[-1] + 1:020}.json"
    path.write_text(json.dumps({"protocol": raised}) + "\n")
    with pytest.raises(ConflictError, match=r"protocol.*ProtocolChanged"):
        second.commit()
    begin(second, "DELETE FROM t WHERE i = 5")
    second.commit()
    assert fresh_values(table, "SELECT count(*) FROM t") == [199]


Told = Callable[[Action, Action, Action], Action]
OF_NO_CONCERN: dict[str, Told] = {
    "txn": lambda protocol, metadata, add: {"txn": {"appId": "stream", "version": 7}},
    "domain": lambda protocol, metadata, add: {
        "domainMetadata": {"domain": "app", "configuration": "{}", "removed": False}
    },
    "the same metadata": lambda protocol, metadata, add: {"metaData": metadata},
    "the same protocol": lambda protocol, metadata, add: {"protocol": protocol},
    "a note": lambda protocol, metadata, add: {"commitInfo": {"operation": "VACUUM END"}},
    "statistics": lambda protocol, metadata, add: {"add": {**add, "stats": '{"numRecords":100}', "dataChange": False}},
}


@pytest.mark.parametrize(
    ("ours", "left"),
    [("DELETE FROM t WHERE i = 5", 199), ("DELETE FROM t WHERE i < 100", 100), ("INSERT INTO t VALUES (7, 'x')", 201)],
)
@pytest.mark.parametrize("theirs", OF_NO_CONCERN.values(), ids=OF_NO_CONCERN)
def test_what_changes_neither_rows_nor_the_table_is_no_conflict(
    pair: Pair, table: Path, theirs: Told, ours: str, left: int
) -> None:
    _, second = pair
    begin(second, ours)
    ((protocol,), (metadata,)) = (of_kind(commit(table, 0), kind) for kind in ("protocol", "metaData"))
    action = theirs(protocol, metadata, of_kind(commit(table, 1), "add")[0])
    version = versions(table)[-1] + 1
    (table / "_delta_log" / f"{version:020}.json").write_text(json.dumps(action) + "\n")
    second.commit()
    assert versions(table)[-1] == version + 1
    assert fresh_values(table, "SELECT count(*) FROM t") == [left]


def test_rows_get_their_ids_after_those_of_others(tmp_path: Path, connect: Connect) -> None:
    lake = connect(tmp_path, autocommit=True)
    lake.execute("CREATE TABLE t (i BIGINT) WITH ('delta.enableRowTracking' = 'true')")
    first, second = connect(tmp_path), connect(tmp_path)
    begin(first, "INSERT INTO t SELECT i FROM range(10) r(i)")
    begin(second, "INSERT INTO t SELECT i FROM range(5) r(i)")
    first.commit()
    second.commit()
    (add,), (domain,) = (of_kind(commit(tmp_path / "t"), kind) for kind in ("add", "domainMetadata"))
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (10, 2)
    assert json.loads(domain["configuration"]) == {"rowIdHighWaterMark": 14}


def test_an_autocommit_statement_runs_again(pair: Pair, table: Path, connect: Connect) -> None:
    """Both updates of the same rows take effect, one after the other."""
    writers = [connect(table.parent, autocommit=True) for _ in range(4)]
    threads = [
        threading.Thread(target=writer.execute, args=("UPDATE t SET s = s || '+' WHERE i < 3",)) for writer in writers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fresh_values(table, "SELECT s FROM t WHERE i < 3") == ["a++++"] * 3
    assert fresh_values(table, "SELECT count(*) FROM t") == [200]


def test_appends_of_many_threads_are_all_there(pair: Pair, table: Path, connect: Connect) -> None:
    def append(number: int) -> None:
        with lakedbapi.connect(f"delta:///{table.parent}", autocommit=True) as connection:
            for i in range(5):
                connection.execute("INSERT INTO t VALUES (?, 'new')", [1000 * number + i])

    threads = [threading.Thread(target=append, args=(number,)) for number in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert versions(table) == list(range(28))
    assert fresh_values(table, "SELECT count(DISTINCT i) FROM t WHERE s = 'new'") == [25]


def test_two_tables_of_one_name(tmp_path: Path, connect: Connect) -> None:
    first, second = (connect(tmp_path, autocommit=False) for _ in range(2))
    first.execute("CREATE TABLE n AS SELECT 1 AS i")
    second.execute("CREATE TABLE n AS SELECT 2 AS i")
    first.commit()
    with pytest.raises(OperationalError):
        second.commit()
    assert fresh_values(tmp_path / "n", "SELECT i FROM n") == [1]


Put = Callable[[Storage, str, bytes], None]


@pytest.mark.parametrize("error", [FileExistsError("x"), OperationalError("timed out")])
def test_a_commit_whose_answer_got_lost_counts_once(
    pair: Pair, table: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    put: Put = Storage.put_if_absent

    def lossy(storage: Storage, path: str, data: bytes) -> None:
        put(storage, path, data)
        raise error

    first, _ = pair
    begin(first, "INSERT INTO t VALUES (1000, 'x')", "DELETE FROM t WHERE i < 50")
    monkeypatch.setattr(Storage, "put_if_absent", lossy)
    first.commit()
    monkeypatch.undo()
    assert versions(table) == [0, 1, 2, 3]
    assert fresh_values(table, "SELECT count(*) FROM t") == [151]


def test_a_commit_that_failed_leaves_nothing(pair: Pair, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(storage: Storage, path: str, data: bytes) -> None:
        raise OperationalError("no space")

    first, _ = pair
    files = sorted(table.rglob("*"))
    begin(first, "INSERT INTO t VALUES (1000, 'x')", "DELETE FROM t WHERE i < 50")
    monkeypatch.setattr(Storage, "put_if_absent", refused)
    with pytest.raises(OperationalError, match="no space"):
        first.commit()
    assert sorted(table.rglob("*")) == files


def test_an_outcome_that_nobody_knows_is_told(pair: Pair, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files stay, since the commit may be there."""

    def silent(storage: Storage, *arguments: object) -> None:
        raise OperationalError("no answer")

    first, _ = pair
    begin(first, "DELETE FROM t WHERE i * i % 7 = 2")
    monkeypatch.setattr(Storage, "put_if_absent", silent)
    monkeypatch.setattr(Storage, "exists", silent)
    with pytest.raises(CommitUnknownError, match="nobody can tell"):
        first.commit()
    assert len(list(table.glob("*.bin"))) == 1


def test_files_of_a_commit_that_arrives_late_are_there(
    pair: Pair, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store took the commit after the client had given up waiting and seen that it was not there."""
    on_the_way = []

    def slow(filesystem: AbstractFileSystem, path: str, data: bytes) -> None:
        on_the_way.append((path, data))
        raise TimeoutError("no answer within 60 seconds")

    first, _ = pair
    begin(first, "INSERT INTO t VALUES (1000, 'x')", "DELETE FROM t WHERE i < 50")
    monkeypatch.setattr(exclusive, "put_if_absent", slow)
    with pytest.raises(CommitUnknownError, match="no answer within 60 seconds"):
        first.commit()
    monkeypatch.undo()
    [(path, data)] = on_the_way
    Path(path).write_bytes(data)
    assert fresh_values(table, "SELECT count(*) FROM t") == [151]


@pytest.mark.parametrize("statement", ["UPDATE t SET s = 'b' WHERE i < 50", "OPTIMIZE t"])
def test_files_of_an_interrupted_commit_stay(
    pair: Pair, table: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    put: Put = Storage.put_if_absent

    def interrupted(storage: Storage, path: str, data: bytes) -> None:
        put(storage, path, data)
        raise KeyboardInterrupt

    first, _ = pair
    monkeypatch.setattr(Storage, "put_if_absent", interrupted)
    first.autocommit = True
    with pytest.raises(CommitUnknownError, match="nobody can tell"):
        first.execute(statement)
    assert versions(table) == [0, 1, 2, 3]
    assert fresh_values(table, "SELECT count(*) FROM t") == [200]
