"""Prefect with a real Countersign, whose webhooks resume the flow of the snippet. Its server is killed in between, too."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
from people import URL, People, eventually
from programs import SNIPPETS, Program

START_SECONDS = 240
SECONDS = 120
# The due date has passed when the question is asked.
PAST = datetime(2020, 1, 1, tzinfo=timezone.utc).isoformat()
DUE = f"""
from datetime import datetime
from countersign_client.prefect import Countersign, ask
from prefect import flow

@flow
def ship():
    due = datetime.fromisoformat("{PAST}")
    decision = ask(Countersign.load("countersign"), "Ship order 4711?", "grace@example.com", decision_by=due)
    print("approved by", decision.decided_by)

ship()
"""


class Prefect:
    """A Prefect server at one address, and programs that use it."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/api"
        self.folder = folder
        self.settings = {
            "PREFECT_HOME": str(folder),
            "PREFECT_API_URL": self.url,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_LOGGING_LEVEL": "WARNING",
            "PREFECT_CLIENT_MAX_RETRIES": "20",
            "DO_NOT_TRACK": "1",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            Path(sys.executable).with_name("prefect"),
            "server",
            "start",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--no-ui",
        ]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, env={**os.environ, **self.settings}, stdout=log, stderr=log)
        eventually(self._is_up, "the start of Prefect", START_SECONDS)

    def _is_up(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx.RequestError:
            return False

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait(30)

    def run_of(self, people: People, task: str) -> str:
        """The flow run that asked."""
        (webhook,) = people.client.webhooks.list(task)
        return str(webhook.raw["url"]).split("/")[-2]

    def state(self, run: str) -> str:
        return httpx.get(f"{self.url}/flow_runs/{run}", timeout=30).json()["state"]["type"]

    def call(self, run: str, verb: str, body: Any = None) -> Any:
        return httpx.post(f"{self.url}/flow_runs/{run}/{verb}", json=body or {}, timeout=30).json()


@pytest.fixture(scope="session")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefect]:
    prefect = Prefect(tmp_path_factory.mktemp("prefect"))
    prefect.start()
    yield prefect
    prefect.kill()


class Flow:
    """The flow of the snippet, which waits."""

    def __init__(self, program: Program, prefect: Prefect, people: People) -> None:
        self.program, self.prefect, self.people = program, prefect, people
        self.task = people.only_task(SECONDS)
        self.run = prefect.run_of(people, self.task)
        self.until("PAUSED")

    def until(self, state: str) -> None:
        eventually(lambda: self.prefect.state(self.run) == state, state, SECONDS)

    def ends(self, text: str, seconds: float = SECONDS) -> None:
        """The flow ends, and has printed this."""
        code = self.program.end(seconds)
        assert text in self.program.text
        assert (code == 0) == text.startswith("approved")
        assert self.prefect.state(self.run) == ("COMPLETED" if code == 0 else "FAILED")
        assert self.people.client.count() == 1


@pytest.fixture
def environment(prefect: Prefect, people: People) -> dict[str, str]:
    environment = {**people.environment(), **prefect.settings}
    save = f'from countersign_client.prefect import Countersign; Countersign(url="{URL}", key="{people.key}").save("countersign", overwrite=True)'
    subprocess.run([sys.executable, "-c", save], env=environment, check=True, timeout=SECONDS)
    return environment


@pytest.fixture
def flow(prefect: Prefect, people: People, environment: dict[str, str], tmp_path: Path) -> Iterator[Flow]:
    with Program([sys.executable, SNIPPETS / "prefect_order.py"], tmp_path, environment) as program:
        yield Flow(program, prefect, people)


def test_approved(people: People, flow: Flow) -> None:
    people.client.approve(flow.task)
    flow.ends(f"approved by {people.email}")


def test_rejected(people: People, flow: Flow) -> None:
    people.client.reject(flow.task, comment="Out of stock.")
    flow.ends("Rejected")


def test_cancelled(people: People, flow: Flow) -> None:
    people.client.cancel(flow.task, reason="Shipped already.")
    flow.ends("Withdrawn")


def test_due(people: People, prefect: Prefect, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "due.py").write_text(DUE)
    with Program([sys.executable, tmp_path / "due.py"], tmp_path, environment) as program:
        flow = Flow(program, prefect, people)
        assert people.client.get(flow.task).decision_by
        # A question that is late is still decided.
        people.client.approve(flow.task)
        flow.ends(f"approved by {people.email}")


def deliveries(people: People, task: str) -> Callable[[], list[Any]]:
    return lambda: [delivery for delivery in people.client.deliveries(task)]


def test_repeated(people: People, flow: Flow) -> None:
    people.client.approve(flow.task)
    flow.ends(f"approved by {people.email}")
    (delivery,) = eventually(deliveries(people, flow.task), "the delivery")
    people.client.redeliver(delivery.id)
    # The same call by hand: it changes nothing, and does not count as a delivery.
    body = {"run_input": {"task_id": flow.task, "status": "approved"}}
    assert flow.prefect.call(flow.run, "resume", body)["status"] != "ACCEPT"
    assert flow.prefect.state(flow.run) == "COMPLETED"


def test_forged(people: People, flow: Flow) -> None:
    body = {"run_input": {"task_id": flow.task, "status": "approved"}}
    assert flow.prefect.call(flow.run, "resume", body)["status"] == "ACCEPT"
    # The flow has seen that there is no decision, and waits again: the second pause has another key.
    eventually(lambda: flow.prefect.call(flow.run, "resume", body)["status"] == "ACCEPT", "the second pause", SECONDS)
    flow.until("PAUSED")
    assert flow.program.is_running
    people.client.reject(flow.task)
    flow.ends("Rejected")


def test_revoked(people: People, flow: Flow) -> None:
    people.revoke()
    people.client.approve(flow.task)
    # Without a key it cannot read the decision, and so does not go on.
    assert flow.program.end(SECONDS) != 0
    assert "approved by" not in flow.program.text
    assert people.key not in flow.program.text


def test_restarted(people: People, flow: Flow) -> None:
    flow.prefect.kill()
    people.client.approve(flow.task)
    eventually(lambda: [d for d in deliveries(people, flow.task)() if d.attempts], "a call that fails")
    flow.prefect.start()
    # The third retry comes after two and a half minutes.
    flow.ends(f"approved by {people.email}", 360)
