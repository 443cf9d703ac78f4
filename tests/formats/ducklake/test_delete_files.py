"""Delete files in every form: what their bytes are, and that each says which snapshot sees which rows."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import update

from compliance.peers.lakes import Place
from lakedbapi.deletes import puffin, roaring
from lakedbapi.errors import DamagedFileError
from lakedbapi.formats.ducklake.delete_files import DeleteFormat, Deletions, read_deletes, write_deletes
from lakedbapi.model.catalog import AsOf
from lakedbapi.model.delete_vector import DeleteVector
from lakedbapi.storage.filesystem import Storage
from tests.formats.ducklake.reading import count, open_lake, texts
from tests.formats.ducklake.writing import Lake, column

DATA_FILE = "/lake/data/main/t/a.parquet"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.of(str(tmp_path))


@pytest.mark.parametrize("format", DeleteFormat)
@pytest.mark.parametrize("snapshots", [[3, 3, 3], [5, 3, 4]])
def test_what_is_written_is_read(storage: Storage, format: DeleteFormat, snapshots: list[int]) -> None:
    deletions = Deletions.of([1, 4, 9], snapshots)
    written = write_deletes(storage, storage.join(""), DATA_FILE, deletions, format)
    found = read_deletes(storage, written.path, written.format, written.begin_snapshot, 1)
    assert found.positions.tolist() == [1, 4, 9]
    assert found.snapshots.tolist() == snapshots
    assert written.file_size_bytes == Path(written.path).stat().st_size
    assert written.partial_max == (5 if len(set(snapshots)) > 1 else None)
    assert written.path.endswith(f"-delete.{written.format}")


def test_deletes_of_one_snapshot_are_a_bare_vector(storage: Storage) -> None:
    """Section by section as the specification of `deletion-vector-v1` has it."""
    written = write_deletes(storage, storage.join(""), DATA_FILE, Deletions.of([0, 9], [3, 3]), DeleteFormat.VECTORS)
    assert (written.format, written.footer_size, written.row_group_count) == ("puffin", 0, None)
    bitmap = "3a3000000100000000000100100000000000" + "0900"
    body = bytes.fromhex("d1d33964" + "0100000000000000" + "00000000" + bitmap)
    expected = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    assert Path(written.path).read_bytes() == expected


def test_deletes_of_several_snapshots_are_cumulative_vectors_in_a_container(storage: Storage) -> None:
    deletions = Deletions.of([1, 4, 9], [5, 3, 4])
    written = write_deletes(storage, storage.join(""), DATA_FILE, deletions, DeleteFormat.VECTORS)
    data = Path(written.path).read_bytes()
    blobs = puffin.blobs(data, "it", puffin.DELETION_VECTOR)
    assert [dict(blob.properties) for blob in blobs] == [
        {"referenced-data-file": DATA_FILE, "cardinality": str(number), "ducklake-snapshot-id": str(snapshot)}
        for number, snapshot in ((1, 3), (2, 4), (3, 5))
    ]
    positions = [roaring.decode(blob.content, "it").to_numpy().tolist() for blob in blobs]
    assert positions == [[4], [4, 9], [1, 4, 9]]
    (payload_size,) = struct.unpack_from("<i", data, len(data) - 12)
    assert written.footer_size == payload_size + 16
    assert written.delete_count == 3


def test_vectors_without_a_snapshot_are_all_of_the_files_own(storage: Storage) -> None:
    container = puffin.encode([puffin.deletion_vector(DeleteVector.of([n]), DATA_FILE) for n in (2, 7)], {})
    path = storage.join("two.puffin")
    storage.write_exclusive(path, container.data)
    found = read_deletes(storage, path, "puffin", 4, 1)
    assert (found.positions.tolist(), found.snapshots.tolist()) == ([2, 7], [4, 4])


def test_vectors_of_which_only_some_have_a_snapshot_are_damaged(storage: Storage) -> None:
    tag = {"ducklake-snapshot-id": "3"}
    blobs = [
        puffin.deletion_vector(DeleteVector.of([n]), DATA_FILE, properties=known) for n, known in ((2, tag), (7, {}))
    ]
    path = storage.join("mixed.puffin")
    storage.write_exclusive(path, puffin.encode(blobs, {}).data)
    with pytest.raises(DamagedFileError, match="contradict each other"):
        read_deletes(storage, path, "puffin", 4, 1)


def test_a_format_without_containers_keeps_several_snapshots_in_parquet(storage: Storage) -> None:
    deletions = Deletions.of([1, 4], [5, 3])
    written = write_deletes(storage, storage.join(""), DATA_FILE, deletions, DeleteFormat.BARE_VECTORS)
    assert (written.format, written.row_group_count) == ("parquet", 1)


def test_a_file_that_names_data_files_by_id_is_applied(lake: Lake, place: Place) -> None:
    """Two data files share it; each catalog row counts its own part."""
    lake.create("t", column("i", "int32"))
    lake.insert("t", *((i,) for i in range(10)))
    lake.insert("t", *((i,) for i in range(10, 20)))
    first, second = lake.base.files(lake.table("t")).column("file_id").to_pylist()
    lake.delete("t", {first: [1]})
    lake.delete("t", {second: [2, 3]})
    paths = lake.base.delete_files(lake.table("t")).column("path").to_pylist()
    shared = Path(paths[0]).with_name("shared.parquet")
    pq.write_table(pa.table({"data_file_id": [second, first, second], "position": [3, 1, 2]}), shared)
    entries = lake.catalog.backend.tables.delete_file
    with lake.catalog.backend.write() as connection:
        connection.execute(update(entries).values(path=shared.name))
    catalog = open_lake(place)
    rows = [(str(i),) for i in range(20) if i not in (1, 12, 13)]
    assert texts(catalog, catalog.latest()) == sorted(rows)
    counts = [count(catalog.as_of(AsOf(version=lake.base.id - back))) for back in (2, 1, 0)]
    assert counts == [20, 19, 17]
    reopened = Lake(catalog, lake.engine)
    reopened.delete("t", {first: [5]})
    assert texts(catalog, reopened.base) == sorted(set(rows) - {("5",)})
    assert count(catalog.as_of(AsOf(version=reopened.base.id - 1))) == 17
