"""JupySQL's %sql in IPython."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from compliance.consumers.conftest import tool

tool("sql.magic")
interactiveshell = tool("IPython.core.interactiveshell")


@pytest.fixture
def shell(url: str) -> Iterator[Any]:
    shell = interactiveshell.InteractiveShell.instance()
    shell.run_line_magic("load_ext", "sql")
    shell.run_line_magic("config", "SqlMagic.feedback = 0")
    shell.run_line_magic("sql", url)
    yield shell
    shell.run_line_magic("sql", f"--close {url}")


def test_queries_changes_and_the_past(shell: Any) -> None:
    assert list(shell.run_cell_magic("sql", "", "SELECT id, id % 2 AS odd FROM customer ORDER BY id")) == [
        (1, 1),
        (2, 0),
    ]
    shell.run_cell_magic("sql", "", "UPDATE customer SET name = 'Eve' WHERE id = 2")
    assert list(shell.run_line_magic("sql", "SELECT name FROM customer WHERE id = 2")) == [("Eve",)]
    past = "SELECT name FROM customer FOR VERSION AS OF 1 WHERE id = 2"
    assert list(shell.run_line_magic("sql", past)) == [("Bob",)]


def test_changes_are_committed(shell: Any, shop: Path) -> None:
    shell.run_line_magic("sql", "DELETE FROM orders WHERE price < 1")
    with lakedbapi.connect(shop) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (2,)


def test_tables_and_columns_are_listed(shell: Any) -> None:
    assert "customer" in str(shell.run_line_magic("sqlcmd", "tables"))
    assert "price" in str(shell.run_line_magic("sqlcmd", "columns --table orders"))
