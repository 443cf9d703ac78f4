"""What changed between snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakedbapi
from tests.formats.iceberg.building import Table
from tests.formats.iceberg.columns import ID, KEY, PART, identity


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


def test_rows_deleted_by_value(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    data = table.data({"id": [1, 2, 3, 4], "k": ["a", "b", None, "a"]})
    first = table.commit(data, table.data({"id": [5], "k": ["z"]}))
    second = table.commit(
        table.equality({"k": ["a", None]}, [2]), table.data({"id": [6], "k": ["a"]}), operation="overwrite"
    )
    assert changes(table, second, second) == [
        (second, "delete", 1),
        (second, "delete", 3),
        (second, "delete", 4),
        (second, "insert", 6),
    ]
    third = table.commit(table.equality({"k": ["a", "b"]}, [2]), operation="delete")
    assert changes(table, third, third) == [(third, "delete", 2), (third, "delete", 6)]
    assert len(changes(table, first, third)) == 11
    fourth = table.commit(removed=[data], operation="delete")
    assert changes(table, fourth, fourth) == []


@pytest.mark.parametrize("version", [2, 3])
def test_a_row_that_several_deletes_hit_is_told_once(tmp_path: Path, version: int) -> None:
    """By position, by one key and by another, of its partition and of all."""
    table = Table(tmp_path, ID, PART, version=version)
    table.partition((2, identity()))
    data = table.data({"id": [1, 2, 3, 4, 5], "p": [0, 0, 0, 0, 0]}, (0,))
    other = table.data({"id": [2, 4], "p": [1, 1]}, (1,))
    table.commit(data, other)
    positions = table.vectors({data: [0]}) if version == 3 else [table.positions({data: [0]})]
    second = table.commit(
        *positions,
        table.equality({"id": [1, 2]}, [1], (0,)),
        table.equality({"id": [2, 3], "p": [0, 0]}, [2, 1], (0,)),
        table.equality({"id": [4]}, [1], (1,)),
        table.equality({"id": [2, 5]}, [1], spec=0),
        operation="delete",
    )
    assert changes(table, second, second) == [(second, "delete", id) for id in (1, 2, 2, 3, 4, 5)]
    assert table.ids() == [4]


def test_an_equality_delete_that_goes_brings_rows_back(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    data = table.data({"id": [1, 2, 3], "k": ["a", "a", "b"]})
    table.commit(data)
    by_key, by_id = table.equality({"k": ["a"]}, [2]), table.equality({"id": [1]}, [1])
    table.commit(by_key, by_id, table.positions({data: [2]}))
    third = table.commit(removed=[by_key], operation="overwrite")
    assert changes(table, third, third) == [(third, "insert", 2)]


def test_keys_that_were_dropped_tell_deleted_rows(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1, 2], "k": ["a", "b"]}))
    second = table.commit(table.equality({"k": ["a"]}, [2]), operation="delete")
    table.evolve(ID)
    assert changes(table, second, second) == [(second, "delete", 1)]


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


def test_metadata_tables_are_those_of_pyiceberg(tmp_path: Path) -> None:
    """As far as both tell the same; pyiceberg calls the path of a file `file_path`."""
    table = Table(tmp_path, ID, PART)
    table.partition((2, identity()))
    data = table.data({"id": [1, 2], "p": [0, 0]}, (0,))
    first = table.commit(data, table.data({"id": [3], "p": [None]}, (None,)))
    table.commit(table.positions({data: [0]}), operation="delete")
    table.refs["v1"] = {"snapshot-id": first, "type": "tag"}
    inspect = StaticTable.from_metadata(table.metadata()).inspect

    def both(ours: str, theirs: pa.Table, *columns: str) -> None:
        own, other = zip(*((c.partition(" ")[0], c.rpartition(" ")[2]) for c in columns), strict=True)
        expected = [tuple(row.values()) for row in theirs.select(list(other)).to_pylist()]
        found = table.rows(f"SELECT {', '.join(own)} FROM {ours}")
        assert sorted(found, key=str) == sorted(expected, key=str)

    both("snapshots('t')", inspect.snapshots(), "snapshot_id")
    both("history('t')", inspect.snapshots(), "snapshot_id", "operation")
    both("files('t')", inspect.data_files(), "path file_path", "record_count", "file_size_bytes file_size_in_bytes")
    both("delete_files('t')", inspect.delete_files(), "path file_path", "delete_count record_count")
    counts = [f"{kind}_data_files_count" for kind in ("added", "existing", "deleted")]
    manifests = inspect.manifests()
    told = [
        tuple(a + b for a, b in zip(row[:3], row[3:], strict=True))
        for row in zip(
            *(manifests.column(name).to_pylist() for name in counts),
            *(manifests.column(name.replace("data", "delete")).to_pylist() for name in counts),
            strict=True,
        )
    ]
    ours = "added_files_count, existing_files_count, deleted_files_count"
    assert sorted(table.rows(f"SELECT {ours} FROM manifests('t')")) == sorted(told)
    both("manifests('t')", manifests, "path", "length", "partition_spec_id", "added_snapshot_id")
    both("partitions('t')", inspect.partitions(), "record_count", "file_count")
    both("refs('t')", inspect.refs(), "name", "snapshot_id")
