"""Columns that changed since their files were written, and files of old versions and other programs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.transforms import YearTransform
from pyiceberg.types import (
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
)

import lakedbapi
from tests.formats.iceberg.building import Table
from tests.formats.iceberg.columns import ID, INT_KEY, KEY, LONG_KEY, PART, identity


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_is_read(tmp_path: Path, version: int) -> None:
    table = Table(tmp_path, ID, KEY, version=version)
    assert table.ids() == []
    table.commit(table.data({"id": [1, 2], "k": ["a", None]}))
    table.commit(table.data({"id": [3], "k": ["c"]}))
    assert table.rows() == [(1, "a"), (2, None), (3, "c")]


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, version=3)
    path = Path(table.metadata())
    path.write_text(path.read_text().replace('"format-version": 3', '"format-version": 4'))
    with (
        lakedbapi.connect(f"iceberg:///{path}") as connection,
        pytest.raises(lakedbapi.NotSupportedError, match="format version 4; versions 1, 2 and 3"),
    ):
        connection.cursor().execute("SELECT 1 FROM t")


def test_compressed_metadata(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    table.commit(table.data({"id": [1]}))
    path = Path(table.metadata())
    packed = path.with_name("v9.gz.metadata.json")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with lakedbapi.connect(f"iceberg:///{table.root}") as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_metadata_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t" / "metadata" / "v1.metadata.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with (
        lakedbapi.connect(f"iceberg:///{path}") as connection,
        pytest.raises(lakedbapi.DataError, match="is no metadata of an Iceberg table"),
    ):
        connection.cursor().execute("SELECT 1 FROM t")


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    table.commit(table.data({"id": [1]}))
    (manifest,) = (table.root / "metadata").glob("*-m.avro")
    manifest.write_bytes(manifest.read_bytes()[:100])
    with pytest.raises(lakedbapi.DataError, match=manifest.name):
        table.ids()


def test_a_moved_table_is_read_where_it_is(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    data = table.data({"id": [1, 2, 3]})
    table.commit(data, table.positions({data: [1]}))
    table.metadata()
    table.root.rename(tmp_path / "elsewhere")
    with lakedbapi.connect(f"iceberg:///{tmp_path}/elsewhere") as connection:
        assert sorted(connection.execute("SELECT id FROM elsewhere").fetchall()) == [(1,), (3,)]


def test_a_name_that_was_dropped_and_added_again_is_another_column(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    table.commit(table.data({"id": [1], "k": ["old"]}))
    table.evolve(ID, KEY.model_copy(update={"field_id": 7}))
    table.commit(table.data({"id": [2], "k": ["new"]}))
    assert table.rows() == [(1, None), (2, "new")]
    assert table.rows("SELECT id FROM t WHERE k = 'old'") == []
    assert table.rows("SELECT id FROM t WHERE k IS NULL") == [(1,)]


def metrics(lower: bytes, upper: bytes, id: int = 2) -> dict[str, dict[int, object]]:
    return {
        "lower_bounds": {id: lower},
        "upper_bounds": {id: upper},
        "value_counts": {id: 2},
        "null_value_counts": {id: 0},
    }


def test_bounds_of_before_a_column_was_widened(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, INT_KEY)
    old = {"id": [1, 2], "n": [1, 100]}
    table.commit(table.data(old, **metrics((1).to_bytes(4, "little"), (100).to_bytes(4, "little"))))
    table.evolve(ID, LONG_KEY)
    new = {"id": [3, 4], "n": [2**31, 2**40]}
    table.commit(table.data(new, **metrics((2**31).to_bytes(8, "little"), (2**40).to_bytes(8, "little"))))
    assert table.rows("SELECT id FROM t WHERE n > 2147483647") == [(3,), (4,)]
    assert table.rows("SELECT id FROM t WHERE n = 1") == [(1,)]
    assert "1 of 2" in str(table.rows("EXPLAIN SELECT id FROM t WHERE n = 1"))


def test_a_float_and_a_date_that_were_widened(tmp_path: Path) -> None:
    narrow = NestedField(2, "f", FloatType(), required=False), NestedField(3, "d", DateType(), required=False)
    table = Table(tmp_path, ID, *narrow, version=3)
    table.commit(table.data({"id": [1], "f": [1.5], "d": [19_000]}))
    table.evolve(
        ID,
        NestedField(2, "f", DoubleType(), required=False),
        NestedField(3, "d", TimestampType(), required=False),
    )
    assert table.rows("SELECT id, f, d::VARCHAR FROM t WHERE d > '2022-01-07'") == [(1, 1.5, "2022-01-08 00:00:00")]


def test_truncated_bounds(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY)
    values = {"id": [1, 2], "k": ["aaaaaaaaaaaaaaaaZ", "zzzzzzzzzzzzzzzzzz"]}
    table.commit(table.data(values, **metrics(b"aaaaaaaaaaaaaaaa", b"zzzzzzzzzzzzzzz{")))
    assert table.rows("SELECT id FROM t WHERE k = 'zzzzzzzzzzzzzzzzzz'") == [(2,)]
    assert table.rows("SELECT id FROM t WHERE k LIKE 'aaaaaaaaaaaaaaaaZ%'") == [(1,)]


def test_nested_fields_are_found_by_id(tmp_path: Path) -> None:
    def column(*fields: NestedField) -> NestedField:
        return NestedField(2, "s", StructType(*fields), required=False)

    a, b = NestedField(3, "a", IntegerType(), required=False), NestedField(4, "b", StringType(), required=False)
    table = Table(tmp_path, ID, column(a, b), version=3)
    table.commit(table.data({"id": [1, 2], "s": [{"a": 1, "b": "x"}, None]}))
    wide = NestedField(3, "renamed", LongType(), required=False)
    added = NestedField(5, "a", StringType(), required=False, initial_default="new")
    table.evolve(ID, column(added, wide))
    assert table.rows("SELECT id, s FROM t") == [(1, {"a": "new", "renamed": 1}), (2, None)]


def test_elements_of_lists_and_maps_are_found_by_id(tmp_path: Path) -> None:
    def columns(name: str) -> tuple[NestedField, NestedField]:
        item = StructType(NestedField(6, name, IntegerType(), required=False))
        return (
            NestedField(2, "l", ListType(3, item, element_required=False), required=False),
            NestedField(
                4, "m", MapType(7, StringType(), 8, StructType(NestedField(9, name, IntegerType()))), required=False
            ),
        )

    table = Table(tmp_path, ID, *columns("x"))
    table.commit(table.data({"id": [1], "l": [[{"x": 1}, None]], "m": [[("k", {"x": 5})]]}))
    table.evolve(ID, *columns("y"))
    assert table.rows("SELECT id, l, m FROM t") == [(1, [{"y": 1}, None], {"k": {"y": 5}})]


MAPPING = '[{"field-id": 1, "names": ["id", "ID_OLD"]}, {"field-id": 2, "names": ["other", "key"]}]'


def test_files_without_ids_beside_files_with_ids(tmp_path: Path) -> None:
    """The mapping is for files without ids only: in others a column has the id that it has."""
    table = Table(tmp_path, ID, KEY, **{"schema.name-mapping.default": MAPPING})
    with_ids = table.data({"id": [1], "k": ["a"]})
    without = table.data({"id": [2], "k": ["ignored"]}, ids=False)
    plain = tmp_path / "t" / "data" / "plain.parquet"
    pq.write_table(pa.table({"ID_OLD": [3], "key": ["c"]}), plain)
    table.commit(with_ids, without, table._file(0, str(plain), 1, (), None, more={}))
    assert table.rows() == [(1, "a"), (2, None), (3, "c")]


def test_equality_deletes_reach_files_without_ids(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, KEY, **{"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'})
    table.commit(table.data({"id": [1, 2]}, ids=False), table.data({"id": [3]}))
    table.commit(table.equality({"id": [2, 3]}, [1]))
    assert table.ids() == [1]


def test_a_dropped_key_is_found_in_files_without_ids(tmp_path: Path) -> None:
    mapping = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["k"]}]'
    table = Table(tmp_path, ID, KEY, **{"schema.name-mapping.default": mapping})
    table.commit(table.data({"id": [1, 2], "k": ["a", "b"]}, ids=False))
    table.commit(table.equality({"k": ["b"]}, [2]))
    table.evolve(ID)
    assert table.ids() == [1]
    table.evolve(ID, KEY.model_copy(update={"field_id": 9}))
    assert table.ids() == [1]


def test_names_count_where_the_mapping_has_them(tmp_path: Path) -> None:
    """A column is not taken for absent because a nested field has one of its other names."""
    inner = NestedField(3, "x", IntegerType(), required=False)
    struct = NestedField(2, "s", StructType(inner), required=False)
    mapping = (
        '[{"field-id": 1, "names": ["x", "id"]}, '
        '{"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["id", "x"]}]}]'
    )
    table = Table(tmp_path, ID, struct, **{"schema.name-mapping.default": mapping})
    plain = tmp_path / "t" / "data" / "plain.parquet"
    pq.write_table(pa.table({"id": [1], "s": [{"x": 5}]}), plain)
    table.commit(table._file(0, str(plain), 1, (), None, more={}))
    assert table.rows("SELECT id, s.x FROM t") == [(1, 5)]


def test_an_identity_partition_column_that_files_lack(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, PART.model_copy(update={"required": True}))
    table.partition((2, identity()))
    table.commit(table.data({"id": [1]}, (7,)), table.data({"id": [2]}, (8,)))
    assert table.rows() == [(1, 7), (2, 8)]
    assert table.rows("SELECT id FROM t WHERE p = 8") == [(2,)]
    table.commit(table.equality({"p": [7]}, [2], (), spec=0))
    assert table.rows() == [(2, 8)]


def test_other_file_formats_are_refused_by_name(tmp_path: Path) -> None:
    table = Table(tmp_path, ID)
    data = table.data({"id": [1]})
    object.__setattr__(data, "format", "ORC")
    table.commit(data)
    with pytest.raises(lakedbapi.NotSupportedError, match="data files of format 'orc'"):
        table.ids()


def test_a_broken_table_leaves_others_alone(tmp_path: Path) -> None:
    """Also where its name stands in the statement as something else."""
    good, bad = Table(tmp_path / "lake", ID), tmp_path / "lake" / "id" / "metadata"
    good.commit(good.data({"id": [1]}))
    good.metadata()
    bad.mkdir(parents=True)
    (bad / "v1.metadata.json").write_text("{}")
    with lakedbapi.connect(f"iceberg:///{tmp_path}/lake") as connection:
        assert connection.execute("SELECT id FROM t").fetchall() == [(1,)]
        assert connection.execute("SELECT table_name FROM information_schema.tables").fetchall() == [("t",)]
        assert connection.execute("SHOW TABLES").fetchall() == [("id",), ("t",)]
        with pytest.raises(lakedbapi.DataError, match="no metadata"):
            connection.execute("SELECT * FROM main.id")


def test_a_connection_at_a_snapshot_of_one_table(tmp_path: Path) -> None:
    a = Table(tmp_path / "lake", ID)
    first = a.commit(a.data({"id": [1]}))
    a.commit(a.data({"id": [2]}))
    a.metadata()
    (tmp_path / "lake" / "id" / "metadata").mkdir(parents=True)
    other = Table(tmp_path / "other", ID)
    (tmp_path / "lake" / "id" / "metadata" / "v1.metadata.json").write_bytes(Path(other.metadata()).read_bytes())
    with lakedbapi.connect(f"iceberg:///{tmp_path}/lake", as_of=first) as connection:
        assert connection.execute("SELECT id FROM t").fetchall() == [(1,)]
        with pytest.raises(lakedbapi.ProgrammingError, match=f"table main.id has no snapshot {first}"):
            connection.execute("SELECT * FROM main.id")


def test_days_that_nanoseconds_cannot_count(tmp_path: Path) -> None:
    """A date that was widened may lie far outside of what the new type can hold: nothing follows from its bounds."""
    table = Table(tmp_path, ID, NestedField(2, "d", DateType(), required=False), version=3)
    day, far = (19_000).to_bytes(4, "little"), (2_932_896).to_bytes(4, "little")  # 2022-01-08, 9999-12-31
    table.commit(table.data({"id": [1], "d": [19_000]}, **metrics(day, far)))
    table.evolve(ID, NestedField(2, "d", TimestampNanoType(), required=False))
    assert table.rows("SELECT id FROM t WHERE d >= '2022-01-08'") == [(1,)]
    assert table.rows("SELECT id FROM t WHERE d < '2022-01-08'") == []


def test_partitions_that_nanoseconds_cannot_count(tmp_path: Path) -> None:
    table = Table(tmp_path, ID, NestedField(2, "d", TimestampNanoType(), required=False), version=3)
    table.partition((2, YearTransform()))
    table.commit(table.data({"id": [1], "d": [0]}, (8029,)), table.data({"id": [2], "d": [0]}, (0,)))
    assert table.rows("SELECT id FROM t WHERE d < '1971-01-01'") == [(1,), (2,)]
    assert table.rows("SELECT id FROM t WHERE d >= '1971-01-01'") == []
