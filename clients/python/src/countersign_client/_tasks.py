"""The operations on tasks, except waiting."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, quote

from ._calls import Answer, Repeat, call
from ._effects import Op, Request
from ._settings import Settings
from .errors import AlreadyResolved, CountersignError, Forbidden, NotFound, UnexpectedResponse
from .models import FIELDS, Task
from .options import TaskChanges, TaskOptions

Verb = Literal["approve", "reject", "cancel"]
_ENDS: dict[Verb, str] = {"approve": "approved", "reject": "rejected", "cancel": "cancelled"}


def path_of(kind: Literal["tasks", "webhooks", "deliveries"], identifier: str, *rest: str) -> str:
    """The path of one thing. An identifier cannot leave its place in it."""
    if not identifier or identifier in (".", ".."):
        raise ValueError("The identifier is empty or no identifier.")
    return "/".join(("/people-task", kind, quote(identifier, safe=""), *rest))


def camel(name: str) -> str:
    """`decision_by` becomes `decisionBy`."""
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def json_of(settings: Settings, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the API has them."""
    body = {camel(name): value for name, value in options.items()}
    if body.get("decisionBy") is not None:
        body["decisionBy"] = moment(settings, body["decisionBy"])
    if "webhooks" in body:
        body["webhooks"] = [dict(webhook) for webhook in body["webhooks"]]
    return body


def moment(settings: Settings, when: datetime | timedelta | str) -> str:
    """When a decision is needed, as the API has it."""
    if isinstance(when, str):
        return when
    if isinstance(when, timedelta):
        when = settings.now() + when
    if when.tzinfo is None:
        raise ValueError("`decision_by` needs a time zone, such as datetime.now(timezone.utc) has.")
    return when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")


def secret_header(secret: str | None) -> dict[str, str]:
    """The secret of a task is sent in a header, because addresses are logged."""
    return {"X-Task-Secret": secret} if secret else {}


def new_key(key: str | None) -> str:
    """The idempotency key of a creation: random, unless the caller has one."""
    if key is None:
        return str(uuid.uuid4())
    if not re.fullmatch(r"[!#-~]([ -~]{0,253}[!-~])?", key):
        raise ValueError("An idempotency key has 1 to 255 printable ASCII characters, and none of space or quote first.")
    return key


def create(
    settings: Settings,
    title: str,
    approver: str,
    idempotency_key: str | None,
    options: TaskOptions,
    retry_for: float | None = None,
) -> Op[Task]:
    """Creates one task, however often the request has to be sent."""
    key = new_key(idempotency_key)
    if idempotency_key is not None and isinstance(options.get("decision_by"), timedelta):
        raise ValueError(
            "With an idempotency key, give `decision_by` as a moment that is the same when the question is asked again."
        )
    requester = options.get("requester") or (yield from own_address(settings, retry_for))
    body = {"title": title, "approver": approver, **json_of(settings, cast("Mapping[str, Any]", options)), "requester": requester}
    request = Request("POST", "/people-task/tasks", (("include", FIELDS),), body, {"Idempotency-Key": key})
    answer = yield from call(settings, request, retry_for=retry_for)
    return answer.read(Task.from_json)


def own_address(settings: Settings, retry_for: float | None) -> Op[str]:
    """The requester if the caller names none: the client's, or the address of its account."""
    if settings.requester is None:
        try:
            answer = yield from call(settings, Request("GET", "/user"), retry_for=retry_for)
        except Forbidden as error:
            if error.code != "insufficient-scope":
                raise
            raise ValueError(
                "Name the `requester`: the key lacks the scope users:read, so the client cannot ask for its own address."
            ) from None
        settings.requester = answer.read(lambda user: str(user["email"]))
    return settings.requester


def get(settings: Settings, task_id: str, secret: str | None, retry_for: float | None = None) -> Op[Task]:
    """Reads a task."""
    answer = yield from call(settings, get_request(task_id, secret), retry_for=retry_for)
    return answer.read(Task.from_json)


def get_request(task_id: str, secret: str | None, wait: int = 0) -> Request:
    """The request for a task that waits for so many seconds while the task is pending."""
    params: tuple[tuple[str, str], ...] = (("include", FIELDS),)
    if wait:
        params = (*params, ("wait", str(wait)))
    return Request("GET", path_of("tasks", task_id), params, headers=secret_header(secret), extra_time=wait)


def edit(settings: Settings, task_id: str, secret: str | None, changes: TaskChanges) -> Op[Task]:
    """Changes fields of a pending task."""
    body = json_of(settings, cast("Mapping[str, Any]", changes))
    request = Request("PUT", path_of("tasks", task_id), (("include", FIELDS),), body, secret_header(secret))
    answer = yield from call(settings, request, Repeat.NOT_ARRIVED if "version" in body else Repeat.ALWAYS)
    return answer.read(Task.from_json)


def resolve(
    settings: Settings,
    verb: Verb,
    task_id: str,
    text: str | None,
    secret: str | None,
    version: int | None,
    override: bool = False,
) -> Op[Task]:
    """Approves, rejects or withdraws a task. If an answer was lost, the task says what came of it."""
    body: dict[str, Any] = {}
    if text:
        body["reason" if verb == "cancel" else "comment"] = text
    if version is not None:
        body["version"] = version
    params: tuple[tuple[str, str], ...] = (("include", FIELDS),)
    if override:
        params = (*params, ("override", "true"))
    method = "POST" if verb == "cancel" else "PUT"
    request = Request(method, path_of("tasks", task_id, verb), params, body, secret_header(secret))
    failures: list[CountersignError] = []
    try:
        answer = yield from call(settings, request, on_failure=failures.append)
    except AlreadyResolved as error:
        if not failures or error.task_status != _ENDS[verb]:
            raise
        # An earlier try may have done it. Then the task also has its text.
        task = yield from get(settings, task_id, secret)
        if (task.comment or None) != ((text or "").strip() or None):
            raise
        return task
    return answer.read(Task.from_json)


def list_params(
    status: str | None, role: str | None, pattern: str | None, sort: str | None, filters: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """The parameters of a list of tasks."""
    params: list[tuple[str, str]] = [("filter", text) for text in filters]
    if status is not None:
        params.append(("filter", f"status:{status}"))
    for name, value in (("role", role), ("pattern", pattern), ("sort", sort)):
        if value is not None:
            params.append((name, value))
    return tuple(params)


def count(settings: Settings, params: tuple[tuple[str, str], ...]) -> Op[int]:
    """Counts tasks."""
    answer = yield from call(settings, Request("GET", "/people-task/tasks-count", params))
    return answer.read(lambda body: int(body["count"]))


def page(settings: Settings, request: Request) -> Op[tuple[list[Any], Request | None]]:
    """One page of a list, and the request for the next one."""
    answer = yield from call(settings, request)
    return answer.read_list(lambda row: row), next_page(request, answer)


def next_page(request: Request, answer: Answer) -> Request | None:
    """The request that `Link` leads to. Only its parameters are taken, so that it cannot lead elsewhere."""
    link = re.search(r'<[^>?]*\?([^>]*)>\s*;\s*rel="?next"?', answer.headers.get("link", ""))
    if link is None:
        return None
    params = tuple(parse_qsl(link[1], keep_blank_values=True))
    if params == request.params:
        raise UnexpectedResponse("The list leads to the same page again.", status=200)
    return Request(request.method, request.path, params, headers=request.headers)


def delete(settings: Settings, path: str) -> Op[None]:
    """Deletes a thing. If an answer was lost, it may be gone already."""
    failures: list[CountersignError] = []
    try:
        yield from call(settings, Request("DELETE", path), on_failure=failures.append)
    except NotFound:
        if not failures:
            raise
