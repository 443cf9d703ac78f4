"""Statements of the catalog database are compiled once a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.sql.compiler import SQLCompiler

import lakedbapi


def test_a_second_lake_takes_what_the_first_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[SQLCompiler] = []
    init = SQLCompiler.__init__

    def counted(self: SQLCompiler, *args: Any, **options: Any) -> None:
        compiled.append(self)
        init(self, *args, **options)

    monkeypatch.setattr(SQLCompiler, "__init__", counted)

    def compiled_for(name: str) -> int:
        compiled.clear()
        with lakedbapi.connect(tmp_path / name, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id INTEGER)")
            connection.execute("INSERT INTO t SELECT range FROM range(1000)")
            connection.execute("DELETE FROM t WHERE id < 10")
            assert connection.execute("SELECT count(*) FROM t").fetchall() == [(990,)]
        return len(compiled)

    compiled_for("first")
    again = compiled_for("second")
    monkeypatch.setattr("lakedbapi.formats.ducklake.sqlite_backend._compiled", {})
    assert again < compiled_for("third") / 4
