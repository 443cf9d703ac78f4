"""One lake, two programs on it: our driver and DuckDB, behind the same three methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import lakedbapi
from compliance.peers.lakes import Place
from compliance.peers.peer import Peer

ALIAS = "lake"


class Program(Protocol):
    """What can run SQL on the lake."""

    name: str

    def execute(self, sql: str) -> Any: ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...

    def value(self, sql: str) -> Any: ...


class Ours:
    """Our driver in autocommit mode, the lake attached as `lake`."""

    name = "lakedbapi"

    def __init__(self, place: Place, alias: str = ALIAS) -> None:
        self.connection = lakedbapi.connect(place.url, autocommit=True, alias=alias)
        self.cursor = self.connection.cursor()

    def execute(self, sql: str) -> int:
        return self.cursor.execute(sql).rowcount

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.cursor.execute(sql).fetchall()

    def value(self, sql: str) -> Any:
        row = self.cursor.execute(sql).fetchone()
        assert row is not None
        return row[0]

    def close(self) -> None:
        self.connection.close()


class Theirs:
    """DuckDB with ducklake, the lake attached as `lake`."""

    name = "duckdb"

    def __init__(self, peer: Peer, place: Place, **options: object) -> None:
        self.peer = peer
        peer.attach(place.location, place.data_path, ALIAS, **options)

    def execute(self, sql: str) -> int:
        """The number of changed rows of DML, else -1."""
        result = self.peer.execute(sql)
        return int(result.column(0)[0].as_py()) if result.num_rows and result.column_names == ["Count"] else -1

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.peer.rows(sql)

    def value(self, sql: str) -> Any:
        return self.peer.value(sql)


def writes_encrypted(peer: Peer) -> None:
    """Let DuckDB write encrypted files without its httpfs extension, whose random numbers are good: only for tests."""
    peer.execute("SET force_mbedtls_unsafe = true")


def is_encrypted(file: Path) -> bool:
    content = file.read_bytes()
    return content[:4] == content[-4:] == b"PARE"


@dataclass(frozen=True)
class Shared:
    """A lake that DuckDB made and that both have attached."""

    place: Place
    ours: Ours
    theirs: Theirs
    inlined: bool
    encrypted: bool = False

    @property
    def both(self) -> tuple[Program, Program]:
        return self.ours, self.theirs

    def last(self) -> int:
        """The id of the newest snapshot."""
        return int(self.theirs.value("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')"))


def script(program: Program, statements: str) -> None:
    """Run statements that are separated by `;` at the end of a line."""
    for statement in statements.split(";\n"):
        if statement.strip(" \n;"):
            program.execute(statement.strip(" \n;"))


def texts(program: Program, relation: str) -> list[tuple[str | None, ...]]:
    """All rows of a relation as sorted text: what two engines can be compared by."""
    rows = program.rows(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {relation}")
    return sorted(rows, key=lambda row: tuple((value is None, value or "") for value in row))


def columns(program: Program, table: str) -> list[tuple[str, str]]:
    """(name, type) of the columns, the type without the quotes that only some versions put around field names."""
    return [(row[0], row[1].replace('"', "")) for row in program.rows(f"DESCRIBE {table}")]


def changes(program: Program, table: str, start: int, end: int) -> list[tuple[str | None, ...]]:
    """The change feed as sorted text: snapshot, row id, kind of change, then the columns."""
    if program.name == "duckdb":
        return texts(program, f"ducklake_table_changes('lake', 'main', '{table}', {start}, {end})")
    return texts(program, f"table_changes('{table}', {start}, {end})")


def at_snapshots(program: Program, table: str, snapshots: Sequence[int], columns: str = "*") -> dict[int, list[str]]:
    """The rows of a table at each of the snapshots as sorted text, by one query: a query costs more than its rows.

    Texts with a backslash are quoted by some versions of DuckDB only, so there is none.
    """
    states = (
        f"SELECT {id}, CAST(r AS VARCHAR) FROM (SELECT replace(CAST(COLUMNS(*) AS VARCHAR), '\\', '¦') "
        f"FROM (SELECT {columns} FROM {table} AT (VERSION => {id}))) AS r"
        for id in snapshots
    )
    found: dict[int, list[str]] = {id: [] for id in snapshots}
    for id, row in sorted(program.rows(" UNION ALL ".join(states))) if found else ():
        found[id].append(row)
    return found


def assert_same_rows(shared: Shared, *tables: str) -> None:
    """Both read the same columns and rows of the tables at every snapshot."""
    snapshots = [id for (id,) in shared.theirs.rows("SELECT snapshot_id FROM ducklake_snapshots('lake') ORDER BY 1")]
    for table in tables:
        assert columns(shared.ours, table) == columns(shared.theirs, table)
        assert texts(shared.ours, table) == texts(shared.theirs, table)
        existing = [id for id in snapshots if _exists(shared.ours, table, id)]
        for id in set(snapshots) - set(existing):
            assert not _exists(shared.theirs, table, id), f"{table} at {id}"
        ours, theirs = (at_snapshots(program, table, existing) for program in shared.both)
        for id in existing:
            assert ours[id] == theirs[id], f"{table} at {id}"


def _exists(program: Program, table: str, snapshot: int) -> bool:
    try:
        program.rows(f"SELECT 1 FROM {table} AT (VERSION => {snapshot}) LIMIT 0")
    except Exception as error:
        if "does not exist" in str(error):
            return False
        raise
    return True
