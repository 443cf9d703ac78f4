"""Encrypted Parquet files: what DuckDB and pyarrow find in them, and what happens to files that are not as they should
be. DuckDB's own files are read in compliance/ducklake."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.storage import thrift
from lakedbapi.storage.encryption import EncryptedWriter, decrypt, encrypt, schema_elements

ROWS = pa.table(
    {
        "i": list(range(5000)),
        "few": [f"v{i % 5}" for i in range(5000)],
        "many": [None if i % 3 == 0 else f"{i * 7919:x}" for i in range(5000)],
        "nested": [{"a": i, "b": [i, None], "c": {"d": f"{i}"}} for i in range(5000)],
    }
)


def plain(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(ROWS, sink, **{"use_dictionary": False, **options})
    return sink.getvalue()


def by_duckdb(path: Path, options: str) -> bytes:
    duckdb.connect().execute(f"COPY (SELECT * FROM ROWS) TO '{path}' (FORMAT parquet, {options})")
    return path.read_bytes()


def as_duckdb_reads(path: Path, key: str) -> pa.Table:
    connection = duckdb.connect()
    connection.execute("SET VARIABLE key = from_base64($key)", {"key": key})
    return connection.sql(
        f"SELECT * FROM read_parquet('{path}', encryption_config = {{footer_key_value: getvariable('key')}})"
    ).to_arrow_table()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 700},
        {"data_page_size": 500},
        {"data_page_version": "2.0", "compression": "zstd"},
        {"write_page_index": True, "compression": "none"},
        {"use_dictionary": ["few"], "row_group_size": 1000},
    ],
)
def test_duckdb_and_we_read_files_of_pyarrow(tmp_path: Path, options: dict[str, Any]) -> None:
    if "data_page_version" in options and duckdb.__version__ < "2":
        pytest.skip("DuckDB 1 does not read encrypted pages of version 2, which nothing here writes")
    data, file = encrypt(plain(**options))
    path = tmp_path / "e.parquet"
    path.write_bytes(data)
    assert as_duckdb_reads(path, file.key).to_pylist() == ROWS.to_pylist()
    assert pq.read_table(io.BytesIO(decrypt(data, file.key, "x"))).equals(ROWS)


@pytest.mark.parametrize("options", ["COMPRESSION snappy", "ROW_GROUP_SIZE 2048", "PARQUET_VERSION V2"])
def test_duckdb_and_we_read_files_of_duckdb(tmp_path: Path, options: str) -> None:
    """It writes dictionaries and Bloom filters."""
    data, file = encrypt(by_duckdb(tmp_path / "p.parquet", options))
    path = tmp_path / "e.parquet"
    path.write_bytes(data)
    assert as_duckdb_reads(path, file.key).to_pylist() == ROWS.to_pylist()
    assert pq.read_table(io.BytesIO(decrypt(data, file.key, "x"))).to_pylist() == ROWS.to_pylist()


def test_it_does_not_matter_in_which_pieces_a_file_comes(tmp_path: Path) -> None:
    data = by_duckdb(tmp_path / "p.parquet", "ROW_GROUP_SIZE 2048")
    choice = random.Random(5)
    for sizes in ((1,), (1, 7, 100), (4096, 100_000)):
        sink, position = io.BytesIO(), 0
        writer = EncryptedWriter(sink)
        while position < len(data):
            size = choice.choice(sizes)
            writer.write(data[position : position + size])
            position += size
        file = writer.finish()
        assert pq.read_table(io.BytesIO(decrypt(sink.getvalue(), file.key, "x"))).to_pylist() == ROWS.to_pylist()


def test_nothing_of_the_rows_is_in_the_file() -> None:
    data, _ = encrypt(plain(compression="none"))
    assert not any(text in data for text in (b"nested", b"element", b"parquet-cpp"))
    assert data[:4] == data[-4:] == b"PARE"


def test_keys_and_nonces_are_new_each_time() -> None:
    content = plain()
    (first, one), (second, other) = encrypt(content), encrypt(content)
    assert one.key != other.key
    nonces = {data[8:20] for data in (first, second)}
    assert len(nonces) == 2


def test_size_and_footer_are_those_of_the_file() -> None:
    data, file = encrypt(plain())
    assert (file.size, file.footer_size) == (len(data), int.from_bytes(data[-8:-4], "little"))


@pytest.mark.parametrize("end", [0, 3, 4, 100, -9, -8, -1])
def test_files_that_are_not_whole_are_refused(end: int) -> None:
    writer = EncryptedWriter(io.BytesIO())
    writer.write(plain()[:end])
    with pytest.raises(DataError, match="not whole"):
        writer.finish()


@pytest.mark.parametrize("place", [6, 30, 60, 5000, -15, -300])
def test_a_changed_byte_is_found(place: int) -> None:
    data, file = encrypt(plain())
    changed = bytearray(data)
    changed[place] ^= 1
    with pytest.raises(DataError, match=r"f\.parquet: not a readable"):
        decrypt(bytes(changed), file.key, "f.parquet")


@pytest.mark.parametrize("content", [b"", b"PARE", b"x" * 100, b"PAR1" * 10, (9999).to_bytes(4, "little") + b"PARE"])
def test_other_files_are_no_encrypted_files(content: bytes) -> None:
    with pytest.raises(DataError, match=r"f\.parquet: not a readable"):
        decrypt(content, "A" * 22 + "==", "f.parquet")


def test_a_dictionary_with_several_pages_is_refused_since_duckdb_gets_lost_there() -> None:
    with pytest.raises(NotSupportedError, match="parquet_row_group_size"):
        encrypt(plain(use_dictionary=["few"], data_page_size=100))


def test_the_schema_tells_ids_of_fields(tmp_path: Path) -> None:
    ids = "FIELD_IDS {i: 1, nested: {__duckdb_field_id: 2, a: 3, b: {__duckdb_field_id: 4, element: 5}}}"
    data, file = encrypt(by_duckdb(tmp_path / "p.parquet", ids))
    elements = schema_elements(io.BytesIO(data), file.key, "x")
    assert [(e["name"], e["field_id"]) for e in elements if e["field_id"] is not None] == [
        ("i", 1),
        ("nested", 2),
        ("a", 3),
        ("b", 4),
        ("element", 5),
    ]
    assert {e["name"]: e["kind"] for e in elements}["b"] == "LIST"


def test_the_way_out_without_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(NotSupportedError, match=r"lakedbapi\[encryption\]"):
        encrypt(plain())


@pytest.mark.parametrize("value", [0, 1, -1, 63, -64, 127, 128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
def test_numbers_survive_thrift(value: int) -> None:
    fields: thrift.Struct = {
        1: (thrift.I64, value),
        20: (thrift.LIST, (thrift.I64, [value] * 20)),
        21: (thrift.TRUE, True),
        22: (thrift.FALSE, False),
        30: (thrift.LIST, (thrift.TRUE, [True, False])),
        31: (thrift.STRUCT, {5: (thrift.BINARY, b"x" * 300), 6: (thrift.DOUBLE, 1.5)}),
    }
    data = thrift.serialize(fields)
    found, end = thrift.parse(data + b"more")
    assert end == len(data)
    assert thrift.serialize(found) == data
    assert found[1][1] == value
    for cut in range(len(data)):
        with pytest.raises(thrift.Incomplete):
            thrift.parse(data[:cut])
