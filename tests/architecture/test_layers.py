"""The house holds: imports point downwards, and the architecture page draws the layers that are checked."""

from __future__ import annotations

import re
from pathlib import Path

from importlinter import api
from importlinter.cli import lint_imports

PROJECT = Path(__file__).parents[2]


def test_the_layers_hold(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(PROJECT)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0


def test_the_architecture_page_draws_the_checked_layers() -> None:
    contracts = api.read_configuration(str(PROJECT / "pyproject.toml"))["contracts_options"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    page = (PROJECT / "docs" / "architecture.md").read_text()
    drawn = re.search(r"<!-- layers -->\s*```text\n(.*?)```", page, re.DOTALL)
    assert drawn is not None
    assert [re.findall(r"\w+", line.partition("  ")[0]) for line in drawn[1].splitlines()] == [
        re.findall(r"\w+", layer) for layer in layers
    ]


def test_no_module_is_a_house_of_its_own() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in PROJECT.glob("lakedbapi/**/*.py")}
    assert {str(path): length for path, length in lengths.items() if length > 600} == {}
