"""Tables that Spark, Trino, Athena, DuckDB, pyiceberg and others wrote."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakedbapi

Golden = Callable[[str], Path]


def rows(metadata: Path, file: str, sql: str = "SELECT * FROM {t}", at: int | None = None) -> list[tuple[Any, ...]]:
    """Sorted; `{t}` is the table, at the snapshot `at`."""
    (path,) = metadata.glob(f"{file}metadata.json" if file.startswith("v") else f"{file}*.metadata.json")
    table = f'"{metadata.parent.name}"'
    if at is not None:
        table += f" FOR VERSION AS OF {at}"
    with lakedbapi.connect(f"iceberg:///{path}") as connection:
        cursor = connection.cursor()
        cursor.execute(sql.format(t=table))
        return sorted(cursor.fetchall(), key=str)


@pytest.mark.parametrize(
    ("snapshot", "ids"),
    [
        (853766660775201079, [1, 2, 3, 4]),
        (1584331123492059582, [3, 4]),
        (842401149381792626, [4]),
        (3340507003387467420, [4, 5, 6]),
        (1916084761853986166, [4, 5]),
    ],
)
def test_equality_deletes_by_snapshot(golden: Golden, snapshot: int, ids: list[int]) -> None:
    found = rows(golden("equality_deletes"), "v7.", at=snapshot)
    assert [row[0] for row in found] == ids


def test_equality_deletes_now(golden: Golden) -> None:
    assert [row[:2] for row in rows(golden("equality_deletes"), "v7.")] == [(4, "d"), (5, "e")]


def test_a_missing_manifest_list_is_named(golden: Golden) -> None:
    with pytest.raises(lakedbapi.OperationalError, match="snap-7342794868382145167"):
        rows(golden("equality_deletes"), "v7.", at=7342794868382145167)


def test_an_equality_delete_keeps_to_its_partition(golden: Golden) -> None:
    metadata = golden("equality_delete_cross_partition")
    found = [row[:2] for row in rows(metadata, "vfinal.")]
    assert found == [(0, 999), (1, 100), (1, 888)]
    assert len(rows(metadata, "vfinal.", at=4327154639183968397)) == 4


def test_a_deletion_vector_without_container_is_found_by_its_place(golden: Golden) -> None:
    metadata = golden("legacy_bare_deletion_vector")
    assert [row[0] for row in rows(metadata, "00002-")] == [1, 3]
    assert [row[0] for row in rows(metadata, "00001-")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("file", "counts", "at"),
    [
        ("v7.", (10_000, 10_000, 0), None),
        ("v3.2.", (10_000, 0, 0), 6597550917742534971),
        ("v3.", (10_000, 10_000, 10_000), 6597550917742534971),
        ("v3.1.", (10_000, 10_000, 0), 6597550917742534971),
        ("v4.", (10_000, None, 10_000), 6597550917742534971),
        ("v4.1.", (10_000, None, 0), 6597550917742534971),
    ],
)
def test_files_without_ids_are_read_by_the_name_mapping(
    golden: Golden, file: str, counts: tuple[int | None, ...], at: int | None
) -> None:
    metadata = golden("name_mapping")
    if file.startswith("v4"):
        counted = rows(metadata, file, "SELECT count(*), count(b) FROM {t}", at)
        assert counted == [(counts[0], counts[2])]
    else:
        assert rows(metadata, file, "SELECT count(*), count(a), count(b) FROM {t}", at) == [counts]


def test_a_name_mapping_that_is_none_is_refused(golden: Golden) -> None:
    with pytest.raises(lakedbapi.DataError, match="name mapping of main"):
        rows(golden("name_mapping"), "v2.")


def test_columns_added_with_defaults(golden: Golden) -> None:
    found = rows(golden("add_columns_with_defaults"), "00003-")
    assert len(found) == 3
    old = [row for row in found if row[1:4] == (True, 342342, -(2**63))]
    assert len(old) == 2
    assert old[0][6:9] == (Decimal("12345.00"), datetime.date(2003, 10, 20), datetime.time(0, 0, 0, 12345))


def test_fields_added_to_a_struct_with_defaults(golden: Golden) -> None:
    found = [row[0] for row in rows(golden("add_columns_with_defaults_in_struct"), "00003-")]
    assert sorted((value["col_boolean"], value["col_integer"]) for value in found) == [(False, 453243), (True, 342342)]


UTC = datetime.timezone.utc


@pytest.mark.parametrize(
    ("name", "file", "values"),
    [
        ("partition_integer", "v2.", [42, 1337]),
        ("partition_bigint", "v2.", [-(2**63), 2**63 - 1]),
        ("partition_bool", "v2.", [False, True]),
        ("partition_binary", "v2.", [b"\x01\x02\x03", b"\xaa\xbb\xcc"]),
        ("partition_double", "v2.", [pytest.approx(2.7182817), pytest.approx(3.1415927)]),
        ("partition_decimal_integer", "v2.", [Decimal("1.2300"), Decimal("42.5630"), Decimal("1234.5432")]),
        ("partition_time", "00001-", [datetime.time(8, 21, 9), datetime.time(12, 34, 56)]),
        (
            "partition_timestamp",
            "00001-",
            [datetime.datetime(2023, 5, 15, 14, 30, 45), datetime.datetime(2023, 8, 22, 9, 15, 20)],
        ),
        (
            "partition_timestamptz",
            "00001-",
            [
                datetime.datetime(2023, 5, 15, 14, 30, 45, tzinfo=UTC),
                datetime.datetime(2023, 8, 22, 9, 15, 20, tzinfo=UTC),
            ],
        ),
    ],
)
def test_partition_columns_that_files_lack(golden: Golden, name: str, file: str, values: list[Any]) -> None:
    metadata = golden(name)
    assert sorted(row[0] for row in rows(metadata, file, "SELECT partition_col FROM {t}")) == values
    for value in values:
        expected = value.expected if hasattr(value, "expected") else value
        if isinstance(expected, float):
            continue  # A float that was widened is no such literal.
        (path,) = metadata.glob(f"{file}metadata.json" if file.startswith("v") else f"{file}*.metadata.json")
        with lakedbapi.connect(f"iceberg:///{path}") as connection:
            cursor = connection.cursor()
            cursor.execute(f'SELECT count(*) FROM "{metadata.parent.name}" WHERE partition_col = ?', (value,))
            assert cursor.fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("name", "file", "count"),
    [
        ("partition_decimal_bigint", "v2.", 10),
        ("hive_partitioned_table", "v4.", 6),
        ("case_sensitive_names", "00001-", 3),
        ("column_mapping", "00001-", 3),
        ("expression_filter", "00001-", 3),
        ("is_null_is_not_null", "00001-", 8),
        ("uuid", "00001-", 10),
        ("map_stats", "00002-", 2),
        ("custom_write_paths", "00000-", 0),
    ],
)
def test_row_counts(golden: Golden, name: str, file: str, count: int) -> None:
    metadata = golden(name)
    assert len(rows(metadata, file)) == count
    assert rows(metadata, file, "SELECT count(*) FROM {t}") == [(count,)]


def test_nulls_are_pruned_rightly(golden: Golden) -> None:
    metadata = golden("is_null_is_not_null")
    (column,) = [row[0] for row in rows(metadata, "00001-", "DESCRIBE {t}") if row[0] != "id"]
    assert [row[0] for row in rows(metadata, "00001-", f"SELECT id FROM {{t}} WHERE {column} IS NULL")] == [1, 2, 3, 7]


def test_lineitem_of_spark_with_deletes(golden: Golden) -> None:
    metadata = golden("iceberg_lineitem_iceberg")
    sql = "SELECT count(*), sum(l_orderkey), count(DISTINCT l_orderkey) FROM {t}"
    assert rows(metadata, "v2.", sql) == [(51_793, 1_553_321_902, 14_670)]
    sql = "SELECT count(*), sum(l_orderkey) FROM {t}"
    assert rows(metadata, "v2.", sql, 7817332053627255703) == [(60_175, 1_802_759_573)]


def test_the_newest_metadata_of_a_directory_counts(golden: Golden) -> None:
    metadata = golden("equality_deletes")
    for location, name in ((metadata.parent, "mytable"), (metadata.parent.parent.parent, "mydb.mytable")):
        with lakedbapi.connect(f"iceberg:///{location}") as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT count(*) FROM {name}")
            assert cursor.fetchall() == [(2,)]
