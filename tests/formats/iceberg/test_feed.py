"""What changed between snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from tests.formats.iceberg.building import Table
from tests.formats.iceberg.columns import ID, PART, identity


def changes(table: Table, first: int | str, last: int | str) -> list[tuple[Any, ...]]:
    return table.rows(f"SELECT snapshot_id, change_type, id FROM table_changes('t', {first}, {last})")


def test_appends_and_removed_files(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    a, b = table.data({"id": [1, 2]}), table.data({"id": [3]})
    first = table.commit(a)
    second = table.commit(b)
    third = table.commit(removed=[a], operation="delete")
    assert changes(table, first, third) == [
        (first, "insert", 1),
        (first, "insert", 2),
        (second, "insert", 3),
        (third, "delete", 1),
        (third, "delete", 2),
    ]
    assert changes(table, second, second) == [(second, "insert", 3)]
    assert table.rows(f"SELECT id FROM table_deletions('t', {first}, {third})") == [(1,), (2,)]
    assert table.rows(f"SELECT id FROM table_insertions('t', {second}, {third})") == [(3,)]


@pytest.mark.parametrize("version", [2, 3])
def test_rows_deleted_by_position(tmp_path: Path, version: int) -> None:
    table = Table(tmp_path, ID, version=version)
    data = table.data({"id": [1, 2, 3, 4]})
    first = table.commit(data)
    old = table.positions({data: [0]}) if version == 2 else table.vectors({data: [0]})
    second = table.commit(old, operation="delete")
    if version == 2:
        third = table.commit(table.positions({data: [1]}), operation="delete")
    else:
        third = table.commit(table.vectors({data: [0, 1]}), removed=old, operation="delete")
    assert changes(table, second, third) == [(second, "delete", 1), (third, "delete", 2)]
    fourth = table.commit(removed=[data], operation="delete")
    assert changes(table, fourth, fourth) == [(fourth, "delete", 3), (fourth, "delete", 4)]
    assert len(changes(table, first, fourth)) == 8


def test_compaction_changes_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    a, b = table.data({"id": [1]}), table.data({"id": [2]})
    first = table.commit(a, b)
    last = table.commit(table.data({"id": [1, 2]}, number=1), removed=[a, b], operation="replace")
    assert changes(table, first, last) == [(first, "insert", 1), (first, "insert", 2)]


def test_equality_deletes_are_refused_where_they_hit(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    first = table.commit(table.data({"id": [1]}))
    second = table.commit(table.equality({"id": [1]}, [1]), operation="delete")
    third = table.commit(table.data({"id": [5]}))
    with pytest.raises(lakedbapi.NotSupportedError, match="equality deletes"):
        changes(table, first, second)
    assert changes(table, third, third) == [(third, "insert", 5)]


def test_equality_deletes_of_another_partition_are_none_of_a_files(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, PART)
    table.partition((2, identity()))
    table.commit(table.data({"id": [1], "p": [0]}, (0,)))
    second = table.commit(table.equality({"id": [1]}, [1], (7,)), operation="delete")
    assert changes(table, second, second) == []


def test_bounds(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    first, second = table.commit(table.data({"id": [1]})), table.commit(table.data({"id": [2]}))
    assert changes(table, "'2000-01-01'", second) == [(first, "insert", 1), (second, "insert", 2)]
    assert changes(table, "'2990-01-01'", second) == []
    with pytest.raises(lakedbapi.ProgrammingError, match=f"snapshot 77 of table main.t is none that {second}"):
        changes(table, 77, second)
    table.snapshots.pop(0)
    with pytest.raises(lakedbapi.ProgrammingError, match="has been expired"):
        changes(table, second, second)


def test_metadata_tables(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, PART)
    table.partition((2, identity()))
    first = table.commit(table.data({"id": [1, 2], "p": [0, 0]}, (0,)), table.data({"id": [3], "p": [None]}, (None,)))
    table.commit(table.equality({"id": [1]}, [1], (0,)), operation="delete")
    table.refs["v1"] = {"snapshot-id": first, "type": "tag"}
    assert table.rows("SELECT content, added_files_count, existing_files_count FROM manifests('t')") == [
        ("data", 0, 2),
        ("deletes", 1, 0),
    ]
    assert table.rows(
        "SELECT partition['p1000'], record_count, file_count, delete_file_count FROM partitions('t')"
    ) == [
        ("0", 2, 1, 1),
        (None, 1, 1, 0),
    ]
    assert table.rows("SELECT name, type, snapshot_id FROM refs('t')") == [
        ("main", "branch", first + 1),
        ("v1", "tag", first),
    ]
    assert [row[0] for row in table.rows("SELECT snapshot_id FROM history('t')")] == [first, first + 1]
