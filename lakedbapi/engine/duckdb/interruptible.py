"""DuckDB calls that Ctrl-C ends, or another signal whose handler raises: they run beside the main thread.

Handlers run in that. DuckDB notices them late there, and waits forever for threads of its own that read from Python.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import duckdb

T = TypeVar("T")

_CHECK_SECONDS = 0.1


def call(cursor: duckdb.DuckDBPyConnection, function: Callable[[], T]) -> T:
    """`function()`, which runs a statement on `cursor`. What a handler of signals raises in the main thread ends it."""
    if threading.current_thread() is not threading.main_thread():
        return function()
    task = _Task(function)
    _idle_worker().take(task)
    try:
        task.wait()
    except BaseException:
        # An interrupt before the statement has begun is lost: repeat it.
        while not task.done.wait(_CHECK_SECONDS):
            cursor.interrupt()
        raise
    return task.result()


class _Task(Generic[T]):
    """A call; it forgets all that it holds with `result`."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function: Callable[[], T] | None = function
        self._value: T | None = None
        self._error: BaseException | None = None
        self.done = threading.Event()

    def run(self) -> None:
        try:
            assert self._function is not None
            self._value = self._function()
        except BaseException as error:
            self._error = error
        finally:
            self.done.set()

    def wait(self) -> None:
        # A wait without a limit cannot be interrupted on every platform.
        while not self.done.wait(_CHECK_SECONDS):
            pass

    def result(self) -> T:
        try:
            if self._error is not None:
                raise self._error
            return cast(T, self._value)
        finally:
            self._function = self._value = self._error = None


class _Worker:
    """A thread that runs the main thread's calls."""

    def __init__(self) -> None:
        self.current: _Task[Any] | None = None
        self._tasks: queue.SimpleQueue[_Task[Any]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="lakedbapi", daemon=True).start()

    def take(self, task: _Task[Any]) -> None:
        self.current = task
        self._tasks.put(task)

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            task.run()
            del task


_worker: _Worker | None = None


def _idle_worker() -> _Worker:
    """Only the main thread comes here; its last call is still running when a second Ctrl-C ended the wait for it."""
    global _worker
    if _worker is None or (_worker.current is not None and not _worker.current.done.is_set()):
        _worker = _Worker()
    return _worker


def _forget_after_fork() -> None:
    global _worker
    _worker = None


os.register_at_fork(after_in_child=_forget_after_fork)
