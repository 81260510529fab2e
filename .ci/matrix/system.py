"""Countersign's processes, and rows that are made through its API."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from processes import Failed, Process, free_ports, run, tail
from servers import ROOT, Postgres, RabbitMq

USERS = ["user-service", "deletion-worker", "notification-worker"]
TASKS = ["people-task-service", "webhook-worker"]


def own_environment(**more: str) -> dict[str, str]:
    """What a process needs of the environment, so that no setting of the caller reaches it."""
    return {"PATH": os.environ["PATH"], "LOG": "warn", **more}


class Programs:
    """The programs of a folder of cargo, by their names."""

    def __init__(self, folder: Path, links: Path) -> None:
        for program in ("all-services", "gateway"):
            if not (folder / program).is_file():
                raise Failed(f"{folder / program} is missing: run `cargo build --workspace --bins`, or give --programs")
        self.folder, self.links = folder, links
        links.mkdir()
        for name in USERS + TASKS:
            (links / name).symlink_to(folder / "all-services")

    def path(self, name: str) -> Path:
        return self.folder / name if name == "gateway" else self.links / name

    def migrate(self, service: str, owner_url: str) -> None:
        run([self.path(service), "migrate"], env=own_environment(DATABASE_OWNER_URL=owner_url))


def migrate(programs: Programs, postgres: Postgres, database: str) -> None:
    programs.migrate("user-service", postgres.url(database, "users_owner"))
    programs.migrate("people-task-service", postgres.url(database, "people_task_owner"))


class System:
    """The settings of a system, and its running processes."""

    def __init__(
        self, programs: Programs, folder: Path, postgres: Postgres, database: str, broker: RabbitMq, port: int | None = None,
        secrets: Path | None = None,
    ) -> None:  # fmt: skip
        self.programs, self.folder, self.processes = programs, folder, []
        folder.mkdir(mode=0o700)
        self.secrets = secrets or folder / "secrets"
        run([ROOT / "deploy/make-secrets", self.secrets])
        users, tasks, gateway = (f"127.0.0.1:{port}" for port in free_ports(3))
        self.gateway = f"http://{gateway}"

        def secret(name: str) -> str:
            return str(self.secrets / name)

        common = {
            "AMQP_URL": broker.url, "PUBLIC_URL": self.gateway, "BCRYPT_COST": "4", "DATABASE_POOL_SIZE": "8",
            "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8", "WEBHOOK_ENGINE_ORIGINS": "http://127.0.0.1:*",
            "USER_SERVICE_URL": f"http://{users}", "PEOPLE_TASK_SERVICE_URL": f"http://{tasks}", "RATE_LIMIT": "off",
            "TOKEN_SIGNING_KEY_FILE": secret("token_signing_key.pem"), "ADMIN_USERNAME": "admin@countersign.local",
            "WEBHOOK_SIGNING_KEY_FILE": secret("webhook_signing_key.pem"), "ADMIN_PASSWORD_FILE": secret("admin_password"),
            "WEBHOOK_HEADER_KEYS_FILE": secret("webhook_header_keys"),
        }  # fmt: skip
        listen = {"user-service": users, "people-task-service": tasks, "gateway": gateway}
        metrics = dict(zip(USERS + TASKS + ["gateway"], free_ports(6)))
        self.variables = {}
        for name in USERS + TASKS + ["gateway"]:
            role = "users_service" if name in USERS else "people_task_service"
            own = {"LISTEN_ADDRESS": listen[name]} if name in listen else {}
            url = {} if name == "gateway" else {"DATABASE_URL": postgres.url(database, role, port)}
            address = {"METRICS_ADDRESS": f"127.0.0.1:{metrics[name]}"}
            self.variables[name] = own_environment(**common, **own, **url, **address)
        self.metrics = metrics

    def start(self, names: tuple[str, ...] = ("user-service", "people-task-service", "gateway")) -> None:
        for name in names:
            process = self.spawn(name)
            process.wait_until(partial(self._is_ready, name))

    def spawn(self, name: str) -> Process:
        process = Process([self.programs.path(name)], self.folder / f"{name}.log", self.variables[name])
        self.processes.append(process)
        return process

    def refusal(self, name: str) -> str:
        """What a process says that ends at once instead of starting."""
        process = self.spawn(name)
        if process.wait(30) == 0:
            raise Failed(f"{name} ended without an error")
        return tail(process.log, 2000)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.stop()
        self.processes.clear()

    def _is_ready(self, name: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics[name]}/readyz", timeout=5) as response:
                return response.status == 200
        except OSError:
            return False

    def call(self, method: str, path: str, body: object = None, token: str = "", **headers: str) -> object:
        request = urllib.request.Request(self.gateway + path, method=method, headers=headers)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        data = None
        if body is not None:
            request.add_header("Content-Type", "application/json")
            data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=30) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            raise Failed(f"{method} {path.split('?')[0]}: {error.code} {error.read().decode()[:300]}") from None
        return json.loads(text) if text else None

    def sign_in(self, username: str, password: str) -> str:
        return self.call("POST", "/user/auth", {"username": username, "password": password})["token"]


PASSWORD = "correct horse"
TITLES = [
    "Buy a chair",
    "Stühle kaufen, 300 €",
    "Ιωάννης ΣΊΣΥΦΟΣ",
    "İstanbul ıssız",
    "椅子を買う",
    "مقعد",
    "a\u0301 e\u0308 👩‍🏭",
    "100 % _ \\ '\"",
]


def use(system: System, people: int = 12, tasks: int = 144) -> None:
    """Makes users, keys, tasks, webhooks and decisions."""
    tokens = {}
    for number in range(people):
        email = f"Person.I{number}@example.com"
        tokens[email] = system.call("POST", "/user", {"email": email, "password": PASSWORD})["token"]
    emails = list(tokens)
    for email in emails[:4]:
        key = {"name": "Flows", "scopes": ["tasks:read", "tasks:write"]}
        system.call("POST", "/user/keys", key, tokens[email])
    for number in range(tasks):
        creator, approver = emails[number % people], emails[(number * 5 + 1) % people]
        hook = {"url": f"http://127.0.0.1:9/flow?n={number}", "events": ["due", "approved", "rejected"]}
        if number % 3 == 0:
            hook |= {"headers": {"Authorization": "Bearer of-the-engine"}, "body": {"text": "{{title}}: {{status}}"}}
        task = {
            "title": f"{TITLES[number % len(TITLES)]} {number}", "description": TITLES[number % 5] * (number % 40),
            "requester": creator, "approver": approver, "metadata": {"order": number, "text": TITLES[number % 7]},
            "webhooks": [hook], "decisionBy": "2030-03-31 02:30:00",
        }  # fmt: skip
        made = system.call("POST", "/people-task/tasks", task, tokens[creator], **{"Idempotency-Key": f"task-{number}"})
        decision = ["approve", "reject", "cancel", None][number // people % 4]
        method = "POST" if decision == "cancel" else "PUT"
        if decision:
            comment = {} if decision == "cancel" else {"comment": TITLES[number % 6]}
            system.call(method, f"/people-task/tasks/{made['id']}/{decision}", comment, tokens[creator])


def look(system: System) -> None:
    """Signs in, finds a task by its words whatever their case, and decides one."""
    token = system.sign_in("person.i1@EXAMPLE.com", PASSWORD)
    pending = system.call("GET", "/people-task/tasks?filter=status:pending&sort=title:1&limit=50", token=token)
    if not pending:
        raise Failed("no pending task is listed")
    for words in ("BUY%20A%20CHAIR", "ST%C3%9CHLE"):
        if not system.call("GET", f"/people-task/tasks?pattern={words}", token=token):
            raise Failed(f"no task is found by {words}")
    mine = [task for task in pending if task["requester"].lower() == "person.i1@example.com"]
    for task in mine[:1]:
        system.call("PUT", f"/people-task/tasks/{task['id']}/approve", {}, token)


class Receiver(ThreadingHTTPServer):
    """Receives webhooks."""

    def __init__(self) -> None:
        received = self.received = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def deliver(system: System) -> None:
    """A decision reaches its webhook, and a deleted user is gone: this needs the broker and the workers."""
    email = "ada@example.com"
    user = system.call("POST", "/user", {"email": email, "password": PASSWORD})
    with Receiver() as receiver:
        url = f"http://127.0.0.1:{receiver.server_port}/flow"
        task = {"title": "Buy a chair", "requester": email, "approver": email, "webhooks": [{"url": url}]}
        task = system.call("POST", "/people-task/tasks", task, user["token"])
        system.call("PUT", f"/people-task/tasks/{task['id']}/approve", {}, user["token"])
        eventually("the webhook", lambda: [it for it in receiver.received if it["status"] == "approved"])
        receiver.shutdown()
    admin = system.sign_in("admin@countersign.local", (system.secrets / "admin_password").read_text().strip())
    ticket = system.call("DELETE", f"/users/{user['user']['id']}", token=admin)["ticket"]
    path = f"/users/{user['user']['id']}/delete-status/{ticket}"
    eventually("the deletion", lambda: system.call("GET", path, token=admin)["status"] == "completed")


def eventually(what: str, is_there: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)
