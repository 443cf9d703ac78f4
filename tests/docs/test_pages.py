"""Every Python and SQL block of the documentation runs, page by page from top to bottom, each page in an empty
folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import lakedbapi
from tests.formats.hudi.golden import TRIPS, unpack

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|sql)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TRIPS_IN = {"hudi.md": "warehouse", "cross-format.md": "rides"}
"""The directory in which a page has a Hudi table: no program here can write one."""
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def _name(page: Path) -> str:
    return str(page.relative_to(PROJECT))


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=_name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name in TRIPS_IN:
        unpack(TRIPS, tmp_path / "unpacked").rename(_made(tmp_path / TRIPS_IN[page.name]) / "trips")
    text = page.read_text()
    scope: dict[str, Any] = {"__name__": "page"}
    with lakedbapi.connect("sql_examples", autocommit=True) as connection:
        cursor = connection.cursor()
        for block in BLOCK.finditer(text):
            if block[1] == "sql":
                for statement in filter(None, map(str.strip, re.split(r";\s*(?:--[^\n]*)?\n", block[2] + "\n"))):
                    cursor.execute(statement)
            else:
                lines_before = text.count("\n", 0, block.start(2))
                exec(compile("\n" * lines_before + block[2], str(page), "exec"), scope)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert missing == []
