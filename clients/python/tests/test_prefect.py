"""Questions in flows of a real Prefect server. The webhooks are delivered as Countersign does it."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import httpx
import pytest

from .fake import KEY, Fake, serving
from .prefect_server import wait_for

# Prefect reads its settings when it is imported, so that comes after the fixture `prefect_api`.
pytestmark = [
    pytest.mark.skipif(find_spec("prefect") is None, reason="Prefect is not installed"),
    pytest.mark.filterwarnings("default"),
]

HTTP = httpx.Client(verify=False, timeout=30, limits=httpx.Limits(max_keepalive_connections=0))


def render(template: Any, task: dict[str, Any]) -> Any:
    if isinstance(template, dict):
        return {name: render(value, task) for name, value in template.items()}
    return task[template[2:-2]] if isinstance(template, str) and template.startswith("{{") else template


def deliver(webhook: dict[str, Any], task: dict[str, Any], seconds: float = 30) -> list[dict[str, Any]]:
    """Calls the webhook until it counts as delivered. Returns the answers."""
    answers: list[dict[str, Any]] = []

    def succeeds() -> bool:
        response = HTTP.post(webhook["url"], json=render(webhook["body"], task))
        answers.append(response.json())
        counts = response.status_code in webhook["success"]["status"]
        return counts and response.json().get("status") == webhook["success"]["value"]

    wait_for(succeeds, seconds)
    return answers


@pytest.fixture
def server() -> Iterator[Fake]:
    with serving(Fake()) as fake:
        yield fake


@pytest.fixture
def block(prefect_api: str, server: Fake) -> Any:
    from countersign_client.prefect import Countersign

    return Countersign(url=server.url, key=KEY)


def creation(fake: Fake) -> Any:
    return fake.until(lambda: [seen.body for seen in fake.seen if seen.path == "/people-task/tasks"], 60)[0]


class Run(threading.Thread):
    """Runs a flow beside the test."""

    def __init__(self, function: Any, *args: Any) -> None:
        super().__init__()
        self.function, self.args, self.result, self.error = function, args, None, None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.function(*self.args)
        except Exception as error:
            self.error = error

    def end(self) -> Any:
        self.join(60)
        assert not self.is_alive()
        if self.error:
            raise self.error
        return self.result


def make_flow(block: Any, **options: Any) -> Any:
    from prefect import flow

    from countersign_client.prefect import ask

    @flow
    def order() -> str:
        decision = ask(block, "Buy a chair?", "grace@example.com", timeout=60, poll_interval=1, **options)
        return f"{decision.status} by {decision.decided_by}: {decision.comment}"

    return order


def until_paused(prefect_api: str, fake: Fake) -> str:
    url = creation(fake)["webhooks"][0]["url"]
    run = url.split("/")[-2]
    wait_for(lambda: HTTP.get(f"{prefect_api}/flow_runs/{run}").json()["state"]["type"] == "PAUSED", 30)
    return run


def test_an_approval_resumes_the_flow(prefect_api: str, server: Fake, block: Any) -> None:
    run = Run(make_flow(block))
    flow_run = until_paused(prefect_api, server)
    (task_id,) = server.tasks
    assert server.tasks[task_id]["metadata"] == {"prefect_flow_run": flow_run}
    server.decide(task_id, "approved", "Go.")
    webhook = creation(server)["webhooks"][0]
    deliver(webhook, server.tasks[task_id])
    assert run.end() == "approved by grace@example.com: Go."
    # A repeat of the call does not count as delivered, and changes nothing.
    again = HTTP.post(webhook["url"], json=render(webhook["body"], server.tasks[task_id]))
    assert again.json()["status"] != "ACCEPT"
    assert len(server.tasks) == 1


def test_a_decision_before_the_pause_is_not_lost(prefect_api: str, server: Fake, block: Any) -> None:
    original = server.create

    def create_decided(seen: Any) -> Any:
        result = original(seen)
        server.decide(next(iter(server.tasks)), "approved", "At once.")
        return result

    server.create = create_decided  # type: ignore[method-assign]
    assert Run(make_flow(block)).end() == "approved by grace@example.com: At once."


def test_a_name_may_be_any_text(prefect_api: str, server: Fake, block: Any) -> None:
    run = Run(make_flow(block, name="Übergabe 4711"))
    until_paused(prefect_api, server)
    (task_id,) = server.tasks
    server.decide(task_id, "approved", "Gut.")
    deliver(creation(server)["webhooks"][0], server.tasks[task_id])
    assert run.end() == "approved by grace@example.com: Gut."


def test_a_rejection_fails_the_flow(prefect_api: str, server: Fake, block: Any) -> None:
    from countersign_client import Rejected

    run = Run(make_flow(block))
    flow_run = until_paused(prefect_api, server)
    (task_id,) = server.tasks
    server.decide(task_id, "rejected", "Too expensive.")
    deliver(creation(server)["webhooks"][0], server.tasks[task_id])
    with pytest.raises(Rejected, match=r"Too expensive\."):
        run.end()
    assert HTTP.get(f"{prefect_api}/flow_runs/{flow_run}").json()["state"]["type"] == "FAILED"


def test_a_withdrawal_ends_the_wait(prefect_api: str, server: Fake, block: Any) -> None:
    from countersign_client import Withdrawn

    run = Run(make_flow(block))
    until_paused(prefect_api, server)
    (task_id,) = server.tasks
    server.decide(task_id, "cancelled", "Bought already.")
    deliver(creation(server)["webhooks"][0], server.tasks[task_id])
    with pytest.raises(Withdrawn):
        run.end()


def test_resuming_by_hand_decides_nothing(prefect_api: str, server: Fake, block: Any) -> None:
    run = Run(make_flow(block, raise_if_rejected=False))
    flow_run = until_paused(prefect_api, server)
    (task_id,) = server.tasks
    forged = {"run_input": {"task_id": task_id, "status": "approved"}}
    first = HTTP.get(f"{prefect_api}/flow_runs/{flow_run}").json()["state"]["id"]
    assert HTTP.post(f"{prefect_api}/flow_runs/{flow_run}/resume", json=forged).json()["status"] == "ACCEPT"

    def is_paused_again() -> bool:
        state = HTTP.get(f"{prefect_api}/flow_runs/{flow_run}").json()["state"]
        return state["type"] == "PAUSED" and state["id"] != first

    wait_for(is_paused_again, 30)
    server.decide(task_id, "rejected")
    deliver(creation(server)["webhooks"][0], server.tasks[task_id])
    assert run.end().startswith("rejected")
    assert len(server.tasks) == 1


def test_a_repeated_run_asks_once(prefect_api: str, server: Fake, block: Any) -> None:
    """After a failure later in the flow, its repeat finds the decision, even if the server has forgotten the key."""
    from prefect import flow

    from countersign_client.prefect import ask

    runs = []

    # Prefect counts the run after a pause as another one.
    @flow(retries=3, retry_delay_seconds=0)
    def order() -> str:
        decision = ask(block, "Buy a chair?", "grace@example.com", timeout=60, poll_interval=1)
        runs.append(decision.status)
        if len(runs) == 1:
            server.keys.clear()
            raise RuntimeError("later in the flow")
        return decision.status

    run = Run(order)
    until_paused(prefect_api, server)
    (task_id,) = server.tasks
    server.decide(task_id, "approved")
    deliver(creation(server)["webhooks"][0], server.tasks[task_id])
    assert run.end() == "approved"
    assert runs == ["approved", "approved"]
    assert len(server.tasks) == 1


def test_two_questions_of_a_flow(prefect_api: str, server: Fake, block: Any) -> None:
    from prefect import flow

    from countersign_client.prefect import aask

    @flow
    async def order() -> list[str]:
        first = await aask(block, "Buy a chair?", "grace@example.com", name="chair", timeout=60, poll_interval=1)
        second = await aask(block, "Buy a table?", "grace@example.com", name="table", timeout=60, poll_interval=1)
        return [first.task.title, second.task.title]

    run = Run(lambda: asyncio.run(order()))
    states: set[str] = set()
    for number in (1, 2):
        task_id = server.until(lambda number=number: len(server.tasks) == number and list(server.tasks)[-1], 60)
        webhook = [seen.body for seen in server.seen if seen.path == "/people-task/tasks"][-1]["webhooks"][0]
        states.add(paused_again(prefect_api, webhook, states))
        server.decide(task_id, "approved")
        deliver(webhook, server.tasks[task_id])
    assert run.end() == ["Buy a chair?", "Buy a table?"]


@pytest.mark.parametrize("is_async", [False, True])
def test_another_question_with_the_same_name_is_not_decided(prefect_api: str, server: Fake, block: Any, is_async: bool) -> None:
    from prefect import flow

    from countersign_client import QuestionChanged
    from countersign_client.prefect import aask, ask

    create, shipped = server.create, []

    def create_decided(seen: Any) -> Any:
        result = create(seen)
        server.decide(next(iter(server.tasks)), "approved")
        return result

    server.create = create_decided  # type: ignore[method-assign]

    @flow
    def ship() -> None:
        for order in (1, 2):
            ask(block, f"Ship order {order}?", "grace@example.com")
            shipped.append(order)

    @flow
    async def aship() -> None:
        for order in (1, 2):
            await aask(block, f"Ship order {order}?", "grace@example.com")
            shipped.append(order)

    run = Run((lambda: asyncio.run(aship())) if is_async else ship)
    with pytest.raises(QuestionChanged, match="a name of its own"):
        run.end()
    assert shipped == [1]


def test_a_question_that_version_0_3_0_stored_is_found(prefect_api: str) -> None:
    from countersign_client.prefect import _task_id

    assert _task_id("a" * 24, "Buy a chair?", "grace@example.com", "question", {}) == "a" * 24


def paused_again(prefect_api: str, webhook: Any, known: set[str]) -> str:
    """Waits until the flow run is in a state of a pause that is not known yet."""

    def state() -> Any:
        state = HTTP.get(f"{prefect_api}/flow_runs/{webhook['url'].split('/')[-2]}").json()["state"]
        return state["id"] if state["type"] == "PAUSED" and state["id"] not in known else None

    return wait_for(state, 30)


def test_the_block_keeps_its_secrets(prefect_api: str, block: Any) -> None:
    from countersign_client.prefect import Countersign

    block.prefect_authorization = None
    name = f"test-{uuid.uuid4().hex[:8]}"
    block.save(name)
    loaded = Countersign.load(name)
    assert loaded.key.get_secret_value() == KEY
    shown = HTTP.get(f"{prefect_api}/block_types/slug/countersign/block_documents/name/{name}").text
    assert KEY not in shown + repr(loaded) + str(loaded)
    assert json.loads(shown)["data"]["url"] == block.url
    secret = Countersign(url="http://c", key=KEY, prefect_api_url="http://p/api", prefect_authorization="Basic abc")
    webhook = secret.resume_webhook("run-1")
    assert webhook["url"] == "http://p/api/flow_runs/run-1/resume"
    assert webhook["headers"] == {"Authorization": "Basic abc"}
