"""Waiting for a decision in the triggerer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from countersign_client import AlreadyResolved, CountersignError, Task, WaitTimeout

from .hooks import CountersignHook

OUTAGE = 20 * 3600
"""How long Countersign may be unavailable, in seconds."""


def event_of(task: Task) -> dict[str, Any]:
    """What the operator is told about a task."""
    return {
        "status": task.status,
        "task_id": task.id,
        "comment": task.comment,
        "decided_by": task.decided_by,
        "decided_at": task.decided_at.isoformat() if task.decided_at else None,
    }


class CountersignTrigger(BaseTrigger):
    """Waits until a task is decided or withdrawn. Each request waits on the server, so the event comes at once.

    The event has ``status``: the one of the task, ``timeout`` when ``end`` (in seconds since 1970) has come, or
    ``error``. A restart of the triggerer does not lose a decision: the new one asks again.
    """

    def __init__(
        self,
        countersign_task_id: str,
        countersign_conn_id: str = CountersignHook.default_conn_name,
        end: float | None = None,
        withdraw_on_timeout: bool = False,
    ) -> None:
        super().__init__()
        self.countersign_task_id = countersign_task_id
        self.countersign_conn_id = countersign_conn_id
        self.end = end
        self.withdraw_on_timeout = withdraw_on_timeout

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How another triggerer makes this again. It has no secrets."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "countersign_task_id": self.countersign_task_id,
                "countersign_conn_id": self.countersign_conn_id,
                "end": self.end,
                "withdraw_on_timeout": self.withdraw_on_timeout,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event."""
        try:
            yield TriggerEvent(await self._wait())
        except (CountersignError, ValueError) as error:
            yield TriggerEvent({"status": "error", "task_id": self.countersign_task_id, "error": str(error)})

    async def _wait(self) -> dict[str, Any]:
        hook = CountersignHook(self.countersign_conn_id, outage=OUTAGE)
        async with await hook.aget_conn() as client:
            try:
                timeout = None if self.end is None else max(self.end - time.time(), 0)
                return event_of(await client.wait_for_end(self.countersign_task_id, timeout=timeout))
            except WaitTimeout:
                if self.withdraw_on_timeout:
                    try:
                        await client.cancel(self.countersign_task_id, reason="There was no decision in time.")
                    except AlreadyResolved:
                        # It was decided in the last moment.
                        return event_of(await client.get(self.countersign_task_id))
                return {"status": "timeout", "task_id": self.countersign_task_id}
