"""Encrypted lakes: no plain file gets into one, whatever a statement does. That DuckDB reads them is tested in
compliance/ducklake."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import lakedbapi
from compliance.peers.lakes import Place, on_backend, on_sqlite
from tests.faults.test_remote_storage import S3Server
from tests.thorough import quick

SECRET = "a very secret text"


class Lake:
    """An encrypted lake (or one that is not) that keeps no rows in its catalog."""

    def __init__(self, place: Place, encrypted: bool = True, **storage_options: Any) -> None:
        self.url, self.data, self.storage_options = place.url, place.data_path, storage_options
        self.connection = lakedbapi.connect(
            f"{self.url}&encrypted={str(encrypted).lower()}",
            autocommit=True,
            data_inlining_row_limit=0,
            storage_options=storage_options,
        )

    def execute(self, sql: str) -> int:
        return self.connection.execute(sql).rowcount

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def files(self) -> dict[str, bytes]:
        filesystem, root = fsspec.url_to_fs(self.data, **self.storage_options)
        filesystem.invalidate_cache()
        return {path: filesystem.cat_file(path) for path in filesystem.find(root)}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    yield from checked(Lake(on_sqlite(tmp_path)))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Lake]:
    yield from checked(Lake(remote(tmp_path, f"memory://lake-{uuid.uuid4().hex}/data/")))


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Lake]:
    pytest.importorskip("moto.server")
    server = S3Server()
    options = {"key": "x", "secret": "y", "endpoint_url": server.endpoint}
    bucket = f"lake-{uuid.uuid4().hex}"
    fsspec.filesystem("s3", **options).mkdir(bucket)
    yield from checked(Lake(remote(tmp_path, f"s3://{bucket}/data/"), **options))
    server.close()


def remote(folder: Path, data_path: str) -> Place:
    return Place("sqlite", f"ducklake:///{folder}/catalog.sqlite?data_path={data_path}", "", data_path)


@pytest.fixture(params=["sqlite", "postgresql", "mysql", "duckdb"])
def on_databases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    with on_backend(request.param, tmp_path) as place:
        yield from checked(Lake(place))


def checked(lake: Lake) -> Iterator[Lake]:
    yield lake
    lake.connection.close()
    for path, content in lake.files().items():
        assert content[:4] == content[-4:] == b"PARE", path
        assert SECRET.encode() not in content


STATEMENTS = (
    f"INSERT INTO t SELECT range, '{SECRET}' || range, range % 3, {{'a': range, 'b': [range]}} FROM range(300)",
    "DELETE FROM t WHERE i % 10 = 3",
    "DELETE FROM t WHERE i % 10 = 4",
    f"UPDATE t SET s = '{SECRET}', n = {{'a': -1, 'b': NULL}} WHERE i < 5",
    f"""MERGE INTO t USING (SELECT 6 AS k UNION ALL SELECT 500) AS v ON t.i = v.k
        WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (i, s) VALUES (v.k, '{SECRET}')""",
    "CREATE TABLE u AS SELECT * FROM t",
    "ALTER TABLE t SET PARTITIONED BY (k)",
    f"INSERT INTO t SELECT range, '{SECRET}', range % 4, NULL FROM range(600, 650)",
    "ALTER TABLE t ADD COLUMN n.c INTEGER",
    "DELETE FROM u WHERE i = 7",
)
TOTALS = "SELECT count(*), sum(i), count(DISTINCT s), sum(n.a), sum(len(n.b)) FROM {}"


def fill(lake: Lake) -> Lake:
    lake.execute("CREATE TABLE t (i INTEGER, s VARCHAR, k INTEGER, n STRUCT(a INTEGER, b INTEGER[]))")
    for statement in STATEMENTS:
        lake.execute(statement)
    return lake


@pytest.fixture
def filled(lake: Lake) -> Lake:
    return fill(lake)


def check_all_statements(encrypted: Lake, folder: Path) -> None:
    fill(encrypted)
    plain = fill(Lake(on_sqlite(folder / "plain"), encrypted=False))
    for query in (TOTALS.format("t"), TOTALS.format("u"), "SELECT n FROM t WHERE i = 8"):
        assert encrypted.rows(query) == plain.rows(query)
    assert len(encrypted.files()) == len(plain.files()) > 8
    plain.connection.close()
    encrypted.connection.close()
    options = {"storage_options": encrypted.storage_options}
    with lakedbapi.connect(encrypted.url, autocommit=True, data_inlining_row_limit=0, **options) as again:
        assert again.execute("SELECT n FROM t WHERE i = 8").fetchall() == [({"a": 8, "b": [8], "c": None},)]
        again.execute("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)")
        again.execute("CHECKPOINT")
        assert again.execute("PURGE FROM t WHERE i = 8").fetchone() is not None
        assert again.execute("SELECT n FROM t WHERE i IN (8, 9)").fetchall() == [({"a": 9, "b": [9], "c": None},)]


def test_all_statements_write_encrypted_files(on_databases: Lake, tmp_path: Path) -> None:
    check_all_statements(on_databases, tmp_path)


@pytest.mark.parametrize("kind", quick(1, ["memory", "s3"]))
def test_all_statements_write_encrypted_files_elsewhere(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    check_all_statements(request.getfixturevalue(kind), tmp_path)


def test_a_transaction_reads_its_own_files(lake: Lake) -> None:
    with lakedbapi.connect(lake.url, data_inlining_row_limit=0) as connection:
        connection.execute("CREATE TABLE t (i INTEGER, s STRUCT(a INTEGER))")
        connection.execute("INSERT INTO t SELECT range, {'a': range} FROM range(30000)")
        connection.execute("DELETE FROM t WHERE i < 10")
        connection.execute("UPDATE t SET s = {'a': 0} WHERE i < 20")
        assert connection.execute("SELECT count(*), sum(s.a) FROM t").fetchone() == (29990, 449984810)
        connection.commit()
        assert connection.execute("SELECT count(*), sum(s.a) FROM t").fetchone() == (29990, 449984810)


@pytest.mark.parametrize(
    "call",
    [
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CHECKPOINT",
    ],
)
def test_maintenance_writes_encrypted_files_and_keeps_history(filled: Lake, call: str) -> None:
    filled.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '10')")
    filled.execute(f"INSERT INTO t SELECT range, '{SECRET}', 1, NULL FROM range(700, 705)")
    filled.execute("DELETE FROM t WHERE i IN (702, 20)")
    filled.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '0')")
    last = filled.rows("SELECT max(snapshot_id) FROM snapshots()")[0][0]

    def history() -> list[Any]:
        counts = [filled.rows(f"{TOTALS.format('t')} AT (VERSION => {version})") for version in range(2, last + 1, 3)]
        return [*counts, sorted(filled.rows(f"SELECT * FROM table_changes('t', 2, {last})"), key=str)]

    before = history()
    filled.execute(call)
    assert history() == before


def test_rows_are_purged(filled: Lake) -> None:
    filled.execute("PURGE FROM t WHERE i = 600")
    assert filled.rows("SELECT count(*) FROM t WHERE i = 600") == [(0,)]
    assert filled.rows("SELECT count(*) FROM t") == [(289,)]


def test_copies_of_rows_are_no_changes(lake: Lake) -> None:
    lake.execute("CREATE TABLE t (i INTEGER, s VARCHAR) WITH ('lake.write_mode' = 'copy-on-write')")
    lake.execute("INSERT INTO t SELECT range, 'a' FROM range(20)")
    lake.execute("UPDATE t SET s = 'b' WHERE i = 3")
    feed = "SELECT change_type, i, s FROM table_changes('t', 3, 3) ORDER BY 1"
    assert lake.rows(feed) == [("update_postimage", 3, "b"), ("update_preimage", 3, "a")]


def test_a_failed_statement_leaves_no_file(lake: Lake) -> None:
    lake.execute("CREATE TABLE t (i INTEGER)")
    for rows in ("SELECT CASE WHEN range = 400000 THEN error('no') ELSE 1 END FROM range(500000)", "SELECT 'x'"):
        with pytest.raises(lakedbapi.Error):
            lake.execute(f"INSERT INTO t {rows}")
    assert not lake.files()


def test_large_files_are_split(lake: Lake) -> None:
    lake.execute("CALL ducklake_set_option('lake', 'target_file_size', '1MB')")
    lake.execute("CREATE TABLE t AS SELECT range AS i, md5(range::VARCHAR) AS s FROM range(500000)")
    assert len(lake.files()) > 3
    assert lake.rows("SELECT count(*), count(DISTINCT s), sum(i) FROM t") == [(500000, 500000, 124999750000)]


def test_folders_tell_no_values(filled: Lake) -> None:
    assert not [path for path in filled.files() if "k=" in path]


def test_the_choice_at_creation_stays(tmp_path: Path) -> None:
    lake = Lake(on_sqlite(tmp_path))
    with lakedbapi.connect(lake.url) as again:
        assert again.execute(
            "SELECT value FROM ducklake_options('lake') WHERE option_name = 'encrypted'"
        ).fetchall() == [("true",)]
    with pytest.raises(lakedbapi.ProgrammingError, match="cannot be changed"):
        lakedbapi.connect(f"{lake.url}&encrypted=false")
    other = f"ducklake:///{tmp_path}/other.sqlite?data_path={tmp_path / 'other'}/"
    lakedbapi.connect(other).close()
    with pytest.raises(lakedbapi.ProgrammingError, match="not encrypted"):
        lakedbapi.connect(f"{other}&encrypted=true")
    with pytest.raises(lakedbapi.ProgrammingError, match="no option"):
        lake.execute("CALL ducklake_set_option('lake', 'encrypted', 'false')")
    lake.connection.close()


def test_an_attached_lake_can_be_encrypted(tmp_path: Path) -> None:
    with lakedbapi.connect("lake://", autocommit=True, allow_attach=True) as connection:
        connection.execute(f"ATTACH 'ducklake:sqlite:{tmp_path}/c.sqlite' AS x (DATA_PATH '{tmp_path}/d/', ENCRYPTED)")
        connection.execute("CREATE TABLE x.t AS SELECT range AS i FROM range(100)")
        connection.execute(f"ATTACH 'ducklake:sqlite:{tmp_path}/p.sqlite' AS y (DATA_PATH '{tmp_path}/p/')")
        connection.execute("CREATE TABLE y.t AS SELECT * FROM x.t")
        assert connection.execute("SELECT count(*) FROM x.t JOIN y.t USING (i)").fetchone() == (100,)
    magic = {path.parts[-4]: path.read_bytes()[:4] for path in tmp_path.rglob("*.parquet")}
    assert magic == {"d": b"PARE", "p": b"PAR1"}


def test_without_the_package_nothing_is_made_and_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(on_sqlite(tmp_path / "lake"))
    lake.execute("CREATE TABLE t (i INTEGER)")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(lakedbapi.NotSupportedError, match=r"lakedbapi\[encryption\]"):
        lake.execute("INSERT INTO t SELECT range FROM range(100)")
    assert not lake.files()
    lake.connection.close()
    with pytest.raises(lakedbapi.NotSupportedError, match=r"lakedbapi\[encryption\]"):
        Lake(on_sqlite(tmp_path / "other"))
    assert not (tmp_path / "other" / "catalog.sqlite").exists()
