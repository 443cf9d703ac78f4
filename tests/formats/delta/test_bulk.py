"""Many actions are read at once, to the same columns as one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakedbapi.formats.delta import commits as commits_module
from lakedbapi.formats.delta.bulk import read_lines, split_lines
from lakedbapi.formats.delta.columns import ADDS, REMOVES, from_json
from lakedbapi.formats.delta.commits import parse_commits

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 34, "cardinality": 2}


def add(number: int, **fields: Any) -> dict[str, Any]:
    plain = {
        "path": f"p=%C3%A9/{number}.parquet",
        "partitionValues": {"p": "é", "q": None},
        "size": number,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": '{"numRecords":1,"minValues":{"day":"2020-01-01"}}',
    }
    return {**plain, **fields}


USUAL = [
    add(0, tags={"a": "1", "b": "2"}),
    add(1),
    add(2, partitionValues={"p": None, "q": "2020-01-01"}, stats=None, tags=None),
    add(3, tags={"b": "3"}, deletionVector=VECTOR),
    add(4, deletionVector={**VECTOR, "offset": 1}, baseRowId=5, defaultRowCommitVersion=6, clusteringProvider="liquid"),
    add(5, dataChange=False, tags={}),
]


def bulk(actions: list[dict[str, Any]], kind: str = "add") -> Any:
    contents = [json.dumps({kind: action}).encode() for action in actions]
    lines, rest = split_lines(contents)
    assert not any(rest)
    return read_lines(kind, lines[kind], list(range(len(contents))), ADDS if kind == "add" else REMOVES)


def test_the_columns_are_the_same() -> None:
    assert bulk(USUAL) == from_json(USUAL, list(range(len(USUAL))), ADDS)


def test_tables_without_partitions_have_empty_maps() -> None:
    actions = [add(number, partitionValues={}) for number in range(3)]
    assert bulk(actions) == from_json(actions, [0, 1, 2], ADDS)


def test_removes_may_say_little_or_much() -> None:
    much = {"path": "a", "deletionTimestamp": 5, "dataChange": True, "extendedFileMetadata": True, "size": 1}
    much |= {"partitionValues": {"p": "x"}, "stats": "{}", "tags": {"a": "b"}, "deletionVector": VECTOR}
    actions = [much, {"path": "b", "dataChange": True}, {"path": "c", "dataChange": False, "partitionValues": None}]
    assert bulk(actions, "remove") == from_json(actions, [0, 1, 2], REMOVES)


@pytest.mark.parametrize(
    "odd",
    [
        add(9, aNewField=1),
        add(9, partitionValues={"p": "x", "q": "y", "r": "z"}),
        add(9, tags={"c": "1"}),
        add(9, size="9"),
        add(9, partitionValues={"p": 1}),
    ],
)
def test_what_is_unusual_is_left_to_a_closer_look(odd: dict[str, Any]) -> None:
    assert bulk([*USUAL, odd]) is None


def test_damaged_lines_are_left_to_a_closer_look() -> None:
    lines, _ = split_lines([json.dumps({"add": add(0)}).encode(), b'{"add":{"path":'])
    assert read_lines("add", lines["add"], [0, 0], ADDS) is None


def test_lines_are_told_apart_by_kind_and_commit() -> None:
    contents = [b'{"add":1}\n{"add":2}\n{"txn":1}\n{"add":3}', b"", b'\n{"remove":4}\n{"ad":5}\n', b'{"add":6}\n{']
    lines, rest = split_lines(contents)
    assert lines["add"].text.split() == [b'{"add":1}', b'{"add":2}', b'{"add":3}', b'{"add":6}']
    assert lines["add"].contents.tolist() == [0, 0, 0, 3]
    assert (lines["remove"].text, lines["remove"].contents.tolist()) == (b'{"remove":4}', [2])
    assert [text.split() for text in rest] == [[b'{"txn":1}'], [], [b'{"ad":5}'], [b"{"]]


@pytest.mark.parametrize("odd", [[], [add(9, aNewField=1)]], ids=["usual", "unusual"])
@pytest.mark.parametrize("piece", [1, 1 << 30], ids=["apart", "together"])
def test_large_commits_are_read_whole(odd: list[dict[str, Any]], piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than what is read one by one, in two commits, with other actions between."""
    monkeypatch.setattr(commits_module, "_PIECE", piece)
    first = [add(number) for number in range(4000)]
    second = [add(number) for number in range(4000, 8000)] + odd
    commits = []
    for version, actions in enumerate((first, second)):
        entries = [{"commitInfo": {"operation": "WRITE"}}, *({"add": action} for action in actions)]
        entries.insert(5, {"txn": {"appId": "app", "version": version}})
        entries.insert(6, {"metaData": {"id": "one", "schemaString": "{}", "name": f"{version}"}})
        entries.insert(7, {"protocol": {"minReaderVersion": 1, "minWriterVersion": version + 2}})
        entries.insert(8, {"domainMetadata": {"domain": "d", "configuration": f"{version}", "removed": False}})
        entries.append({"remove": {"path": f"{version}", "dataChange": True}})
        content = "".join(json.dumps(entry, separators=(",", ":")) + "\r\n\n" for entry in entries).encode()
        assert len(content) > 500_000
        commits.append((version, f"{version}.json", content))
    found = parse_commits(commits)
    assert found.adds == from_json(first + second, [0] * len(first) + [1] * len(second), ADDS)
    assert (found.removes["path"].to_pylist(), found.removes["version"].to_pylist()) == (["0", "1"], [0, 1])
    assert (found.txns["app"].version, sorted(found.infos)) == (1, [0, 1])
    assert found.metadata is not None
    assert found.protocol is not None
    assert (found.metadata.name, found.protocol.min_writer, found.domains["d"].configuration) == ("1", 3, "1")
