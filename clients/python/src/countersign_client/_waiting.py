"""Waiting for a decision, and asking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from ._calls import FIRST_PAUSE, log_failure, once, passes, pause_after
from ._effects import Call, Op, Pause
from ._settings import Settings
from ._tasks import create, get, get_request, resolve
from .errors import (
    AlreadyResolved,
    CountersignError,
    Overdue,
    Rejected,
    UnexpectedResponse,
    WaitTimeout,
    Withdrawn,
)
from .models import Decision, Task
from .options import TaskOptions


def wait_for_end(
    settings: Settings,
    task_id: str,
    secret: str | None,
    timeout: float | None,
    until_due: bool,
    seen: Task | None = None,
) -> Op[Task]:
    """Waits until a task is no longer pending. `seen` is the task as it is known before.

    Each request waits on the server. After a failure the next ones wait for a short time, so that a proxy that cuts long
    requests does not keep the task from being seen.
    """
    clock = settings.clock
    end = None if timeout is None else clock() + timeout
    last_answer = clock()
    # The due date is known after the first answer.
    poll = 1 if until_due else settings.longest_poll
    failures, early = 0, 0
    while True:
        left = None if end is None else max(end - clock(), 0)
        step = int(min(poll, settings.longest_poll, settings.longest_poll if left is None else left))
        begun = clock()
        try:
            answer = yield from once(get_request(task_id, secret, step))
            task = answer.read(Task.from_json)
        except CountersignError as error:
            if not (passes(error) or isinstance(error, UnexpectedResponse)):
                raise
            failures += 1
            pause = pause_after(failures, error)
            rest = pause if end is None else min(pause, max(end - clock(), 0))
            is_over = rest < pause
            # Without any answer, it is not known whether the task is pending.
            if clock() - last_answer + rest > settings.outage or (is_over and seen is None):
                raise
            if is_over:
                yield Pause(rest)
                raise late(timeout, seen) from error
            log_failure(failures, error, settings.outage - (clock() - last_answer))
            poll = 1
            yield Pause(pause)
            continue
        last_answer, failures, seen = clock(), 0, task
        if not task.is_pending:
            return task
        overdue = seconds_until(settings, task.decision_by) if until_due else None
        if overdue is not None and overdue <= 0:
            raise Overdue("The date by which a decision was needed has passed.", task=task)
        if left is not None and left <= 0:
            raise late(timeout, task)
        poll = min(max(poll, 1) * 2, settings.longest_poll)
        if overdue is not None:
            poll = min(poll, max(overdue, 1))
        # A gateway that stops answers at once, and one that has no place for another caller, too.
        if clock() - begun < step / 2 or step == 0:
            early += 1
            rest = [FIRST_PAUSE * 2 ** min(early - 1, 5)]
            rest += [max(end - clock(), 0)] if end is not None else []
            rest += [overdue] if overdue is not None else []
            yield Pause(min(rest))
        else:
            early = 0


def late(timeout: float | None, task: Task | None) -> WaitTimeout:
    """The error at the end of the time to wait."""
    return WaitTimeout(f"There was no decision within {timeout:g} seconds.", task=task)


def seconds_until(settings: Settings, moment: datetime | None) -> float | None:
    """How long it is until then, by the server's clock."""
    return None if moment is None else (moment - settings.now()).total_seconds()


def decision_of(task: Task, raise_if_rejected: bool) -> Decision:
    """The decision of a task that is no longer pending."""
    decision = Decision.of(task)
    if decision is None and task.status != "cancelled":
        raise UnexpectedResponse(f"The task has the status {task.status!r}, which this version does not know.", status=200)
    if decision is None:
        reason = f": {task.comment}" if task.comment else "."
        raise Withdrawn(f"The task was withdrawn{reason}", task=task)
    if raise_if_rejected and not decision.approved:
        comment = f": {task.comment}" if task.comment else "."
        raise Rejected(f"The task was rejected{comment}", task=task, decision=decision)
    return decision


def wait(settings: Settings, task_id: str, secret: str | None, timeout: float | None, until_due: bool) -> Op[Decision]:
    """Waits for the decision of a task."""
    task = yield from wait_for_end(settings, task_id, secret, timeout, until_due)
    return decision_of(task, raise_if_rejected=False)


def ask(
    settings: Settings,
    title: str,
    approver: str,
    idempotency_key: str | None,
    timeout: float | None,
    until_due: bool,
    withdraw_on_timeout: bool,
    raise_if_rejected: bool,
    on_created: Callable[[Task], object] | None,
    options: TaskOptions,
) -> Op[Decision]:
    """Creates a task, and waits for its decision."""
    begun = settings.clock()
    retry_for = settings.outage if timeout is None else min(settings.outage, timeout)
    task = yield from create(settings, title, approver, idempotency_key, options, retry_for)
    if on_created:
        yield Call(on_created, task)
    left = None if timeout is None else max(timeout - (settings.clock() - begun), 0)
    try:
        # An error has no secrets.
        seen = replace(task, approver_secret=None, requester_secret=None)
        ended = yield from wait_for_end(settings, task.id, None, left, until_due, seen)
    except WaitTimeout:
        if not withdraw_on_timeout:
            raise
        ended = yield from withdraw_late(settings, task.id)
        if ended is None:
            raise
    return decision_of(ended, raise_if_rejected)


def withdraw_late(settings: Settings, task_id: str) -> Op[Task | None]:
    """Withdraws a task that was not decided in time. Returns it if a decision came first."""
    try:
        yield from resolve(settings, "cancel", task_id, "There was no decision in time.", None, None)
    except AlreadyResolved:
        return (yield from get(settings, task_id, None))
    return None
