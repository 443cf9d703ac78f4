"""A TCP proxy in front of PostgreSQL that can cut the connection at a COMMIT."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class CuttingProxy:
    """Forwards connections to (`host`, `port`). While `armed`, the next COMMIT after an INSERT cuts its connection.

    With `deliver` the server gets it, but the client never hears of it. Without `stays_reachable` the proxy refuses
    new connections after the cut, until `restore`.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.armed = False
        self.deliver = False
        self.stays_reachable = True
        self._reachable = True
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def cut_all(self) -> None:
        """Cut every connection and refuse new ones, until `restore`."""
        self._reachable = False
        for end in self._open:
            _close(end)
        self._open.clear()

    def restore(self) -> None:
        """Let new connections in again."""
        self._reachable = True

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._reachable:
                client.close()
                continue
            server = socket.create_connection(self._target)
            self._open += [client, server]
            threading.Thread(target=self._forward, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._forward, args=(server, client, False), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, to_server: bool) -> None:
        writes = False
        try:
            while data := source.recv(65536):
                writes = writes or (to_server and b"INSERT INTO" in data)
                if writes and self.armed and b"COMMIT" in data:
                    self._cut(source, target, data)
                    return
                writes = writes and b"COMMIT" not in data
                target.sendall(data)
        except OSError:
            pass
        finally:
            _close(target)
            _close(source)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        self.armed = False
        self._reachable = self.stays_reachable
        _close(client)
        if self.deliver:
            server.sendall(data)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
