"""What a statement reads and writes again: nothing that it knows."""

from __future__ import annotations

import errno
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.io import OutputFile
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

import lakedbapi
from lakedbapi.deletes import parquet
from lakedbapi.formats.iceberg import attempt, sql_catalog
from lakedbapi.formats.iceberg.paths import Paths
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.storage import exclusive
from tests.formats.iceberg.writing import Lake, values


def filled(place: Lake) -> lakedbapi.Connection:
    """Three files in three manifests."""
    lake = place.connect()
    place.create(lake)
    for first in (0, 10, 20):
        lake.execute(f"INSERT INTO t SELECT i, 's' || i FROM range({first}, {first + 10}) r(i)")
    return lake


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts of metadata that are parsed from now on."""
    parsed: list[str] = []
    parse = TableMetadataUtil.parse_raw

    def counting(data: str) -> TableMetadata:
        parsed.append(data)
        return parse(data)

    monkeypatch.setattr(TableMetadataUtil, "parse_raw", staticmethod(counting))
    return parsed


def test_metadata_that_the_connection_wrote_is_not_parsed(place: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(place)
    lake.execute("DELETE FROM t WHERE a = 1")
    parsed = counted(monkeypatch)
    lake.execute("DELETE FROM t WHERE a = 2")
    lake.execute("UPDATE t SET s = 'x' WHERE a = 3")
    assert values(lake, "SELECT count(*) FROM t") == [28]
    assert parsed == []


def test_delete_files_that_the_process_wrote_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Lake(tmp_path, 2)
    lake = filled(place)
    lake.execute("DELETE FROM t WHERE a IN (1, 11, 21)")
    decoded: list[str] = []
    monkeypatch.setattr(parquet, "_decode_by_path", lambda _, path: decoded.append(path))
    lake.execute("DELETE FROM t WHERE a IN (2, 12)")
    lake.execute("UPDATE t SET s = 'x' WHERE a = 22")
    assert values(lake, "SELECT a FROM t WHERE a < 4 OR a > 20 ORDER BY a") == [0, 3, *range(22, 30)]
    assert decoded == []
    place.close()


def test_metadata_of_others_is_parsed_once(place: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(place)
    other = place.connect()
    other.execute("DELETE FROM t WHERE a = 1")
    parsed = counted(monkeypatch)
    lake.execute("DELETE FROM t WHERE a = 2")
    assert values(lake, "SELECT count(*) FROM t") == [28]
    assert len(parsed) == 1


def test_kept_metadata_is_what_the_file_says(place: Lake) -> None:
    lake = filled(place)
    lake.execute("DELETE FROM t WHERE a = 1")
    lake.execute("ALTER TABLE t ADD COLUMN n INTEGER")
    lake.execute("UPDATE t SET s = 'x' WHERE a = 3")
    (catalog,) = lake._session._catalogs.values()  # type: ignore[attr-defined]
    assert isinstance(catalog.source, CatalogSource)
    kept = catalog.source.client.load_table(("main", "t"))
    assert kept.metadata == TableMetadataUtil.parse_raw(Path(kept.metadata_location[len("file://") :]).read_text())
    assert kept.metadata == place.table().metadata


def test_an_upgraded_table_has_the_row_ids_of_its_file(tmp_path: Path) -> None:
    place = Lake(tmp_path, 2)
    lake = filled(place)
    lake.execute("ALTER TABLE t SET ('format-version' = '3')")
    for a in (1, 2):
        lake.execute(f"DELETE FROM t WHERE a = {a}")
        lake.execute(f"INSERT INTO t VALUES ({100 + a}, 'new')")
    assert place.table().metadata.next_row_id == 32
    assert values(place.connect(), "SELECT rowid FROM t WHERE a > 100") == [30, 31]
    place.close()


def test_metadata_is_on_disk_before_the_catalog_points_to_it(place: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(place)
    before = place.table().metadata_location
    linked: list[tuple[str, str]] = []

    def link(temporary: str, path: str) -> None:
        exclusive.link_complete(temporary, path)
        linked.append((path, place.table().metadata_location))

    monkeypatch.setattr(sql_catalog, "link_complete", link)
    lake.execute("DELETE FROM t WHERE a = 1")
    assert [(f"file://{path}", then) for path, then in linked] == [(place.table().metadata_location, before)]


def test_half_of_a_metadata_file_is_never_seen(place: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(place)
    folder = Path(place.table().metadata_location.removeprefix("file://")).parent
    before = {file.name: file.read_bytes() for file in folder.glob("*.json")}

    def write_half(metadata: object, output: OutputFile) -> None:
        with output.create() as stream:
            stream.write(b'{"format-version": ')
        assert {file.name: file.read_bytes() for file in folder.glob("*.json") if file.name[0] != "."} == before
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(ToOutputFile, "table_metadata", write_half)
        with pytest.raises(lakedbapi.OperationalError, match="No space left"):
            lake.execute("DELETE FROM t WHERE a = 1")
    assert {file.name: file.read_bytes() for file in folder.glob("*.json")} == before
    assert [file.name for file in folder.glob(".*")] == []
    lake.execute("DELETE FROM t WHERE a = 1")
    assert values(place.connect(), "SELECT min(a) FROM t") == [0]


def test_manifests_of_other_files_are_not_read(place: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(place)
    lake.execute("DELETE FROM t WHERE a = 1")
    read: list[str] = []
    monkeypatch.setattr(
        attempt.Attempt,
        "_entries",
        lambda self, file, real=attempt.Attempt._entries: (read.append(file.path), real(self, file))[1],
    )
    lake.execute("DELETE FROM t WHERE a = 11")
    assert read == []
    lake.execute("DELETE FROM t WHERE a = 2")
    assert len(read) == 1
    assert values(lake, "SELECT a FROM t WHERE a < 12") == [0, 3, 4, 5, 6, 7, 8, 9, 10]


def test_a_table_that_was_found_before_is_looked_up_by_its_name(place: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(place)
    lake.execute("DELETE FROM t WHERE a = 1")
    listed: list[str] = []
    for name in ("namespaces", "tables"):
        monkeypatch.setattr(CatalogSource, name, lambda *_, name=name: listed.append(name) or [])
    lake.execute("DELETE FROM t WHERE a = 2")
    lake.execute("DELETE FROM MAIN.T WHERE a = 3")
    assert listed == []
    monkeypatch.undo()
    assert values(lake, "SELECT count(*) FROM t") == [27]


def test_names_that_others_changed_meanwhile(place: Lake) -> None:
    lake, other = filled(place), place.connect()
    lake.execute("CREATE SCHEMA s")
    place.create(lake, "s.u")
    lake.execute("INSERT INTO s.u VALUES (1, 'x')")
    assert values(lake, "SELECT count(*) FROM s.u") == [1]
    other.execute("ALTER TABLE t RENAME TO t2")
    other.execute("DROP TABLE s.u")
    with pytest.raises(lakedbapi.ProgrammingError, match=r"table t does not exist.*did you mean t2"):
        lake.execute("DELETE FROM t WHERE a = 1")
    with pytest.raises(lakedbapi.ProgrammingError, match="u does not exist"):
        lake.execute("DELETE FROM s.u")
    other.execute("DROP SCHEMA s")
    with pytest.raises(lakedbapi.ProgrammingError, match="there is no schema"):
        lake.execute("DELETE FROM s.u")
    lake.execute("CREATE SCHEMA s")
    place.create(other, "s.u")
    other.execute("INSERT INTO s.u VALUES (1, 'x'), (2, 'y')")
    assert values(lake, "SELECT count(*) FROM s.u") == [2]
    assert lake.execute("DELETE FROM t2 WHERE a = 1").rowcount == 1


@pytest.mark.parametrize(
    ("paths", "text", "expected"),
    [
        (Paths(), "/a/b", "/a/b"),
        (Paths(), "file:/a/b", "/a/b"),
        (Paths(), "file:///a/b", "/a/b"),
        (Paths(), "file://host/a/b", "/a/b"),
        (Paths(), "s3://bucket/file:/b", "s3://bucket/file:/b"),
        (Paths(base="/base"), "./a/b", "/base/a/b"),
        (Paths(base="/base"), "a/./b", "/base/a/./b"),
        (Paths(("s3://x/t", "/here")), "s3://x/t/a", "/here/a"),
        (Paths(("s3://x/t", "/here")), "s3://x/t", "/here"),
        (Paths(("s3://x/t", "/here")), "s3://x/t2/a", "s3://x/t2/a"),
        (Paths(("file:/x", "/here")), "file:/x/a", "/here/a"),
    ],
)
def test_one_path_is_what_it_is_among_others(paths: Paths, text: str, expected: str) -> None:
    assert paths.full(text) == expected
    assert paths.full_all(pa.array([text, "/other"]))[0].as_py() == expected
