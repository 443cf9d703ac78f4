"""Rows in the catalog, and types that few programs know: each reads what the other wrote, one after the other.

One at a time, since a catalog in a DuckDB file belongs to the process that has it open.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compliance.ducklake.lakes import Ours, Program, Theirs, texts
from compliance.peers.lakes import Place, on_postgresql, on_sqlite
from compliance.peers.peer import Peer
from tests.formats.ducklake.test_inlined_values import HARD, NESTED, SCALARS, literals

UNREADABLE = {
    "json[]",
    "struct(h hugeint, f double, d decimal(9,2), u uuid)",
    "struct(a date, b timestamptz, c interval, d timetz)",
}
"""Types whose text in SQLite and PostgreSQL DuckDB writes, but cannot read itself."""
OTHERS = {
    "variant": ["{'a': 1, 'b': ['x', NULL]}::variant", "42::variant", "date '2020-01-01'::variant"],
    "geometry": ["'POINT (1 2)'::geometry", "'LINESTRING (0 0, 1 1)'::geometry"],
}


MORE = {
    type: [value.replace(", '\\'", "").replace("''\"\\z", "") for value in values]
    for type, values in {**NESTED, **HARD}.items()
    if type != "blob[]"
}
"""Without backslashes and bytes in lists, which DuckDB 1 and 2 print differently; in structs, DuckDB 1 loses them."""


@pytest.fixture(params=["sqlite", "postgresql", "duckdb"])
def alone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield on_sqlite(tmp_path)
    elif request.param == "postgresql":
        with on_postgresql(tmp_path) as place:
            yield place
    else:
        catalog, data = tmp_path / "catalog.ducklake", f"{tmp_path}/data/"
        url = f"ducklake+duckdb:///{catalog}?data_path={data}"
        yield Place("duckdb", url, f"ducklake:{catalog}", data)


def fill(program: Program, types: dict[str, list[str]]) -> None:
    program.execute("CALL ducklake_set_option('lake', 'data_inlining_row_limit', '1000')")
    rows = literals(types)
    for number in range(len(types)):
        column = [row[number] for row in rows]
        program.execute(f"CREATE TABLE t{number} (k INTEGER, v {list(types)[number]})")
        program.execute(f"INSERT INTO t{number} VALUES " + ", ".join(f"({k}, {v})" for k, v in enumerate(column)))
        program.execute(f"DELETE FROM t{number} WHERE k = {len(column) - 1}")


def read(program: Program, types: dict[str, list[str]]) -> dict[str, list[tuple[str | None, ...]]]:
    return {type: texts(program, f"t{number}") for number, type in enumerate(types)}


@pytest.mark.parametrize("types", [SCALARS, MORE, OTHERS], ids=["scalars", "nested", "others"])
def test_what_one_wrote_the_other_reads(alone: Place, peer: Peer, types: dict[str, list[str]]) -> None:
    ours = Ours(alone)
    fill(ours, types)
    written = read(ours, types)
    ours.close()
    assert read(Theirs(peer, alone), types) == written
    peer.reset()


@pytest.mark.parametrize("types", [SCALARS, MORE, OTHERS], ids=["scalars", "nested", "others"])
def test_what_the_other_wrote_is_read(alone: Place, peer: Peer, types: dict[str, list[str]]) -> None:
    if alone.backend != "duckdb":
        types = {type: values for type, values in types.items() if type not in UNREADABLE}
    theirs = Theirs(peer, alone)
    fill(theirs, types)
    written = read(theirs, types)
    peer.reset()
    ours = Ours(alone)
    assert read(ours, types) == written
    ours.execute("CALL ducklake_flush_inlined_data('lake')")
    assert read(ours, types) == written
    ours.close()
