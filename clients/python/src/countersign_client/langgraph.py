"""Questions to people in graphs of LangGraph: `pip install 'countersign-client[langgraph]'`.

A node asks with `ask`, which interrupts the graph. The graph goes on when it is resumed: by `resume` in a receiver of
webhooks, or by `wait_and_resume`. A node runs again from its start when it is resumed; the question is nevertheless asked once,
because its identifier is kept in the checkpoint, and its creation has an idempotency key made from the thread and the
checkpoint. The graph needs a checkpointer.

What resumes a graph is not trusted: the node reads the task, and interrupts again while that is pending.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.func import task as cached  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import Command, interrupt

from ._asked import asked, task_of
from ._async_client import AsyncClient
from ._client import Client
from ._waiting import decision_of
from .errors import NotInterrupted, QuestionChanged
from .models import Decision, Task
from .options import TaskOptions, Unpack

__all__ = [
    "NotInterrupted",
    "Question",
    "QuestionChanged",
    "aask",
    "approval_tool",
    "aresume",
    "ask",
    "await_and_resume",
    "open_questions",
    "resume",
    "wait_and_resume",
]

THREAD = "langgraph_thread"
"""The name in a task's metadata for the thread that asked."""

_MARK = "countersign_task"
_CHANGED = (
    "The node was resumed, and asks another question than before. Make texts that can differ between two runs in an earlier "
    "node, and ask several questions of a node one after the other."
)


def _prepared(options: TaskOptions) -> tuple[str, TaskOptions]:
    """The idempotency key of this place in the graph, and the options with the thread in their metadata."""
    configurable = get_config().get("configurable", {})
    thread, namespace = configurable.get("thread_id"), configurable.get("checkpoint_ns")
    if thread is None or not namespace:
        raise RuntimeError("Ask in a node of a graph that has a checkpointer, and run it with a thread_id.")
    key = hashlib.sha256(f"{thread}\0{namespace}".encode()).hexdigest()
    with_thread: TaskOptions = {**options, "metadata": {THREAD: str(thread), **options.get("metadata", {})}}
    return f"langgraph-{key}", with_thread


# LangGraph gives the arguments of such a function to callback handlers, which may record them: it has none, because the options
# can have the secrets of webhooks.


def _create(client: Client, title: str, approver: str, options: TaskOptions) -> dict[str, str]:
    @cached(name="countersign_ask")
    def create() -> dict[str, str]:
        key, prepared = _prepared(options)
        created = client.create(title, approver, idempotency_key=key, **prepared)
        return asked(created, title, approver, options)

    return create().result()


async def _acreate(client: AsyncClient, title: str, approver: str, options: TaskOptions) -> dict[str, str]:
    @cached(name="countersign_ask")
    async def create() -> dict[str, str]:
        key, prepared = _prepared(options)
        created = await client.create(title, approver, idempotency_key=key, **prepared)
        return asked(created, title, approver, options)

    return await create()


def _interrupt(task_id: str, title: str, approver: str) -> GraphInterrupt | None:
    """What interrupts the graph here, or nothing if it was resumed after this place.

    The caller reads the task before it raises it: a call about a decision that came earlier is not repeated. Each place takes
    its answer even if it has its decision, because the next interrupt of the node would take it for its own.
    """
    try:
        interrupt({_MARK: task_id, "title": title, "approver": approver})
    except GraphInterrupt as interrupted:
        return interrupted
    return None


def ask(
    client: Client,
    title: str,
    approver: str,
    *,
    raise_if_rejected: bool = True,
    **options: Unpack[TaskOptions],
) -> Decision:
    """Asks a person from a node, and interrupts the graph until there is a decision.

    Raises `Rejected`, unless ``raise_if_rejected`` is false, `Withdrawn`, and `QuestionChanged`.
    ``decision_by`` must be a moment.
    """
    kept = _create(client, title, approver, options)
    task_id = task_of(kept, title, approver, options, _CHANGED)
    while True:
        interrupted = _interrupt(task_id, title, approver)
        task = client.get(task_id)
        if not task.is_pending:
            return decision_of(task, raise_if_rejected)
        if interrupted:
            raise interrupted


async def aask(
    client: AsyncClient,
    title: str,
    approver: str,
    *,
    raise_if_rejected: bool = True,
    **options: Unpack[TaskOptions],
) -> Decision:
    """Does the same as `ask` in an asynchronous node. It needs Python 3.11 or later."""
    kept = await _acreate(client, title, approver, options)
    task_id = task_of(kept, title, approver, options, _CHANGED)
    while True:
        interrupted = _interrupt(task_id, title, approver)
        task = await client.get(task_id)
        if not task.is_pending:
            return decision_of(task, raise_if_rejected)
        if interrupted:
            raise interrupted


def approval_tool(
    client: Client,
    approver: str,
    *,
    name: str = "ask_for_approval",
    instructions: str = "Ask a person for approval before you do what cannot be undone. Returns their decision.",
    **options: Unpack[TaskOptions],
) -> BaseTool:
    """A tool with which a model asks. The model writes the question; who is asked is said here, and ``instructions``
    tell the model when to ask.

    The result names the decision and the comment. A rejection is a result, too, so that the model can go on without.
    """

    def ask_for_approval(title: str, details: str = "") -> str:
        given: TaskOptions = {**options, "description": details} if details else options
        decision = ask(client, title, approver, raise_if_rejected=False, **given)
        result = {"decision": decision.status, "by": decision.decided_by, "comment": decision.comment}
        return json.dumps(result, ensure_ascii=False)

    return StructuredTool.from_function(ask_for_approval, name=name, description=instructions)


@dataclass(frozen=True)
class Question:
    """A question for which a thread is interrupted."""

    task_id: str
    interrupt_id: str


def _questions(state: Any) -> list[Question]:
    """The open questions of a state of a graph."""
    found: list[Question] = []
    for open_interrupt in state.interrupts:
        value = open_interrupt.value
        if isinstance(value, dict) and _MARK in value:
            found.append(Question(str(cast("dict[str, Any]", value)[_MARK]), open_interrupt.id))
    return found


def open_questions(graph: Any, config: RunnableConfig) -> list[Question]:
    """The questions for which a thread is interrupted."""
    return _questions(graph.get_state(config))


def _config_of(task: Task, config: RunnableConfig | None) -> RunnableConfig:
    """The thread that asked."""
    if config is not None:
        return config
    thread = (task.metadata or {}).get(THREAD)
    if not isinstance(thread, str):
        raise ValueError(  # noqa: TRY004
            "The webhook needs `include: ['metadata']`, or give the config of the thread."
        )
    return {"configurable": {"thread_id": thread}}


def _command_for(task: Task, state: Any) -> Command[Any] | None:
    """What continues a thread that waits for a task. Raises `NotInterrupted` if the thread may be about to wait for it."""
    command = _command(_questions(state), lambda question: question.task_id == task.id)
    if command is None and any(_is_running(node) for node in state.tasks):
        raise NotInterrupted("The thread runs, and does not wait for this task, or not yet.")
    return command


def _is_running(node: Any) -> bool:
    """Whether a node of a state is neither interrupted nor at its end. One whose process has died counts as running."""
    return not node.interrupts and node.result is None and node.error is None


def _command(questions: list[Question], is_meant: Callable[[Question], bool]) -> Command[Any] | None:
    meant = {question.interrupt_id: {_MARK: question.task_id} for question in questions if is_meant(question)}
    return Command(resume=meant) if meant else None


def resume(graph: Any, task: Task, config: RunnableConfig | None = None) -> Any:
    """Continues the thread that waits for a task, and returns what the graph returns.

    ``task`` is the one of a verified call. ``None`` is returned if the thread does not wait for it, as when a call comes again
    after the thread has ended. A call that comes again while the node that asked still runs, runs that node a second time, so
    let it do nothing after `ask`. Raises `NotInterrupted` if another node of the thread runs: the call must come again.
    """
    config = _config_of(task, config)
    command = _command_for(task, graph.get_state(config))
    return graph.invoke(command, config) if command else None


async def aresume(graph: Any, task: Task, config: RunnableConfig | None = None) -> Any:
    """Does the same as `resume` for an asynchronous graph."""
    config = _config_of(task, config)
    command = _command_for(task, await graph.aget_state(config))
    return (await graph.ainvoke(command, config)) if command else None


def wait_and_resume(client: Client, graph: Any, config: RunnableConfig, *, timeout: float | None = None) -> Any:
    """Waits for all open questions of a thread, and continues it. For programs that receive no webhooks.

    Raises `WaitTimeout` if one of them has no decision ``timeout`` seconds after the wait for it began.
    """
    questions = open_questions(graph, config)
    for question in questions:
        client.wait_for_end(question.task_id, timeout=timeout)
    command = _command(questions, lambda _: True)
    return graph.invoke(command, config) if command else None


async def await_and_resume(client: AsyncClient, graph: Any, config: RunnableConfig, *, timeout: float | None = None) -> Any:
    """Does the same as `wait_and_resume` for an asynchronous graph."""
    questions = _questions(await graph.aget_state(config))
    for question in questions:
        await client.wait_for_end(question.task_id, timeout=timeout)
    command = _command(questions, lambda _: True)
    return (await graph.ainvoke(command, config)) if command else None
