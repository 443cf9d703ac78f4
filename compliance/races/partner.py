"""A second process on a lake, which runs statements when it is told to, and can be held before it commits."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from typing import Any

import lakedbapi
from lakedbapi.formats.ducklake.backend import Backend
from lakedbapi.formats.iceberg.sources import CatalogSource
from lakedbapi.storage.filesystem import Storage

_HOLDING = "holding"
_WRITES = ((Backend, "write"), (Storage, "put_if_absent"), (CatalogSource, "commit"))
"""What writes a DuckLake's catalog, the next version of a Delta table, and that of an Iceberg table."""
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["compliance.races.partner"])


class Partner:
    """`run` gives the rows of a statement; `start` begins one that stops before it writes the catalog (or the table's
    log) for the nth time, or runs to its end before; `finish` lets it go on."""

    def __init__(self, url: str) -> None:
        self._pipe, theirs = _forking.Pipe()
        self._process = _forking.Process(target=_serve, args=(url, theirs), daemon=True)
        self._process.start()
        self._held = False

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        self.start(sql, 0)
        return self.finish()

    def start(self, sql: str, hold_at: int) -> bool:
        """Whether the statement is held now."""
        self._pipe.send((sql, hold_at))
        self._answer = self._receive()
        self._held = self._answer == _HOLDING
        return self._held

    def finish(self) -> list[tuple[Any, ...]]:
        if self._held:
            self._pipe.send("go")
            self._answer = self._receive()
            self._held = False
        if isinstance(self._answer, str):
            raise AssertionError(f"the other process: {self._answer}")
        return self._answer

    def close(self) -> None:
        self._process.kill()
        self._process.join()

    def _receive(self) -> Any:
        assert self._pipe.poll(60), "the other process does not answer"
        return self._pipe.recv()


def _serve(url: str, pipe: Pipe) -> None:
    with lakedbapi.connect(url, autocommit=True) as connection, _held(pipe) as holding:
        while True:
            sql, holding["at"] = pipe.recv()
            try:
                cursor = connection.execute(sql)
                pipe.send(cursor.fetchall() if cursor.description else [])
            except Exception as error:
                pipe.send(f"{type(error).__name__}: {error}")


@contextmanager
def _held(pipe: Pipe) -> Iterator[dict[str, int]]:
    """Writes are counted down from `at`; the one that reaches zero waits before it takes a lock."""
    countdown = {"at": 0}

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def wait_and_write(*arguments: Any, **named: Any) -> Any:
            countdown["at"] -= 1
            if countdown["at"] == 0:
                pipe.send(_HOLDING)
                pipe.recv()
            return write(*arguments, **named)

        return wait_and_write

    for owner, name in _WRITES:
        setattr(owner, name, counted(getattr(owner, name)))
    yield countdown
