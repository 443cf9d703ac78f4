"""Base files with log files: which version of a row wins, and columns that came later."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakedbapi
from tests.formats.hudi import golden as g
from tests.formats.hudi.conftest import Connect
from tests.formats.hudi.logs import LogFile

FIRST, SECOND = "20250117083125837", "20250117083136333"
_MERGER = (
    "hoodie.table.precombine.field",
    "hoodie.compaction.payload.class",
    "hoodie.compaction.record.merger.strategy",
)


@pytest.mark.parametrize(
    ("values", "wins"),
    [
        ({"hoodie__record__merge__mode": "COMMIT_TIME_ORDERING"}, False),
        ({"hoodie__record__merge__mode": "EVENT_TIME_ORDERING"}, True),
        ({"hoodie__compaction__payload__class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"}, False),
        ({"hoodie__compaction__payload__class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}, True),
    ],
)
def test_the_later_row_or_the_greater_one_wins(
    values: dict[str, str], wins: bool, golden: Callable[[str], Path], connect: Connect
) -> None:
    """The log file sets `isActive` of row 1 from true to false."""
    table = golden(g.MOR)
    g.set_properties(table, *_MERGER, hoodie__table__precombine__field="isActive", **values)
    assert connect(table).execute("SELECT isActive FROM t WHERE id = 1").fetchall() == [(wins,)]


def test_without_an_ordering_field_the_later_row_wins(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.MOR)
    g.set_properties(table, *_MERGER)
    rows = connect(table).execute("SELECT id, isActive FROM t ORDER BY id").fetchall()
    assert rows == [(1, False), (2, False), (3, True), (4, True)]


def test_conditions_see_merged_rows_only(golden: Callable[[str], Path], connect: Connect) -> None:
    connection = connect(golden(g.MOR))
    assert connection.execute("SELECT id FROM t WHERE isActive ORDER BY id").fetchall() == [(3,), (4,)]
    assert connection.execute("SELECT count(*) FROM t WHERE id = 1 AND isActive").fetchone() == (0,)


@pytest.mark.parametrize("name", ["ABC", "a,b", "it's", "%", None])
def test_conditions_of_any_kind_are_checked_by_the_engine(
    name: str | None, golden: Callable[[str], Path], connect: Connect
) -> None:
    """Filters of hudi-rs know no OR, no LIKE, no NULL."""
    table = golden(g.MOR)
    log = LogFile.read(g.log_file(table))
    log.rows = log.rows.set_column(log.rows.schema.get_field_index("name"), "name", pa.array([name], pa.string()))
    log.write()
    _note_size(table, log.path)
    connection = connect(table)
    found = connection.execute("SELECT id FROM t WHERE name IS NOT DISTINCT FROM ? OR id < 0", [name]).fetchall()
    assert found == [(1,)]
    others = connection.execute("SELECT count(*) FROM t WHERE name <> ?", [name]).fetchone()
    assert others == (0 if name is None else 3,)


def test_a_column_that_came_with_the_log_file(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.MOR)
    extra = {"name": "extra", "type": ["null", "string"], "default": None}
    log = LogFile.read(g.log_file(table))
    log.rows = log.rows.append_column("extra", pa.array(["new"], pa.string()))
    log.schema["fields"].append(extra)
    log.write()
    _note_size(table, log.path)
    _change_schema(table, lambda fields: [*fields, extra])
    connection = connect(table)
    rows = connection.execute("SELECT id, extra FROM t ORDER BY id").fetchall()
    assert rows == [(1, "new"), (2, None), (3, None), (4, None)]
    assert connection.execute("DESCRIBE t").fetchall()[-1][0] == "extra"
    earlier = connection.execute(f"SELECT * FROM t VERSION AS OF {FIRST} ORDER BY id")
    assert [column[0] for column in earlier.description or ()][-1] == "structField"
    assert len(earlier.fetchall()) == 3


def test_a_column_that_was_dropped_later_is_refused_in_merged_versions(
    golden: Callable[[str], Path], connect: Connect
) -> None:
    table = golden(g.MOR)
    _change_schema(table, lambda fields: [column for column in fields if column["name"] != "doubleField"])
    connection = connect(table)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (4,)
    with pytest.raises(lakedbapi.NotSupportedError, match="column 'doubleField' was dropped later"):
        connection.execute(f"SELECT * FROM t VERSION AS OF {FIRST}")


def test_a_column_that_files_have_as_a_narrower_type(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.MOR)
    widened = {"name": "intField", "type": ["null", "long"], "default": None}
    _change_schema(table, lambda fields: [widened if column["name"] == "intField" else column for column in fields])
    rows = connect(table).execute("SELECT typeof(intField), intField FROM t ORDER BY id").fetchall()
    assert rows == [("BIGINT", value) for value in (15000, 25000, 35000, 45000)]


def test_a_slice_without_a_base_file(golden: Callable[[str], Path], connect: Connect) -> None:
    """As writers with an index over log files make them."""
    table = golden(g.MOR)
    log = g.log_file(table)
    (base,) = table.glob("d206069c-*.parquet")
    base.unlink()
    for instant in (FIRST, SECOND):
        path = table / ".hoodie" / f"{instant}.deltacommit"
        commit = json.loads(path.read_text())
        for partition, writes in commit["partitionToWriteStats"].items():
            kept = [write for write in writes if not write["path"].endswith(base.name)]
            commit["partitionToWriteStats"][partition] = kept
        path.write_text(json.dumps(commit))
    connection = connect(table)
    rows = connection.execute("SELECT id, isActive, filename FROM t ORDER BY id").fetchall()
    assert [row[:2] for row in rows] == [(1, False), (4, True)]
    assert rows[0][2] == str(log)
    assert connect(table, read_optimized=True).execute("SELECT id FROM t").fetchall() == [(4,)]


def test_explain_tells_what_is_merged(golden: Callable[[str], Path], connect: Connect) -> None:
    (first, *_) = connect(golden(g.MOR)).execute("EXPLAIN SELECT * FROM t").fetchall()
    assert first == ("lake.main.t: 2 of 2 data files read; 1 of them merged with their log files",)


def test_log_files_are_listed(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.MOR)
    rows = connect(table).execute("SELECT data_file, path, format FROM delete_files('t')").fetchall()
    (base,) = table.glob("d206069c-*.parquet")
    assert rows == [(str(base), str(g.log_file(table)), "hudi log")]


def test_merged_rows_tell_their_file(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.MOR)
    files = connect(table).execute("SELECT DISTINCT filename FROM t").fetchall()
    assert {path for (path,) in files} == {str(path) for path in table.glob("*.parquet")}


def test_meta_columns_are_shown_on_request(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.MOR)
    names = [row[0] for row in connect(table).execute("DESCRIBE t").fetchall()]
    assert not any(name.startswith("_hoodie") for name in names)
    shown = connect(table, meta_columns=True)
    assert [row[0] for row in shown.execute("DESCRIBE t").fetchall()][5:] == names
    rows = shown.execute("SELECT _hoodie_record_key, _hoodie_commit_time FROM t ORDER BY 1").fetchall()
    assert rows == [("1", SECOND), ("2", FIRST), ("3", FIRST), ("4", SECOND)]


def test_meta_columns_can_be_named(
    golden: Callable[[str], Path], golden_tables: Callable[[str], Path], connect: Connect
) -> None:
    table = golden(g.MOR)
    shutil.copytree(golden_tables(g.TRIPS_DELETED), table.parent / "trips")
    connection = connect(table.parent)
    rows = connection.execute("SELECT t._HOODIE_COMMIT_TIME, id FROM t ORDER BY id").fetchall()
    assert rows == [(SECOND, 1), (FIRST, 2), (FIRST, 3), (SECOND, 4)]
    found = connection.execute(f"SELECT count(*) FROM t WHERE _hoodie_commit_time > '{FIRST}'").fetchone()
    assert found == (2,)
    plain = connection.execute("SELECT * FROM t").description or ()
    both = connection.execute("SELECT *, _hoodie_record_key AS key, filename AS file FROM t").description or ()
    assert [column[0] for column in both] == [*(column[0] for column in plain), "key", "file"]
    assert connection.execute("SELECT _hoodie_partition_path FROM trips LIMIT 1").fetchone() is not None
    g.set_properties(table, hoodie__populate__meta__fields="false")
    connection.rollback()
    with pytest.raises(lakedbapi.ProgrammingError, match="_hoodie_record_key"):
        connection.execute("SELECT _hoodie_record_key FROM t")


def test_tables_without_meta_columns_show_none(golden: Callable[[str], Path], connect: Connect) -> None:
    table = golden(g.COW)
    g.set_properties(table, hoodie__populate__meta__fields="false")
    names = [row[0] for row in connect(table, meta_columns=True).execute("DESCRIBE t").fetchall()]
    assert names[0] == "id"


def _change_schema(table: Path, change: Callable[[list[Any]], list[Any]]) -> None:
    """Let the newest commit have another schema."""
    path = table / ".hoodie" / f"{SECOND}.deltacommit"
    commit = json.loads(path.read_text())
    schema = json.loads(commit["extraMetadata"]["schema"])
    schema["fields"] = change(schema["fields"])
    commit["extraMetadata"]["schema"] = json.dumps(schema)
    path.write_text(json.dumps(commit))


def _note_size(table: Path, log: Path) -> None:
    """Let the newest commit know the size of a log file that was written anew."""
    path = table / ".hoodie" / f"{SECOND}.deltacommit"
    commit = json.loads(path.read_text())
    for writes in commit["partitionToWriteStats"].values():
        for write in writes:
            if write["path"].endswith(log.name):
                write["fileSizeInBytes"] = log.stat().st_size
    path.write_text(json.dumps(commit))
