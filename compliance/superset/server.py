"""A running Superset, and its REST API."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

BIN = Path(sys.executable).parent
APP = "superset.app:create_app()"
USER = PASSWORD = "admin"


class Superset:
    """The REST API of the server at `url`, logged in."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = requests.Session()
        login = {"username": USER, "password": PASSWORD, "provider": "db", "refresh": True}
        token = self.post("/api/v1/security/login", login)["access_token"]
        self._session.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str) -> Any:
        return self._answer(self._session.get(self.url + path, timeout=120))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._answer(self._session.post(self.url + path, json=body, timeout=300))

    def upload(self, path: str, fields: dict[str, str], name: str, content: bytes) -> Any:
        return self._answer(
            self._session.post(self.url + path, data=fields, files={"file": (name, content)}, timeout=120)
        )

    def sql(self, database: int, text: str, client_id: str | None = None, **more: Any) -> dict[str, Any]:
        """SQL Lab's answer."""
        body = {
            "database_id": database,
            "sql": text,
            "schema": "main",
            "runAsync": False,
            "queryLimit": 1000,
            "client_id": client_id or secrets.token_hex(5),
            **more,
        }
        answer: dict[str, Any] = self.post("/api/v1/sqllab/execute/", body)
        return answer

    @staticmethod
    def _answer(response: requests.Response) -> Any:
        if not response.ok:
            raise RuntimeError(
                f"{response.request.method} {response.url}: {response.status_code} {response.text[:1500]}"
            )
        return response.json()


def prepare(home: Path) -> None:
    """A metadata database with an administrator and nothing else. The first time takes a minute."""
    fresh, used = home / "fresh.db", home / "superset.db"
    if not fresh.exists():
        home.mkdir(parents=True, exist_ok=True)
        used.unlink(missing_ok=True)
        names = ("--firstname", "a", "--lastname", "b", "--email", "a@b.c")
        for command in (
            ("db", "upgrade"),
            ("fab", "create-admin", "--username", USER, *names, "--password", PASSWORD),
            ("init",),
        ):
            run = subprocess.run([BIN / "superset", *command], env=_environment(home), capture_output=True, text=True)
            if run.returncode:
                raise RuntimeError(f"superset {' '.join(command)}:\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}")
        used.rename(fresh)
    shutil.copy(fresh, used)


@contextmanager
def serving(home: Path) -> Iterator[Superset]:
    """Superset in one process with eight threads."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gunicorn = ("gunicorn", "-w", "1", "-k", "gthread", "--threads", "8", "--timeout", "300")
    with (home / "server.log").open("w") as log:
        process = subprocess.Popen(
            [BIN / gunicorn[0], *gunicorn[1:], "-b", f"127.0.0.1:{port}", APP],
            env=_environment(home),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(url, process)
        yield Superset(url)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _environment(home: Path) -> dict[str, str]:
    config = Path(__file__).with_name("superset_config.py")
    return {**os.environ, "SUPERSET_HOME": str(home), "SUPERSET_CONFIG_PATH": str(config), "FLASK_APP": APP}


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(120):
        if process.poll() is not None:
            break
        try:
            if requests.get(f"{url}/health", timeout=5).ok:
                return
        except requests.RequestException:
            time.sleep(1)
    raise RuntimeError("Superset does not start; see server.log")
