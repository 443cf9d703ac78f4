from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakedbapi.deletes import parquet
from lakedbapi.errors import DataError, OperationalError
from lakedbapi.storage.filesystem import Storage

POSITIONS = np.array([2, 5, 9], dtype=np.int64)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.of(str(tmp_path))


def copied(storage: Storage, path: str) -> str:
    """Another file with the same content, which no cache knows."""
    copy = storage.join("copy.parquet")
    Path(copy).write_bytes(Path(path).read_bytes())
    return copy


def test_round_trip_without_snapshots(storage: Storage) -> None:
    path = storage.join("d.parquet")
    parquet.write(storage, path, "/data/a.parquet", POSITIONS)
    positions, snapshots = parquet.read(storage, copied(storage, path))
    assert positions.tolist() == [2, 5, 9]
    assert snapshots is None


def test_round_trip_with_snapshots(storage: Storage) -> None:
    path = storage.join("d.parquet")
    parquet.write(storage, path, "/data/a.parquet", POSITIONS, np.array([3, 4, 4]))
    _, snapshots = parquet.read(storage, copied(storage, path))
    assert snapshots is not None
    assert snapshots.tolist() == [3, 4, 4]


def test_columns_have_the_field_ids_of_the_specification(storage: Storage) -> None:
    path = storage.join("d.parquet")
    written = parquet.write(storage, path, "/data/a.parquet", POSITIONS, np.array([3, 4, 4]))
    file = pq.ParquetFile(path)
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in file.schema_arrow}
    assert ids == {"file_path": 2147483646, "pos": 2147483645, "_ducklake_internal_snapshot_id": 2147483539}
    assert file.read().column("file_path").to_pylist() == ["/data/a.parquet"] * 3
    assert written.size == Path(path).stat().st_size
    assert written.footer_size == file.metadata.serialized_size


def test_columns_are_found_by_field_id_whatever_their_names(storage: Storage) -> None:
    path = storage.join("d.parquet")
    fields = [
        pa.field("row", pa.int64()),
        pa.field("p", pa.int64(), metadata={"PARQUET:field_id": "2147483645"}),
        pa.field("s", pa.int64(), metadata={"PARQUET:field_id": "2147483539"}),
    ]
    pq.write_table(pa.table([[7], [8], [9]], schema=pa.schema(fields)), path)
    positions, snapshots = parquet.read(storage, path)
    assert (positions.tolist(), None if snapshots is None else snapshots.tolist()) == ([8], [9])


def test_columns_are_found_by_name_without_field_ids(storage: Storage) -> None:
    path = storage.join("d.parquet")
    pq.write_table(pa.table({"file_path": ["a"], "pos": [4]}), path)
    assert parquet.read(storage, path)[0].tolist() == [4]


def test_a_second_read_does_not_touch_the_storage(storage: Storage) -> None:
    path = storage.join("d.parquet")
    parquet.write(storage, path, "/data/a.parquet", POSITIONS)
    copy = copied(storage, path)
    parquet.read(storage, copy)
    Path(copy).unlink()
    assert parquet.read(storage, copy)[0].tolist() == [2, 5, 9]


def test_what_was_written_is_known_without_reading(storage: Storage) -> None:
    path = storage.join("d.parquet")
    parquet.write(storage, path, "/data/a.parquet", POSITIONS)
    Path(path).unlink()
    assert parquet.read(storage, path)[0].tolist() == [2, 5, 9]


def test_a_hundred_thousand_positions_take_less_than_two_bytes_each(storage: Storage) -> None:
    path = storage.join("d.parquet")
    positions = np.arange(0, 1_000_000, 10)
    written = parquet.write(storage, path, "/data/a.parquet", positions, np.full(len(positions), 3))
    assert written.size < 200_000
    assert parquet.read(storage, copied(storage, path))[0].tolist() == positions.tolist()


def test_encrypted_positions_need_their_key(storage: Storage) -> None:
    path = storage.join("d.parquet")
    positions = np.arange(0, 1_000_000, 10)
    written = parquet.write(storage, path, "/data/a.parquet", positions, positions + 3, encrypted=True)
    assert written.size == Path(path).stat().st_size < 400_000
    found, snapshots = parquet.read(storage, copied(storage, path), key=written.key)
    assert found.tolist() == positions.tolist()
    assert snapshots is not None
    assert snapshots.tolist() == (positions + 3).tolist()
    with pytest.raises(DataError, match="another key"):
        parquet.read(storage, copied(storage, path).replace("copy", "./copy"), key="A" * 22 + "==")


def test_cached_positions_cannot_be_changed(storage: Storage) -> None:
    path = storage.join("d.parquet")
    parquet.write(storage, path, "/data/a.parquet", POSITIONS)
    for known in (path, copied(storage, path)):
        with pytest.raises(ValueError, match="read-only"):
            parquet.read(storage, known)[0][0] = 1


def test_a_missing_file_is_named(storage: Storage) -> None:
    with pytest.raises(OperationalError, match=r"gone\.parquet"):
        parquet.read(storage, storage.join("gone.parquet"))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_a_corrupt_file_is_named(storage: Storage, data: bytes) -> None:
    path = storage.join("bad.parquet")
    Path(path).write_bytes(data)
    with pytest.raises(DataError, match=r"bad\.parquet"):
        parquet.read(storage, path)


def test_a_file_without_positions_is_refused(storage: Storage) -> None:
    path = storage.join("bad.parquet")
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(DataError, match="'pos'"):
        parquet.read(storage, path)


def test_a_null_position_is_refused(storage: Storage) -> None:
    path = storage.join("bad.parquet")
    pq.write_table(pa.table({"file_path": ["a"], "pos": pa.array([None], pa.int64())}), path)
    with pytest.raises(DataError, match="NULL"):
        parquet.read(storage, path)


@pytest.mark.parametrize("snapshots", [None, [7, 8, 7, 9]])
def test_a_file_that_names_data_files_by_id_tells_of_each(storage: Storage, snapshots: list[int] | None) -> None:
    path = storage.join("d.parquet")
    columns = {"data_file_id": [4, 5, 4, 4], "position": [9, 1, 2, 5]}
    if snapshots is not None:
        columns["_ducklake_internal_snapshot_id"] = snapshots
    pq.write_table(pa.table(columns), path)
    for data_file_id, expected, since in ((4, [2, 5, 9], [7, 9, 7]), (5, [1], [8]), (6, [], [])):
        positions, found = parquet.read(storage, path, data_file_id)
        assert positions.tolist() == expected
        assert (found is None) == (snapshots is None)
        if found is not None:
            assert found.tolist() == since
