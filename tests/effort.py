"""Bounds on effort that hold on a busy machine: CPU time, against what something else takes there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CANCELLING = 2.0 * (os.cpu_count() or 1)
"""Seconds of CPU time from an interrupt to the end of a statement that keeps all cores busy."""


def cpu_seconds(act: Callable[[], object], times: int) -> float:
    """The CPU time of this process for doing something so often; the less of two measurements."""
    return min(_once(act, times) for _ in range(2))


def _once(act: Callable[[], object], times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        act()
    return time.process_time() - started


@contextmanager
def interrupted(interrupt: Callable[[], None], *, once: bool = False) -> Iterator[None]:
    """Interrupt what is done inside, which would go on for hours, in the midst of it, and see that it ends soon.

    An interrupt that comes before a statement has begun is lost, so another one follows, unless `once`.
    """
    ended = threading.Event()
    cpu: list[float] = []

    def work() -> None:
        wait = 0.3
        while not ended.wait(wait) and not (once and cpu):
            cpu.append(time.process_time())
            interrupt()
            wait = 1.0

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        took = time.process_time() - (cpu[0] if cpu else 0)
        ended.set()
        thread.join()
        assert took < CANCELLING
