"""Asking and waiting, and what ends a wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from countersign_client import (
    AlreadyResolved,
    ConnectionFailed,
    IdempotencyKeyReused,
    Overdue,
    RateLimited,
    Rejected,
    Unauthorized,
    ValidationFailed,
    WaitTimeout,
    Withdrawn,
)
from countersign_client._settings import make_settings

from .fake import Fake, problem, serving


def when_asked(fake: Fake, act: Callable[[str], Any]) -> threading.Thread:
    """Acts on the first task as soon as a client waits for it."""

    def run() -> None:
        fake.until(lambda: any("wait" in seen.query for seen in fake.seen))
        act(next(iter(fake.tasks)))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def creations(fake: Fake) -> list[Any]:
    return [seen for seen in fake.seen if seen.method == "POST" and seen.path == "/people-task/tasks"]


def test_an_approval_is_returned(fake: Fake, client: Any) -> None:
    thread = when_asked(fake, lambda id: fake.decide(id, "approved", "Go."))
    decision = client.ask("Deploy?", "grace@example.com", timeout=10)
    thread.join()
    assert decision
    assert decision.approved
    assert (decision.status, decision.comment, decision.decided_by) == ("approved", "Go.", "grace@example.com")
    assert abs(datetime.now(timezone.utc) - decision.decided_at) < timedelta(seconds=5)
    assert creations(fake)[0].body == {"title": "Deploy?", "approver": "grace@example.com", "requester": "ada@example.com"}


def test_a_rejection_is_an_error_that_has_the_decision(fake: Fake, client: Any) -> None:
    thread = when_asked(fake, lambda id: fake.decide(id, "rejected", "Too expensive."))
    with pytest.raises(Rejected, match=r"rejected: Too expensive\.") as caught:
        client.ask("Buy?", "grace@example.com", timeout=10)
    thread.join()
    assert caught.value.decision.comment == "Too expensive."
    assert not caught.value.decision


def test_a_rejection_is_returned_if_that_is_wanted(fake: Fake, client: Any) -> None:
    thread = when_asked(fake, lambda id: fake.decide(id, "rejected"))
    decision = client.ask("Buy?", "grace@example.com", timeout=10, raise_if_rejected=False)
    thread.join()
    assert decision.status == "rejected"
    assert not decision


def test_a_withdrawal_is_an_error(fake: Fake, client: Any) -> None:
    thread = when_asked(fake, lambda id: fake.decide(id, "cancelled", "Shipped already."))
    with pytest.raises(Withdrawn, match=r"withdrawn: Shipped already\.") as caught:
        client.ask("Ship?", "grace@example.com", timeout=10)
    thread.join()
    assert caught.value.task.status == "cancelled"


def test_a_timeout_leaves_the_task(fake: Fake, client: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(WaitTimeout) as caught:
        client.ask("Slow?", "grace@example.com", timeout=1.3)
    assert 1.3 <= time.monotonic() - begun < 20
    assert isinstance(caught.value, TimeoutError)
    assert fake.tasks[caught.value.task.id]["status"] == "pending"


def test_a_timeout_withdraws_the_task_if_that_is_wanted(fake: Fake, client: Any) -> None:
    with pytest.raises(WaitTimeout) as caught:
        client.ask("Slow?", "grace@example.com", timeout=0, withdraw_on_timeout=True)
    assert fake.tasks[caught.value.task.id]["status"] == "cancelled"


def busy(fake: Fake, where: Callable[[Any], bool] = lambda seen: True) -> None:
    """Lets the reading of tasks fail, with a time to wait that is longer than those of the tests."""
    status, headers, body = problem(429, "rate-limited")
    refused = (status, {**headers, "Retry-After": "600"}, body)
    is_read = lambda seen: seen.method == "GET" and seen.path.startswith("/people-task/tasks/")  # noqa: E731
    fake.fail("answer", times=1000, where=lambda seen: is_read(seen) and where(seen), answer=refused)


def test_a_timeout_in_an_outage_withdraws_the_task_too(fake: Fake, client: Any) -> None:
    busy(fake)
    begun = time.monotonic()
    with pytest.raises(WaitTimeout) as caught:
        client.ask("Slow?", "grace@example.com", timeout=0.5, withdraw_on_timeout=True)
    assert 0.4 <= time.monotonic() - begun < 20
    assert isinstance(caught.value.__cause__, RateLimited)
    assert caught.value.task.approver_secret is None
    assert fake.tasks[caught.value.task.id]["status"] == "cancelled"


def test_the_end_of_a_wait_in_an_outage_is_a_timeout_once_the_task_was_seen(fake: Fake, client: Any) -> None:
    task = client.create("Slow?", "grace@example.com")
    fake.longest_wait = 0
    busy(fake, lambda seen: len([seen for seen in fake.seen if seen.method == "GET" and task.id in seen.path]) > 1)
    with pytest.raises(WaitTimeout) as caught:
        client.wait(task.id, timeout=1)
    assert (caught.value.task.id, caught.value.task.is_pending) == (task.id, True)
    with pytest.raises(RateLimited):
        client.wait(task.id, timeout=0)


def test_a_decision_before_the_late_withdrawal_counts(fake: Fake, client: Any) -> None:
    fake.fail(
        "answer", where=lambda s: s.path.endswith("/cancel"), answer=problem(409, "task-already-resolved", taskStatus="approved")
    )
    # The task is decided as soon as the withdrawal has come, before the client reads it again.
    original = fake.handle

    def handle(seen: Any) -> Any:
        if any(s.path.endswith("/cancel") for s in fake.seen) and seen.method == "GET":
            fake.tasks[next(iter(fake.tasks))]["status"] = "approved"
        return original(seen)

    fake.handle = handle  # type: ignore[method-assign]
    assert client.ask("Slow?", "grace@example.com", timeout=0, withdraw_on_timeout=True).approved


def test_a_due_date_ends_the_wait_if_that_is_wanted(fake: Fake, client: Any) -> None:
    with pytest.raises(Overdue) as caught:
        client.ask("Today?", "grace@example.com", decision_by=timedelta(seconds=1), until_due=True, timeout=20)
    assert isinstance(caught.value, WaitTimeout)
    assert caught.value.task.decision_by < datetime.now(timezone.utc)


@pytest.mark.parametrize("ahead", [-300, 300])
def test_a_due_date_passes_by_the_servers_clock(fake: Fake, client: Any, ahead: float) -> None:
    fake.ahead = ahead
    there = datetime.now(timezone.utc) + timedelta(seconds=ahead)
    with pytest.raises(Overdue) as caught:
        client.ask("Now?", "grace@example.com", decision_by=timedelta(seconds=1), until_due=True, timeout=20)
    assert abs(caught.value.task.decision_by - there) < timedelta(seconds=20)
    fake.tasks.clear()
    fake.seen.clear()

    def decide() -> None:
        fake.until(lambda: len([seen for seen in fake.seen if "wait" in seen.query]) >= 2)
        fake.decide(next(iter(fake.tasks)), "approved")

    thread = threading.Thread(target=decide)
    thread.start()
    assert client.ask("Soon?", "grace@example.com", decision_by=there + timedelta(minutes=2), until_due=True, timeout=20)
    thread.join()


def test_only_a_clock_that_is_off_by_a_minute_or_more_is_corrected() -> None:
    settings = make_settings("https://countersign.example.com", None, None, 1, 1, 1, None)

    def learn(date: str | None, content: str = "application/problem+json") -> None:
        given = {} if date is None else {"Date": date}
        settings.learn_time(httpx.Headers({"Content-Type": content, **given}))

    def shows(seconds: float) -> None:
        difference = settings.now() - datetime.now(timezone.utc)
        assert abs(difference - timedelta(seconds=seconds)) < timedelta(seconds=10)

    for seconds, expected in [(-300, -300), (30, 0), (3600, 3600)]:
        learn(format_datetime(datetime.now(timezone.utc) + timedelta(seconds=seconds), usegmt=True))
        shows(expected)
    for date in (None, "", "soon", "Fri, 01 Jan 99999999999999999999 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"):
        learn(date)
        shows(3600)
    # The page of a proxy.
    learn("Thu, 01 Jan 1970 00:00:00 GMT", "text/html")
    shows(3600)
    # Now someone corrects the clock.
    settings.began -= 3600
    shows(0)


def test_two_equal_questions_are_two_tasks(fake: Fake, client: Any) -> None:
    for _ in range(2):
        with pytest.raises(WaitTimeout):
            client.ask("Again?", "grace@example.com", timeout=0)
    keys = [seen.headers["idempotency-key"] for seen in creations(fake)]
    assert len(fake.tasks) == 2
    assert len(set(keys)) == 2
    assert min(map(len, keys)) >= 32


def test_the_same_key_asks_the_same_question(fake: Fake, make: Any) -> None:
    for _ in range(2):
        with pytest.raises(WaitTimeout):
            make().ask("Run 7?", "grace@example.com", timeout=0, idempotency_key="run-7")
    assert len(fake.tasks) == 1
    with pytest.raises(IdempotencyKeyReused) as caught:
        make().ask("Run 8?", "grace@example.com", idempotency_key="run-7")
    assert caught.value.code == "idempotency-key-reused"


def test_a_key_and_a_date_that_moves_do_not_fit(fake: Fake, client: Any) -> None:
    with pytest.raises(ValueError, match="moment"):
        client.create("Run 7?", "grace@example.com", idempotency_key="run-7", decision_by=timedelta(days=1))
    moment = datetime(2030, 1, 31, 13, tzinfo=timezone(timedelta(hours=1)))
    client.create("Run 7?", "grace@example.com", idempotency_key="run-7", decision_by=moment)
    assert fake.seen[-1].body["decisionBy"] == "2030-01-31 12:00:00"
    with pytest.raises(ValueError, match="time zone"):
        client.create("When?", "grace@example.com", decision_by=moment.replace(tzinfo=None))


def test_the_task_is_shown_before_the_wait(fake: Fake, client: Any) -> None:
    links = []

    def created(task: Any) -> None:
        links.append(client.link(task))
        fake.decide(task.id, "approved")

    client.ask("Link?", "grace@example.com", on_created=created, timeout=5)
    assert links == [f"{fake.url}/tasks?id={next(iter(fake.tasks))}&secret={'a' * 64}"]


def test_a_lost_answer_makes_one_task(fake: Fake, client: Any) -> None:
    fake.fail("lose", times=2, where=lambda seen: seen.path == "/people-task/tasks")
    thread = when_asked(fake, lambda id: fake.decide(id, "approved"))
    assert client.ask("Once?", "grace@example.com", timeout=20).approved
    thread.join()
    assert len(creations(fake)) == 3
    assert len(fake.tasks) == 1


def test_cut_waits_go_on(fake: Fake, client: Any) -> None:
    fake.fail("cut", where=lambda seen: "wait" in seen.query)
    fake.fail("answer", times=1, where=lambda seen: "wait" in seen.query, answer=(502, {"Content-Type": "text/html"}, b"<h1>Bad"))
    fake.fail("answer", times=1, where=lambda seen: "wait" in seen.query, answer=(404, {"Content-Type": "text/html"}, b"<h1>No"))
    fake.fail(
        "answer", times=1, where=lambda seen: "wait" in seen.query, answer=(200, {"Content-Type": "text/html"}, b"starting")
    )
    fake.fail("answer", times=1, where=lambda seen: "wait" in seen.query, answer=problem(503, "overloaded"))

    def decide() -> None:
        fake.until(lambda: len([seen for seen in fake.seen if "wait" in seen.query]) >= 6, 60)
        fake.decide(next(iter(fake.tasks)), "approved")

    thread = threading.Thread(target=decide)
    thread.start()
    assert client.ask("Cut?", "grace@example.com", timeout=60).approved
    thread.join()


def test_a_restart_of_the_server_does_not_end_the_wait(make: Any) -> None:
    fake = Fake()
    with serving(fake):
        client = make(fake.url)
        task = client.create("Restart?", "grace@example.com")
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(client.wait(task.id, timeout=60)))
        thread.start()
        fake.until(lambda: any("wait" in seen.query for seen in fake.seen))
        fake.fail("cut", times=1000)
        with fake.changed:
            fake.changed.notify_all()
    # Nothing listens at the port now. The client notices when its next request fails.
    fake.faults.clear()
    fake.decide(task.id, "approved", "After the restart.")
    with serving(fake, fake.port):
        thread.join(60)
    assert found[0].comment == "After the restart."


def test_without_any_answer_a_wait_ends_after_the_outage(fake: Fake, make: Any) -> None:
    client = make(outage=1)
    task = client.create("Gone?", "grace@example.com", requester="ada@example.com")
    fake.fail("cut", times=1000)
    begun = time.monotonic()
    with pytest.raises(ConnectionFailed):
        client.wait(task.id)
    assert time.monotonic() - begun < 20


def test_a_revoked_key_ends_the_wait_at_once(fake: Fake, client: Any) -> None:
    task = client.create("Revoked?", "grace@example.com")
    fake.fail("answer", where=lambda seen: "wait" in seen.query, answer=problem(401, "invalid-key"))
    with pytest.raises(Unauthorized) as caught:
        client.wait(task.id, timeout=10)
    assert caught.value.code == "invalid-key"


def test_a_gateway_that_answers_at_once_is_not_flooded(fake: Fake, client: Any) -> None:
    fake.longest_wait = 0
    task = client.create("Busy?", "grace@example.com")
    with pytest.raises(WaitTimeout):
        client.wait(task.id, timeout=3)
    assert len([seen for seen in fake.seen if seen.method == "GET"]) < 10


def test_invalid_fields_are_named(fake: Fake, client: Any) -> None:
    errors = [{"field": "approver", "code": "invalid-email", "message": "Must be an address."}]
    fake.fail("answer", answer=problem(400, "validation-failed", errors=errors))
    with pytest.raises(ValidationFailed, match=r"approver: Must be an address\.") as caught:
        client.create("Who?", "grace", requester="ada@example.com")
    assert [(error.field, error.code) for error in caught.value.fields] == [("approver", "invalid-email")]
    assert caught.value.request_id == "req-1"


def test_a_key_without_users_read_needs_a_requester(fake: Fake, make: Any) -> None:
    refused = problem(403, "insufficient-scope")
    fake.fail("answer", where=lambda seen: seen.path == "/user", answer=refused, times=100)
    with pytest.raises(ValueError, match="requester"):
        make().create("Who?", "grace@example.com")
    assert make(requester="team@example.com").create("Who?", "grace@example.com").requester == "team@example.com"


def test_deciding_after_a_withdrawal_says_so(fake: Fake, client: Any) -> None:
    task = client.create("Late?", "grace@example.com")
    assert client.cancel(task.id, reason="Never mind.").comment == "Never mind."
    with pytest.raises(AlreadyResolved) as caught:
        client.approve(task.id, secret=task.approver_secret)
    assert caught.value.task_status == "cancelled"
