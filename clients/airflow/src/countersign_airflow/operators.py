"""Asking a person in a DAG."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from airflow.sdk import BaseOperator
from countersign_client import AlreadyResolved, Client, NewWebhook, Task, TaskOptions, WaitTimeout

from .hooks import CountersignHook
from .triggers import OUTAGE, CountersignTrigger, event_of

try:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import (  # pyright: ignore[reportPrivateImportUsage]
        AirflowException,  # pyright: ignore[reportPrivateImportUsage]
        AirflowFailException,
        AirflowSkipException,
    )

KEY = "airflow_key"
"""The name of the idempotency key in the metadata of a question."""


class CountersignApprovalOperator(BaseOperator):
    """Asks a person, and succeeds if the answer is yes.

    The task waits in the triggerer, without a worker. The result has ``status``, ``task_id``, ``comment``, ``decided_by`` and
    ``decided_at``.

    ``on_rejected`` says what a "no" does: ``fail`` the task without further tries, ``skip`` it and what follows, or ``return``
    the result, for a branch. A withdrawn question fails the task, and so does the end of ``response_timeout``; with
    ``withdraw_on_timeout`` the question is closed then.

    ``decision_by`` is a moment, or a length of time that begins with the DAG run. A retry goes on with the question that was
    asked. A task that is cleared asks again.
    """

    template_fields: Collection[str] = ("title", "approver", "description", "requester", "decision_by", "metadata")
    ui_color = "#e6f0ff"

    def __init__(
        self,
        *,
        title: str,
        approver: str,
        description: str | None = None,
        requester: str | None = None,
        decision_by: datetime | timedelta | str | None = None,
        deciders: Literal["approver", "signed-in"] | None = None,
        self_approval: bool | None = None,
        comment_required: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        notify: bool | None = None,
        language: str | None = None,
        webhooks: Sequence[NewWebhook] | None = None,
        response_timeout: timedelta | None = None,
        withdraw_on_timeout: bool = False,
        on_rejected: Literal["fail", "skip", "return"] = "fail",
        deferrable: bool = True,
        countersign_conn_id: str = CountersignHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if on_rejected not in ("fail", "skip", "return"):
            raise ValueError("`on_rejected` must be fail, skip or return.")
        self.title = title
        self.approver = approver
        self.description = description
        self.requester = requester
        self.decision_by = decision_by
        self.deciders = deciders
        self.self_approval = self_approval
        self.comment_required = comment_required
        self.metadata = metadata
        self.notify = notify
        self.language = language
        self.webhooks = webhooks
        self.response_timeout = response_timeout
        self.withdraw_on_timeout = withdraw_on_timeout
        self.on_rejected = on_rejected
        self.deferrable = deferrable
        self.countersign_conn_id = countersign_conn_id

    def execute(self, context: Any) -> dict[str, Any]:
        """Asks, and waits in the triggerer."""
        instance = context["ti"]
        with CountersignHook(self.countersign_conn_id, outage=OUTAGE).get_conn() as client:
            task = self._asked(client, instance)
            if task is None:
                task = client.create(self.title, self.approver, idempotency_key=key_of(instance), **self._options(context))
            instance.xcom_push(key="countersign_task_id", value=task.id)
            self.log.info("Asked %s: %s", self.approver, client.link(task, secret=False))
            if not self.deferrable:
                return self.execute_complete(context, self._wait(client, task.id))
        seconds = self._seconds()
        self.defer(
            trigger=CountersignTrigger(
                countersign_task_id=task.id,
                countersign_conn_id=self.countersign_conn_id,
                end=None if seconds is None else time.time() + seconds,
                withdraw_on_timeout=self.withdraw_on_timeout,
            ),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        """Ends the task as it was decided."""
        status = event["status"]
        if status == "approved" or (status == "rejected" and self.on_rejected == "return"):
            return event
        comment = f": {event['comment']}" if event.get("comment") else "."
        if status == "rejected" and self.on_rejected == "skip":
            raise AirflowSkipException(f"Rejected by {event['decided_by']}{comment}")
        if status == "rejected":
            raise AirflowFailException(f"Rejected by {event['decided_by']}{comment}")
        if status == "cancelled":
            raise AirflowFailException(f"The question was withdrawn{comment}")
        if status == "timeout":
            raise AirflowFailException("There was no decision in time.")
        # The next try goes on with the same question.
        raise AirflowException(f"The decision could not be waited for: {event.get('error', status)}")

    def _asked(self, client: Client, instance: Any) -> Task | None:
        """The question of an earlier try. Countersign knows the idempotency key of its creation for a day only."""
        if instance.try_number == 1:
            return None
        # The list has no filter for metadata.
        filters = ["title:" + self.title.strip().replace(",", r"\,")]
        tasks, key = client.tasks(role="creator", filters=filters), key_of(instance)
        return next((task for task in tasks if (task.metadata or {}).get(KEY) == key), None)

    def _wait(self, client: Any, task_id: str) -> dict[str, Any]:
        try:
            return event_of(client.wait_for_end(task_id, timeout=self._seconds()))
        except WaitTimeout:
            if self.withdraw_on_timeout:
                try:
                    client.cancel(task_id, reason="There was no decision in time.")
                except AlreadyResolved:
                    # It was decided in the last moment.
                    return event_of(client.get(task_id))
            return {"status": "timeout", "task_id": task_id}

    def _seconds(self) -> float | None:
        return None if self.response_timeout is None else self.response_timeout.total_seconds()

    def _options(self, context: Any) -> TaskOptions:
        """What the task has beside its title and its approver. A retry must send the same."""
        instance, run, decision_by = context["ti"], context["dag_run"], self.decision_by
        if isinstance(decision_by, timedelta):
            decision_by = run.start_date + decision_by
        found = {"dag_id": instance.dag_id, "run_id": instance.run_id, "airflow_task": instance.task_id}
        found[KEY] = key_of(instance)
        options: dict[str, Any] = {
            "description": self.description,
            "requester": self.requester,
            "decision_by": decision_by,
            "deciders": self.deciders,
            "self_approval": self.self_approval,
            "comment_required": self.comment_required,
            "metadata": {**found, **(self.metadata or {})},
            "notify": self.notify,
            "language": self.language,
            "webhooks": self.webhooks,
        }
        return {name: value for name, value in options.items() if value is not None}  # type: ignore[return-value]


def key_of(instance: Any) -> str:
    """The idempotency key of a task instance. Retries have the same one; clearing a task raises `max_tries`."""
    parts = [instance.dag_id, instance.run_id, instance.task_id, instance.map_index, instance.max_tries]
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
    return f"airflow-{digest}"
