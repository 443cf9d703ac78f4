from __future__ import annotations

import pyarrow as pa
import pytest

from lakedbapi.dml.addresses import Addresses

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
