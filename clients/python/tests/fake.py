"""A small Countersign on a real socket, which fails when a test says so."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY = "csk_test_0123456789"


@dataclass
class Seen:
    """A request that came."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any
    at: float


@dataclass
class Fault:
    """What happens to a request in place of its answer, or after its effect."""

    matches: Callable[[Seen], bool]
    kind: str  # "cut", "lose", "answer", "hang"
    times: int
    answer: tuple[int, dict[str, str], bytes] = (503, {}, b"")


def problem(status: int, code: str, **members: Any) -> tuple[int, dict[str, str], bytes]:
    body = {"status": status, "code": code, "detail": f"about {code}", "requestId": "req-1", **members}
    return status, {"Content-Type": "application/problem+json"}, json.dumps(body).encode()


def answer(value: Any, status: int = 200, **headers: str) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode()


@dataclass
class Fake:
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    webhooks: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    signing: list[Ed25519PrivateKey] = field(default_factory=lambda: [Ed25519PrivateKey.generate()])
    changed: threading.Condition = field(default_factory=threading.Condition)
    longest_wait: float = 50
    ahead: float = 0
    """How many seconds its clock is ahead."""
    url: str = ""
    port: int = 0

    def fail(self, kind: str, times: int = 1, where: Callable[[Seen], bool] = lambda seen: True, answer: Any = None) -> None:
        """Makes the next requests fail that match."""
        with self.changed:
            self.faults.append(Fault(where, kind, times, answer or (503, {}, b"")))

    def decide(self, task_id: str, status: str, comment: str | None = None, by: str = "grace@example.com") -> None:
        with self.changed:
            now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            self.tasks[task_id].update(status=status, comment=comment, decidedBy=by, decisionMade=now)
            self.changed.notify_all()

    def until(self, condition: Callable[[], Any], seconds: float = 10) -> Any:
        """Waits for a condition."""
        end = time.monotonic() + seconds
        with self.changed:
            while not (found := condition()):
                left = end - time.monotonic()
                assert left > 0, "it did not happen in time"
                self.changed.wait(min(left, 0.05))
        return found

    def paths(self, method: str) -> list[str]:
        return [seen.path for seen in self.seen if seen.method == method]

    def handle(self, seen: Seen) -> tuple[int, dict[str, str], bytes]:
        parts = seen.path.strip("/").split("/")
        if seen.path == "/.well-known/webhook-keys.json":
            return answer({"keys": [jwk(key) for key in self.signing]})
        secret = seen.headers.get("x-task-secret")
        if seen.headers.get("authorization") != f"Bearer {KEY}" and not secret:
            return problem(401, "invalid-key")
        if seen.path == "/user":
            return answer({"id": "u1", "email": "ada@example.com"})
        if parts[:2] == ["people-task", "webhooks"]:
            return self.webhook_call(seen, parts[2:])
        if seen.path == "/people-task/tasks" and seen.method == "POST":
            return self.create(seen)
        if seen.path == "/people-task/tasks":
            return self.list_tasks(seen)
        if seen.path == "/people-task/tasks-count":
            return answer({"count": len(self.tasks)})
        if parts[:2] == ["people-task", "tasks"]:
            return self.task_call(seen, parts[2:])
        return problem(404, "not-found")

    def create(self, seen: Seen) -> tuple[int, dict[str, str], bytes]:
        key = seen.headers.get("idempotency-key")
        if key and key in self.keys:
            body, result = self.keys[key]
            if body != seen.body:
                return problem(422, "idempotency-key-reused")
            return answer(result, **{"Idempotent-Replayed": "true"})
        task_id = uuid.uuid4().hex[:24]
        public = {
            name: seen.body.get(name)
            for name in ("title", "approver", "requester", "decisionBy", "metadata", "deciders", "notify")
        }
        task = {"id": task_id, "description": "", "status": "pending", "version": 1, **public}
        result = {**task, "approverSecret": "a" * 64, "requesterSecret": "b" * 64}
        if "version" not in seen.query.get("include", [""])[0].split(","):
            del result["version"]
        self.tasks[task_id] = task
        if key:
            self.keys[key] = (seen.body, result)
        return answer(result)

    def list_tasks(self, seen: Seen) -> tuple[int, dict[str, str], bytes]:
        limit, offset = int(seen.query["limit"][0]), int(seen.query.get("offset", ["0"])[0])
        rows = list(self.tasks.values())
        headers = {}
        if offset + limit < len(rows):
            query = urlencode({**seen.query, "offset": offset + limit}, doseq=True)
            headers["Link"] = f'</people-task/tasks?{query}>; rel="next"'
        return answer(rows[offset : offset + limit], **headers)

    def task_call(self, seen: Seen, parts: list[str]) -> tuple[int, dict[str, str], bytes]:
        task = self.tasks.get(parts[0])
        if task is None:
            return problem(404, "not-found")
        if seen.method == "GET" and len(parts) == 1:
            wait = min(float(seen.query.get("wait", ["0"])[0]), self.longest_wait)
            end = time.monotonic() + wait
            while task["status"] == "pending" and (left := end - time.monotonic()) > 0:
                self.changed.wait(left)
            return answer(task)
        if seen.method == "GET":
            return answer([webhook for webhook in self.webhooks.values() if webhook["taskId"] == parts[0]])
        if task["status"] != "pending":
            return problem(409, "task-already-resolved", taskStatus=task["status"])
        if (version := (seen.body or {}).get("version")) and version != task["version"]:
            return problem(409, "task-changed", task=task)
        if parts[1:]:
            ends = {"approve": "approved", "reject": "rejected", "cancel": "cancelled"}
            self.decide(parts[0], ends[parts[1]], seen.body.get("comment") or seen.body.get("reason"))
        else:
            task.update({**seen.body, "version": task["version"] + 1})
        return answer(task)

    def webhook_call(self, seen: Seen, parts: list[str]) -> tuple[int, dict[str, str], bytes]:
        if not parts:
            webhook = {"id": uuid.uuid4().hex[:24], "status": "pending"}
            webhook.update(url=seen.body["url"], taskId=seen.body["taskId"])
            self.webhooks[webhook["id"]] = webhook
            return answer(webhook)
        if parts[0] not in self.webhooks:
            return problem(404, "not-found")
        if seen.method == "DELETE":
            del self.webhooks[parts[0]]
            return answer({})
        return answer({"id": "d1", "success": True, "at": "", "durationMs": 41, "statusCode": 200, "error": None})


def jwk(key: Ed25519PrivateKey) -> dict[str, str]:
    raw = key.public_key().public_bytes_raw()
    x = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    return {"kty": "OKP", "crv": "Ed25519", "x": x, "whpk": "whpk_" + base64.b64encode(raw).decode()}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: Fake

    def respond(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, url.path, parse_qs(url.query), headers, body, time.monotonic())
        fake = self.fake
        with fake.changed:
            fake.seen.append(seen)
            fake.changed.notify_all()
            fault = next((fault for fault in fake.faults if fault.matches(seen) and fault.times > 0), None)
            if fault:
                fault.times -= 1
            if fault is None or fault.kind == "lose":
                status, headers, content = fake.handle(seen)
        if fault and fault.kind in ("cut", "lose"):
            self.cut()
            return
        if fault and fault.kind == "hang":
            # Until the client gives up.
            self.connection.settimeout(30)
            self.rfile.read(1)
            self.close_connection = True
            return
        if fault and fault.kind == "answer":
            status, headers, content = fault.answer
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True

    def cut(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(time.time() + self.fake.ahead)

    do_GET = do_POST = do_PUT = do_DELETE = respond

    def log_message(self, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@contextmanager
def serving(fake: Fake, port: int = 0) -> Iterator[Fake]:
    """Runs the fake, on the same port again if it is given."""
    server = Server(("127.0.0.1", port), type("Bound", (Handler,), {"fake": fake}))
    fake.port = server.server_address[1]
    fake.url = f"http://127.0.0.1:{fake.port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
