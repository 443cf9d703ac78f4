"""Partition values are those of the log, whatever directories are called."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakedbapi.errors import DataError, IntegrityError, NotSupportedError
from tests.formats.delta.committed import commit, of_kind
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import DV, Table

UTC = datetime.timezone.utc
INSTANT = datetime.datetime(2021, 5, 6, 7, 8, 9, 123456, UTC)
NAN = float("nan")


def value(connect: Connect, directory: Path, type: str, text: str | None) -> Any:
    """The partition value that a row has, by its text in the log."""
    table = Table(directory / "t").create([("i", "long"), ("p", type)], ["p"])
    table.commit(table.file("p=misleading/a.parquet", [1], partitionValues={"p": text}))
    [(found,)] = connect(table.path).execute("SELECT p FROM t").fetchall()
    return found


@pytest.mark.parametrize(
    ("type", "text", "expected"),
    [
        ("string", "x=y/%2F é", "x=y/%2F é"),
        ("string", "", None),
        ("string", None, None),
        ("long", "-9223372036854775808", -(1 << 63)),
        ("integer", "01", 1),
        ("short", "-5", -5),
        ("byte", "127", 127),
        ("float", "1.5", 1.5),
        ("double", "1.0E20", 1e20),
        ("double", "100000000000000000000", 1e20),
        ("double", "-Infinity", float("-inf")),
        ("double", "inf", float("inf")),
        ("decimal(12,5)", "-2342342.23423", Decimal("-2342342.23423")),
        ("decimal(12,5)", "1E+2", Decimal("100.00000")),
        ("decimal(4,2)", "1.5", Decimal("1.50")),
        (
            "decimal(38,10)",
            "9999999999999999999999999999.9999999999",
            Decimal("9999999999999999999999999999.9999999999"),
        ),
        ("decimal(4,2)", "12.500", Decimal("12.50")),
        ("decimal(4,2)", "1.555", Decimal("1.56")),
        ("binary", "é€", "é€".encode()),
        ("boolean", "TRUE", True),
        ("boolean", "false", False),
        ("date", "2021-05-06", datetime.date(2021, 5, 6)),
        ("date", "0001-01-01", datetime.date(1, 1, 1)),
        ("date", " 2021-05-06 ", datetime.date(2021, 5, 6)),
        ("date", "1969-12-30 12:00:00", datetime.date(1969, 12, 30)),
        ("timestamp", "2021-05-06T07:08:09.123456Z", INSTANT),
        ("timestamp", "2021-05-06 07:08:09.123456", INSTANT),
        ("timestamp", "2021-05-06 07:08:09.123456+00", INSTANT),
        ("timestamp", "2021-05-06T09:08:09.123456+02:00", INSTANT),
        ("timestamp", "2021-05-06 09:08:09.123456+0200", INSTANT),
        ("timestamp", "2021-05-05T23:38:09.123456-07:30", INSTANT),
        ("timestamp", "2021-05-06 08:10:12.123456+01:02:03", INSTANT),
        ("timestamp", "2021-05-06t07:08:09.123456 utc", INSTANT),
        ("timestamp", "2021-05-06 00:00:00", datetime.datetime(2021, 5, 6, tzinfo=UTC)),
        ("timestamp", "9999-12-31T23:59:59.999999Z", datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
        ("timestamp_ntz", "2021-05-06 07:08:09.123456", INSTANT.replace(tzinfo=None)),
        ("timestamp_ntz", "2021-05-06T07:08:09", datetime.datetime(2021, 5, 6, 7, 8, 9)),
    ],
)
def test_texts_of_all_writers_are_understood(
    connect: Connect, tmp_path: Path, type: str, text: str | None, expected: Any
) -> None:
    assert value(connect, tmp_path, type, text) == expected


def test_nan_is_a_value(connect: Connect, tmp_path: Path) -> None:
    assert str(value(connect, tmp_path, "double", "NaN")) == "nan"


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("integer", "x"),
        ("byte", "128"),
        ("date", "10000-01-01"),
        ("timestamp", "noon"),
        ("decimal(4,2)", "123.45"),
        ("decimal(4,2)", "x"),
    ],
)
def test_a_text_that_is_no_value_is_named(connect: Connect, tmp_path: Path, type: str, text: str) -> None:
    with pytest.raises(DataError, match=r"column 'p',? has .*partition value"):
        value(connect, tmp_path, type, text)


def test_a_missing_key_is_null(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create([("i", "long"), ("p", "string")], ["p"])
    table.commit(table.file("a.parquet", [1]))
    assert connect(table.path).execute("SELECT i, p FROM t").fetchall() == [(1, None)]


@pytest.mark.parametrize("given", [None, {}, {"q": "x"}], ids=["none", "empty", "part"])
@pytest.mark.parametrize("tracked", ["false", "true"])
def test_a_missing_key_is_there_when_the_file_is_added_again(
    connect: Connect, tmp_path: Path, given: dict[str, str] | None, tracked: str
) -> None:
    """Other readers ask for it."""
    columns = [("i", "long"), ("p", "long"), ("q", "string")]
    table = Table(tmp_path / "t").create(columns, ["p", "q"], DV, delta_enableDeletionVectors="true")
    table.commit(table.file("a.parquet", range(1000), partitionValues=given))
    lake = connect(tmp_path, autocommit=True)
    if tracked == "true":
        lake.execute("ALTER TABLE t SET ('delta.enableRowTracking' = 'true')")
        (again,) = of_kind(commit(table.path), "add")
        assert again["partitionValues"] == {"p": None, "q": (given or {}).get("q")}
    assert lake.execute("DELETE FROM t WHERE i = 5 AND p IS NULL").rowcount == 1
    (add,) = of_kind(commit(table.path), "add")
    assert "deletionVector" in add
    assert add["partitionValues"] == {"p": None, "q": (given or {}).get("q")}
    assert lake.execute("SELECT count(*), count(q) FROM t").fetchone() == (999, 999 if given else 0)


def test_a_column_in_the_file_does_not_count(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create([("i", "long"), ("p", "string")], ["p"])
    rows = pa.table({"i": [1], "p": ["of the file"]})
    table.commit(table.file("a.parquet", rows, partitionValues={"p": "of the log"}))
    assert connect(table.path).execute("SELECT p FROM t").fetchall() == [("of the log",)]


def test_names_are_found_in_any_case(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create([("I", "long"), ("P", "string")], ["P"])
    table.commit(table.file("a.parquet", [1], partitionValues={"P": "x"}))
    assert connect(table.path).execute("SELECT i, p FROM T").fetchall() == [(1, "x")]


def test_files_are_pruned_by_typed_values(connect: Connect, tmp_path: Path) -> None:
    table = Table(tmp_path / "t").create([("i", "long"), ("p", "timestamp")], ["p"])
    texts = ["2020-01-01 00:00:00", "2020-01-01T00:00:00.000000Z", "2020-01-02 00:00:00", None]
    for number, text in enumerate(texts):
        table.commit(table.file(f"{number}.parquet", [number], partitionValues={"p": text}))
    connection = connect(table.path)
    query = "SELECT i FROM t WHERE p = TIMESTAMPTZ '2020-01-01 00:00:00+00' ORDER BY i"
    assert connection.execute(query).fetchall() == [(0,), (1,)]
    assert "2 of 4 data files read" in str(connection.execute(f"EXPLAIN {query}").fetchone())
    assert "1 of 4" in str(connection.execute("EXPLAIN SELECT i FROM t WHERE p IS NULL").fetchone())


def test_null_and_the_empty_text_are_one_partition(tmp_path: Path, connect: Connect) -> None:
    """Of files that spell it in both ways, `IS NULL` finds, changes and deletes all rows."""
    table = Table(tmp_path / "t").create([("i", "long"), ("p", "string")], ["p"])
    for name, text in (("a", None), ("b", ""), ("c", "x")):
        table.commit(table.file(f"{name}.parquet", [ord(name)], partitionValues={"p": text}))
    lake = connect(tmp_path, autocommit=True)
    assert lake.execute("SELECT count(*) FROM t WHERE p = ''").fetchall() == [(0,)]
    assert lake.execute("UPDATE t SET i = i + 1000 WHERE p IS NULL").rowcount == 2
    assert lake.execute("SELECT i FROM t WHERE p IS NULL ORDER BY i").fetchall() == [(1097,), (1098,)]
    lake.execute("INSERT INTO t VALUES (1, '')")
    assert lake.execute("DELETE FROM t WHERE p IS NULL").rowcount == 3
    assert lake.execute("SELECT * FROM t").fetchall() == [(99, "x")]


def test_an_empty_text_is_written_anew_as_null(tmp_path: Path, connect: Connect) -> None:
    table = Table(tmp_path / "t").create([("i", "long"), ("p", "string")], ["p"])
    for name in ("a", "b"):
        table.commit(table.file(f"{name}.parquet", [ord(name)], partitionValues={"p": ""}))
    connect(tmp_path, autocommit=True).execute("OPTIMIZE t")
    (add,) = of_kind(commit(table.path), "add")
    assert add["partitionValues"] == {"p": None}


def test_an_empty_text_is_null_from_the_statement_on(tmp_path: Path, connect: Connect) -> None:
    """A log cannot tell them apart, so that constraints and generated columns must not see the text."""
    lake = connect(tmp_path / "lake")
    lake.execute(
        "CREATE TABLE t (k VARCHAR, s VARCHAR, g VARCHAR GENERATED ALWAYS AS (coalesce(k, 'none'))) PARTITIONED BY (k)"
    )
    lake.execute("INSERT INTO t (k, s) VALUES ('', ''), ('x', 'z')")
    before = lake.execute("SELECT * FROM t ORDER BY k").fetchall()
    assert before == [("x", "z", "x"), (None, "", "none")]
    assert lake.execute("UPDATE t SET k = '' WHERE k = 'x' RETURNING k, g").fetchall() == [(None, "none")]
    lake.execute("MERGE INTO t USING (SELECT '' AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)")
    inside = lake.execute("SELECT * FROM t ORDER BY ALL").fetchall()
    assert [row[0] for row in inside] == [None, None, None]
    lake.commit()
    assert lake.execute("SELECT * FROM t ORDER BY ALL").fetchall() == inside


@pytest.mark.parametrize("constraint", ["k VARCHAR NOT NULL", "k VARCHAR CHECK (k IS NOT NULL)"])
@pytest.mark.parametrize(
    "change", ["INSERT INTO t VALUES (1, '')", "UPDATE t SET k = ''", "INSERT INTO t SELECT i, '' FROM range(9) r(i)"]
)
def test_an_empty_text_violates_what_null_does(tmp_path: Path, connect: Connect, constraint: str, change: str) -> None:
    lake = connect(tmp_path / "lake")
    lake.execute(f"CREATE TABLE t (i INTEGER, {constraint}) PARTITIONED BY (k)")
    lake.execute("INSERT INTO t VALUES (0, 'x')")
    with pytest.raises(IntegrityError, match="NULL"):
        lake.execute(change)
    assert lake.execute("SELECT * FROM t").fetchall() == [(0, "x")]


def test_a_table_is_not_partitioned_by_bytes(connect: Connect, tmp_path: Path) -> None:
    """No text for them means the same to all readers."""
    lake = connect(tmp_path, autocommit=True)
    with pytest.raises(NotSupportedError, match="cannot be partitioned by 'b': a BLOB has no text"):
        lake.execute("CREATE TABLE t (i INTEGER, b BLOB) PARTITIONED BY (b)")
