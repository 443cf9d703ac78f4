"""Statements of the catalog database are compiled once a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.sql.compiler import Compiled

import lakedbapi
from lakedbapi.formats.ducklake import create


@pytest.mark.parametrize("backend", ["sqlite", "duckdb"])
def test_a_second_lake_takes_what_the_first_compiled(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Compiled] = []
    init = Compiled.__init__

    def counted(self: Compiled, *args: Any, **options: Any) -> None:
        compiled.append(self)
        init(self, *args, **options)

    monkeypatch.setattr(Compiled, "__init__", counted)

    def compiled_for(name: str) -> int:
        compiled.clear()
        url = f"ducklake+{backend}:///{tmp_path}/{name}?data_path={tmp_path}/{name}.files/"
        with lakedbapi.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id INTEGER)")
            connection.execute("INSERT INTO t SELECT range FROM range(1000)")
            connection.execute("DELETE FROM t WHERE id < 10")
            assert connection.execute("SELECT count(*) FROM t").fetchall() == [(990,)]
        return len(compiled)

    compiled_for("first")
    again = compiled_for("second")
    monkeypatch.setattr(f"lakedbapi.formats.ducklake.{backend}_backend._compiled", {})
    create._definitions.cache_clear()
    assert again < compiled_for("third") / 4
