"""`Peer`: DuckDB with its own ducklake extension in a process of its own, to read and write the same lakes as we do."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

SERVER = Path(__file__).with_name("duckdb_server.py")
PROJECT = Path(__file__).parents[2]


class PeerError(Exception):
    """The peer refused a statement."""


class PeerDied(Exception):
    """The peer's process ended in the middle of a request."""


def peers_python() -> Path | None:
    """The interpreter of the peers' environment: LAKE_PEERS_PYTHON, else `.venv-peers`; None if there is none."""
    named = os.environ.get("LAKE_PEERS_PYTHON")
    python = Path(named) if named else PROJECT / ".venv-peers" / "bin" / "python"
    return python if python.exists() else None


class Peer:
    """One DuckDB instance. `seconds` and `peak_rss` (bytes) tell what its last statement took."""

    def __init__(self, python: Path, threads: int | None = None) -> None:
        environment = dict(os.environ)
        if threads is not None:
            environment["PEER_THREADS"] = str(threads)
        self._process = subprocess.Popen(
            [str(python), str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.seconds = 0.0
        self.peak_rss = 0

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def attach(self, location: str, data_path: str | None = None, alias: str = "lake", **options: object) -> None:
        """ATTACH the lake at `location` (DuckDB's text, `ducklake:sqlite:/x/catalog.sqlite`) and USE it."""
        if data_path is not None:
            options = {"data_path": data_path, **options}
        settings = ", ".join(f"{name} {_literal(value)}" for name, value in options.items())
        self.execute(f"ATTACH {_literal(location)} AS {alias}" + (f" ({settings})" if settings else ""))
        self.execute(f"USE {alias}")

    def execute(self, sql: str, **tables: pa.Table) -> pa.Table:
        """Run `sql`, with `tables` registered under their names; the result (DuckDB's one-row count for DML)."""
        return self._request({"sql": sql}, tables)

    def execute_many(self, sql: str, parameters: list[list[Any]]) -> None:
        """Run `sql` once per list of parameters (`?`)."""
        self._request({"sql": sql, "many": parameters}, {})

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        result = self.execute(sql)
        return list(zip(*(column.to_pylist() for column in result.columns), strict=True))

    def value(self, sql: str) -> Any:
        return self.execute(sql).column(0)[0].as_py()

    def reset(self) -> None:
        """Forget everything that was attached or open: a new instance in the same process."""
        self._request({"reset": True}, {})

    def close(self) -> None:
        """End the process, at once."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, request: dict[str, Any], tables: dict[str, pa.Table]) -> pa.Table:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        bodies = {name: _ipc(table) for name, table in tables.items()}
        request["register"] = {name: len(body) for name, body in bodies.items()}
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n" + b"".join(bodies.values()))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerDied(f"exit code {self._process.wait()} before {request.get('sql')}") from None
        line = self._process.stdout.readline()
        if not line:
            raise PeerDied(f"exit code {self._process.wait()} in {request.get('sql')}")
        response = json.loads(line)
        body = self._process.stdout.read(response["size"])
        self.seconds, self.peak_rss = response["seconds"], response["peak_rss"]
        if response["error"]:
            raise PeerError(f"{response['error']}\n{request.get('sql')}")
        return pa.ipc.open_stream(body).read_all() if body else pa.table({})


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
