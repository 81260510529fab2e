"""Questions to people in flows of Prefect: `pip install 'countersign-client[prefect]'`.

`ask` creates the question in a task of Prefect and pauses the flow run. A webhook of Countersign resumes it, and nothing has to
stand in between: the webhook has the body that Prefect expects, and only Prefect's answer ``ACCEPT`` counts as a delivery.
What resumes the run is not trusted: the decision is read from Countersign.
"""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from typing import Any, cast

from prefect import task as prefect_task
from prefect.blocks.core import Block
from prefect.cache_policies import CacheKeyFnPolicy
from prefect.context import FlowRunContext, TaskRunContext
from prefect.flow_runs import apause_flow_run, pause_flow_run
from prefect.input import RunInput
from prefect.settings import PREFECT_API_URL
from pydantic import Field, SecretStr

from ._asked import asked, task_of
from ._async_client import AsyncClient
from ._client import Client
from ._waiting import decision_of
from .models import Decision, Task
from .options import NewWebhook, TaskOptions, Unpack

__all__ = ["Countersign", "CountersignDecision", "aask", "ask"]


class CountersignDecision(RunInput):
    """What the webhook resumes a flow run with."""

    task_id: str
    status: str


class Countersign(Block):
    """Where Countersign is, and how it reaches Prefect."""

    _block_type_name = "Countersign"
    _block_type_slug = "countersign"
    _description = "Asks people for decisions."

    url: str = Field(description="The address of Countersign.", examples=["https://countersign.example.com"])
    key: SecretStr = Field(description="An API key with the scopes tasks:read, tasks:write and users:read.")
    requester: str | None = Field(
        default=None, description="The e-mail address in whose name is asked, by default the one of the key's account."
    )
    prefect_api_url: str | None = Field(
        default=None,
        description="The address of Prefect's API as Countersign reaches it, by default PREFECT_API_URL.",
        examples=["http://prefect.internal:4200/api"],
    )
    prefect_authorization: SecretStr | None = Field(
        default=None,
        description="The header `Authorization` for Prefect's API, such as `Basic …`. Countersign keeps it encrypted.",
    )

    def client(self, **options: Any) -> Client:
        """A client of Countersign."""
        return Client(self.url, self.key.get_secret_value(), requester=self.requester, **options)

    def async_client(self, **options: Any) -> AsyncClient:
        """A client of Countersign for asynchronous flows."""
        return AsyncClient(self.url, self.key.get_secret_value(), requester=self.requester, **options)

    def resume_webhook(self, flow_run_id: str) -> NewWebhook:
        """The webhook that resumes a flow run which is paused for `CountersignDecision`."""
        api = self.prefect_api_url or cast("str | None", PREFECT_API_URL.value())
        if not api:
            raise ValueError("Set `prefect_api_url` of the block or PREFECT_API_URL, so that Countersign can resume the flow.")
        webhook: NewWebhook = {
            "url": f"{api.rstrip('/')}/flow_runs/{flow_run_id}/resume",
            "events": ["approved", "rejected", "cancelled"],
            "body": {"run_input": {"task_id": "{{id}}", "status": "{{status}}"}},
            "success": {"status": [200, 201], "pointer": "/status", "value": "ACCEPT"},
        }
        if self.prefect_authorization:
            webhook["headers"] = {"Authorization": self.prefect_authorization.get_secret_value()}
        return webhook


def _cache_key(_context: TaskRunContext, arguments: dict[str, Any]) -> str:
    return cast("str", arguments["idempotency_key"])


# A run that is repeated finds the question that it asked, also when the server has forgotten the idempotency key. The result has
# no secrets: it is kept in the result storage.
_STORED: Any = {
    "name": "ask a person",
    "persist_result": True,
    "cache_policy": CacheKeyFnPolicy(cache_key_fn=_cache_key),
    "retries": 3,
    "retry_delay_seconds": 5,
}


@prefect_task(**_STORED)
def _create(block: Countersign, title: str, approver: str, idempotency_key: str, options: TaskOptions) -> dict[str, str]:
    with block.client() as client:
        created = client.create(title, approver, idempotency_key=idempotency_key, **options)
        return asked(created, title, approver, options)


@prefect_task(**_STORED)
async def _acreate(block: Countersign, title: str, approver: str, idempotency_key: str, options: TaskOptions) -> dict[str, str]:
    async with block.async_client() as client:
        created = await client.create(title, approver, idempotency_key=idempotency_key, **options)
        return asked(created, title, approver, options)


def _task_id(kept: dict[str, str] | str, title: str, approver: str, name: str, options: TaskOptions) -> str:
    # What version 0.3.0 has stored is the identifier alone.
    if isinstance(kept, str):
        return kept
    otherwise = f"The flow run has asked another question with the name {name!r}: give each question a name of its own."
    return task_of(kept, title, approver, options, otherwise)


def _prepared(block: Countersign, name: str, options: TaskOptions) -> tuple[str, TaskOptions]:
    """The idempotency key of this question in this flow run, and the options with the webhook that resumes the run."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise RuntimeError("Ask in a flow.")
    run = str(context.flow_run.id)
    metadata = {"prefect_flow_run": run, **options.get("metadata", {})}
    webhooks = [block.resume_webhook(run), *options.get("webhooks", ())]
    prepared: TaskOptions = {**options, "metadata": metadata, "webhooks": webhooks}
    decision_by, start = options.get("decision_by"), context.flow_run.expected_start_time
    if isinstance(decision_by, timedelta) and start is not None:
        prepared["decision_by"] = start + decision_by
    # An idempotency key has at most 255 printable ASCII characters, the last of which is not a space.
    return f"prefect-{run}-{_safe(name, '[ -~]{0,199}[!-~]')}", prepared


def _safe(name: str, allowed: str) -> str:
    """The name of a question if it matches, or its hash."""
    return name if re.fullmatch(allowed, name) else hashlib.sha256(name.encode()).hexdigest()


def _pause_key(name: str, pauses: int) -> str:
    """Each pause has a key of its own, because the run may be resumed by hand before there is a decision.

    Prefect takes lowercase letters, digits and dashes only.
    """
    return f"countersign-{_safe(name, '[a-z0-9-]+')}-{pauses}"


def _end(task: Task, raise_if_rejected: bool) -> Decision | None:
    """The decision, unless the task is pending."""
    return None if task.is_pending else decision_of(task, raise_if_rejected)


def ask(
    block: Countersign,
    title: str,
    approver: str,
    *,
    name: str = "question",
    timeout: int = 24 * 3600,
    poll_interval: int = 2,
    raise_if_rejected: bool = True,
    **options: Unpack[TaskOptions],
) -> Decision:
    """Asks a person from a flow, and pauses the flow run until there is a decision.

    ``name`` tells the questions of one flow run apart: the same name is the same question, also when the run is repeated. The
    flow run looks every ``poll_interval`` seconds whether it was resumed. After ``timeout`` seconds Prefect raises
    ``FlowPauseTimeout``. A ``decision_by`` that is a length of time begins when the flow run was to start. Raises `Rejected`,
    unless ``raise_if_rejected`` is false, `Withdrawn`, and `QuestionChanged` if the same name has another title, approver or
    description than before.
    """
    key, options = _prepared(block, name, options)
    task_id = _task_id(_create(block, title, approver, key, options), title, approver, name, options)
    with block.client() as client:
        pauses = 0
        while (decision := _end(client.get(task_id), raise_if_rejected)) is None:
            pauses += 1
            pause_flow_run(
                wait_for_input=CountersignDecision,
                timeout=timeout,
                poll_interval=poll_interval,
                key=_pause_key(name, pauses),
            )
        return decision


async def aask(
    block: Countersign,
    title: str,
    approver: str,
    *,
    name: str = "question",
    timeout: int = 24 * 3600,
    poll_interval: int = 2,
    raise_if_rejected: bool = True,
    **options: Unpack[TaskOptions],
) -> Decision:
    """Does the same as `ask` in an asynchronous flow."""
    key, options = _prepared(block, name, options)
    task_id = _task_id(await _acreate(block, title, approver, key, options), title, approver, name, options)
    async with block.async_client() as client:
        pauses = 0
        while (decision := _end(await client.get(task_id), raise_if_rejected)) is None:
            pauses += 1
            await apause_flow_run(
                wait_for_input=CountersignDecision,
                timeout=timeout,
                poll_interval=poll_interval,
                key=_pause_key(name, pauses),
            )
        return decision
