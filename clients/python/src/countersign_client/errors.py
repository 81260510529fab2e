"""Everything that a call of the client can raise.

No error has a key, a secret or a header of the request in its text or its ``repr``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from .models import Decision, Task


class CountersignError(Exception):
    """The base of all errors of this package."""

    def __init__(self, message: str, /, **details: Any) -> None:
        super().__init__(message)
        self._details = details
        for name, value in details.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self._details)


def _rebuild(kind: type[CountersignError], message: str, details: dict[str, Any]) -> CountersignError:
    """Makes an error again that was pickled, as engines do which run tasks in other processes."""
    return kind(message, **details)


# What a person, or time, made of a question.


class Undecided(CountersignError):
    """The base of the ends of a wait that are no approval."""

    task: Task
    """The task as it was last seen."""


class Rejected(Undecided):
    """The approver said no. ``decision.comment`` is why, if the approver wrote it."""

    decision: Decision


class Withdrawn(Undecided):
    """The task was cancelled, so there will be no decision. ``task.comment`` is the reason, if there is one."""


class WaitTimeout(Undecided, TimeoutError):
    """The time to wait is over, and the task is pending."""


class Overdue(WaitTimeout):
    """The date by which a decision was needed has passed, and the task is pending."""


class QuestionChanged(CountersignError):
    """A flow or a node of a graph asks something else than before in its place, so that the decision is not about it."""


class NotInterrupted(CountersignError):
    """A thread of LangGraph runs, so that it cannot be resumed. Answer the call with 503: it comes again."""


# What the server answered.


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of a request."""

    field: str
    code: str
    message: str


class ApiError(CountersignError):
    """The server refused a call. Programs check ``code``, which never changes; the text is for people."""

    status: int
    code: str
    detail: str
    fields: tuple[FieldError, ...]
    """The invalid fields, if the code is ``validation-failed``."""
    request_id: str | None
    """What to quote when you ask the operator: it is in the logs of the server."""
    retry_after: float | None
    """How many seconds to wait before the next try, if the server said so."""
    extensions: Mapping[str, Any]
    """The members that only some codes have."""


class ValidationFailed(ApiError):
    """400: a field is invalid. See ``fields``."""


class Unauthorized(ApiError):
    """401: the key or token is missing, unknown, expired or revoked."""


class Forbidden(ApiError):
    """403: the key lacks a scope, or its user a permission."""


class NotFound(ApiError):
    """404: there is no such thing, or the caller may not see it."""


class Conflict(ApiError):
    """409: it is not in a state in which this can be done."""


class AlreadyResolved(Conflict):
    """409: the task is decided or withdrawn, which is final."""

    task_status: str
    """``approved``, ``rejected`` or ``cancelled``."""


class TaskChanged(Conflict):
    """409: the task is not the version that was named."""

    task: Task
    """The task as it is now."""


class IdempotencyKeyReused(ApiError):
    """422: an earlier question had the same idempotency key and another content."""


class RateLimited(ApiError):
    """429: too many calls, for longer than the client repeats them."""


class ServerError(ApiError):
    """5xx: the server, or something it needs, is unavailable, for longer than the client repeats calls."""


class ConnectionFailed(CountersignError):
    """There was no answer: the server was not reached, or the connection ended before it."""

    may_have_arrived: bool
    """Whether the server may have got the request."""


class UnexpectedResponse(CountersignError):
    """The answer is not one of Countersign: another program or a proxy answers at this address."""

    status: int


# Webhooks.


class VerificationError(CountersignError, ValueError):
    """The call is not genuine. Answer it with 401, and do nothing else."""


class KeysUnavailable(CountersignError):
    """The published keys could not be fetched, so the call is neither genuine nor forged. Answer it with 503."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: ValidationFailed,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
}


def api_error(status: int, problem: Mapping[str, Any], retry_after: float | None) -> ApiError:
    """The error of a problem (RFC 9457)."""
    code = str(problem.get("code", ""))
    detail = str(problem.get("detail", ""))
    listed = cast("list[Mapping[str, object]]", problem.get("errors") or [])
    fields = tuple(FieldError(str(e.get("field", "")), str(e.get("code", "")), str(e.get("message", ""))) for e in listed)
    text = f"{code} ({status}): {detail}"
    if fields:
        text += " " + " ".join(f"{error.field}: {error.message}" for error in fields)
    request_id = problem.get("requestId")
    details: dict[str, Any] = {
        "status": status,
        "code": code,
        "detail": detail,
        "fields": fields,
        "request_id": str(request_id) if request_id else None,
        "retry_after": retry_after,
        "extensions": {name: value for name, value in problem.items() if name not in _USUAL_MEMBERS},
    }
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    if code == "task-already-resolved":
        return AlreadyResolved(text, **details, task_status=str(problem.get("taskStatus", "")))
    task = problem.get("task")
    if code == "task-changed" and isinstance(task, dict) and {"id", "status"} <= set(cast("dict[str, Any]", task)):
        return TaskChanged(text, **details, task=Task.from_json(cast("dict[str, Any]", task)))
    if code == "idempotency-key-reused":
        return IdempotencyKeyReused(text, **details)
    return kind(text, **details)


_USUAL_MEMBERS = frozenset(("type", "title", "status", "detail", "code", "message", "statusCode", "error", "requestId", "errors"))
