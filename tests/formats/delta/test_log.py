"""The log is replayed as the protocol says, whatever a writer left lying around."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakedbapi.errors import DataError, NotSupportedError, OperationalError, ProgrammingError
from lakedbapi.formats.delta.actions import Metadata, Protocol
from lakedbapi.formats.delta.checkpoint_writer import write_checkpoint
from lakedbapi.formats.delta.columns import TEXT_MAP
from lakedbapi.formats.delta.table import DeltaTable
from lakedbapi.storage.filesystem import Storage
from tests.formats.delta.conftest import Connect
from tests.formats.delta.writing import DV, Table, remove, with_vector


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t").create()


def ids(connect: Connect, table: Table, at: str = "") -> list[int]:
    rows = connect(table.path).execute(f"SELECT i FROM t{at} ORDER BY i").fetchall()
    return [i for (i,) in rows]


def paths(table: Table) -> list[str]:
    """What the log says, without a look at the files."""
    root = f"{table.path}/"
    return sorted(DeltaTable(Storage.of(root), root).latest().files["path"].to_pylist())


def checkpoint(table: Table, version: int, name: str = "checkpoint.parquet", **columns: list[object]) -> Path:
    """A checkpoint with the actions of the commits up to `version`, but for those given."""
    found: dict[str, object] = {}
    adds = []
    for number in range(version + 1):
        for line in (table.log / f"{number:020}.json").read_text().splitlines():
            action = json.loads(line)
            found |= {kind: value for kind, value in action.items() if kind in ("protocol", "metaData")}
            adds += [action["add"]] if "add" in action else []
    metadata = dict(found["metaData"])  # type: ignore[call-overload]
    metadata["configuration"] = list(metadata["configuration"].items())
    metadata["format"] = {"provider": "parquet", "options": []}
    text_map = pa.map_(pa.string(), pa.string())
    numbers = [(name, pa.int64()) for name in ("size", "modificationTime")]
    texts = [("path", pa.string()), ("partitionValues", text_map), ("stats", pa.string())]
    add_type = pa.struct([*texts, *numbers, ("dataChange", pa.bool_())])
    rows = {
        "protocol": [found["protocol"]],
        "metaData": [metadata],
        "add": [{**add, "partitionValues": list(add["partitionValues"].items())} for add in adds],
        **columns,
    }
    count = sum(len(values) for values in rows.values())
    arrays, start = {}, 0
    for kind, values in rows.items():
        padded = [None] * start + values + [None] * (count - start - len(values))
        arrays[kind] = pa.array(padded, add_type if kind == "add" else None)
        start += len(values)
    type = arrays["metaData"].type
    fields = [pa.field(f.name, text_map) if f.name == "configuration" else f for f in type]
    arrays["metaData"] = pa.array(arrays["metaData"].to_pylist(), pa.struct(fields))
    path = table.log / f"{version:020}.{name}"
    pq.write_table(pa.table({kind: array for kind, array in arrays.items() if len(array)}), path)
    return path


def test_lines_may_be_blank_or_end_in_cr_and_unknown_things_are_skipped(connect: Connect, table: Table) -> None:
    add = table.file("a.parquet", [1])
    table.commit({"commitInfo": {"operation": "WRITE"}}, {"aNewAction": {"x": 1}}, add)
    path = table.log / f"{1:020}.json"
    path.write_bytes(b"\r\n" + path.read_bytes().replace(b"\n", b"\r\n\r\n").rstrip())
    table.commit({"add": {**table.file("b.parquet", [2])["add"], "aNewField": [1]}})
    for name in ("_autostats", f"{1:020}.crc", f".{2:020}.json.crc", f"{3:020}.json.tmp", "3.json", f"{9:021}.json"):
        (table.log / name).write_text("nonsense")
    table.commit()  # a commit of nothing
    assert ids(connect, table) == [1, 2]


def test_a_line_that_is_no_json_names_the_commit(connect: Connect, table: Table) -> None:
    (table.log / f"{1:020}.json").write_text('{"add": ')
    with pytest.raises(DataError, match=r"00001\.json: the commit has a line that is not JSON"):
        ids(connect, table)


def test_a_value_of_the_wrong_type_names_the_commit(connect: Connect, table: Table) -> None:
    table.commit({"add": {**table.file("a.parquet", [1])["add"], "size": "large"}})
    with pytest.raises(DataError, match=r"00001\.json.*wrong type"):
        ids(connect, table)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("add", {"path": None}),
        ("add", {"size": 10**30}),
        ("add", {"modificationTime": 10**30}),
        ("add", {"deletionVector": {"storageType": "u", "offset": 1, "sizeInBytes": 44, "cardinality": 6}}),
        ("remove", {"path": None}),
        ("remove", {"deletionTimestamp": 10**30}),
        ("remove", None),
        ("metaData", {"id": ["a"]}),
        ("metaData", {"id": 3}),
        ("metaData", {"schemaString": ["a"]}),
        ("metaData", {"partitionColumns": 1}),
        ("metaData", {"partitionColumns": [1]}),
        ("metaData", {"configuration": "a"}),
        ("metaData", {"configuration": {"delta.enableDeletionVectors": ["true"]}}),
        ("metaData", {"format": {"provider": "parquet", "options": ["a"]}}),
        ("metaData", {"createdTime": "yesterday"}),
        ("protocol", {"readerFeatures": [1]}),
        ("protocol", {"writerFeatures": 1}),
        ("txn", {"appId": None}),
        ("domainMetadata", {"domain": None}),
        ("sidecar", {"path": None}),
    ],
)
def test_damaged_actions_name_the_commit(connect: Connect, tmp_path: Path, kind: str, change: Any) -> None:
    table = Table(tmp_path / "t").create()
    add = table.file("a.parquet", [1])
    lines = [json.loads(line) for line in (table.log / f"{0:020}.json").read_text().splitlines()]
    actions = {name: action for line in lines for name, action in line.items()}
    actions |= {**add, **remove(add), "txn": {"appId": "a", "version": 1}, "sidecar": {"path": "a"}}
    actions |= {"domainMetadata": {"domain": "d", "configuration": "", "removed": False}}
    action: Any = "none" if change is None else {**actions[kind], **change}
    table.commit(add)
    table.commit({kind: without_nones(action)})
    with pytest.raises(DataError, match=r"00002\.json: the (log|commit) has"):
        ids(connect, table)


def without_nones(action: Any) -> Any:
    return {name: value for name, value in action.items() if value is not None} if isinstance(action, dict) else action


@pytest.mark.parametrize("add_first", [True, False])
def test_a_file_with_another_vector_is_another_key(connect: Connect, tmp_path: Path, add_first: bool) -> None:
    table = Table(tmp_path / "t").create(protocol=DV)
    old = table.file("a.parquet", range(30))
    # The set {3, 4, 7, 11, 18, 29}.
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    new = with_vector(old, {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 44, "cardinality": 6})
    table.commit(old)
    table.commit(*([new, remove(old)] if add_first else [remove(old), new]))
    assert ids(connect, table) == [i for i in range(30) if i not in {3, 4, 7, 11, 18, 29}]
    table.commit(remove(old))  # of the file without a vector: that one is gone already
    assert len(ids(connect, table)) == 24
    table.commit(remove(new))
    assert ids(connect, table) == []


def test_vectors_at_two_places_of_a_file_are_two(table: Table) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA", "sizeInBytes": 36, "cardinality": 2}
    add = table.file("a.parquet", [1, 2, 3])
    first, second = (with_vector(add, {**vector, "offset": offset}) for offset in (1, 45))
    table.commit(first)
    table.commit(remove(first), second)
    table.commit(remove(first))
    assert paths(table) == ["a.parquet"]
    table.commit(remove(second))
    assert paths(table) == []


def test_a_vector_without_a_place_is_another_than_one_at_the_beginning(table: Table) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA", "sizeInBytes": 36, "cardinality": 2}
    add = with_vector(table.file("a.parquet", [1, 2, 3]), vector)
    table.commit(add)
    table.commit(remove(with_vector(add, {**vector, "offset": 0})))
    assert paths(table) == ["a.parquet"]
    table.commit(remove(add))
    assert paths(table) == []


def test_an_add_of_a_live_file_takes_its_place(connect: Connect, table: Table) -> None:
    add = table.file("a.parquet", [1, 2])
    table.commit(add)
    table.commit({"add": {**add["add"], "stats": '{"numRecords":2,"nullCount":{"i":0}}', "dataChange": False}})
    assert ids(connect, table) == [1, 2]


def test_a_file_can_come_back(connect: Connect, table: Table) -> None:
    add = table.file("a.parquet", [1])
    table.commit(add)
    table.commit(remove(add))
    assert ids(connect, table) == []
    table.commit(add)
    assert ids(connect, table) == [1]


@pytest.mark.parametrize(
    "spelled", ["file://{}/x%20y.parquet", "file:{}/x%20y.parquet", "{}/x%20y.parquet", "x y.parquet"]
)
def test_a_path_can_be_spelled_in_several_ways(connect: Connect, table: Table, spelled: str) -> None:
    add = table.file("x y.parquet", [1])
    other = {"add": {**add["add"], "path": spelled.format(table.path)}}
    table.commit(add)
    table.commit(remove(other))
    assert ids(connect, table) == []
    table.commit(other)
    assert ids(connect, table) == [1]


def test_paths_are_decoded_once(connect: Connect, table: Table) -> None:
    names = ["p=x%3Dy/a.parquet", "p=%/b.parquet", "é#?+&.parquet", "p=%2520/c.parquet", "a:b.parquet"]
    adds = [table.file(name, [number]) for number, name in enumerate(names)]
    adds[2]["add"]["path"] = "%c3%a9%23%3F+&.parquet"  # lower-case hex digits, a literal plus
    table.commit(*adds)
    assert ids(connect, table) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("path", ["../other.parquet", "a/../../other.parquet", "%2E%2E/other.parquet"])
def test_a_path_that_leads_out_of_the_table_is_refused(connect: Connect, table: Table, path: str) -> None:
    table.file("../other.parquet", [1])
    table.commit({"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}})
    with pytest.raises(DataError, match="leads out of the table's directory"):
        ids(connect, table)


def test_a_missing_version_is_an_error(connect: Connect, table: Table) -> None:
    table.commit(table.file("a.parquet", [1]), version=2)
    with pytest.raises(OperationalError, match="version 1 is missing"):
        ids(connect, table)


def test_a_version_that_does_not_exist_is_an_error(connect: Connect, table: Table) -> None:
    with pytest.raises(ProgrammingError, match=r"has no version 7.*versions 0 to 0 can be read"):
        ids(connect, table, " VERSION AS OF 7")


def test_a_checkpoint_stands_for_commits_that_are_gone(connect: Connect, table: Table) -> None:
    table.commit(table.file("a.parquet", [1]))
    checkpoint(table, 1)
    table.commit(table.file("b.parquet", [2]))
    for version in (0, 1):
        (table.log / f"{version:020}.json").unlink()
    assert ids(connect, table) == [1, 2]
    assert ids(connect, table, " VERSION AS OF 1") == [1]
    with pytest.raises(ProgrammingError, match=r"has no version 0.*versions 1 to 2 can be read"):
        ids(connect, table, " VERSION AS OF 0")


@pytest.mark.parametrize("hint", ['{"version":1,"size":9}', '{"version":7,"size":9}', "{", ""])
def test_the_hint_at_the_last_checkpoint_is_but_a_hint(connect: Connect, table: Table, hint: str) -> None:
    table.commit(table.file("a.parquet", [1]))
    table.commit(table.file("b.parquet", [2]))
    (table.log / "_last_checkpoint").write_text(hint)
    assert ids(connect, table) == [1, 2]


@pytest.mark.parametrize(
    "name",
    [
        "checkpoint.parquet",
        "checkpoint.0000000001.0000000002.parquet",
        f"checkpoint.{'0' * 8}-0000-0000-0000-{'0' * 12}.json",
    ],
)
def test_checkpoints_that_were_not_finished_are_passed_over(connect: Connect, table: Table, name: str) -> None:
    table.commit(table.file("a.parquet", [1]))
    content = checkpoint(table, 1, add=[]).read_bytes() if ".00" in name and name.endswith("parquet") else b""
    (table.log / f"{1:020}.checkpoint.parquet").unlink(missing_ok=True)
    (table.log / f"{1:020}.{name}").write_bytes(content)
    assert ids(connect, table) == [1]


def test_parts_of_two_checkpoints_make_none(connect: Connect, table: Table) -> None:
    table.commit(table.file("a.parquet", [1]))
    for part, parts in ((1, 2), (2, 3)):
        checkpoint(table, 1, f"checkpoint.{part:010}.{parts:010}.parquet", add=[])
    assert ids(connect, table) == [1]


def test_a_checkpoint_may_have_its_files_beside_it(connect: Connect, table: Table) -> None:
    """In the JSON form, whose parts have names that are escaped."""
    table.commit(add := table.file("a.parquet", [1]))
    table.commit(gone := table.file("b.parquet", [2]))
    first = [json.loads(line) for line in (table.log / f"{0:020}.json").read_text().splitlines()]
    domains = [{"domain": name, "configuration": "{}", "removed": name == "old"} for name in ("old", "new")]
    names = [f"{kind} 1.parquet" for kind in ("add", "remove")]
    sidecars = table.log / "_sidecars"
    sidecars.mkdir()
    for name, action in zip(names, (add, remove(gone)), strict=True):
        kind = next(iter(action))
        fields = {**action[kind], "partitionValues": []}
        type = pa.struct([(key, TEXT_MAP if value == [] else pa.scalar(value).type) for key, value in fields.items()])
        pq.write_table(pa.table({kind: pa.array([fields], type)}), sidecars / name)
    actions = [
        {"checkpointMetadata": {"version": 2}},
        *first,
        *({"domainMetadata": domain} for domain in domains),
        *({"sidecar": {"path": quote(name), "sizeInBytes": 1, "modificationTime": 1}} for name in names),
    ]
    path = table.log / f"{2:020}.checkpoint.{'0' * 8}-0000-0000-0000-{'0' * 12}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert ids(connect, table) == [1]
    root = f"{table.path}/"
    state = DeltaTable(Storage.of(root), root).latest()
    assert state.tombstones["path"].to_pylist() == ["b.parquet"]
    assert list(state.domains) == ["new"]
    table.commit({"domainMetadata": {**domains[1], "removed": True}})
    assert list(DeltaTable(Storage.of(root), root).latest().domains) == []


def test_a_checkpoint_may_have_its_files_in_itself(connect: Connect, table: Table) -> None:
    """Some in the JSON form, beside what it has in other files."""
    table.commit(add := table.file("a.parquet", [1]))
    table.commit(gone := table.file("b.parquet", [2]))
    first = [json.loads(line) for line in (table.log / f"{0:020}.json").read_text().splitlines()]
    path = table.log / f"{2:020}.checkpoint.{'0' * 8}-0000-0000-0000-{'0' * 12}.json"
    actions = [{"checkpointMetadata": {"version": 2}}, *first, add, remove(gone)]
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for version in (0, 1):
        (table.log / f"{version:020}.json").unlink()
    assert ids(connect, table) == [1]
    root = f"{table.path}/"
    assert DeltaTable(Storage.of(root), root).latest().tombstones["path"].to_pylist() == ["b.parquet"]


def test_a_damaged_checkpoint_is_passed_over_while_the_commits_are_there(connect: Connect, table: Table) -> None:
    table.commit(table.file("a.parquet", [1]))
    (table.log / f"{1:020}.checkpoint.parquet").write_bytes(b"PAR1 and then nothing")
    assert ids(connect, table) == [1]
    (table.log / f"{0:020}.json").unlink()
    with pytest.raises(DataError, match=r"00001\.checkpoint\.parquet: the checkpoint is no readable Parquet file"):
        ids(connect, table)


def test_an_older_checkpoint_takes_the_place_of_a_damaged_one(connect: Connect, table: Table) -> None:
    table.commit(table.file("a.parquet", [1]))
    root = f"{table.path}/"
    write_checkpoint(Storage.of(root), DeltaTable(Storage.of(root), root).latest())
    for version in (0, 1):
        (table.log / f"{version:020}.json").unlink()
    table.commit(table.file("b.parquet", [2]))
    (table.log / f"{2:020}.checkpoint.parquet").write_bytes(b"PAR1 and then nothing")
    assert ids(connect, table) == [1, 2]


def test_a_file_that_one_commit_removes_and_adds_is_there(connect: Connect, table: Table) -> None:
    """Whatever the order of the lines, which means nothing."""
    for add in (table.file("a.parquet", [1]), table.file("b.parquet", [2])):
        table.commit(add)
    table.commit(add, remove(add))
    assert ids(connect, table) == [1, 2]


def test_log_compactions_change_nothing(connect: Connect, table: Table) -> None:
    first = table.file("a.parquet", [1])
    table.commit(first)
    table.commit(remove(first), table.file("b.parquet", [2]))
    (table.log / f"{1:020}.{2:020}.compacted.json").write_text((table.log / f"{2:020}.json").read_text())
    assert ids(connect, table) == [2]


def test_a_snapshot_is_continued_when_the_log_grows(table: Table) -> None:
    root = f"{table.path}/"
    log = DeltaTable(Storage.of(root), root)
    table.commit(first := table.file("a.parquet", [1]))
    assert log.latest().files.num_rows == 1
    assert log.latest() is log.latest()
    table.commit(remove(first), table.file("b.parquet", [2]), table.file("c.parquet", [3]))
    assert (log.latest().version, log.latest().files["path"].to_pylist()) == (2, ["b.parquet", "c.parquet"])
    assert log.latest().tombstones["path"].to_pylist() == ["a.parquet"]


def test_a_table_that_was_made_anew_is_another_one(connect: Connect, table: Table) -> None:
    connection = connect(table.path, autocommit=True)
    table.commit(table.file("a.parquet", [1]))
    view = connection.catalog_view()
    before = view.table("main", "t")
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)
    for file in table.log.iterdir():
        file.unlink()
    table.version = -1
    table.create(id="two")
    table.commit()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    after = connection.catalog_view().table("main", "t")
    assert before is not None
    assert after is not None
    assert (before.uuid, after.uuid) == ("one", "two")
    assert before.id != after.id


def test_a_transaction_sees_one_version_of_a_table(connect: Connect, table: Table) -> None:
    connection = connect(table.path)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    table.commit(table.file("a.parquet", [1]))
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "reader of version 4"),
        (
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors", "aNewOne"],
                "writerFeatures": ["deletionVectors", "aNewOne"],
            },
            r"features that cannot be read: aNewOne \(",
        ),
        (
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["catalogManaged"],
                "writerFeatures": ["catalogManaged"],
            },
            "catalogManaged.*through a catalog",
        ),
        (
            {"minReaderVersion": 2, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": []},
            "its protocol is damaged",
        ),
        (
            {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": []},
            "deletionVectors for readers but not for writers",
        ),
    ],
)
def test_what_a_reader_must_know_and_does_not_is_named(
    connect: Connect, tmp_path: Path, protocol: dict[str, object], reason: str
) -> None:
    table = Table(tmp_path / "t").create(protocol=protocol)
    with pytest.raises(NotSupportedError, match=reason):
        ids(connect, table)


def test_features_of_writers_do_not_stop_readers(connect: Connect, tmp_path: Path) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["aNewOne", "rowTracking"]}
    table = Table(tmp_path / "t").create(protocol=protocol)
    table.commit(table.file("a.parquet", [1]))
    assert ids(connect, table) == [1]


@pytest.mark.parametrize("missing", ["protocol", "metaData"])
def test_a_log_without_protocol_or_metadata_is_damaged(connect: Connect, table: Table, missing: str) -> None:
    path = table.log / f"{0:020}.json"
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines() if missing not in line))
    with pytest.raises(DataError, match=f"it has no {missing} action up to version 0"):
        ids(connect, table)


def test_protocol_and_metadata_keep_what_is_not_known() -> None:
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "appendOnly"],
        "aNewField": {"x": [1]},
    }
    metadata = {
        "id": "one",
        "name": "t",
        "description": "about it",
        "format": {"provider": "parquet", "options": {"a": "b"}},
        "schemaString": "{}",
        "partitionColumns": ["p"],
        "configuration": {"delta.appendOnly": "true"},
        "createdTime": 5,
        "aNewField": True,
    }
    assert Protocol.from_json(protocol).to_json() == protocol
    assert Metadata.from_json(metadata).to_json() == metadata
    assert Protocol.from_json({"minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": None}).to_json() == {
        "minReaderVersion": 1,
        "minWriterVersion": 2,
    }
