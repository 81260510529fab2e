"""LangGraph and Prefect with a real server, whose webhooks resume them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import httpx
import pytest
from typing_extensions import TypedDict

from countersign_client import Client, VerificationError

from .prefect_server import wait_for
from .real import ALL, Account, Receiver

pytestmark = [
    pytest.mark.skipif(not os.environ.get("COUNTERSIGN_URL"), reason="no server: COUNTERSIGN_URL is not set"),
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with httpx.Client(base_url=os.environ["COUNTERSIGN_URL"], timeout=20) as http:
        yield Account(http)


@pytest.fixture(scope="module")
def key(account: Account) -> str:
    return account.key(*ALL)["key"]


@pytest.fixture
def client(key: str) -> Iterator[Client]:
    with Client(key=key) as client:
        yield client


@pytest.mark.skipif(find_spec("langgraph") is None, reason="LangGraph is not installed")
def test_a_graph_is_resumed_by_a_webhook(client: Client) -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    from countersign_client.langgraph import ask, resume

    class State(TypedDict):
        approved_by: str

    receiver = Receiver()
    webhook: Any = {"url": receiver.url, "include": ["metadata", "decidedBy"], "events": ["approved", "rejected"]}

    def node(state: State) -> State:
        decision = ask(client, "Send 40 mails?", "grace@example.com", webhooks=[webhook])
        return {"approved_by": f"{decision.decided_by}: {decision.comment}"}

    builder = StateGraph(State)
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "thread-1"}}
    first = graph.invoke({"approved_by": ""}, config)
    task_id = first["__interrupt__"][0].value["countersign_task"]
    client.approve(task_id, comment="Go.")
    headers, body = receiver.calls.get(timeout=30)
    with pytest.raises(VerificationError):
        client.verify(headers, body + b" ")
    call = client.verify(headers, body)
    assert call.task is not None
    result = resume(graph, call.task)
    assert result["approved_by"].endswith(": Go.")
    assert resume(graph, call.task) is None
    assert client.count(status="pending") == 0
    assert client.count() == 1
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.mark.skipif(find_spec("prefect") is None, reason="Prefect is not installed")
@pytest.mark.parametrize("status", ["approved", "rejected"])
def test_a_flow_is_resumed_by_a_webhook(prefect_api: str, client: Client, key: str, status: Any) -> None:
    from prefect import flow

    from countersign_client.prefect import Countersign, ask

    block = Countersign(url=client.url, key=key, prefect_api_url=prefect_api)
    title = f"Buy a chair, {status}?"

    @flow
    def order() -> str:
        decision = ask(block, title, "grace@example.com", timeout=120, poll_interval=1, raise_if_rejected=False)
        return f"{decision.status}: {decision.comment}"

    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(order()))
    thread.start()
    task_id = wait_for(lambda: next((task.id for task in client.tasks(pattern=title)), None), 90)
    client.decide(task_id, status, comment="Said so.")
    thread.join(120)
    assert results == [f"{status}: Said so."]
    assert client.count(pattern=title) == 1
    # The call counts as delivered only if Prefect accepted it, or the flow had read the decision before it paused.
    (webhook,) = client.webhooks.list(task_id)
    assert webhook.raw["success"]["value"] == "ACCEPT"
