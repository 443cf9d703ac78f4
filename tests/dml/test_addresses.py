from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakedbapi.dml.addresses import Addresses, positions_by_part
from lakedbapi.model.delete_vector import DeleteVector


def batch(*addresses: tuple[int, int]) -> pa.RecordBatch:
    columns = ([address[i] for address in addresses] for i in (0, 1))
    return pa.record_batch([pa.array(column, pa.int64()) for column in columns], ["p", "n"])


def test_positions_are_gathered_by_part_from_batches_in_any_order() -> None:
    found = positions_by_part([batch((5, 7), (2, 3), (5, 0)), batch(), batch((2, 9), (2, 1))])
    assert list(found) == [2, 5]
    assert [vector.to_numpy().tolist() for vector in found.values()] == [[1, 3, 9], [0, 7]]


def test_no_rows_are_no_parts() -> None:
    assert positions_by_part([]) == {}
    assert positions_by_part([batch()]) == {}


def test_each_part_of_addresses_has_its_positions() -> None:
    found = Addresses(np.array([4, 1, 1, 4]), np.array([2, 9, 5, 1])).by_part
    assert {part: vector.to_numpy().tolist() for part, vector in found.items()} == {1: [5, 9], 4: [1, 2]}
    assert Addresses.joined([]).by_part == {}


def test_addresses_are_found_among_positions_by_part() -> None:
    found = Addresses(np.array([4, 1, 1, 1, 4]), np.array([2, 9, 2, 5, 1]))
    positions = {0: [2], 1: [2, 3], 4: [0, 2], 7: [1]}
    assert found.among({part: DeleteVector.of(own) for part, own in positions.items()}).tolist() == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert found.among({}).tolist() == [False] * 5
    assert Addresses.joined([]).among({1: DeleteVector.of([2])}).tolist() == []
