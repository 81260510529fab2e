"""Questions in real graphs of LangGraph."""

from __future__ import annotations

import asyncio
import operator
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar

import pytest
from typing_extensions import TypedDict

pytest.importorskip("langgraph")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from countersign_client import AsyncClient, Client, Rejected, Task, WaitTimeout
from countersign_client.langgraph import (
    NotInterrupted,
    QuestionChanged,
    aask,
    approval_tool,
    aresume,
    ask,
    open_questions,
    resume,
    wait_and_resume,
)

from .fake import KEY, Fake

CONFIG: Any = {"configurable": {"thread_id": "thread-1"}}


class State(TypedDict):
    runs: Annotated[list[str], operator.add]


def graph_of(node: Any, again: Any = None, saver: Any = None) -> Any:
    graph = StateGraph(State)
    graph.add_node("approve", node)
    graph.add_edge(START, "approve")
    graph.add_conditional_edges("approve", again or (lambda state: END))
    return graph.compile(checkpointer=saver or InMemorySaver())


@pytest.fixture
def client(fake: Fake) -> Any:
    with Client(fake.url, KEY) as client:
        yield client


def only_task(fake: Fake) -> str:
    assert len(fake.tasks) == 1
    return next(iter(fake.tasks))


def decided(fake: Fake, task_id: str, status: str = "approved", comment: str | None = None) -> Task:
    fake.decide(task_id, status, comment)
    return Task.from_json(fake.tasks[task_id])


def test_one_approval_makes_one_task(fake: Fake, client: Client) -> None:
    runs = 0

    def node(state: State) -> Any:
        nonlocal runs
        runs += 1
        decision = ask(client, "Send 40 mails?", "grace@example.com", metadata={"order": 7})
        return {"runs": [f"{decision.status} by {decision.decided_by}: {decision.comment}"]}

    graph = graph_of(node)
    first = graph.invoke({"runs": []}, CONFIG)
    task_id = only_task(fake)
    assert first["__interrupt__"][0].value["countersign_task"] == task_id
    assert "a" * 64 not in repr(first)
    assert fake.tasks[task_id]["metadata"] == {"langgraph_thread": "thread-1", "order": 7}
    # The idempotency keys of the server end after a day; the checkpoint keeps the question.
    fake.keys.clear()
    task = decided(fake, task_id, comment="Go.")
    assert resume(graph, task)["runs"] == ["approved by grace@example.com: Go."]
    assert runs == 2
    assert only_task(fake) == task_id
    # The webhook comes again.
    assert resume(graph, task) is None
    assert graph.get_state(CONFIG).values["runs"] == ["approved by grace@example.com: Go."]
    assert runs == 2


def test_a_forged_or_early_resumption_decides_nothing(fake: Fake, client: Client) -> None:
    graph = graph_of(lambda state: {"runs": [ask(client, "Sure?", "grace@example.com").status]})
    graph.invoke({"runs": []}, CONFIG)
    task_id = only_task(fake)
    for forged in ({"status": "approved"}, {"id": task_id, "status": "approved"}, "approved", True):
        result = graph.invoke(Command(resume=forged), CONFIG)
        assert result["__interrupt__"]
        assert result["runs"] == []
    assert resume(graph, decided(fake, task_id))["runs"] == ["approved"]
    assert only_task(fake) == task_id


def test_a_rejection_ends_the_node(fake: Fake, client: Client) -> None:
    graph = graph_of(lambda state: {"runs": [ask(client, "Sure?", "grace@example.com").status]})
    graph.invoke({"runs": []}, CONFIG)
    with pytest.raises(Rejected, match=r"Never\."):
        resume(graph, decided(fake, only_task(fake), "rejected", "Never."))


def test_each_visit_of_a_node_asks_again(fake: Fake, client: Client) -> None:
    """The same words in the same node of the same thread are a new question."""

    def node(state: State) -> Any:
        first = ask(client, "Next?", "grace@example.com")
        second = ask(client, "Next?", "grace@example.com")
        return {"runs": [first.task.id, second.task.id]}

    graph = graph_of(node, lambda state: "approve" if len(state["runs"]) < 4 else END)
    graph.invoke({"runs": []}, CONFIG)
    result = None
    for number in range(4):
        (question,) = open_questions(graph, CONFIG)
        assert len(fake.tasks) == number + 1
        result = resume(graph, decided(fake, question.task_id))
    assert result["runs"] == list(fake.tasks)
    assert open_questions(graph, CONFIG) == []


def test_a_crash_between_the_answer_and_the_checkpoint_makes_one_task(fake: Fake, client: Client) -> None:
    class Crash(Exception):
        pass

    class Saver(InMemorySaver):
        crashes = 1

        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            if fake.tasks and self.crashes:
                self.crashes -= 1
                raise Crash
            super().put_writes(config, writes, task_id, task_path)

    saver = Saver()
    graph = graph_of(lambda state: {"runs": [ask(client, "Sure?", "grace@example.com").status]}, saver=saver)
    with pytest.raises(Crash):
        graph.invoke({"runs": []}, CONFIG)
    graph.invoke(None, CONFIG)
    assert len([path for path in fake.paths("POST") if path == "/people-task/tasks"]) == 2
    assert resume(graph, decided(fake, only_task(fake)))["runs"] == ["approved"]


def test_a_decision_before_the_interrupt_is_saved_is_not_lost(fake: Fake, client: Client) -> None:
    class Crash(Exception):
        pass

    class Saver(InMemorySaver):
        crashes = 1

        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            if self.crashes and any(channel == "__interrupt__" for channel, _ in writes):
                self.crashes -= 1
                raise Crash
            super().put_writes(config, writes, task_id, task_path)

    graph = graph_of(lambda state: {"runs": [ask(client, "Sure?", "grace@example.com").status]}, saver=Saver())
    with pytest.raises(Crash):
        graph.invoke({"runs": []}, CONFIG)
    task = decided(fake, only_task(fake))
    with pytest.raises(NotInterrupted):
        resume(graph, task)
    # No call comes any more, and the program is started again.
    assert graph.invoke(None, CONFIG)["runs"] == ["approved"]
    assert resume(graph, task) is None
    assert only_task(fake) == task.id


def test_a_call_that_comes_while_the_next_node_works_does_not_run_it_again(fake: Fake, client: Client) -> None:
    tasks: list[Task] = []

    def repeated() -> Any:
        fake.until(lambda: graph.get_state(CONFIG).next == ("ship",))
        return resume(graph, tasks[0])

    def ship(state: State) -> Any:
        with ThreadPoolExecutor() as receiver, pytest.raises(NotInterrupted):
            receiver.submit(repeated).result()
        return {"runs": ["shipped"]}

    builder = StateGraph(State)
    builder.add_node("approve", lambda state: {"runs": [ask(client, "Sure?", "grace@example.com").status]})
    builder.add_node("ship", ship)
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "ship")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"runs": []}, CONFIG)
    tasks.append(decided(fake, only_task(fake)))
    assert resume(graph, tasks[0])["runs"] == ["approved", "shipped"]
    assert resume(graph, tasks[0]) is None


def test_an_answer_to_a_question_is_none_to_the_next_interrupt_of_its_node(fake: Fake, client: Client) -> None:
    def node(state: State) -> Any:
        status = ask(client, "Sure?", "grace@example.com").status
        return {"runs": [status, interrupt("How many?")]}

    graph = graph_of(node)
    graph.invoke({"runs": []}, CONFIG)
    result = resume(graph, decided(fake, only_task(fake)))
    assert [asked.value for asked in result["__interrupt__"]] == ["How many?"]
    assert graph.invoke(Command(resume="Two"), CONFIG)["runs"] == ["approved", "Two"]


def test_a_question_that_changes_is_not_taken_for_approved(fake: Fake, client: Client) -> None:
    titles = iter(["Pay 10 €?", "Pay 10,000 €?"])
    graph = graph_of(lambda state: {"runs": [ask(client, next(titles), "grace@example.com").status]})
    graph.invoke({"runs": []}, CONFIG)
    with pytest.raises(QuestionChanged):
        resume(graph, decided(fake, only_task(fake)))


def test_parallel_nodes_get_their_own_decisions(fake: Fake, client: Client) -> None:
    graph = StateGraph(State)
    for name in ("left", "right"):
        graph.add_node(
            name,
            lambda state, name=name: {
                "runs": [f"{name} {ask(client, name, 'grace@example.com', raise_if_rejected=False).status}"]
            },
        )
        graph.add_edge(START, name)
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"runs": []}, CONFIG)
    assert len(open_questions(compiled, CONFIG)) == 2
    by_title = {task["title"]: id for id, task in fake.tasks.items()}
    resume(compiled, decided(fake, by_title["right"], "rejected"), CONFIG)
    assert len(open_questions(compiled, CONFIG)) == 1
    result = resume(compiled, decided(fake, by_title["left"]), CONFIG)
    assert sorted(result["runs"]) == ["left approved", "right rejected"]
    assert len(fake.tasks) == 2


def test_waiting_without_a_receiver(fake: Fake, client: Client) -> None:
    graph = graph_of(lambda state: {"runs": [ask(client, "Sure?", "grace@example.com").status]})
    graph.invoke({"runs": []}, CONFIG)
    with pytest.raises(WaitTimeout):
        wait_and_resume(client, graph, CONFIG, timeout=0)
    fake.decide(only_task(fake), "approved")
    assert wait_and_resume(client, graph, CONFIG, timeout=10)["runs"] == ["approved"]
    assert wait_and_resume(client, graph, CONFIG) is None


def test_a_tool_asks_for_a_model(fake: Fake, client: Client) -> None:
    class Messages(TypedDict):
        messages: Annotated[list[Any], add_messages]

    tool = approval_tool(client, "grace@example.com", notify=True)
    assert set(tool.args) == {"title", "details"}
    call = {"name": tool.name, "id": "call-1", "args": {"title": "Delete the table?", "details": "All rows."}}
    graph = StateGraph(Messages)
    graph.add_node("model", lambda state: {"messages": [AIMessage("", tool_calls=[call])]})
    graph.add_node("tools", ToolNode([tool], handle_tool_errors=False))
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"messages": []}, CONFIG)
    task_id = only_task(fake)
    created = next(seen.body for seen in fake.seen if seen.method == "POST")
    assert (created["description"], created["notify"]) == ("All rows.", True)
    result = resume(compiled, decided(fake, task_id, "rejected", "No."), CONFIG)
    expected = '{"decision": "rejected", "by": "grace@example.com", "comment": "No."}'
    assert result["messages"][-1].content == expected
    assert only_task(fake) == task_id


@pytest.mark.parametrize("first", ["shown", "other"])
def test_two_questions_of_a_node_at_the_same_time(fake: Fake, first: str) -> None:
    """LangGraph shows one interrupt of a node at a time."""

    async def run() -> list[str]:
        async with AsyncClient(fake.url, KEY) as client:

            async def node(state: State) -> dict[str, list[str]]:
                both = [aask(client, title, "grace@example.com") for title in ("one", "two")]
                ended = await asyncio.gather(*both, return_exceptions=True)
                for one in ended:
                    if isinstance(one, BaseException):
                        raise one
                return {"runs": [f"{title} {one.status}" for title, one in zip(("one", "two"), ended, strict=True)]}

            graph = graph_of(node)
            await graph.ainvoke({"runs": []}, CONFIG)
            (question,) = open_questions(graph, CONFIG)
            (other,) = set(fake.tasks) - {question.task_id}
            order = [question.task_id, other] if first == "shown" else [other, question.task_id]
            for task_id in order:
                await aresume(graph, decided(fake, task_id), CONFIG)
            state = await graph.aget_state(CONFIG)
            assert state.next == ()
            return state.values["runs"]

    assert asyncio.run(run()) == ["one approved", "two approved"]
    assert len(fake.tasks) == 2


PROGRAM = """
import sys
from typing import TypedDict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from countersign_client import Client
from countersign_client.langgraph import ask, resume, wait_and_resume

class State(TypedDict):
    status: str

with Client() as client, SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    builder = StateGraph(State)
    builder.add_node("ask", lambda state: {"status": ask(client, "Sure?", "grace@example.com").status})
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    graph = builder.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "thread-1"}}
    if sys.argv[2] == "begin":
        graph.invoke({"status": ""}, config)
    else:
        print(wait_and_resume(client, graph, config, timeout=30)["status"])
"""


@pytest.mark.skipif(find_spec("langgraph.checkpoint.sqlite") is None, reason="needs langgraph-checkpoint-sqlite")
def test_a_restart_of_the_program(fake: Fake, tmp_path: Any) -> None:
    def run(step: str) -> str:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "checkpoints.db"), step]
        environment = {**os.environ, "COUNTERSIGN_URL": fake.url, "COUNTERSIGN_KEY": KEY}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    run("begin")
    fake.keys.clear()
    fake.decide(only_task(fake), "approved")
    assert run("go on") == "approved"
    assert len(fake.tasks) == 1
    secrets = (tmp_path / "checkpoints.db").read_bytes()
    assert b"a" * 64 not in secrets
    assert KEY.encode() not in secrets


def test_tracers_get_no_secret(fake: Fake, client: Client) -> None:
    class Tracer(BaseCallbackHandler):
        told: ClassVar[list[str]] = []

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            self.told.append(repr((serialized, inputs, kwargs)))

        def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            self.told.append(repr((outputs, kwargs)))

    webhook: Any = {"url": "https://example.com/", "secret": "whsec_hidden", "headers": {"Authorization": "Bearer hidden"}}
    graph = graph_of(lambda state: {"runs": [ask(client, "Sure?", "grace@example.com", webhooks=[webhook]).status]})
    graph.invoke({"runs": []}, {**CONFIG, "callbacks": [Tracer()]})
    assert [seen.body["webhooks"] for seen in fake.seen if seen.method == "POST"] == [[webhook]]
    assert any("countersign_ask" in text for text in Tracer.told)
    assert "hidden" not in "".join(Tracer.told)


def test_without_a_thread_it_says_what_is_missing(fake: Fake, client: Client) -> None:
    with pytest.raises(RuntimeError):
        ask(client, "Sure?", "grace@example.com")
    assert fake.tasks == {}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="LangGraph needs Python 3.11 for this")
def test_asynchronous_graphs(fake: Fake) -> None:
    async def run() -> None:
        async with AsyncClient(fake.url, KEY) as client:

            async def node(state: State) -> Any:
                return {"runs": [(await aask(client, "Sure?", "grace@example.com")).status]}

            graph = graph_of(node)
            await graph.ainvoke({"runs": []}, CONFIG)
            task = decided(fake, only_task(fake))
            assert (await aresume(graph, task))["runs"] == ["approved"]
            assert await aresume(graph, task) is None

    asyncio.run(run())
    assert len(fake.tasks) == 1
