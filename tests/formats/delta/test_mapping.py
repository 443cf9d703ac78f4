"""Tables that map columns: which names new files have for them, whatever the connection has seen before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakedbapi.errors import ConflictError
from tests.formats.delta.committed import commit, of_kind, rows
from tests.formats.delta.conftest import Connect


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t"


def test_a_look_at_an_older_version_leaves_the_names_in_files(tmp_path: Path, connect: Connect, table: Path) -> None:
    """Also where the columns that it has of the same numbers are others."""
    setup = connect(tmp_path, autocommit=True)
    setup.execute("CREATE TABLE t (a VARCHAR, b VARCHAR) PARTITIONED BY (a) WITH ('delta.columnMapping.mode' = 'name')")
    setup.execute("INSERT INTO t VALUES ('a1', 'b1')")
    setup.execute("CREATE OR REPLACE TABLE t (b VARCHAR, c VARCHAR) PARTITIONED BY (b)")
    setup.execute("ALTER TABLE t SET ('delta.columnMapping.mode' = 'name')")
    lake = connect(tmp_path)
    lake.execute("INSERT INTO t VALUES ('b2', 'c2')")
    assert rows(lake, "SELECT * FROM t VERSION AS OF 1") == [("a1", "b1")]
    lake.commit()
    (add,) = of_kind(commit(table), "add")
    assert add["partitionValues"] == {"b": "b2"}
    assert json.loads(add["stats"])["minValues"] == {"c": "c2"}
    assert rows(connect(tmp_path), "SELECT * FROM t") == [("b2", "c2")]


def test_names_in_files_are_those_that_another_transaction_gave(tmp_path: Path, connect: Connect) -> None:
    first, second = connect(tmp_path), connect(tmp_path, autocommit=True)
    second.execute("CREATE TABLE t (a VARCHAR) WITH ('delta.columnMapping.mode' = 'name')")
    first.execute("ALTER TABLE t ADD COLUMN b VARCHAR")
    first.execute("INSERT INTO t VALUES ('a', 'b')")
    second.execute("ALTER TABLE t ADD COLUMN c VARCHAR")
    with pytest.raises(ConflictError):
        first.commit()
    first.rollback()
    first.execute("INSERT INTO t VALUES ('a', 'c')")
    first.commit()
    assert rows(second, "SELECT * FROM t") == [("a", "c")]
    assert rows(connect(tmp_path), "SELECT * FROM t") == [("a", "c")]
