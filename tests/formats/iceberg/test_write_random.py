"""Random statements between equality deletes of another writer, against plain Python rows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakedbapi
from tests.formats.iceberg.foreign import commit
from tests.formats.iceberg.writing import Lake, rows
from tests.thorough import quick

Step = tuple[str, list[int], int]
KINDS = ("insert", "delete", "update", "merge", "equality", "equality", "optimize", "together")


def act(
    connection: lakedbapi.Connection, other: lakedbapi.Connection, step: Step, model: list[tuple[int, str]]
) -> None:
    """One commit, and the same on the rows of the model; the number of rows that a statement tells of is right."""
    kind, keys, number = step
    shown = ", ".join(map(str, keys))
    hit = [row for row in model if row[0] in keys]
    rest = [row for row in model if row[0] not in keys]
    if kind == "insert":
        new = [(key, f"i{number}") for key in keys]
        connection.execute(f"INSERT INTO t VALUES {', '.join(map(str, new))}")
        model += new
    elif kind == "delete":
        assert connection.execute(f"DELETE FROM t WHERE a IN ({shown})").rowcount == len(hit)
        model[:] = rest
    elif kind == "update":
        assert connection.execute(f"UPDATE t SET s = 'u{number}' WHERE a IN ({shown})").rowcount == len(hit)
        model[:] = rest + [(key, f"u{number}") for key, _ in hit]
    elif kind == "merge":
        source = ", ".join(f"({key})" for key in sorted(set(keys)))
        added = [(key, f"n{number}") for key in sorted(set(keys)) if key not in {row[0] for row in hit}]
        done = connection.execute(
            f"MERGE INTO t USING (VALUES {source}) AS n(a) ON t.a = n.a WHEN MATCHED THEN UPDATE SET s = 'm{number}' "
            f"WHEN NOT MATCHED THEN INSERT VALUES (n.a, 'n{number}')"
        )
        assert done.rowcount == len(hit) + len(added)
        model[:] = rest + [(key, f"m{number}") for key, _ in hit] + added
    elif kind == "equality":
        commit(other, lambda foreign: foreign.equality({"a": keys}))
        model[:] = rest
    elif kind == "optimize":
        connection.execute("OPTIMIZE t")
    else:
        # The other writer commits while a transaction is open, which inserts: its rows are younger.
        connection.execute("BEGIN")
        connection.execute(f"INSERT INTO t VALUES ({keys[0]}, 't{number}')")
        commit(other, lambda foreign: foreign.equality({"a": keys}))
        connection.execute("COMMIT")
        model[:] = [*rest, (keys[0], f"t{number}")]


STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 8), min_size=1, max_size=5), st.integers(0, 99)),
    min_size=3,
    max_size=8,
)


@pytest.mark.parametrize(
    "kind",
    quick(2, [(3, "merge-on-read"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write")]),
)
def test_statements_between_deletes_by_value(kind: tuple[int, str]) -> None:
    version, mode = kind

    @settings(max_examples=4, deadline=None)
    @given(STEPS)
    def run(steps: list[Step]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = Lake(Path(folder), version)
            connection, other = place.connect(), place.connect()
            place.create(connection, **{f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")})
            connection.execute("INSERT INTO t SELECT i, 'first' FROM range(8) r(i)")
            model = [(key, "first") for key in range(8)]
            snapshots = {}
            for step in steps:
                act(connection, other, step, model)
                expected = sorted(model, key=repr)
                assert rows(connection) == rows(other) == sorted(expected, key=str), step
                snapshots[place.snapshots()[-1].snapshot_id] = sorted(expected, key=str)
            for id, expected in snapshots.items():
                assert rows(other, f"SELECT * FROM t FOR VERSION AS OF {id}") == expected
            place.close()

    run()
