from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakedbapi.dml.addresses import Addresses
from lakedbapi.model.delete_vector import DeleteVector

LISTS = pa.schema([("p", pa.int64()), ("n", pa.list_(pa.int64()))])


@pytest.mark.parametrize("chunks", [1, 2])
def test_lists_of_positions_become_an_address_for_each(chunks: int) -> None:
    rows = pa.table({"p": [2, 5], "n": [[7, 3], [0]]}, schema=LISTS)
    table = pa.concat_tables([rows.slice(i * (2 // chunks), 2 // chunks) for i in range(chunks)])
    addresses = Addresses.of_lists(table)
    assert addresses.part.tolist() == [2, 2, 5]
    assert addresses.position.tolist() == [7, 3, 0]


def test_no_lists_are_no_addresses() -> None:
    assert len(Addresses.of_lists(LISTS.empty_table())) == 0
    assert len(Addresses.of_lists(pa.Table.from_batches([], LISTS))) == 0


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
