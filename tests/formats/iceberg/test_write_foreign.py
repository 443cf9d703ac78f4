"""Tables that other programs wrote, with deletes that none of ours are, are changed and restored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakedbapi
from lakedbapi.errors import NotSupportedError
from tests.formats.iceberg.building import Table
from tests.formats.iceberg.columns import ID, KEY
from tests.formats.iceberg.writing import Lake, values


class Place(Lake):
    def adopt(self, made: Table) -> lakedbapi.Connection:
        """A connection to the catalog, in which the table is `t` now."""
        connection = self.connect()
        self.catalog.create_namespace_if_not_exists("main")
        self.catalog.register_table("main.t", made.metadata())
        return connection


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.close()


def test_versions_with_position_files_about_several_data_files_are_compared(tmp_path: Path, place: Place) -> None:
    """The metadata do not say how many rows of each file such a delete file hits."""
    made = Table(tmp_path, ID)
    first, second = made.data({"id": [1, 2, 3]}), made.data({"id": [4, 5]})
    before = made.commit(first, second)
    after = made.commit(made.positions({first: [0, 2], second: [1]}))
    connection = place.adopt(made)
    assert connection.execute(f"RESTORE TABLE t TO VERSION AS OF {before}").rowcount == 3
    assert values(connection, "SELECT id FROM t") == [1, 2, 3, 4, 5]
    assert connection.execute(f"RESTORE TABLE t TO VERSION AS OF {after}").rowcount == 3
    assert values(connection, "SELECT id FROM t") == [2, 4]


def test_versions_with_equality_deletes_are_not_compared(tmp_path: Path, place: Place) -> None:
    made = Table(tmp_path, ID)
    before = made.commit(made.data({"id": [1, 2, 3]}))
    made.commit(made.equality({"id": [2]}, [1]))
    connection = place.adopt(made)
    with pytest.raises(NotSupportedError, match="versions with equality deletes cannot be compared"):
        connection.execute(f"RESTORE TABLE t TO VERSION AS OF {before}")
    assert values(connection, "SELECT id FROM t") == [1, 3]


def test_encrypted_tables_are_refused(tmp_path: Path, place: Place) -> None:
    """No manifest of theirs can be read, and what is written as it is would lay their rows open."""
    made = Table(tmp_path, ID)
    made.commit(made.data({"id": [1]}))
    made.properties["encryption.key-id"] = "k1"
    connection = place.adopt(made)
    for statement in ("SELECT * FROM t", "INSERT INTO t VALUES (2)", "DELETE FROM t", "VACUUM t"):
        with pytest.raises(NotSupportedError, match=r"main\.t is encrypted \(encryption\.key-id\)"):
            connection.execute(statement)
    with pytest.raises(NotSupportedError, match="'u' cannot be encrypted here"):
        connection.execute("CREATE TABLE u (id INTEGER) WITH ('encryption.key-id' = 'k1')")
    connection.execute("CREATE TABLE u (id INTEGER)")
    with pytest.raises(NotSupportedError, match="'u' cannot be encrypted here"):
        connection.execute("ALTER TABLE u SET ('encryption.key-id' = 'k1')")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_that_deletes_of_other_writers_left_are_changed(
    tmp_path: Path, place: Place, version: int, mode: str
) -> None:
    """Next to equality deletes, of which nobody knows how many rows they hit."""
    made = Table(tmp_path, ID, KEY, version=version)
    data = made.data({"id": list(range(12)), "k": ["a", "b", None] * 4})
    made.commit(data, made.data({"id": [100, 101], "k": ["a", "z"]}))
    made.commit(made.equality({"k": ["a"]}, [2]))
    made.commit(made.vectors({data: [1, 2]}) if version == 3 else made.positions({data: [1, 2]}))
    connection = place.adopt(made)
    for kind in ("delete", "update", "merge"):
        connection.execute(f"ALTER TABLE t SET ('write.{kind}.mode' = '{mode}')")
    assert values(connection, "SELECT id FROM t") == [4, 5, 7, 8, 10, 11, 101]
    assert connection.execute("DELETE FROM t WHERE id BETWEEN 9 AND 100").rowcount == 2
    assert connection.execute("UPDATE t SET k = 'a' WHERE id = 4").rowcount == 1
    source = "(SELECT unnest([3, 4, 5]) AS id) AS s"
    merge = f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES"
    assert connection.execute(f"{merge} (s.id, 'a')").rowcount == 3
    assert values(connection, "SELECT id FROM t") == [3, 7, 8, 101]
    assert connection.execute("DELETE FROM t WHERE id >= 0").rowcount == 4
    assert values(connection, "SELECT id FROM t") == []
