from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakedbapi.model.delete_vector import DeleteVector

positions = st.lists(st.integers(0, 1 << 40), max_size=50)


@given(positions)
def test_keeps_each_position_once_and_sorted(values: list[int]) -> None:
    assert DeleteVector.of(values).to_numpy().tolist() == sorted(set(values))


@given(positions, positions)
def test_set_operations_are_those_of_sets(a: list[int], b: list[int]) -> None:
    left, right = DeleteVector.of(a), DeleteVector.of(b)
    assert (left | right).to_numpy().tolist() == sorted(set(a) | set(b))
    assert (left - right).to_numpy().tolist() == sorted(set(a) - set(b))
    assert (left & right).to_numpy().tolist() == sorted(set(a) & set(b))


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 3],
        np.array([3, 1, 3]),
        np.array([3, 1, 3], dtype=np.int32),
        pa.array([3, 1, 3]),
        pa.chunked_array([[3], [1, 3]]),
        (n for n in (3, 1, 3)),
    ],
)
def test_takes_positions_of_any_kind(values: object) -> None:
    vector = DeleteVector.of(values)  # type: ignore[arg-type]
    assert len(vector) == 2
    assert 3 in vector
    assert 2 not in vector


@pytest.mark.parametrize(
    "values", [[], [0, (1 << 32) - 1], [(1 << 32) - 1, 1 << 32], [1 << 32, 1 << 40], [(1 << 63) - 1]]
)
def test_positions_may_need_more_than_32_bits(values: list[int]) -> None:
    vector = DeleteVector.of(values)
    assert vector.to_numpy().tolist() == values
    assert len(vector) == len(values)


def test_mask_marks_deleted_rows() -> None:
    assert DeleteVector.of([0, 2]).mask(4).tolist() == [True, False, True, False]


def test_equal_vectors_hash_alike() -> None:
    assert hash(DeleteVector.of([1, 2])) == hash(DeleteVector.of([2, 1]))
    assert DeleteVector.of([1, 2]) == DeleteVector.of([2, 1])


def test_empty_vector_is_false() -> None:
    assert not DeleteVector()
    assert not DeleteVector.of([])
