"""Transactions that overlap: what goes together, what fails, and that no change is lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import requests
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
)
from sqlalchemy.exc import DBAPIError

import lakedbapi
from lakedbapi.errors import CommitUnknownError, ConflictError, NotSupportedError, OperationalError
from lakedbapi.formats.iceberg.failures import may_be_done
from lakedbapi.formats.iceberg.sources import CatalogSource
from tests.formats.iceberg import foreign
from tests.formats.iceberg.writing import Lake, values

SNAPSHOT = {f"write.{kind}.isolation-level": "snapshot" for kind in ("delete", "update", "merge")}


def two(place: Lake, **properties: str) -> tuple[lakedbapi.Connection, lakedbapi.Connection]:
    """Two open transactions on a table of ten rows in one file."""
    setup = place.connect()
    place.create(setup)
    for name, value in properties.items():
        setup.execute(f"ALTER TABLE t SET ('{name}' = '{value}')")
    setup.execute("INSERT INTO t SELECT i, 's' || i FROM range(10) r(i)")
    both = place.connect(autocommit=False), place.connect(autocommit=False)
    for one in both:
        one.execute("SELECT count(*) FROM t").fetchall()
    return both


def left(place: Lake) -> list[int]:
    found = values(place.connect(), "SELECT a FROM t")
    assert found == sorted(place.table().scan().to_arrow().column("a").to_pylist())
    return found


def test_two_deletes_of_other_rows_of_one_file(place: Lake) -> None:
    first, second = two(place)
    first.execute("DELETE FROM t WHERE a = 1")
    second.execute("DELETE FROM t WHERE a = 2")
    first.commit()
    second.commit()
    assert left(place) == [0, 3, 4, 5, 6, 7, 8, 9]
    assert len(place.files(1)) == 1


def test_two_updates_of_other_rows_of_one_file(place: Lake) -> None:
    """The new row of the one is none that the other would have chosen, as its bounds tell."""
    first, second = two(place)
    first.execute("UPDATE t SET s = 'x' WHERE a = 1")
    second.execute("UPDATE t SET s = 'y' WHERE a = 2")
    first.commit()
    second.commit()
    assert left(place) == list(range(10))
    assert values(place.connect(), "SELECT s FROM t WHERE a IN (1, 2)") == ["x", "y"]


def test_an_update_of_rows_that_others_may_have_made(place: Lake) -> None:
    first, second = two(place)
    first.execute("UPDATE t SET s = 'x' WHERE a = 1")
    second.execute("UPDATE t SET s = 'y' WHERE a % 2 = 0 AND a < 3")
    first.commit()
    with pytest.raises(ConflictError, match="added rows"):
        second.commit()


def test_the_same_row_deleted_twice(place: Lake) -> None:
    first, second = two(place)
    first.execute("DELETE FROM t WHERE a = 1")
    second.execute("DELETE FROM t WHERE a IN (1, 2)")
    first.commit()
    with pytest.raises(ConflictError):
        second.commit()
    assert left(place) == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_delete_of_the_rows_that_others_left(place: Lake) -> None:
    """Together they empty the file: it goes, and no delete file stays."""
    first, second = two(place)
    first.execute("DELETE FROM t WHERE a < 5")
    second.execute("DELETE FROM t WHERE a > 4")
    first.commit()
    second.commit()
    assert left(place) == []
    assert place.entries() == []


def test_an_append_beside_a_delete(place: Lake) -> None:
    """The new row might have had to go as well."""
    first, second = two(place)
    first.execute("INSERT INTO t VALUES (100, 'x')")
    second.execute("DELETE FROM t WHERE a > 8")
    first.commit()
    with pytest.raises(ConflictError, match="added rows"):
        second.commit()
    second.rollback()
    second.execute("DELETE FROM t WHERE a > 8")
    second.commit()
    assert left(place) == list(range(9))


def test_an_append_beside_a_delete_under_snapshot_isolation(place: Lake) -> None:
    first, second = two(place, **SNAPSHOT)
    first.execute("INSERT INTO t VALUES (100, 'x')")
    second.execute("DELETE FROM t WHERE a > 8")
    first.commit()
    second.commit()
    assert set(left(place)) == {*range(9), 100}


def test_appends_never_conflict(place: Lake) -> None:
    first, second = two(place)
    first.execute("DELETE FROM t WHERE a = 1")
    second.execute("INSERT INTO t VALUES (100, 'x')")
    first.commit()
    second.commit()
    assert set(left(place)) == {0, *range(2, 10), 100}


@pytest.mark.parametrize("mine", ["DELETE FROM t WHERE a = 1", "UPDATE t SET s = 'x' WHERE a = 1"])
def test_a_file_that_others_rewrote(place: Lake, mine: str) -> None:
    """Else the rows that went would be back."""
    first, second = two(place, **{**SNAPSHOT, "write.update.mode": "copy-on-write"})
    second.execute("DELETE FROM t WHERE a = 1")
    first.execute("UPDATE t SET s = 'new' WHERE a = 2")
    first.commit()
    with pytest.raises(ConflictError, match="rewrote or removed"):
        second.commit()
    assert left(place) == list(range(10))


def test_a_file_that_others_compacted(place: Lake) -> None:
    """Likewise, also where the compaction began first."""
    first, second = two(place, **SNAPSHOT)
    setup = place.connect()
    setup.execute("INSERT INTO t VALUES (10, 's10')")
    second.execute("DELETE FROM t WHERE a = 1")
    first.execute("DELETE FROM t WHERE a = 2")
    setup.execute("OPTIMIZE t")
    for late in (first, second):
        with pytest.raises(ConflictError, match="rewrote or removed"):
            late.commit()
    assert left(place) == list(range(11))


def test_new_rows_that_were_compacted_since_are_new_rows(place: Lake) -> None:
    """Compaction writes rows that were there and rows that were not into one file."""
    setup = place.connect()
    setup.execute(f"CREATE TABLE t (a BIGINT, p INT) PARTITIONED BY (p) WITH ('format-version' = '{place.version}')")
    setup.execute("INSERT INTO t SELECT i, 1 FROM range(10) r(i)")
    setup.execute("INSERT INTO t VALUES (100, 2)")
    late = place.connect(autocommit=False)
    late.execute("DELETE FROM t WHERE a BETWEEN 5 AND 7")
    setup.execute("INSERT INTO t VALUES (6, 2)")
    setup.execute("OPTIMIZE t WHERE p = 2")
    setup.execute("INSERT INTO t VALUES (100, 3)")
    with pytest.raises(ConflictError, match="added rows"):
        late.commit()
    late.rollback()
    late.execute("DELETE FROM t WHERE a = 5")
    setup.execute("OPTIMIZE t WHERE p = 3")
    setup.execute("DELETE FROM t WHERE a = 9")
    late.commit()
    assert left(place) == [0, 1, 2, 3, 4, 6, 6, 7, 8, 100, 100]


def test_rows_that_a_rollback_brought_back(place: Lake) -> None:
    """The snapshot that a change was made on is none of those that the newest one was made of."""
    first, second = two(place)
    earlier = place.snapshots()[-1].snapshot_id
    setup = place.connect()
    setup.execute("DELETE FROM t WHERE a = 1")
    first.rollback()
    first.execute("DELETE FROM t WHERE a IN (1, 2)")
    second.rollback()
    second.execute("INSERT INTO t VALUES (100, 'x')")
    place.table().manage_snapshots().rollback_to_snapshot(earlier).commit()
    with pytest.raises(ConflictError, match="rolled"):
        first.commit()
    second.commit()
    assert left(place) == [*range(10), 100]


def test_a_commit_that_is_repeated_has_a_later_number(place: Lake) -> None:
    first, second = two(place)
    first.execute("INSERT INTO t VALUES (10, 'first')")
    second.execute("INSERT INTO t VALUES (11, 'second')")
    first.commit()
    second.commit()
    numbers = {e["manifest"]["sequence_number"]: e["data_file"]["record_count"] for e in place.entries()}
    assert numbers == {1: 10, 2: 1, 3: 1}
    assert place.table().metadata.last_sequence_number == 3


def test_rewriting_a_file_in_which_others_deleted(place: Lake) -> None:
    first, second = two(place, **{**SNAPSHOT, "write.update.mode": "copy-on-write"})
    first.execute("DELETE FROM t WHERE a = 1")
    second.execute("UPDATE t SET s = 'new' WHERE a = 2")
    first.commit()
    with pytest.raises(ConflictError, match="deleted or updated rows"):
        second.commit()
    assert left(place) == [0, *range(2, 10)]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize(
    ("mine", "copies"),
    [
        ("UPDATE t SET s = 'new' WHERE a = 5", {"merge-on-read", "copy-on-write"}),
        ("DELETE FROM t WHERE a = 4", {"copy-on-write"}),
        (
            "MERGE INTO t USING (SELECT 5 AS k) u ON t.a = u.k WHEN MATCHED THEN UPDATE SET s = 'new'",
            {"merge-on-read", "copy-on-write"},
        ),
    ],
)
def test_rows_that_others_deleted_by_value_do_not_come_back(
    place: Lake, mine: str, copies: set[str], mode: str
) -> None:
    """What copies rows must see their deletes; what only deletes others goes together with them."""
    properties = {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}
    first, second = two(place, **properties)
    second.execute(mine)
    foreign.commit(first, lambda attempt: attempt.equality({"a": [5]}))
    if mode in copies:
        with pytest.raises(ConflictError, match="deleted rows by their values"):
            second.commit()
        assert values(place.connect(), "SELECT a FROM t") == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    else:
        second.commit()
        assert values(place.connect(), "SELECT a FROM t") == [0, 1, 2, 3, 6, 7, 8, 9]


def test_a_table_that_was_dropped(place: Lake) -> None:
    first, second = two(place)
    first.execute("DROP TABLE t")
    second.execute("DELETE FROM t WHERE a = 1")
    first.commit()
    with pytest.raises(ConflictError, match="dropped"):
        second.commit()


def test_another_table_of_the_name(place: Lake) -> None:
    first, second = two(place)
    second.execute("INSERT INTO t VALUES (100, 'x')")
    first.execute("DROP TABLE t")
    first.commit()
    place.create(place.connect())
    with pytest.raises(ConflictError, match="dropped the table and made another one"):
        second.commit()
    assert left(place) == []


def test_columns_that_others_changed(place: Lake) -> None:
    first, second = two(place)
    first.execute("ALTER TABLE t ADD COLUMN z INTEGER")
    second.execute("INSERT INTO t VALUES (100, 'x')")
    first.commit()
    with pytest.raises(ConflictError, match="columns"):
        second.commit()


def test_two_tables_in_one_transaction(place: Lake) -> None:
    lake = place.connect()
    for name in ("t", "u"):
        place.create(lake, name)
    lake.begin()
    lake.execute("INSERT INTO t VALUES (1, 'x')")
    with pytest.raises(NotSupportedError, match="non_atomic"):
        lake.execute("INSERT INTO u VALUES (1, 'x')")
    lake.rollback()


def test_two_tables_one_after_the_other(place: Lake) -> None:
    lake = place.connect(non_atomic="true", autocommit=False)
    for name in ("t", "u"):
        place.create(lake, name)
        lake.execute(f"INSERT INTO {name} VALUES (1, 'x')")
    lake.commit()
    assert [values(lake, f"SELECT a FROM {name}") for name in ("t", "u")] == [[1], [1]]
    lake.execute("INSERT INTO t VALUES (2, 'y')")
    lake.execute("UPDATE u SET a = 3 WHERE a = 1")
    place.connect().execute("UPDATE u SET a = 4 WHERE a = 1")
    with pytest.raises(ConflictError, match=r"not undone: main\.t$") as caught:
        lake.commit()
    assert not caught.value.retryable  # What was done would be done twice.
    lake.rollback()
    assert [values(lake, f"SELECT a FROM {name}") for name in ("t", "u")] == [[1, 2], [4]]


Commit = Callable[..., None]
UNKNOWN = CommitStateUnknownException("gateway timeout")


@pytest.fixture
def lost_answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Callable[[], None]]]:
    """The next commits reach the catalog, or do not, and nobody says so. Returns those that arrive when they are
    called."""
    real: Commit = CatalogSource.commit

    def lose(arrives: bool, error: BaseException = UNKNOWN) -> list[Callable[[], None]]:
        late: list[Callable[[], None]] = []

        def commit(source: CatalogSource, *args: Any, **options: Any) -> None:
            late.append(partial(real, source, *args, **options))
            if arrives:
                late.pop()()
            raise error

        monkeypatch.setattr(CatalogSource, "commit", commit)
        return late

    return lose


@pytest.mark.parametrize(
    "error",
    [
        UNKNOWN,
        requests.ReadTimeout("read timed out"),
        CommitFailedException("a gateway repeated it, and its first try has been committed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_answer_that_was_lost_after_the_commit(
    place: Lake, lost_answer: Callable[..., object], error: Exception
) -> None:
    first, _ = two(place)
    first.execute("DELETE FROM t WHERE a = 1")
    lost_answer(True, error)
    first.commit()
    assert left(place) == [0, *range(2, 10)]
    assert len(place.snapshots()) == 2


def test_a_new_table_whose_answer_was_lost(place: Lake, lost_answer: Callable[..., object]) -> None:
    lost_answer(True, TableAlreadyExistsError("a client repeated it"))
    place.connect().execute(
        f"CREATE TABLE t WITH ('format-version' = '{place.version}') AS SELECT i AS a FROM range(10) r(i)"
    )
    assert left(place) == list(range(10))


@pytest.mark.parametrize("error", [requests.ReadTimeout("read timed out"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("statement", ["INSERT INTO t VALUES (10, 'x')", "OPTIMIZE t"])
def test_a_commit_that_arrives_later_finds_its_files(
    place: Lake, lost_answer: Callable[..., list[Callable[[], None]]], statement: str, error: BaseException
) -> None:
    two(place)
    lake = place.connect()
    lake.execute("DELETE FROM t WHERE a < 4")
    late = lost_answer(False, error)
    with pytest.raises(CommitUnknownError, match="nobody can tell"):
        lake.execute(statement)
    late[0]()
    assert left(place) == list(range(4, 11 if "INSERT" in statement else 10))


def test_a_commit_that_the_catalog_refused_leaves_no_files(place: Lake, lost_answer: Callable[..., object]) -> None:
    first, _ = two(place)
    first.execute("INSERT INTO t VALUES (100, 'x')")
    before = set(place.root.rglob("*.*"))
    lost_answer(False, ForbiddenError("not allowed"))
    with pytest.raises(OperationalError, match="not allowed") as raised:
        first.commit()
    assert not isinstance(raised.value, CommitUnknownError)
    first.rollback()
    assert {path for path in set(place.root.rglob("*.*")) - before if "journal" not in path.name} == set()


class BotoError(Exception):
    """As those of botocore, which only Glue brings."""

    __module__ = "botocore.exceptions"

    def __init__(self, status: int | None) -> None:
        if status is not None:
            self.response = {"ResponseMetadata": {"HTTPStatusCode": status}}


@pytest.mark.parametrize(
    ("error", "of_server", "of_client"),
    [
        (UNKNOWN, True, True),
        (ServerError("505"), True, True),
        (ServiceUnavailableError("503"), True, True),
        (requests.ReadTimeout("read timed out"), True, True),
        (ForbiddenError("not allowed"), False, False),
        (NotImplementedError("501"), False, False),
        (ConflictError("ours"), False, False),
        (ValueError("the answer is no JSON"), True, False),
        (TimeoutError("timed out"), True, True),
        (ConnectionResetError(), True, True),
        (PermissionError("no metadata may be written"), True, False),
        (DBAPIError("COMMIT", None, Exception("closed"), connection_invalidated=True), True, True),
        (DBAPIError("UPDATE", None, Exception("disk full")), True, False),
        (BotoError(None), True, True),
        (BotoError(500), True, True),
        (BotoError(403), True, False),
    ],
    ids=repr,
)
def test_who_says_nothing_may_have_done_it(error: Exception, of_server: bool, of_client: bool) -> None:
    """A REST server commits all by itself; in other catalogs the client does, up to the swap of a pointer."""
    assert may_be_done(error, by_server=True) is of_server
    assert may_be_done(error, by_server=False) is of_client


def test_a_commit_of_which_nobody_knows(place: Lake, lost_answer: Callable[..., object]) -> None:
    """It may still arrive: its files stay."""
    first, _ = two(place)
    first.execute("INSERT INTO t VALUES (100, 'x')")
    before = set(place.root.rglob("*"))
    lost_answer(False)
    with pytest.raises(CommitUnknownError, match="did not answer"):
        first.commit()
    kept = {path.suffix for path in set(place.root.rglob("*")) - before}
    assert {".parquet", ".avro"} <= kept
    assert left(place) == list(range(10))


def test_a_conflict_leaves_no_files(place: Lake) -> None:
    first, second = two(place)
    first.execute("INSERT INTO t VALUES (100, 'x')")
    first.commit()
    before = set(place.root.rglob("*.*"))
    second.execute("UPDATE t SET s = 'x' WHERE a > 8")
    with pytest.raises(ConflictError):
        second.commit()
    assert {path for path in set(place.root.rglob("*.*")) - before if "journal" not in path.name} == set()
