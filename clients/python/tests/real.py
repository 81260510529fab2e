"""A user of a real server, and a receiver of its webhooks."""

from __future__ import annotations

import queue
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

SECRET = "whsec_" + "c2VjcmV0" * 6


class Account:
    """A user of this test run, and its keys."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.email = f"py-{uuid.uuid4().hex[:12]}@example.com"
        self.password = uuid.uuid4().hex
        self.call("POST", "/user", {"email": self.email, "password": self.password})
        signed_in = self.call("POST", "/user/auth", {"username": self.email, "password": self.password})
        self.token = signed_in["token"]

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        response = self.http.request(method, path, json=body, headers=headers)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()

    def key(self, *scopes: str) -> dict[str, str]:
        body = {"name": f"test {uuid.uuid4().hex[:6]}", "scopes": list(scopes)}
        return self.call("POST", "/user/keys", body, self.token)

    def revoke(self, key: dict[str, str]) -> None:
        self.call("DELETE", f"/user/keys/{key['id']}", token=self.token)


ALL = ("tasks:read", "tasks:write", "tasks:decide", "users:read")


class Receiver:
    """Receives calls of webhooks."""

    def __init__(self) -> None:
        self.calls: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
        calls = self.calls

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                calls.put((dict(self.headers.items()), body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/decisions"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
