"""DuckDB with its own ducklake extension, serving one client over stdin and stdout.

Runs in the peers' environment and imports nothing of this project. A request is one line of JSON:
`{"sql": text, "many": [parameters, …], "reset": bool, "register": {name: bytes of Arrow IPC that follow}}`; with
"many" the text runs once per list of parameters. A response is one line of JSON, `{"error": text | null,
"seconds": float, "peak_rss": bytes, "size": n}`, then n bytes of Arrow IPC.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa

EXTENSIONS = ("icu", "sqlite_scanner", "postgres_scanner", "ducklake")


def extension_file(name: str) -> str:
    """The extension as its package brought it: nothing is downloaded."""
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    if spec is None or spec.origin is None:
        raise SystemExit(f"the package duckdb-extension-{name.replace('_', '-')} is missing in {sys.prefix}")
    return str(next(Path(spec.origin).parent.glob(f"extensions/*/{name}.duckdb_extension")))


def connect() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"allow_unsigned_extensions": True, "autoinstall_known_extensions": False})
    for name in EXTENSIONS:
        con.execute(f"LOAD '{extension_file(name)}'")
    con.execute("SET TimeZone = 'UTC'")
    if threads := os.environ.get("PEER_THREADS"):
        con.execute(f"SET threads = {int(threads)}")
    return con


def ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def serve(requests: BinaryIO, responses: BinaryIO) -> None:
    con = connect()
    while line := requests.readline():
        request: dict[str, Any] = json.loads(line)
        body, error, seconds = b"", None, 0.0
        try:
            if request.get("reset"):
                con.close()
                con = connect()
            for name, size in request.get("register", {}).items():
                con.register(name, pa.ipc.open_stream(requests.read(size)).read_all())
            if sql := request.get("sql"):
                start = time.perf_counter()
                result = con.executemany(sql, request["many"]) if request.get("many") else con.execute(sql)
                table = result.to_arrow_table() if result.description else None
                seconds = time.perf_counter() - start
                body = ipc(table) if table is not None else b""
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        header = {"error": error, "seconds": seconds, "peak_rss": peak, "size": len(body)}
        responses.write(json.dumps(header).encode() + b"\n" + body)
        responses.flush()


if __name__ == "__main__":
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the responses
    serve(sys.stdin.buffer, pipe)
