"""Object stores that run here: S3 by moto, Azure's blobs by Azurite, which Microsoft wrote."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest
from werkzeug.serving import make_server

START_SECONDS = 60
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Known to everybody: Azurite's own."""


@dataclass(frozen=True)
class Store:
    """`url` is that of an empty bucket, `options` those of its fsspec filesystem."""

    url: str
    options: dict[str, str]

    def find(self, path: str) -> list[str]:
        """The URLs of all files below `path` in the bucket."""
        protocol, _, bucket = self.url.partition("://")
        found = fsspec.filesystem(protocol, use_listings_cache=False, **self.options).find(f"{bucket}/{path}")
        return [f"{protocol}://{name}" for name in found]


@contextmanager
def s3() -> Iterator[Store]:
    moto = pytest.importorskip("moto.server")
    application = moto.DomainDispatcherApplication(moto.create_backend_app)
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        with lock:  # Its conditional puts look first and write then.
            return application(environ, start_response)

    running = make_server("127.0.0.1", 0, answer, threaded=True)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    options = {"key": "a", "secret": "b", "endpoint_url": f"http://127.0.0.1:{running.server_port}"}
    fsspec.filesystem("s3", **options).mkdir("lake")
    yield Store("s3://lake", options)
    running.shutdown()


@contextmanager
def azure() -> Iterator[Store]:
    pytest.importorskip("adlfs")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    options = ["--blobPort", str(port), "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    server = subprocess.Popen(["node", _azurite(), *options], stdout=subprocess.DEVNULL)
    try:
        _await(server, port)
        endpoint = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        login = {"AccountName": _ACCOUNT, "AccountKey": _KEY, "BlobEndpoint": endpoint}
        text = ";".join(f"{name}={value}" for name, value in {"DefaultEndpointsProtocol": "http", **login}.items())
        store = Store("abfs://lake", {"connection_string": text})
        fsspec.filesystem("abfs", **store.options).mkdir("lake")
        yield store
    finally:
        server.kill()
        server.wait()


STORES = {"s3": s3, "azure": azure}


def _azurite() -> str:
    """Where `make azurite` puts it, or the file that LAKE_AZURITE names; without it the test is skipped, or fails in
    CI."""
    script = "node_modules/azurite/dist/src/blob/main.js"
    path = Path(os.environ.get("LAKE_AZURITE", Path(__file__).parents[2] / ".venv-azurite" / script))
    if not path.exists() or not shutil.which("node"):
        reason = "Azurite: not installed; run 'make azurite', which needs Node.js, or set LAKE_AZURITE"
        if os.environ.get("LAKE_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return str(path)


def _await(server: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise AssertionError("Azurite did not start")
