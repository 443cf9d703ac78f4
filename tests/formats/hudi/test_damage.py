"""Files that are missing, cut off or damaged: an error that names the file, never older or fewer rows.

hudi-rs by itself gives what it finds.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lakedbapi
from tests.formats.hudi import golden as g
from tests.formats.hudi.conftest import Connect

FIRST, SECOND = "20240418173550988", "20240418173551906"


def _base_file(table: Path, instant: str) -> Path:
    (path,) = table.glob(f"*_{instant}.parquet")
    return path


def test_a_missing_base_file(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.COW)
    missing = _base_file(table, SECOND)
    missing.unlink()
    with pytest.raises(lakedbapi.OperationalError, match=f"{missing}: this file is missing"):
        connect(table).execute("SELECT * FROM t")


def test_a_version_whose_files_were_cleaned_up(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.COW)
    cleaned = _base_file(table, FIRST)
    cleaned.unlink()
    connection = connect(table)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (4,)
    with pytest.raises(lakedbapi.ProgrammingError, match=f"{cleaned}: files of this version are gone"):
        connection.execute(f"SELECT * FROM t VERSION AS OF {FIRST}")


def test_a_cleaned_version_of_which_only_later_commits_tell(golden: Callable[[str], Path], connect: Connect) -> None:
    """The commit that wrote the files is archived; the next one says what it replaced."""
    table = golden(g.OVERWRITTEN)
    shutil.rmtree(table / "20")
    for name in ("20240707001301554.commit", "20240707001301554.commit.requested", "20240707001301554.inflight"):
        (table / ".hoodie" / name).unlink()
    connection = connect(table)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)
    with pytest.raises(lakedbapi.ProgrammingError, match=r"20/88163884-.*: files of this version are gone"):
        connection.execute("SELECT * FROM t VERSION AS OF 20240707001302376")


def test_a_missing_log_file(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.MOR)
    log = g.log_file(table)
    log.unlink()
    with pytest.raises(lakedbapi.OperationalError) as error:
        connect(table).execute("SELECT * FROM t")
    assert str(error.value).startswith(f"{log}: this file is missing")


@pytest.mark.parametrize("size", [0, 3, 10, 40, 5000, -1])
def test_a_log_file_that_is_cut_off(size: int, golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.MOR)
    log = g.log_file(table)
    log.write_bytes(log.read_bytes()[:size])
    with pytest.raises(lakedbapi.DataError) as error:
        connect(table).execute("SELECT * FROM t")
    assert str(error.value).startswith(f"{log}: the file is cut off: it has {len(log.read_bytes())} of ")


def test_a_log_file_that_is_cut_off_matters_to_versions_with_it_only(
    golden: Callable[[str], Path], connect: Connect
) -> None:
    table = golden(g.TRIPS)
    log = g.log_file(table, "city=sao_paulo/.*_20251220210130911.log.*")
    log.write_bytes(log.read_bytes()[:500])
    connection = connect(table)
    assert connection.execute("SELECT count(*) FROM t VERSION AS OF 20251220210129235").fetchone() == (6,)
    with pytest.raises(lakedbapi.DataError, match="cut off"):
        connection.execute("SELECT count(*) FROM t")
    assert connect(table, read_optimized=True).execute("SELECT count(*) FROM t").fetchone() == (6,)


def test_a_log_file_of_garbage(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.TRIPS)
    log = g.log_file(table, "city=sao_paulo/.*_20251220210130911.log.*")
    log.write_bytes(b"garbage" + log.read_bytes())
    with pytest.raises(lakedbapi.DataError, match=r"city=sao_paulo/.*Invalid magic"):
        connect(table).execute("SELECT * FROM t")


def test_a_base_file_that_is_cut_off(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.COW)
    path = _base_file(table, SECOND)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(lakedbapi.DataError, match=f"{path}: the file is cut off: it has 1000 of 441520 bytes"):
        connect(table).execute("SELECT * FROM t")


def test_a_base_file_of_garbage(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.COW)
    path = _base_file(table, SECOND)
    path.write_bytes(b"x" * len(path.read_bytes()))
    with pytest.raises(lakedbapi.DataError, match=str(path)):
        connect(table).execute("SELECT * FROM t").fetchall()


def test_a_file_that_is_listed_but_gone(golden: Callable[[str], Path], connect: Connect) -> None:
    """Newer tables list their files in a metadata table."""
    table = golden(g.TRANSACTIONS)
    (path,) = table.glob("region=us/6d0f5b25*.parquet")
    path.unlink()
    with pytest.raises(lakedbapi.OperationalError, match=path.name):
        connect(table).execute("SELECT * FROM t").fetchall()


def test_a_damaged_commit(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.COW)
    (table / ".hoodie" / f"{SECOND}.commit").write_text("{")
    with pytest.raises(lakedbapi.DataError, match=f"commit of {SECOND}"):
        connect(table).execute("SELECT * FROM t")


def test_a_damaged_schema(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.COW)
    path = table / ".hoodie" / f"{SECOND}.commit"
    commit = json.loads(path.read_text())
    commit["extraMetadata"]["schema"] = '{"type": "record"}'
    path.write_text(json.dumps(commit))
    with pytest.raises(lakedbapi.DataError, match="its table schema is no Avro record"):
        connect(table).execute("SELECT * FROM t")


def test_a_broken_table_does_not_keep_others_from_being_read(
    golden: Callable[[str], Path], golden_tables: Callable[[str], Path], connect: Connect
) -> None:
    table = golden(g.COW)
    shutil.copytree(golden_tables(g.TRIPS), table.parent / "trips")
    g.set_properties(table, "hoodie.table.type")
    connection = connect(table.parent)
    assert connection.execute("SHOW TABLES").fetchall() == [("trips",)]
    assert connection.execute("SELECT count(t) FROM (SELECT uuid AS t FROM trips)").fetchone() == (6,)
    with pytest.raises(lakedbapi.DataError, match=r"it has no hoodie.table.type"):
        connection.execute("SELECT * FROM t")
