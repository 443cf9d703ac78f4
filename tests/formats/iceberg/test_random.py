"""Random histories against the rules of the specification, applied row by row."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.iceberg.building import File, Table
from tests.formats.iceberg.columns import ID, PART, identity

KEYS = st.one_of(st.none(), st.integers(0, 5))
SPECS = (0, 1)
"""Unpartitioned, and partitioned by `p`."""


@dataclass
class Row:
    id: int | None
    p: int


@dataclass
class Model:
    """Every data file with its rows, and every delete with its sequence number."""

    data: list[tuple[File, int, list[Row]]] = field(default_factory=list)
    equality: list[tuple[int, int, tuple[int, ...], list[int | None]]] = field(default_factory=list)
    positions: list[tuple[str, int, int]] = field(default_factory=list)

    def rows(self) -> list[tuple[int | None, int]]:
        return [
            (row.id, row.p)
            for file, number, rows in self.data
            for position, row in enumerate(rows)
            if not self._is_deleted(file, number, position, row)
        ]

    def _is_deleted(self, file: File, number: int, position: int, row: Row) -> bool:
        by_value = any(
            number < deleted and row.id in keys and (spec == 0 or (spec, partition) == (file.spec_id, file.partition))
            for deleted, spec, partition, keys in self.equality
        )
        return by_value or any(
            (path, where) == (file.path, position) and number <= deleted for path, where, deleted in self.positions
        )


def key(row: tuple[int | None, int]) -> tuple[bool, int, int]:
    return row[0] is None, row[0] or 0, row[1]


@st.composite
def actions(draw: st.DrawFn) -> list[tuple[str, int, int, list[int | None]]]:
    """(kind, spec, partition or file number, keys) of what one commit does."""
    action = st.tuples(
        st.sampled_from(["data", "data", "equality", "positions"]),
        st.sampled_from(SPECS),
        st.integers(0, 2),
        st.lists(KEYS, min_size=1, max_size=4),
    )
    return draw(st.lists(action, min_size=1, max_size=3))


@settings(max_examples=5)
@given(st.lists(actions(), min_size=2, max_size=5))
def test_random_histories(commits: list[list[tuple[str, int, int, list[int | None]]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, model = Table(Path(folder), ID, PART), Model()
        table.partition((2, identity()))
        snapshots = []
        for number, commit in enumerate(commits, start=1):
            files = [_act(table, model, number, *action) for action in commit]
            snapshots.append((table.commit(*(file for file in files if file is not None)), model.rows()))
        with table.connect() as connection:
            before: Counter[tuple[int | None, int]] = Counter()
            for id, expected in snapshots:
                told = Counter(before)
                for kind, *row in connection.execute(
                    f"SELECT change_type, id, p FROM table_changes('t', {id}, {id})"
                ).fetchall():
                    told[tuple(row)] += 1 if kind == "insert" else -1
                before = Counter(expected)
                assert told == before
                found = connection.execute(f"SELECT id, p FROM t FOR VERSION AS OF {id}").fetchall()
                assert sorted(found, key=key) == sorted(expected, key=key)
                for wanted in (0, 3):
                    sql = f"SELECT id, p FROM t FOR VERSION AS OF {id} WHERE p = {wanted % 3} AND id >= {wanted}"
                    chosen = [
                        row for row in expected if row[1] == wanted % 3 and row[0] is not None and row[0] >= wanted
                    ]
                    assert sorted(connection.execute(sql).fetchall(), key=key) == sorted(chosen, key=key)


def _at_least(id: int | None, wanted: int) -> bool:
    return id is not None and id >= wanted


def _act(
    table: Table, model: Model, number: int, kind: str, spec: int, which: int, keys: list[int | None]
) -> File | None:
    partition = (which,) if spec else ()
    if kind == "data":
        file = table.data({"id": keys, "p": [which] * len(keys)}, partition, spec=spec)
        model.data.append((file, number, [Row(id, which) for id in keys]))
        return file
    if kind == "equality":
        model.equality.append((number, spec, partition, keys))
        return table.equality({"id": keys}, [1], partition, spec=spec)
    if not model.data:
        return None
    file, _, rows = model.data[which % len(model.data)]
    positions = sorted({(id or 0) % len(rows) for id in keys})
    model.positions += [(file.path, position, number) for position in positions]
    return table.positions({file: positions}, bounds=bool(spec))
