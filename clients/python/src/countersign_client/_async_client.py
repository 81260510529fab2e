"""The client for asynchronous programs. `_client.py` is made from this file by `scripts/make_sync.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import httpx

from . import _hooks, _tasks, _verify, _waiting
from ._calls import read
from ._effects import Op, Request
from ._http import run_async
from ._settings import Settings, make_settings
from ._signatures import Headers, WebhookCall
from .models import FIELDS, Decision, Delivery, Status, Task, Webhook, WebhookTest
from .options import TaskChanges, TaskOptions, Unpack, WebhookOptions

T = TypeVar("T")


class AsyncSession:
    """Runs the operations of a client and of its parts."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient | None) -> None:
        self.settings = settings
        self._owns_http = http is None
        self._http = http or httpx.AsyncClient(limits=httpx.Limits(max_connections=100, keepalive_expiry=30))

    async def run(self, operation: Op[T]) -> T:
        """Runs an operation."""
        return await run_async(self._http, self.settings, operation)

    async def list(self, first: Request, parse: Callable[[Any], T]) -> AsyncIterator[T]:
        """All rows of a list."""
        request: Request | None = first
        while request is not None:
            rows, request = await self.run(_tasks.page(self.settings, request))
            for row in rows:
                yield read(parse, row, 200)

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._owns_http:
            await self._http.aclose()


class AsyncClient:
    """Asks people for decisions, from asynchronous code. Tasks of one event loop can share it.

    ``url`` is the address of Countersign, ``key`` an API key or an access token; without them, the variables
    ``COUNTERSIGN_URL`` and ``COUNTERSIGN_KEY`` are used. ``requester`` is the address in whose name questions are asked
    that name none (``COUNTERSIGN_REQUESTER``, or else the address of the key's account).

    All times are in seconds. A request takes at most ``timeout``, and those that wait on the server that much longer. A call
    that fails because the server or the network is unavailable, or because there are too many calls, is repeated for
    ``retry_for``; ``ask`` and ``wait`` go on for ``outage`` without any answer. ``http`` is a client of httpx with settings of
    your own, which is not closed.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        requester: str | None = None,
        timeout: float = 10,
        retry_for: float = 60,
        outage: float = 3600,
        user_agent: str | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._settings = make_settings(url, key, requester, timeout, retry_for, outage, user_agent)
        self._session = AsyncSession(self._settings, http)
        self._keys = _verify.KeyCache()
        self.webhooks = AsyncWebhooks(self._session)
        """The webhooks of tasks."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.url!r})"

    @property
    def url(self) -> str:
        """The address of Countersign, without a slash at its end."""
        return self._settings.url

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._session.aclose()

    async def ask(
        self,
        title: str,
        approver: str,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        until_due: bool = False,
        withdraw_on_timeout: bool = False,
        raise_if_rejected: bool = True,
        on_created: Callable[[Task], Awaitable[object] | object] | None = None,
        **options: Unpack[TaskOptions],
    ) -> Decision:
        """Asks a person, waits for the answer, and returns the approval.

        Raises `Rejected` if the answer is no, unless ``raise_if_rejected`` is false; `Withdrawn` if the question was
        cancelled; `WaitTimeout` after ``timeout`` seconds (``None`` waits forever); and with ``until_due``, `Overdue` when
        ``decision_by`` has passed. The question stays open after a time-out, unless ``withdraw_on_timeout`` is true.

        ``on_created`` gets the task before the wait, for example to send its `link` to the approver.

        A restart of the server, of a proxy or of the network does not end the wait, and makes no second task: the request has
        an idempotency key, which is random for each call. Give ``idempotency_key`` to ask the same question again after a
        restart of your own program, within 24 hours: it then waits for the same task. All of the question must be the same, so
        ``decision_by`` must then be a moment.
        """
        return await self._session.run(
            _waiting.ask(
                self._settings,
                title,
                approver,
                idempotency_key,
                timeout,
                until_due,
                withdraw_on_timeout,
                raise_if_rejected,
                on_created,
                options,
            )
        )

    async def create(
        self, title: str, approver: str, *, idempotency_key: str | None = None, **options: Unpack[TaskOptions]
    ) -> Task:
        """Creates a task, and returns it with its secrets. It makes one task, however often the request has to be sent."""
        return await self._session.run(_tasks.create(self._settings, title, approver, idempotency_key, options))

    async def wait(
        self, task_id: str, *, timeout: float | None = None, until_due: bool = False, secret: str | None = None
    ) -> Decision:
        """Waits for the decision of a task, yes or no.

        Raises `Withdrawn` if the task was cancelled, `WaitTimeout` after ``timeout`` seconds, and with ``until_due``
        `Overdue` when the date by which a decision is needed has passed.
        """
        return await self._session.run(_waiting.wait(self._settings, task_id, secret, timeout, until_due))

    async def wait_for_end(
        self, task_id: str, *, timeout: float | None = None, until_due: bool = False, secret: str | None = None
    ) -> Task:
        """Waits until a task is no longer pending, and returns it, also if it was cancelled."""
        return await self._session.run(_waiting.wait_for_end(self._settings, task_id, secret, timeout, until_due))

    async def get(self, task_id: str, *, secret: str | None = None) -> Task:
        """Returns a task as it is now."""
        return await self._session.run(_tasks.get(self._settings, task_id, secret))

    async def edit(self, task_id: str, *, secret: str | None = None, **changes: Unpack[TaskChanges]) -> Task:
        """Changes fields of a pending task.

        A new approver gets a new secret, which the result has for the task's creator and administrators. If an answer is
        lost, the call is repeated as it is, and the result may lack that secret. To be sure to get it, give
        ``renew_approver_secret=True``, too, or call `edit` again with it alone: each such call makes another secret, and ends
        the approver's earlier link.
        """
        return await self._session.run(_tasks.edit(self._settings, task_id, secret, changes))

    async def decide(
        self,
        task_id: str,
        status: Literal["approved", "rejected"],
        *,
        comment: str | None = None,
        secret: str | None = None,
        version: int | None = None,
        override: bool = False,
    ) -> Task:
        """Approves or rejects a task.

        With ``version``, it is decided only if it is still what was seen; otherwise this raises `TaskChanged`. A task that is
        decided or withdrawn raises `AlreadyResolved`. ``override`` is for administrators.
        """
        verbs: dict[str, _tasks.Verb] = {"approved": "approve", "rejected": "reject"}
        if status not in verbs:
            raise ValueError("The status must be approved or rejected.")
        return await self._session.run(_tasks.resolve(self._settings, verbs[status], task_id, comment, secret, version, override))

    async def approve(
        self, task_id: str, *, comment: str | None = None, secret: str | None = None, version: int | None = None
    ) -> Task:
        """Approves a task, as `decide` does."""
        return await self.decide(task_id, "approved", comment=comment, secret=secret, version=version)

    async def reject(
        self, task_id: str, *, comment: str | None = None, secret: str | None = None, version: int | None = None
    ) -> Task:
        """Rejects a task, as `decide` does."""
        return await self.decide(task_id, "rejected", comment=comment, secret=secret, version=version)

    async def cancel(
        self, task_id: str, *, reason: str | None = None, secret: str | None = None, version: int | None = None
    ) -> Task:
        """Withdraws a question that no longer matters. A task that is decided raises `AlreadyResolved`."""
        return await self._session.run(_tasks.resolve(self._settings, "cancel", task_id, reason, secret, version))

    def tasks(
        self,
        *,
        status: Status | None = None,
        role: Literal["creator", "approver", "requester", "any"] | None = None,
        pattern: str | None = None,
        sort: str | None = None,
        filters: Iterable[str] = (),
        page_size: int = 100,
    ) -> AsyncIterator[Task]:
        """The tasks that you created, requested or are to approve, the newest first; pages are fetched as needed.

        ``sort`` is as in the API, such as ``created:1``, and so are ``filters``, such as ``approver:grace@example.com``. Tasks
        that enter or leave the list meanwhile move the others: read a list to its end before you change what it selects by.
        """
        params = _tasks.list_params(status, role, pattern, sort, filters)
        params = (*params, ("include", FIELDS), ("limit", str(page_size)))
        return self._session.list(Request("GET", "/people-task/tasks", params), Task.from_json)

    async def count(
        self,
        *,
        status: Status | None = None,
        role: Literal["creator", "approver", "requester", "any"] | None = None,
        pattern: str | None = None,
        filters: Iterable[str] = (),
    ) -> int:
        """How many tasks `tasks` has for the same arguments."""
        params = _tasks.list_params(status, role, pattern, None, filters)
        return await self._session.run(_tasks.count(self._settings, params))

    def deliveries(self, task_id: str, *, page_size: int = 100) -> AsyncIterator[Delivery]:
        """How the webhooks of a task were called. For its creator."""
        path = _tasks.path_of("tasks", task_id, "deliveries")
        return self._session.list(Request("GET", path, (("limit", str(page_size)),)), Delivery.from_json)

    async def redeliver(self, delivery_id: str) -> None:
        """Sends a delivery again."""
        await self._session.run(_hooks.redeliver(self._settings, delivery_id))

    async def verify(self, headers: Headers, body: bytes, *, secret: str | Sequence[str] | None = None) -> WebhookCall:
        """Checks that a call of a webhook is genuine, and returns it.

        ``body`` are the raw bytes. With ``secret`` (``whsec_…``, or several while it is replaced) the HMAC signature is checked,
        without it the Ed25519 signature with the keys that the server publishes, which are fetched and kept.

        Raises `VerificationError` for a call that is not genuine, or more than five minutes off: answer it with 401. Raises
        `KeysUnavailable` if the keys cannot be fetched: answer it with 503, so that the call comes again. Handle each ``id`` of
        a call once, and no call that ``is_test``.
        """
        return await self._session.run(_verify.verify(self._settings, self._keys, headers, body, secret))

    def link(self, task: Task, *, secret: bool = True) -> str:
        """The page of a task, for its approver.

        With ``secret``, who has the link can open the task without an account, and by default decide it: send it to the
        approver only.
        """
        link = f"{self.url}/tasks?id={quote(task.id, safe='')}"
        if secret and task.approver_secret:
            link += f"&secret={quote(task.approver_secret, safe='')}"
        return link


class AsyncWebhooks:
    """The webhooks of tasks: URLs that are called when a task is decided."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def register(
        self, task_id: str, url: str, *, idempotency_key: str | None = None, **options: Unpack[WebhookOptions]
    ) -> Webhook:
        """Registers a webhook for a pending task. A task that is decided raises `AlreadyResolved`, with its status."""
        return await self._session.run(_hooks.register(self._session.settings, task_id, url, idempotency_key, options))

    async def test(self, webhook_id: str) -> WebhookTest:
        """Calls a webhook once, and tells what the receiver answered. The call has ``is_test``, and is no decision."""
        return await self._session.run(_hooks.test(self._session.settings, webhook_id))

    async def delete(self, webhook_id: str) -> None:
        """Removes a webhook."""
        await self._session.run(_tasks.delete(self._session.settings, _tasks.path_of("webhooks", webhook_id)))

    def list(self, task_id: str) -> AsyncIterator[Webhook]:
        """The webhooks of a task."""
        path = _tasks.path_of("tasks", task_id, "webhooks")
        return self._session.list(Request("GET", path), Webhook.from_json)
