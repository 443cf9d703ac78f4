"""Hudi tables can only be read: every statement that changes something is refused, and says what to do instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakedbapi
from tests.formats.hudi import golden as g
from tests.formats.hudi.conftest import Connect

CHANGES = {
    "INSERT INTO lake.main.t": "INSERT INTO t (id) VALUES (1)",
    "UPDATE lake.main.t": "UPDATE t SET id = 1",
    "DELETE FROM lake.main.t": "DELETE FROM t WHERE id = 1",
    "TRUNCATE lake.main.t": "TRUNCATE t",
    "MERGE INTO lake.main.t": "MERGE INTO t USING (SELECT 1 AS id) s USING (id) WHEN MATCHED THEN DELETE",
    "CREATE TABLE n": "CREATE TABLE n AS SELECT 1 AS i",
    "DROP TABLE t": "DROP TABLE t",
    "ALTER TABLE t": "ALTER TABLE t ADD COLUMN x INTEGER",
    "CREATE VIEW v": "CREATE VIEW v AS SELECT * FROM t",
    "CREATE SCHEMA s": "CREATE SCHEMA s",
    "DROP SCHEMA main": "DROP SCHEMA main",
    "COMMENT ON TABLE t": "COMMENT ON TABLE t IS 'x'",
    "set_option('target_file_size')": "CALL lake.set_option('target_file_size', '1MB')",
}
MAINTENANCE = (
    "ducklake_merge_adjacent_files('lake')",
    "ducklake_rewrite_data_files('lake')",
    "ducklake_expire_snapshots('lake', older_than => now())",
    "ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "ducklake_delete_orphaned_files('lake', cleanup_all => true)",
    "ducklake_flush_inlined_data('lake')",
)


@pytest.fixture
def table(golden: Callable[[str], Path], connect: Connect) -> lakedbapi.Connection:
    return connect(golden(g.COW).parent)


@pytest.mark.parametrize(("named", "statement"), CHANGES.items(), ids=list(CHANGES))
def test_changes_are_refused(table: lakedbapi.Connection, named: str, statement: str) -> None:
    with pytest.raises(lakedbapi.NotSupportedError) as refused:
        table.execute(statement)
    message = str(refused.value)
    assert message.startswith(f"{named}: ")
    assert "format 'hudi'" in message
    assert "Spark" in message
    assert "CREATE TABLE … AS SELECT into a catalog of format ducklake, delta or iceberg" in message
    assert table.execute("SELECT count(*) FROM t").fetchone() == (4,)


@pytest.mark.parametrize("call", MAINTENANCE)
def test_maintenance_is_refused(table: lakedbapi.Connection, call: str) -> None:
    with pytest.raises(lakedbapi.NotSupportedError, match=r"^ducklake_\w+: .*format 'hudi'.*such as Spark"):
        table.execute(f"CALL {call}")


def test_arrow_data_is_refused(table: lakedbapi.Connection) -> None:
    with pytest.raises(lakedbapi.NotSupportedError, match=r"INSERT INTO lake.main.t: .*'hudi'"):
        table.session.ingest("t", pa.table({"id": [1]}), "append")


def test_a_change_feed_is_refused(table: lakedbapi.Connection) -> None:
    with pytest.raises(lakedbapi.NotSupportedError, match="'hudi' keeps no change feed; compare two versions"):
        table.execute("SELECT * FROM table_changes('t', 20240418173550988, 20240418173551906)")


def test_the_way_out_works(golden: Callable[[str], Path], tmp_path: Path) -> None:
    with lakedbapi.connect(tmp_path / "copy", allow_attach=True) as lake:
        lake.execute(f"ATTACH 'hudi:{golden(g.COW)}' AS old")
        lake.execute("CREATE TABLE t AS SELECT * FROM old.t")
        lake.execute("DELETE FROM t WHERE id = 1")
        assert lake.execute("SELECT count(*), (SELECT count(*) FROM old.t) FROM t").fetchone() == (3, 4)


def test_a_missing_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hudi", None)
    with pytest.raises(lakedbapi.NotSupportedError, match=r"pip install 'lakedbapi\[hudi\]'"):
        lakedbapi.connect(f"hudi:///{tmp_path}")


def test_an_old_package_says_how_to_upgrade_it(golden: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import hudi

    directory = golden(g.COW)
    monkeypatch.setattr(hudi, "__version__", "0.4.0")
    with pytest.raises(lakedbapi.NotSupportedError, match=r"0.5 or newer, not 0.4.0: pip install --upgrade"):
        lakedbapi.connect(f"hudi:///{directory}")


def test_options_are_true_or_false(golden: Callable[[str], Path], connect: Connect) -> None:
    with pytest.raises(lakedbapi.InterfaceError, match="read_optimized='maybe' is neither true nor false"):
        connect(golden(g.COW), read_optimized="maybe")


def test_a_directory_must_exist(tmp_path: Path, golden_tables: object, connect: Connect) -> None:
    with pytest.raises(lakedbapi.ProgrammingError, match="no such directory, so there are no Hudi tables"):
        connect(tmp_path / "nowhere")
