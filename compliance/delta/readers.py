"""`Readers`: deltalake, polars and DuckDB's delta extension in a process of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa

from compliance.delta.spelling import rows_of

SERVER = Path(__file__).with_name("server.py")
ALL = ("deltalake", "polars", "duckdb")


class RefusedError(Exception):
    """The other writer refused."""


class Readers:
    def __init__(self, python: Path, server: Path = SERVER) -> None:
        """`server` is the program that reads the tables of a format."""
        self._process = subprocess.Popen(
            [str(python), str(server)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def read(self, path: Path) -> dict[str, Any]:
        """By reader: the rows in the spelling of `rows`, or `{"error": text}`."""
        return self._ask({"read": str(path)})

    def run(self, code: str) -> Any:
        """Run Python in the peers' environment; what it leaves in `result`."""
        answer = self._ask({"run": code})
        if "error" in answer:
            raise RefusedError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


def rows(table: pa.Table) -> list[list[Any]]:
    """The rows, sorted, with values as text: the same for all readers."""
    return json.loads(json.dumps(rows_of(table)))  # type: ignore[no-any-return]
