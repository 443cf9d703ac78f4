"""Deletion vectors, wherever they lie, and what is wrong with damaged ones."""

from __future__ import annotations

import struct
import uuid
import zlib
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap64

from lakedbapi.deletes import roaring
from lakedbapi.errors import DataError, NotSupportedError, OperationalError
from lakedbapi.formats.delta.deletion_vectors import decode_z85, encode_z85, file_path
from lakedbapi.model.delete_vector import DeleteVector
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import DV, Table, with_vector

INLINE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
"""The set {3, 4, 7, 11, 18, 29}, 44 bytes."""
NATIVE = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
"""The same in the layout of old writers, whose example the specification has."""


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t").create(protocol=DV)


def blob(*positions: int) -> bytes:
    return roaring.MAGIC + BitMap64(positions).serialize()


def framed(*blobs: bytes) -> bytes:
    parts = (struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body)) for body in blobs)
    return b"\x01" + b"".join(parts)


def stored(
    table: Table, content: bytes, size: int, cardinality: int, prefix: str = "", **fields: Any
) -> dict[str, Any]:
    """The descriptor of the first vector in a new file."""
    id = uuid.uuid4()
    directory = table.path / prefix
    directory.mkdir(exist_ok=True)
    (directory / f"deletion_vector_{id}.bin").write_bytes(content)
    path = prefix + encode_z85(id.bytes)
    plain = {"storageType": "u", "pathOrInlineDv": path, "offset": 1, "sizeInBytes": size, "cardinality": cardinality}
    return {name: value for name, value in {**plain, **fields}.items() if value is not None}


def live(connect: Connect, table: Table, *descriptors: dict[str, Any] | None, count: int = 30) -> list[int]:
    """The rows of files of `count` rows each, numbered through, with these vectors."""
    for number, descriptor in enumerate(descriptors):
        add = table.file(f"{number}.parquet", range(number * count, (number + 1) * count), row_group_size=7)
        table.commit(with_vector(add, descriptor))
    return [i for (i,) in connect(table.path).execute("SELECT i FROM t ORDER BY i").fetchall()]


def without(*positions: int, count: int = 30) -> list[int]:
    return [i for i in range(count) if i not in positions]


def test_z85_is_zeromqs() -> None:
    data = bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    assert encode_z85(data) == "HelloWorld"
    assert decode_z85("HelloWorld") == data
    assert decode_z85(encode_z85(b"12345")) == b"12345\0\0\0"


@pytest.mark.parametrize("text", ["Hello Worl", "Hello", "%nSc1"])
def test_other_text_is_no_z85(text: str) -> None:
    if text == "Hello":
        assert decode_z85(text) == bytes([0x86, 0x4F, 0xD2, 0x6F])
        return
    with pytest.raises(ValueError):
        decode_z85(text)


def test_names_of_files_have_an_optional_prefix() -> None:
    descriptor = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    assert file_path("/t/", descriptor) == "/t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_a_vector_can_stand_in_the_log(connect: Connect, table: Table) -> None:
    descriptor = {"storageType": "i", "pathOrInlineDv": INLINE, "sizeInBytes": 44, "cardinality": 6}
    assert live(connect, table, descriptor) == without(3, 4, 7, 11, 18, 29)


def test_an_inline_vector_of_any_length_is_cut_to_its_size(connect: Connect, table: Table) -> None:
    body = blob(0, 5, 9, *range(12, 29))
    run = roaring.MAGIC + b"\x01" + bytes(7) + bytes(4) + _run_container(range(12, 29))
    assert len(run) % 4
    texts = [(encode_z85(data), len(data), count) for data, count in ((body, 20), (run, 17))]
    found = live(
        connect,
        table,
        *(
            {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": size, "cardinality": count}
            for text, size, count in texts
        ),
    )
    assert found == without(0, 5, 9, *range(12, 29), *range(42, 59), count=60)


def _run_container(positions: range) -> bytes:
    """A 32-bit bitmap with one run (no offsets, since there are fewer than four containers)."""
    cookie = struct.pack("<HH", 12347, 0)
    key = struct.pack("<HH", 0, len(positions) - 1)
    return cookie + b"\x01" + key + struct.pack("<HHH", 1, positions.start, len(positions) - 1)


@pytest.mark.parametrize("prefix", ["", "ab"])
def test_a_vector_can_lie_in_a_file(connect: Connect, table: Table, prefix: str) -> None:
    body = blob(0, 9)
    assert live(connect, table, stored(table, framed(body), len(body), 2, prefix)) == without(0, 9)


def test_a_missing_offset_is_that_of_the_first(connect: Connect, table: Table) -> None:
    body = blob(0, 9)
    assert live(connect, table, stored(table, framed(body), len(body), 2, offset=None)) == without(0, 9)


def test_one_file_can_hold_several_vectors(connect: Connect, table: Table) -> None:
    bodies = [blob(1), blob(2, 3, 29), blob(0)]
    first = stored(table, framed(*bodies), len(bodies[0]), 1)
    offset = 1
    descriptors = []
    for body, cardinality in zip(bodies, (1, 3, 1), strict=True):
        descriptors.append({**first, "offset": offset, "sizeInBytes": len(body), "cardinality": cardinality})
        offset += len(body) + 8
    assert live(connect, table, *descriptors, None) == without(1, 32, 33, 59, 60, count=120)


def test_the_path_of_a_vector_in_another_store_is_whole() -> None:
    found = file_path("s3://here/t/", {"storageType": "p", "pathOrInlineDv": "s3://there/u/a%20b%2525.bin"})
    assert found == "s3://there/u/a b%25.bin"


def test_a_vector_can_lie_anywhere(connect: Connect, table: Table, tmp_path: Path) -> None:
    body = blob(4)
    (tmp_path / "some where.bin").write_bytes(framed(body))
    descriptor = {
        "storageType": "p",
        "pathOrInlineDv": f"file://{tmp_path}/some%20where.bin",
        "offset": 1,
        "sizeInBytes": len(body),
        "cardinality": 1,
    }
    assert live(connect, table, descriptor) == without(4)


def test_a_file_whose_rows_are_all_gone_has_none(connect: Connect, table: Table) -> None:
    body = blob(*range(30))
    assert live(connect, table, stored(table, framed(body), len(body), 30)) == []


def test_conditions_do_not_shift_positions(connect: Connect, table: Table) -> None:
    body = blob(999, 1000, 65535, 65536, 99_999)
    add = table.file("a.parquet", range(100_000), row_group_size=1000)
    table.commit(with_vector(add, stored(table, framed(body), len(body), 5)))
    query = "SELECT i FROM t WHERE i IN (998, 999, 1000, 1001, 65534, 65535, 65536, 65537, 99998, 99999) ORDER BY i"
    rows = connect(table.path).execute(query).fetchall()
    assert [i for (i,) in rows] == [998, 1001, 65534, 65537, 99998]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda c, d: (c[:-1] + bytes([c[-1] ^ 1]), d), "checksum does not match"),
        (lambda c, d: (c[:20] + bytes([c[20] ^ 1]) + c[21:], d), "checksum does not match"),
        (lambda c, d: (c, {**d, "sizeInBytes": d["sizeInBytes"] - 2}), "says that it has"),
        (lambda c, d: (c[:-3], d), "says that it has"),
        (lambda c, d: (c, {**d, "offset": 2}), "says that it has"),
        (lambda c, d: (c, {**d, "cardinality": 3}), "it has 2 rows, the log says 3"),
        (lambda c, d: (framed(b"\xd0" + c[6:-4]), d), "starts with d0d33964"),
        (lambda c, d: (framed(c[5:-6]), {**d, "sizeInBytes": d["sizeInBytes"] - 2}), "bitmaps cannot be read"),
    ],
)
def test_a_damaged_vector_names_its_file(connect: Connect, table: Table, damage: Any, reason: str) -> None:
    body = blob(0, 9)
    content, changed = damage(framed(body), {"sizeInBytes": len(body), "cardinality": 2, "offset": 1})
    descriptor = stored(table, content, changed["sizeInBytes"], changed["cardinality"], offset=changed["offset"])
    with pytest.raises(DataError, match=rf"deletion_vector_.*\.bin.*{reason}"):
        live(connect, table, descriptor)


def test_offset_zero_is_the_version_of_the_file(connect: Connect, table: Table) -> None:
    body = blob(0)
    with pytest.raises(DataError, match="said to lie at 0"):
        live(connect, table, stored(table, framed(body), len(body), 1, offset=0))


def test_the_layout_of_old_writers_is_named(connect: Connect, table: Table) -> None:
    descriptor = {"storageType": "i", "pathOrInlineDv": NATIVE, "sizeInBytes": 40, "cardinality": 6}
    with pytest.raises(DataError, match="starts with 6439d3d0"):
        live(connect, table, descriptor)


def test_text_that_is_no_z85_is_damage(connect: Connect, table: Table) -> None:
    descriptor = {"storageType": "i", "pathOrInlineDv": INLINE[:-1] + " ", "sizeInBytes": 44, "cardinality": 6}
    with pytest.raises(DataError, match="no Z85 text"):
        live(connect, table, descriptor)


def test_a_missing_file_is_named(connect: Connect, table: Table) -> None:
    descriptor = stored(table, b"", 34, 1)
    next(table.path.glob("*.bin")).unlink()
    with pytest.raises(OperationalError, match=r"deletion_vector_.*\.bin: reading it failed"):
        live(connect, table, descriptor)


def test_an_unknown_storage_type_is_refused(connect: Connect, table: Table) -> None:
    descriptor = {"storageType": "r", "pathOrInlineDv": "x.bin", "sizeInBytes": 34, "cardinality": 1}
    with pytest.raises(NotSupportedError, match="storage type 'r'"):
        live(connect, table, descriptor)


def test_files_and_delete_files_tell_of_vectors(connect: Connect, table: Table) -> None:
    body = blob(0, 9)
    live(connect, table, stored(table, framed(body), len(body), 2), None)
    connection = connect(table.path)
    assert connection.execute("SELECT record_count, deleted_count FROM files('t') ORDER BY path").fetchall() == [
        (30, 2),
        (30, 0),
    ]
    [(data_file, path, count, size)] = connection.execute(
        "SELECT data_file, path, delete_count, file_size_bytes FROM delete_files('t')"
    ).fetchall()
    assert (Path(data_file).name, Path(path).suffix, count, size) == ("0.parquet", ".bin", 2, len(body))


def test_the_complement_of_a_vector() -> None:
    vector = DeleteVector.of([0, 3])
    assert vector.complement(5) == DeleteVector.of([1, 2, 4])
    assert vector.complement(2) == DeleteVector.of([1])


def test_statistics_may_count_live_rows_only(connect: Connect, table: Table) -> None:
    body = blob(0, 29)
    add = table.file("a.parquet", range(30), stats='{"numRecords":28}')
    table.commit(with_vector(add, stored(table, framed(body), len(body), 2)))
    rows = connect(table.path).execute("SELECT i FROM t ORDER BY i").fetchall()
    assert [i for (i,) in rows] == without(0, 29)


def test_live_rows_in_statistics_are_told_from_all_rows(connect: Connect, table: Table) -> None:
    """Also when every deleted position is below the number of live rows."""
    body = blob(0, 1)
    add = table.file("a.parquet", range(10), stats='{"numRecords":8}')
    table.commit(with_vector(add, stored(table, framed(body), len(body), 2)))
    connection = connect(table.path)
    assert connection.execute("SELECT record_count, deleted_count FROM files('t')").fetchall() == [(10, 2)]
    assert connection.execute("DELETE FROM t WHERE i < 8").rowcount == 6
    assert connection.execute("SELECT i FROM t ORDER BY i").fetchall() == [(8,), (9,)]
    assert connection.execute("DELETE FROM t").rowcount == 2


def test_live_rows_in_statistics_do_not_shift_positions(connect: Connect, table: Table) -> None:
    """In whole scans, which have the deleted rows of several files in one column."""
    count, deleted = 300_000, 20_000
    for number in range(3):
        body = blob(*range(deleted))
        rows = range(number * count, (number + 1) * count)
        add = table.file(f"{number}.parquet", rows, stats=f'{{"numRecords":{count - deleted}}}')
        table.commit(with_vector(add, stored(table, framed(body), len(body), deleted)))
    left = [number * count + row for number in range(3) for row in (deleted, count - 1)]
    found = (
        connect(table.path)
        .execute(f"SELECT count(*), min(i), max(i) FROM t GROUP BY i // {count} ORDER BY 2")
        .fetchall()
    )
    assert found == [(count - deleted, low, high) for low, high in zip(left[::2], left[1::2], strict=True)]


def test_a_row_that_the_file_does_not_have_is_damage(connect: Connect, table: Table) -> None:
    body = blob(30)
    with pytest.raises(DataError, match=r"0\.parquet: its deletion vector has row 30, but the file has 30 rows"):
        live(connect, table, stored(table, framed(body), len(body), 1))
