"""LangGraph with a real Countersign: its webhooks, and the snippet, whose program is killed."""

from __future__ import annotations

import queue
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from countersign_client import Client, Rejected, Unauthorized, VerificationError, WebhookCall, Withdrawn
from countersign_client.langgraph import ask, open_questions, resume
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from people import URL, People, eventually
from programs import SNIPPETS, Program
from typing_extensions import TypedDict

CONFIG: Any = {"configurable": {"thread_id": "order-4711"}}
SECONDS = 60


class State(TypedDict):
    said: str


class Engine:
    """A graph that asks one question, and a receiver of the calls about it."""

    def __init__(self, people: People) -> None:
        calls: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                calls.put((dict(self.headers.items()), self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.calls, self.people = calls, people
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = Client(URL, people.key)
        self.options: dict[str, Any] = {}
        builder = StateGraph(State).add_node("ask", self._node).add_edge(START, "ask")
        self.graph: Any = builder.compile(checkpointer=InMemorySaver())

    def _node(self, _: State) -> State:
        url = f"http://127.0.0.1:{self.server.server_address[1]}/decisions"
        webhook: Any = {"url": url, "include": ["metadata"], "events": ["approved", "rejected", "due", "cancelled"]}
        decision = ask(self.client, "Ship order 4711?", "grace@example.com", webhooks=[webhook], **self.options)
        return {"said": f"{decision.decided_by}: {decision.comment}"}

    def start(self, **options: Any) -> str:
        """Runs the graph until it waits, and returns the task."""
        self.options = options
        self.graph.invoke({"said": ""}, CONFIG)
        assert self.waits
        return self.people.only_task()

    @property
    def waits(self) -> bool:
        return bool(open_questions(self.graph, CONFIG))

    def call(self) -> WebhookCall:
        """The next call of a webhook, verified."""
        return self.client.verify(*self.calls.get(timeout=SECONDS))

    def go_on(self) -> Any:
        """Resumes the graph with the next call."""
        call = self.call()
        assert call.task
        return resume(self.graph, call.task)

    def close(self) -> None:
        self.client.close()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def engine(people: People) -> Iterator[Engine]:
    engine = Engine(people)
    yield engine
    engine.close()


def test_approved(people: People, engine: Engine) -> None:
    people.client.approve(engine.start(), comment="Go.")
    assert engine.go_on() == {"said": f"{people.email}: Go."}


def test_rejected(people: People, engine: Engine) -> None:
    people.client.reject(engine.start(), comment="Out of stock.")
    with pytest.raises(Rejected) as caught:
        engine.go_on()
    assert caught.value.decision.comment == "Out of stock."


def test_due(people: People, engine: Engine) -> None:
    task = engine.start(decision_by=datetime.now(timezone.utc) + timedelta(seconds=1))
    engine.go_on()
    # It was told that the date has passed, and waits for the decision.
    assert engine.waits
    people.client.approve(task, comment="Late.")
    assert engine.go_on() == {"said": f"{people.email}: Late."}


def test_cancelled(people: People, engine: Engine) -> None:
    people.client.cancel(engine.start(), reason="Shipped already.")
    with pytest.raises(Withdrawn):
        engine.go_on()


def test_repeated(people: People, engine: Engine) -> None:
    task = engine.start()
    people.client.approve(task)
    assert engine.go_on()
    # Until its result is recorded, the delivery is being sent, and is not sent a second time.
    (delivery,) = eventually(lambda: [d for d in engine.client.deliveries(task) if d.status == "sent"], "the delivery")
    engine.client.redeliver(delivery.id)
    assert engine.go_on() is None
    assert people.client.count() == 1


def test_revoked(people: People, engine: Engine) -> None:
    people.client.approve(engine.start(), comment="Go.")
    call = engine.call()
    assert call.task
    people.revoke()
    with pytest.raises(Unauthorized):
        resume(engine.graph, call.task)
    assert engine.waits
    # With another key the thread goes on with the same question.
    engine.client = Client(URL, people.make_key(("tasks:read", "tasks:write"))["key"])
    assert resume(engine.graph, call.task) == {"said": f"{people.email}: Go."}


def test_forged(people: People, engine: Engine) -> None:
    task = people.client.get(engine.start())
    forged = replace(task, status="approved")
    resume(engine.graph, forged, CONFIG)
    assert engine.waits
    people.client.approve(task.id, comment="Go.")
    headers, body = engine.calls.get(timeout=SECONDS)
    with pytest.raises(VerificationError):
        engine.client.verify(headers, body.replace(b"Ship", b"Skip"))
    assert engine.client.verify(headers, body).task


def has_interrupt(database: Path) -> bool:
    """Whether a graph has stored that it waits."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT 1 FROM writes WHERE channel = '__interrupt__'").fetchone() is not None
    except sqlite3.OperationalError:
        return False


def test_restarted(people: People, tmp_path: Path) -> None:
    command = [sys.executable, SNIPPETS / "langgraph_order.py"]
    with Program(command, tmp_path, people.environment()) as program:
        task = people.only_task()
        eventually(lambda: has_interrupt(tmp_path / "graph.db"), "the checkpoint")
        assert program.is_running
        program.kill()
        people.client.approve(task)
    with Program(command, tmp_path, people.environment()) as program:
        assert program.end() == 0
        assert program.text == f"approved by {people.email}\n"
    with Program(command, tmp_path, people.environment()) as program:
        assert program.end() == 0
        assert program.text == 2 * f"approved by {people.email}\n"
    assert people.client.count() == 1
