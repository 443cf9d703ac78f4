"""What is known of the tables that other programs wrote."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

GOLDEN = Path(__file__).parents[4] / "shared" / "golden"


@cache
def expected() -> dict[str, dict[str, Any]]:
    path = GOLDEN / "delta" / "expected.json"
    return json.loads(path.read_text()) if path.exists() else {}


@cache
def _digest_module() -> Any:
    spec = importlib.util.spec_from_file_location("golden_digest", GOLDEN / "digest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest(table: pa.Table) -> str:
    """The content of a table, whatever the order of its rows."""
    return str(_digest_module().digest(table))
