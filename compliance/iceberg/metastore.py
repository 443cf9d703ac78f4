"""A Hive Metastore: Hive's own server, with a database in memory, from the jars that pyspark brings."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

START_SECONDS = 300
_OPENED = ("lang", "net", "util", "util.concurrent")
"""Packages of Java that Hive 2.3 reflects on, which Java 17 keeps closed."""


def jars() -> Path | None:
    """Where `make hive` puts them, or the directory that LAKE_HIVE_JARS names."""
    if "LAKE_HIVE_JARS" in os.environ:
        return Path(os.environ["LAKE_HIVE_JARS"])
    found = sorted(Path(__file__).parents[2].glob(".venv-hive/lib/python*/site-packages/pyspark/jars"))
    return found[0] if found and shutil.which("java") else None


@contextmanager
def serving(jars: Path, home: Path) -> Iterator[int]:
    """Yields the port. `home` gets the configuration, the log and the tables."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    _configure(home)
    opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]
    source = Path(__file__).with_name("Metastore.java")
    command = ["java", "-Xmx512m", *opened, "-cp", f"{home}:{jars}/*", str(source), "-p", str(port)]
    with (home / "metastore.log").open("w") as log:
        server = subprocess.Popen(command, cwd=home, stdout=log, stderr=subprocess.STDOUT)
    try:
        _await(server, port, home / "metastore.log")
        yield port
    finally:
        server.kill()
        server.wait()


def _await(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise AssertionError(f"the metastore did not start:\n{log.read_text()[-3000:]}")


def _configure(home: Path) -> None:
    settings: Mapping[str, str] = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:memory:{home.name};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(home / "warehouse"),
        "hive.async.log.enabled": "false",  # Wants a library that is not among the jars.
    }
    shown = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    (home / "hive-site.xml").write_text(f"<configuration>{shown}</configuration>")
