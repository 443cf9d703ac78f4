"""Macros of one program in the other: rows of the catalog, calls, comments, drops."""

from __future__ import annotations

import pytest

from compliance.ducklake.lakes import Program, Shared

DEFINITIONS = (
    "CREATE MACRO f(a, b := 1) AS a + b",
    "CREATE MACRO g(x) AS x, (x, y) AS x * y",
    "CREATE MACRO typed(n INTEGER, s VARCHAR := 'it''s') AS s || n",
    "CREATE MACRO below(n) AS TABLE SELECT i FROM t WHERE i < n",
    "CREATE MACRO greatest_i() AS (SELECT max(i) FROM t)",
    "CREATE MACRO when_(d := DATE '2020-02-29') AS d + 1",
)


def _catalog(program: Program, shared: Shared) -> list[list[tuple[object, ...]]]:
    """What the catalog has of macros, from a lake that only `program` wrote."""
    names = "__ducklake_metadata_lake"
    return [
        shared.theirs.rows(f"SELECT {columns} FROM {names}.ducklake_{table} ORDER BY ALL")
        for table, columns in {
            "macro": "macro_id, macro_name, begin_snapshot, end_snapshot",
            "macro_impl": "macro_id, impl_id, dialect, type",
            "macro_parameters": "*",
            "snapshot_changes": "snapshot_id, changes_made",
        }.items()
    ]


@pytest.mark.parametrize("shared", ["sqlite-files", "postgresql-inlined"], indirect=True)
def test_each_calls_the_macros_of_the_other(shared: Shared, writer: Program) -> None:
    writer.execute("CREATE TABLE t (i INTEGER)")
    writer.execute("INSERT INTO t SELECT range FROM range(20)")
    for definition in DEFINITIONS:
        writer.execute(definition)
    for program in shared.both:
        assert program.rows("SELECT f(1), f(1, b := 5), g(2), g(2, 3), typed(4), greatest_i()") == [
            (2, 6, 2, 6, "it's4", 19)
        ], program.name
        assert program.value("SELECT count(*) FROM below(7)") == 7
        assert str(program.value("SELECT when_()"))[:10] == "2020-03-01"
    other = next(program for program in shared.both if program is not writer)
    other.execute("CREATE OR REPLACE MACRO f(a) AS a - 1")
    other.execute("DROP MACRO TABLE below")
    for program in shared.both:
        assert program.value("SELECT f(1)") == 0
        with pytest.raises(Exception, match="below"):
            program.rows("SELECT * FROM below(7)")


@pytest.mark.parametrize("shared", ["sqlite-files"], indirect=True)
def test_the_rows_of_the_catalog_are_those_of_duckdb(shared: Shared) -> None:
    found = []
    shared.ours.execute("CREATE TABLE t (i INTEGER)")
    for program in shared.both:
        for definition in DEFINITIONS:
            program.execute(definition.replace("MACRO ", f"MACRO {'o' if program is shared.ours else 't'}"))
        found.append(_catalog(program, shared))
    ours, both = found
    assert len(ours[0]) == len(DEFINITIONS)
    first = min(int(str(row[0])) for row in ours[2])
    step = len(DEFINITIONS)
    parameters = [row for row in both[2] if int(str(row[0])) >= first + step]
    assert [(int(str(row[0])) - step, *row[1:]) for row in parameters] == ours[2]
    words = [str(row[1]).split(":")[0] for row in both[3][2:]]
    assert words[:step] == words[step:]
