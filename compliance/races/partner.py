"""A second process on a lake, which runs statements when it is told to, and can be held before it commits."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from typing import Any

import lakedbapi
from lakedbapi.formats.ducklake.backend import Backend

_HOLDING = "holding"
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["compliance.races.partner"])


class Partner:
    """`run` gives the rows of a statement; `start` begins one that stops before the catalog is written for the nth time
    (or runs to its end before), and `finish` lets it go on."""

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
    """Writes of the catalog are counted down from `at`; the one that reaches zero waits before it takes the lock."""
    countdown = {"at": 0}
    original = Backend.write

    @contextmanager
    def write(self: Backend) -> Iterator[Any]:
        countdown["at"] -= 1
        if countdown["at"] == 0:
            pipe.send(_HOLDING)
            pipe.recv()
        with original(self) as connection:
            yield connection

    Backend.write = write  # type: ignore[method-assign]
    yield countdown
