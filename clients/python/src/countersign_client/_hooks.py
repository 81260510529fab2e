"""The operations on webhooks and deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ._calls import Repeat, call
from ._effects import Op, Request
from ._settings import Settings
from ._tasks import json_of, new_key, path_of
from .models import Webhook, WebhookTest
from .options import WebhookOptions


def register(settings: Settings, task_id: str, url: str, idempotency_key: str | None, options: WebhookOptions) -> Op[Webhook]:
    """Registers one webhook, however often the request has to be sent."""
    body = {"taskId": task_id, "url": url, **json_of(settings, cast("Mapping[str, Any]", options))}
    headers = {"Idempotency-Key": new_key(idempotency_key)}
    request = Request("POST", "/people-task/webhooks", body=body, headers=headers)
    answer = yield from call(settings, request)
    return answer.read(Webhook.from_json)


def test(settings: Settings, webhook_id: str) -> Op[WebhookTest]:
    """Calls a webhook once. The server waits up to 15 seconds for the receiver."""
    request = Request("POST", path_of("webhooks", webhook_id, "test"), body={}, extra_time=15)
    answer = yield from call(settings, request, Repeat.NOT_ARRIVED)
    return answer.read(WebhookTest.from_json)


def redeliver(settings: Settings, delivery_id: str) -> Op[None]:
    """Sends a delivery again."""
    request = Request("POST", path_of("deliveries", delivery_id, "redeliver"), body={})
    yield from call(settings, request, Repeat.NOT_ARRIVED)
