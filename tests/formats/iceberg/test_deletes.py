"""Which deletes hit which rows: the rules of the specification, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakedbapi
from tests.formats.iceberg.building import Table
from tests.formats.iceberg.columns import DOUBLE, ID, INT_KEY, KEY, LONG_KEY, PART, VALUE, identity

NAN = float("nan")


def test_e1_an_equality_delete_spares_rows_of_its_own_commit(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    table.commit(table.data({"id": [1, 2, 3]}), table.equality({"id": [2]}, [1]))
    assert table.ids() == [1, 2, 3]


def test_e2_null_deletes_null(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1, 2, 3], "k": ["a", None, "b"]}))
    table.commit(table.equality({"k": [None]}, [2]))
    assert table.ids() == [1, 3]


def test_e3_a_delete_of_an_unpartitioned_spec_is_global(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, PART)
    unpartitioned = table.data({"id": [1, 2], "p": [0, 0]})
    table.partition((2, identity()))
    table.commit(unpartitioned, table.data({"id": [2, 3, 4], "p": [1, 1, 1]}, (1,)))
    table.commit(table.equality({"id": [2]}, [1], spec=0))
    assert table.ids() == [1, 3, 4]


def test_e4_a_delete_of_a_partition_stays_in_it(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, PART)
    table.partition((2, identity()))
    table.commit(table.data({"id": [100, 999], "p": [0, 0]}, (0,)), table.data({"id": [100, 888], "p": [1, 1]}, (1,)))
    table.commit(table.equality({"id": [100]}, [1], (0,)))
    assert table.rows("SELECT id, p FROM t") == [(100, 1), (888, 1), (999, 0)]


def test_a_delete_of_another_spec_does_not_reach(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, PART, VALUE)
    first = table.partition((2, identity()))
    table.commit(table.data({"id": [1, 2], "p": [0, 0], "v": ["a", "a"]}, (0,)))
    table.partition((3, identity()))
    table.commit(table.equality({"id": [1]}, [1], ("a",)))
    assert table.ids() == [1, 2]
    table.commit(table.equality({"id": [2]}, [1], (0,), spec=first))
    assert table.ids() == [1]


def test_a_spec_of_void_keys_is_not_global(tmp_path: Path) -> None:
    from pyiceberg.transforms import VoidTransform

    table = Table(tmp_path, ID, PART)
    table.partition((2, identity()))
    table.commit(table.data({"id": [1], "p": [0]}, (0,)))
    table.partition((2, VoidTransform()))
    table.commit(table.data({"id": [1], "p": [5]}, (None,)))
    table.commit(table.equality({"id": [1]}, [1], (None,)))
    assert table.rows("SELECT p FROM t") == [(0,)]


def test_partitions_of_both_zeros_differ_and_those_of_nan_do_not(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, DOUBLE)
    table.partition((2, identity()))
    values = (0.0, -0.0, NAN)
    table.commit(*(table.data({"id": [i], "d": [value]}, (value,)) for i, value in enumerate(values)))
    table.commit(table.equality({"id": [0, 1, 2]}, [1], (-0.0,)), table.equality({"id": [2]}, [1], (float("nan"),)))
    assert table.ids() == [0]


def test_e5_a_key_that_was_dropped_still_deletes(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1, 2, 3], "k": ["a", "b", "c"]}))
    table.commit(table.equality({"k": ["b"]}, [2]))
    table.evolve(ID)
    assert table.ids() == [1, 3]


def test_e6_a_key_that_was_added_is_null_in_older_files(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    table.commit(table.data({"id": [1, 2]}))
    table.evolve(ID, KEY)
    table.commit(table.data({"id": [3], "k": ["x"]}))
    table.commit(table.equality({"k": [None]}, [2]))
    assert table.ids() == [3]


def test_e6_a_key_that_was_added_with_a_default(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    table.commit(table.data({"id": [1, 2]}))
    table.evolve(ID, KEY.model_copy(update={"initial_default": "d"}))
    table.commit(table.data({"id": [3], "k": ["x"]}))
    table.commit(table.equality({"k": ["d"]}, [2]))
    assert table.ids() == [3]


def test_e7_other_columns_of_a_delete_do_not_matter(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1, 2, 3], "k": ["a", "b", "c"]}))
    table.commit(table.equality({"id": [2], "k": ["other"]}, [1]))
    assert table.ids() == [1, 3]


def test_e8_positions_and_values_add_up(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    data = table.data({"id": [0, 1, 2, 3, 4, 5]})
    table.commit(data)
    table.commit(table.positions({data: [0]}), table.equality({"id": [5]}, [1]))
    assert table.ids() == [1, 2, 3, 4]


def test_e9_keys_in_any_order(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1, 2, 3], "k": ["a", "b", "c"]}))
    table.commit(table.equality({"k": ["c", "a"], "id": [3, 9]}, [2, 1]))
    assert table.ids() == [1, 2]


def test_e10_a_renamed_key_is_found_by_its_id(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1, 2, 3], "k": ["a", "b", "c"]}))
    table.commit(table.equality({"k": ["b"]}, [2]))
    table.evolve(ID, KEY.model_copy(update={"name": "renamed"}))
    assert table.ids() == [1, 3]


def test_a_dropped_key_whose_name_another_column_has(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1, 2, 3], "k": ["a", "b", "c"]}))
    table.commit(table.equality({"k": ["b"]}, [2]))
    table.evolve(ID, KEY.model_copy(update={"field_id": 9}))
    assert table.rows() == [(1, None), (3, None)]


def test_e11_nan_deletes_nan(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, DOUBLE)
    table.commit(table.data({"id": [1, 2, 3], "d": [NAN, 1.0, None]}))
    table.commit(table.equality({"d": [NAN]}, [2]))
    assert table.ids() == [2, 3]


def test_e12_zeros_differ_by_their_sign(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, DOUBLE)
    table.commit(table.data({"id": [1, 2, 3], "d": [0.0, -0.0, NAN]}))
    table.commit(table.equality({"d": [-0.0]}, [2]))
    assert table.ids() == [1, 3]
    table.commit(table.equality({"d": [0.0, NAN]}, [2]), table.data({"id": [4, 5], "d": [0.0, -0.0]}))
    assert table.ids() == [4, 5]


def test_e13_positions_of_an_older_commit_do_not_count(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    data = table.data({"id": [1, 2, 3]})
    table.commit(table.positions({data: [1]}, number=1))
    table.commit(data)
    assert table.ids() == [1, 2, 3]


@pytest.mark.parametrize("bounds", [True, False])
def test_e13b_positions_of_the_same_commit_count(tmp_path: Path, bounds: bool) -> None:
    table = Table(tmp_path, ID)
    data = table.data({"id": [1, 2, 3]})
    table.commit(data, table.positions({data: [1]}, bounds=bounds))
    assert table.ids() == [1, 3]


def test_e15_a_widened_key(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, INT_KEY)
    table.commit(table.data({"id": [1, 2, 3], "n": [10, 20, 30]}))
    table.commit(table.equality({"n": [20]}, [2]))
    table.evolve(ID, LONG_KEY)
    table.commit(table.data({"id": [4], "n": [2**40]}))
    table.commit(table.equality({"n": [2**40, 30]}, [2]))
    assert table.ids() == [1]


def test_e16_upserts(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, VALUE)
    table.commit(table.data({"id": [1, 2], "v": ["a", "a"]}))
    table.commit(table.equality({"id": [2]}, [1]), table.data({"id": [2], "v": ["b"]}))
    assert table.rows() == [(1, "a"), (2, "b")]
    table.commit(table.data({"id": [2], "v": ["c"]}))
    assert table.rows() == [(1, "a"), (2, "b"), (2, "c")]
    table.commit(table.equality({"id": [2]}, [1]), table.data({"id": [2], "v": ["d"]}))
    assert table.rows() == [(1, "a"), (2, "d")]


def test_e17_files_with_different_keys(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1, 2, 3, 4], "k": ["a", "b", "c", "d"]}))
    table.commit(table.equality({"id": [1]}, [1]), table.equality({"k": ["d"]}, [2]))
    assert table.ids() == [2, 3]


def test_a_compacted_file_keeps_its_older_number(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    first = table.data({"id": [1, 2, 3]})
    table.commit(first)
    table.commit(table.equality({"id": [2]}, [1]))
    table.commit(table.data({"id": [1, 2, 3]}, number=1), removed=[first], operation="replace")
    assert table.ids() == [1, 3]


def test_each_snapshot_has_its_own_deletes(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    data = table.data({"id": [1, 2, 3, 4]})
    snapshots = [
        table.commit(data),
        table.commit(table.equality({"id": [2]}, [1])),
        table.commit(table.positions({data: [2]})),
    ]
    found = [[r[0] for r in table.rows(f"SELECT id FROM t FOR VERSION AS OF {id}")] for id in snapshots]
    assert found == [[1, 2, 3, 4], [1, 3, 4], [1, 4]]


def test_a_position_file_about_several_data_files(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    a, b, c = (table.data({"id": ids}) for ids in ([1, 2], [3, 4], [5, 6]))
    table.commit(a, b, c)
    table.commit(table.positions({a: [0], c: [1]}), table.positions({a: [1]}, bounds=False))
    assert table.ids() == [3, 4, 5]


def test_positions_of_another_partition_do_not_count(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, PART)
    table.partition((2, identity()))
    a, b = table.data({"id": [1], "p": [0]}, (0,)), table.data({"id": [2], "p": [1]}, (1,))
    table.commit(a, b)
    table.commit(table.positions({a: [0], b: [0]}, bounds=False))  # Lies in the partition of `a`.
    assert table.ids() == [2]


def test_positions_count_across_row_groups_and_before_filters(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    data = table.data({"id": list(range(300))}, row_group_size=100)
    table.commit(data)
    table.commit(table.positions({data: [150]}))
    assert table.rows("SELECT count(*) FROM t WHERE id >= 200") == [(100,)]
    assert table.rows("SELECT id FROM t WHERE id = 150") == []
    assert table.rows("SELECT id FROM t WHERE id BETWEEN 149 AND 151") == [(149,), (151,)]


def test_vectors_of_several_files_and_partitions_in_one_puffin_file(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, PART, version=3)
    table.partition((2, identity()))
    a, b = table.data({"id": [1, 2], "p": [0, 0]}, (0,)), table.data({"id": [3, 4], "p": [1, 1]}, (1,))
    table.commit(a, b)
    table.commit(table.vectors({a: [0], b: [1]}))
    assert table.ids() == [2, 3]


def test_a_vector_replaces_position_files(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    data = table.data({"id": [1, 2, 3]})
    table.commit(data, table.positions({data: [2]}))
    table.commit(table.vectors({data: [0]}))
    assert table.ids() == [2, 3]


def test_a_replaced_vector_counts_no_more(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    data = table.data({"id": [1, 2, 3]})
    old = table.vectors({data: [0]})
    table.commit(data, old)
    table.commit(table.vectors({data: [1, 2]}), removed=old)
    assert table.ids() == [1]


def test_a_vector_of_a_file_that_is_gone_is_ignored(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    a, b = table.data({"id": [1]}), table.data({"id": [2]})
    table.commit(a, b, table.vectors({a: [0]}))
    table.commit(removed=[a], operation="delete")
    assert table.ids() == [2]


def test_two_vectors_of_one_file_are_corrupt(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    data = table.data({"id": [1, 2]})
    table.commit(data, table.vectors({data: [0]}))
    table.commit(table.vectors({data: [1]}))
    with pytest.raises(lakedbapi.DataError, match="two deletion vectors"):
        table.ids()


def test_a_vector_that_is_older_than_its_file_is_corrupt(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    data = table.data({"id": [1, 2]})
    table.commit(table.vectors({data: [0]}))
    table.commit(data)
    with pytest.raises(lakedbapi.DataError, match="older than it, or in another partition"):
        table.ids()


def test_a_vector_of_another_partition_is_corrupt(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, PART, version=3)
    table.partition((2, identity()))
    data = table.data({"id": [1, 2], "p": [0, 0]}, (0,))
    (vector,) = table.vectors({data: [0]})
    table.commit(data, replace(vector, partition=(1,)))
    with pytest.raises(lakedbapi.DataError, match="older than it, or in another partition"):
        table.ids()


def test_a_damaged_vector_is_an_error(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    data = table.data({"id": [1, 2]})
    (vector,) = table.vectors({data: [0]})
    table.commit(data, vector)
    content = bytearray(Path(vector.path).read_bytes())
    content[-1] ^= 1
    Path(vector.path).write_bytes(bytes(content))
    with pytest.raises(lakedbapi.DataError, match="checksum"):
        table.ids()


def test_a_vector_with_another_count_is_an_error(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    data = table.data({"id": [1, 2]})
    (vector,) = table.vectors({data: [0]})
    object.__setattr__(vector, "records", 2)
    table.commit(data, vector)
    with pytest.raises(lakedbapi.DataError, match="has 1 rows, the metadata says 2"):
        table.ids()


@pytest.mark.parametrize("deleted", [[2, 3], range(2, 20_003)])
def test_a_position_beyond_the_file_is_an_error(tmp_path: Path, deleted: Sequence[int]) -> None:
    table = Table(tmp_path, ID)
    data = table.data({"id": list(range(deleted[-1]))})
    table.commit(data)
    table.commit(table.positions({data: deleted}))
    with pytest.raises(lakedbapi.DataError, match=f"row {deleted[-1]} is said to be deleted, but the file is said to"):
        table.rows()


def test_a_data_file_that_is_listed_twice_is_an_error(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    data = table.data({"id": [1]})
    table.commit(data, data)
    with pytest.raises(lakedbapi.DataError, match="listed twice"):
        table.ids()


def test_values_and_vectors_add_up(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    data = table.data({"id": [1, 2, 3, 4]})
    table.commit(data)
    table.commit(table.vectors({data: [0]}), table.equality({"id": [4]}, [1]))
    assert table.ids() == [2, 3]


def test_delete_files_are_listed(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    data = table.data({"id": [1, 2, 3]})
    table.commit(data)
    table.commit(table.vectors({data: [0]}), table.equality({"id": [4]}, [1]))
    found = table.rows("SELECT format, data_file, delete_count FROM delete_files('t')")
    assert found == [("parquet", None, 1), ("puffin", data.path, 1)]
    assert table.rows("SELECT record_count, deleted_count FROM files('t')") == [(3, None)]


def test_row_ids_survive_and_are_inherited(tmp_path: Path) -> None:
    """A file that a row-level change wrote has the ids of its rows, others count from their first one."""
    table = Table(tmp_path, ID, version=3)
    a, b = table.data({"id": [1, 2]}), table.data({"id": [3]})
    table.commit(a, b)
    row_id = pa.field("_row_id", pa.int64(), metadata={"PARQUET:field_id": "2147483540"})
    table.commit(table.vectors({a: [1]}), table.data({"id": [20, 30]}, extra=[(row_id, [1, None])]))
    assert table.rows("SELECT id, rowid FROM t") == [(1, 0), (3, 2), (20, 1), (30, 4)]


def test_row_ids_of_older_versions_are_refused(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    table.commit(table.data({"id": [1]}))
    with pytest.raises(lakedbapi.NotSupportedError, match="row ids"):
        table.rows("SELECT rowid FROM t")


def test_explain_tells_of_equality_deletes(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1], "k": ["a"]}))
    table.commit(table.equality({"k": ["a"], "id": [1]}, [2, 1]), table.data({"id": [2], "k": ["a"]}))
    told = [row[0] for row in table.rows("EXPLAIN SELECT * FROM t")]
    assert any("2 of 2 data files read; equality deletes are looked up for 1 of them" in line for line in told)
    assert "  1 equality delete files by id, k" in told


def long(number: int) -> bytes:
    return number.to_bytes(8, "little")


@pytest.mark.parametrize("nulls", [0, 1, None])
def test_delete_files_that_share_no_keys_are_not_read(tmp_path: Path, nulls: int | None) -> None:
    table = Table(tmp_path, ID)
    counts = {"value_counts": {1: 2}, "null_value_counts": {1: 0}}
    for first in (0, 10):
        bounds = {"lower_bounds": {1: long(first)}, "upper_bounds": {1: long(first + 1)}}
        table.commit(table.data({"id": [first, first + 1]}, **bounds, **counts))
    delete = table.equality({"id": [1, None] if nulls != 0 else [1]}, [1])
    of_delete = {"lower_bounds": {1: long(1)}, "upper_bounds": {1: long(1)}, "value_counts": {1: 2}}
    if nulls is not None:
        of_delete["null_value_counts"] = {1: nulls}
    delete.more.update(of_delete)  # type: ignore[attr-defined]
    table.commit(delete)
    assert table.rows("SELECT id FROM t WHERE id >= 10") == [(10,), (11,)]
    assert table.rows("SELECT id FROM t WHERE id <= 5") == [(0,)]
    told = "\n".join(row[0] for row in table.rows("EXPLAIN SELECT id FROM t WHERE id >= 10"))
    assert ("equality delete files" in told) is (nulls != 0)
    assert table.ids() == [0, 10, 11]
