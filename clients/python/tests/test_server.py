"""The clients with a real server.

They run with COUNTERSIGN_URL in the environment, where people may sign up, and make users of their own.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any, get_type_hints

import httpx
import pytest

from countersign_client import (
    AlreadyResolved,
    Client,
    Forbidden,
    NewWebhook,
    NotFound,
    Rejected,
    TaskChanged,
    TaskOptions,
    Unauthorized,
    ValidationFailed,
    VerificationError,
    WaitTimeout,
    Withdrawn,
    __version__,
)
from countersign_client._tasks import camel

from .proxy import Proxy, proxying
from .real import ALL, SECRET, Account, Receiver

pytestmark = pytest.mark.skipif(not os.environ.get("COUNTERSIGN_URL"), reason="no server: COUNTERSIGN_URL is not set")


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with httpx.Client(base_url=os.environ["COUNTERSIGN_URL"], timeout=20) as http:
        yield http


@pytest.fixture(scope="module")
def account(http: httpx.Client) -> Account:
    return Account(http)


@pytest.fixture(scope="module")
def key(account: Account) -> str:
    return account.key(*ALL)["key"]


@pytest.fixture
def real(make: Any, key: str) -> Any:
    return make(os.environ["COUNTERSIGN_URL"], key)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with proxying(os.environ["COUNTERSIGN_URL"]) as proxy:
        yield proxy


def title() -> str:
    return f"Question {uuid.uuid4().hex[:8]}"


class Later(threading.Thread):
    """Does something while the test waits, and raises its error at the end."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function, self.result, self.error = function, None, None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.function()
        except Exception as error:
            self.error = error

    def end(self, seconds: float = 60) -> Any:
        self.join(seconds)
        assert not self.is_alive(), "it did not end in time"
        if self.error:
            raise self.error
        return self.result


def visitor() -> Client:
    """A client that has only secrets."""
    return Client(os.environ["COUNTERSIGN_URL"])


def decide_soon(task: Any, **arguments: Any) -> None:
    """Decides with the secret, after a moment in which the client begins to wait."""

    def decide() -> None:
        time.sleep(0.5)
        with visitor() as client:
            client.decide(task.id, secret=task.approver_secret, **arguments)

    threading.Thread(target=decide).start()


def until_refused(call: Any) -> None:
    """Calls until the server refuses the key: all processes know within seconds that it was revoked."""
    end = time.monotonic() + 30
    with pytest.raises(Unauthorized):
        while time.monotonic() < end:
            call()
            time.sleep(0.1)


def test_an_approval(real: Any, account: Account) -> None:
    name = title()
    decision = real.ask(
        name,
        "grace@example.com",
        description="The old one squeaks.",
        metadata={"order": 4711},
        timeout=30,
        on_created=lambda task: decide_soon(task, status="approved", comment="Go – ünïcode."),
    )
    assert decision.approved
    assert (decision.comment, decision.task.title, decision.task.requester) == ("Go – ünïcode.", name, account.email)
    assert decision.decided_by == "grace@example.com"
    assert decision.decided_at is not None
    assert decision.task.metadata == {"order": 4711}


def test_a_rejection(real: Any) -> None:
    with pytest.raises(Rejected) as caught:
        real.ask(title(), "grace@example.com", timeout=30, on_created=lambda t: decide_soon(t, status="rejected", comment="No."))
    assert caught.value.decision.comment == "No."


def test_a_withdrawal(real: Any, key: str) -> None:
    def withdraw(task: Any) -> None:
        with Client(os.environ["COUNTERSIGN_URL"], key) as client:
            client.cancel(task.id, reason="Shipped already.")

    with pytest.raises(Withdrawn, match=r"Shipped already\."):
        real.ask(title(), "grace@example.com", timeout=30, on_created=withdraw)


def test_a_timeout(real: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(WaitTimeout) as caught:
        real.ask(title(), "grace@example.com", timeout=2, withdraw_on_timeout=True)
    assert 2 <= time.monotonic() - begun < 8
    assert real.get(caught.value.task.id).status == "cancelled"


def test_the_network_fails_while_a_question_waits(make: Any, key: str, proxy: Proxy) -> None:
    client = make(proxy.url, key)
    task = client.create(title(), "grace@example.com")
    waiting = Later(lambda: client.wait(task.id, timeout=60))
    for _ in range(3):
        time.sleep(0.5)
        proxy.cut()
    proxy.down()
    with visitor() as other:
        other.approve(task.id, secret=task.approver_secret, comment="Meanwhile.")
    time.sleep(2)
    proxy.up()
    assert waiting.end().comment == "Meanwhile."


def test_lost_answers_make_one_task(make: Any, key: str, proxy: Proxy) -> None:
    client = make(proxy.url, key, requester="ada@example.com")
    name = title()
    proxy.answers_to_lose = 3
    task = client.create(name, "grace@example.com")
    assert proxy.lost == 3
    assert [found.id for found in client.tasks(pattern=name)] == [task.id]
    proxy.answers_to_lose = 1
    assert client.approve(task.id, secret=task.approver_secret, comment="Once.").comment == "Once."
    assert proxy.lost == 4


def test_a_revoked_key_ends_the_wait(make: Any, account: Account) -> None:
    made = account.key("tasks:read", "tasks:write")
    client = make(os.environ["COUNTERSIGN_URL"], made["key"], requester=account.email)
    task = client.create(title(), "grace@example.com")
    waiting = Later(lambda: client.wait(task.id, timeout=60))
    account.revoke(made)
    until_refused(lambda: client.get(task.id))
    with visitor() as other:
        other.approve(task.id, secret=task.approver_secret)
    with pytest.raises(Unauthorized):
        waiting.end()


def test_scopes(make: Any, account: Account) -> None:
    client = make(os.environ["COUNTERSIGN_URL"], account.key("tasks:read")["key"], requester=account.email)
    with pytest.raises(Forbidden) as caught:
        client.create(title(), "grace@example.com")
    assert caught.value.code == "insufficient-scope"


def test_deciding_editing_and_reading(real: Any) -> None:
    task = real.create(title(), "grace@example.com", comment_required=True)
    edited = real.edit(task.id, description="More.", decision_by="2030-01-31 12:00:00")
    assert (edited.description, edited.version) == ("More.", 2)
    with pytest.raises(TaskChanged) as changed:
        real.approve(task.id, version=1)
    assert changed.value.task.version == 2
    with pytest.raises(ValidationFailed) as invalid:
        real.reject(task.id, secret=task.approver_secret)
    assert invalid.value.fields[0].field == "comment"
    assert real.reject(task.id, comment="No.", secret=task.approver_secret, version=2).status == "rejected"
    with pytest.raises(AlreadyResolved) as resolved:
        real.cancel(task.id)
    assert resolved.value.task_status == "rejected"
    with pytest.raises(NotFound):
        real.get("0" * 24)


def test_the_same_key_is_the_same_task(make: Any, real: Any) -> None:
    name, idempotency_key = title(), uuid.uuid4().hex
    first = real.create(name, "grace@example.com", idempotency_key=idempotency_key)
    again = real.create(name, "grace@example.com", idempotency_key=idempotency_key)
    assert (again.id, again.approver_secret) == (first.id, first.approver_secret)


def test_lists_page(real: Any) -> None:
    name = title()
    created = [real.create(f"{name} {number}", "grace@example.com").id for number in range(5)]
    assert [task.id for task in real.tasks(pattern=name, sort="created:1", page_size=2)] == created
    assert real.count(pattern=name) == 5
    assert list(real.tasks(pattern=name, status="approved")) == []


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def test_webhooks_and_both_signatures(real: Any, receiver: Receiver) -> None:
    webhook: NewWebhook = {"url": receiver.url, "secret": SECRET, "include": ["decidedBy", "metadata"]}
    try:
        task = real.create(title(), "grace@example.com", webhooks=[webhook], metadata={"flow": "1"})
    except ValidationFailed as error:
        pytest.skip(f"the server does not call this computer: {error}")
    assert len(task.webhooks) == 1
    second = real.webhooks.register(task.id, receiver.url + "?second")
    assert {found.id for found in real.webhooks.list(task.id)} == {task.webhooks[0].id, second.id}
    assert real.webhooks.test(second.id).success
    headers, body = receiver.calls.get(timeout=20)
    assert real.verify(headers, body).is_test
    real.webhooks.delete(second.id)
    assert [found.id for found in real.webhooks.list(task.id)] == [task.webhooks[0].id]
    real.approve(task.id, comment="Go.")
    headers, body = receiver.calls.get(timeout=20)
    for call in (real.verify(headers, body), real.verify(headers, body, secret=SECRET)):
        assert (call.task.id, call.decision.approved, call.decision.comment) == (task.id, True, "Go.")
        assert call.task.metadata == {"flow": "1"}
    with pytest.raises(VerificationError):
        real.verify(headers, body.replace(b"approved", b"rejected"))
    (delivery,) = real.deliveries(task.id)
    assert delivery.webhook_id == task.webhooks[0].id
    assert delivery.id == {name.lower(): value for name, value in headers.items()}["webhook-id"]


def test_the_api_has_this_version_and_these_fields(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    assert document["info"]["version"] == __version__

    def properties(schema: dict[str, Any]) -> dict[str, Any]:
        """Those of a schema, with those of the schemas that it refers to or is put together of."""
        if "$ref" in schema:
            return properties(document["components"]["schemas"][schema["$ref"].split("/")[-1]])
        parts = [*map(properties, schema.get("allOf", ())), schema.get("properties", {})]
        return {name: value for part in parts for name, value in part.items()}

    request = document["paths"]["/people-task/tasks"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    fields = properties(request)
    assert {"title", "approver"} | {camel(name) for name in get_type_hints(TaskOptions)} == set(fields)
    assert set(get_type_hints(NewWebhook)) == set(properties(fields["webhooks"]["items"]))
