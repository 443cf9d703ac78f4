"""What the module itself promises: PEP 249's constants, exceptions, type objects and constructors."""

from __future__ import annotations

import datetime
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

import lakedbapi

EXCEPTIONS = [
    "Warning",
    "Error",
    "InterfaceError",
    "DatabaseError",
    "DataError",
    "OperationalError",
    "IntegrityError",
    "InternalError",
    "ProgrammingError",
    "NotSupportedError",
]


def test_constants() -> None:
    assert (lakedbapi.apilevel, lakedbapi.threadsafety, lakedbapi.paramstyle) == ("2.0", 2, "qmark")


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exceptions_are_attributes_of_connections(name: str) -> None:
    assert getattr(lakedbapi.Connection, name) is getattr(lakedbapi, name)


@pytest.mark.parametrize("name", EXCEPTIONS[2:])
def test_exceptions_descend_from_error(name: str) -> None:
    parent = lakedbapi.Error if name in ("InterfaceError", "DatabaseError") else lakedbapi.DatabaseError
    assert issubclass(getattr(lakedbapi, name), parent)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("VARCHAR", lakedbapi.STRING),
        ("UUID", lakedbapi.STRING),
        ("ENUM('a', 'b')", lakedbapi.STRING),
        ("BLOB", lakedbapi.BINARY),
        ("DECIMAL(9,2)", lakedbapi.NUMBER),
        ("HUGEINT", lakedbapi.NUMBER),
        ("TIMESTAMP WITH TIME ZONE", lakedbapi.DATETIME),
        ("INTERVAL", lakedbapi.DATETIME),
    ],
)
def test_type_codes_equal_the_type_object_of_their_kind_only(code: str, kind: object) -> None:
    kinds = [lakedbapi.STRING, lakedbapi.BINARY, lakedbapi.NUMBER, lakedbapi.DATETIME, lakedbapi.ROWID]
    assert [other for other in kinds if code == other] == [kind]
    assert [other for other in kinds if other != code] == [other for other in kinds if other is not kind]


@pytest.mark.parametrize("code", ["DECIMAL(9,2)[]", "INTEGER[3]", "STRUCT(a INTEGER)", "BOOLEAN"])
def test_other_types_equal_no_type_object(code: str) -> None:
    assert code not in (lakedbapi.STRING, lakedbapi.BINARY, lakedbapi.NUMBER, lakedbapi.DATETIME)


def test_type_objects_can_be_keys() -> None:
    assert {lakedbapi.NUMBER: "number", lakedbapi.STRING: "text"}[lakedbapi.NUMBER] == "number"


def test_constructors() -> None:
    assert lakedbapi.Date(2026, 1, 2) == datetime.date(2026, 1, 2)
    assert lakedbapi.Time(1, 2, 3) == datetime.time(1, 2, 3)
    assert lakedbapi.Timestamp(2026, 1, 2, 3, 4, 5) == datetime.datetime(2026, 1, 2, 3, 4, 5)
    assert lakedbapi.Binary(b"x") == b"x"
    ticks = datetime.datetime(2026, 1, 2, 3, 4, 5).timestamp()
    assert lakedbapi.DateFromTicks(ticks) == datetime.date(2026, 1, 2)
    assert lakedbapi.TimeFromTicks(ticks) == datetime.time(3, 4, 5)
    assert lakedbapi.TimestampFromTicks(ticks) == datetime.datetime(2026, 1, 2, 3, 4, 5)


def test_package_is_marked_as_typed() -> None:
    assert resources.files(lakedbapi).joinpath("py.typed").is_file()


PROGRAM = """
import lakedbapi

with lakedbapi.connect("shop", autocommit=True) as connection:
    cursor: lakedbapi.Cursor = connection.execute("SELECT 1")
    count: int = cursor.rowcount
    for row in cursor:
        first: object = row[0]
    cursor.executemany("INSERT INTO t VALUES (?)", [(1,), [2], {"a": 3}])
    names: list[str] = [column[0] for column in cursor.description or []]
    wrong: str = cursor.rowcount
"""
WRONG = (
    'program.py:11: error: Incompatible types in assignment (expression has type "int", variable has type "str")  '
    "[assignment]"
)


def test_a_strict_type_check_of_a_program_finds_its_mistake_only(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    root = Path(lakedbapi.__file__).parents[1]
    check = [sys.executable, "-m", "mypy", "--strict", f"--config-file={root / 'pyproject.toml'}", str(program)]
    environment = {"MYPYPATH": str(root), "PATH": "", "MYPY_CACHE_DIR": str(root / ".mypy_cache")}
    result = subprocess.run(check, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert [line for line in result.stdout.splitlines() if line.startswith("program.py")] == [WRONG], result.stdout
