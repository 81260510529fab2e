"""A TCP proxy that can be cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


class Proxy:
    """Passes connections on to a server until it is cut."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self.target = (parts.hostname or "", parts.port or 80)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.open: set[socket.socket] = set()
        self.lock = threading.Lock()
        self.is_down = False
        self.answers_to_lose = 0
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Ends all connections."""
        with self.lock:
            for connection in self.open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def down(self) -> None:
        """Ends all connections, and takes no new ones."""
        self.is_down = True
        self.cut()

    def up(self) -> None:
        """Takes connections again."""
        self.is_down = False

    def close(self) -> None:
        self.down()
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.is_down:
                client.close()
                continue
            server = socket.create_connection(self.target)
            with self.lock:
                self.open |= {client, server}
            for source, target, is_answer in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(source, target, is_answer), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_answer and self._loses():
                    break
                target.sendall(data)
        for connection in (source, target):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.open -= {source}
        source.close()

    def _loses(self) -> bool:
        with self.lock:
            if self.answers_to_lose:
                self.answers_to_lose -= 1
                self.lost += 1
                return True
            return False


@contextmanager
def proxying(target: str) -> Iterator[Proxy]:
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
