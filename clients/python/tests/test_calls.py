"""Single calls: what is repeated, what is not, and what is never shown."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from typing import Any

import httpx
import pytest

from countersign_client import (
    AlreadyResolved,
    Client,
    ConnectionFailed,
    Decision,
    NotFound,
    RateLimited,
    Rejected,
    ServerError,
    Task,
    TaskChanged,
    UnexpectedResponse,
    __version__,
)

from .fake import KEY, Fake, answer, problem


def test_unavailability_is_waited_out(fake: Fake, client: Any) -> None:
    fake.fail("answer", times=2, answer=problem(503, "overloaded"))
    fake.fail("answer", times=1, answer=(502, {"Content-Type": "text/html"}, b"<h1>Bad gateway"))
    fake.fail("answer", times=1, answer=problem(408, "body-timeout"))
    assert client.count() == 0
    assert len(fake.seen) == 5


@pytest.mark.parametrize("status", [500, 520, 524, 527])
def test_errors_of_proxies_are_waited_out(fake: Fake, client: Any, status: int) -> None:
    fake.fail("answer", answer=(status, {"Content-Type": "text/html"}, b"<h1>Web server returned an unknown error"))
    assert client.count() == 0
    assert len(fake.seen) == 2


@pytest.mark.parametrize("status", [400, 501, 505])
def test_what_does_not_pass_is_raised_at_once(fake: Fake, client: Any, status: int) -> None:
    fake.fail("answer", answer=(status, {"Content-Type": "text/html"}, b"<h1>Not implemented"))
    with pytest.raises(UnexpectedResponse):
        client.count()
    assert len(fake.seen) == 1


@pytest.mark.parametrize(
    "body", [b'{"code": 5, "message": "Not Found"}', b'{"code": "not-found"}', b'{"code": "a", "detail": 1}']
)
def test_json_of_a_proxy_is_no_problem_of_countersign(fake: Fake, client: Any, body: bytes) -> None:
    task = client.create("Fine?", "grace@example.com")
    fake.decide(task.id, "approved")
    fake.fail("answer", times=2, answer=(404, {"Content-Type": "application/json"}, body))
    with pytest.raises(UnexpectedResponse):
        client.get(task.id)
    assert client.wait(task.id, timeout=10).approved


def test_retry_after_is_kept(fake: Fake, client: Any) -> None:
    status, headers, body = problem(429, "rate-limited")
    fake.fail("answer", answer=(status, {**headers, "Retry-After": "1"}, body))
    client.count()
    assert fake.seen[1].at - fake.seen[0].at >= 1


def test_what_lasts_is_raised(fake: Fake, make: Any) -> None:
    fake.fail("answer", times=1000, answer=problem(503, "overloaded"))
    begun = time.monotonic()
    with pytest.raises(ServerError) as caught:
        make(retry_for=3).count()
    assert (caught.value.code, caught.value.status) == ("overloaded", 503)
    assert time.monotonic() - begun < 20
    assert 2 <= len(fake.seen) < 15


def test_a_long_retry_after_is_not_waited_for_in_vain(fake: Fake, client: Any) -> None:
    status, headers, body = problem(429, "rate-limited")
    fake.fail("answer", answer=(status, {**headers, "Retry-After": "600"}, body))
    with pytest.raises(RateLimited) as caught:
        client.count()
    assert caught.value.retry_after == 600


def test_a_server_that_hangs_is_left(fake: Fake, make: Any) -> None:
    fake.fail("hang", times=10)
    begun = time.monotonic()
    with pytest.raises(ConnectionFailed) as caught:
        make(timeout=0.5, retry_for=0).count()
    assert caught.value.may_have_arrived
    assert time.monotonic() - begun < 20


def test_nothing_listens(make: Any, unused_port: int) -> None:
    with pytest.raises(ConnectionFailed) as caught:
        make(f"http://127.0.0.1:{unused_port}", retry_for=0).count()
    assert not caught.value.may_have_arrived


def test_a_lost_decision_is_recognised(fake: Fake, client: Any) -> None:
    task = client.create("Decide?", "grace@example.com")
    fake.fail("lose", where=lambda seen: seen.path.endswith("/approve"))
    assert client.approve(task.id, comment=" Fine. ".strip()).status == "approved"


def test_the_decision_of_another_is_not_taken_for_ours(fake: Fake, client: Any) -> None:
    task = client.create("Decide?", "grace@example.com")
    fake.decide(task.id, "approved", "Mine.")
    fake.fail("answer", where=lambda seen: seen.path.endswith("/approve"), answer=problem(503, "overloaded"))
    with pytest.raises(AlreadyResolved) as caught:
        client.approve(task.id, comment="Ours.")
    assert caught.value.task_status == "approved"


def test_another_version_is_not_decided(fake: Fake, client: Any) -> None:
    task = client.create("Decide?", "grace@example.com")
    client.edit(task.id, title="Decide something else?")
    with pytest.raises(TaskChanged) as caught:
        client.approve(task.id, version=task.version)
    assert (caught.value.task.title, caught.value.task.version) == ("Decide something else?", 2)
    with pytest.raises(ValueError, match="approved or rejected"):
        client.decide(task.id, "yes")


def test_an_edit_that_may_be_committed_is_not_repeated_for_its_version(fake: Fake, client: Any) -> None:
    task = client.create("Decide?", "grace@example.com")
    original = fake.handle

    def handle(seen: Any) -> Any:
        result = original(seen)
        return problem(503, "database-unavailable") if seen.method == "PUT" else result

    fake.handle = handle  # type: ignore[method-assign]
    with pytest.raises(ServerError) as caught:
        client.edit(task.id, title="Decide something else?", version=task.version)
    assert caught.value.code == "database-unavailable"
    assert len(fake.paths("PUT")) == 1


def test_an_edit_whose_answer_is_lost_is_repeated_as_it_is(fake: Fake, client: Any) -> None:
    task = client.create("Decide?", "grace@example.com")
    fake.fail("lose", where=lambda seen: seen.method == "PUT")
    client.edit(task.id, title="Another", approver="grace@example.com")
    fake.fail("lose", where=lambda seen: seen.method == "PUT")
    client.edit(task.id, approver="linus@example.com", renew_approver_secret=True)
    edits = [seen.body for seen in fake.seen if seen.method == "PUT"]
    same = {"title": "Another", "approver": "grace@example.com"}
    # The second call has asked for a new secret by itself.
    renewed = {"approver": "linus@example.com", "renewApproverSecret": True}
    assert edits == [same, same, renewed, renewed]


def test_a_list_pages_by_itself(fake: Fake, client: Any) -> None:
    created = [client.create(f"Task {number}", "grace@example.com").id for number in range(7)]
    fake.seen.clear()
    assert [task.id for task in client.tasks(page_size=3, status="pending")] == created
    assert [seen.query.get("offset") for seen in fake.seen] == [None, ["3"], ["6"]]
    assert all(seen.query["filter"] == ["status:pending"] for seen in fake.seen)
    assert client.count() == 7


def test_a_list_leads_to_no_other_server_and_ends(fake: Fake, client: Any) -> None:
    link = {"Link": '<http://attacker.example/people-task/tasks?limit=1&offset=1>; rel="next"'}
    fake.fail("answer", times=2, answer=answer([], **link))
    with pytest.raises(UnexpectedResponse, match="same page"):
        list(client.tasks(page_size=1))
    assert [seen.path for seen in fake.seen] == ["/people-task/tasks"] * 2


def test_webhooks(fake: Fake, client: Any) -> None:
    task = client.create("Tell?", "grace@example.com")
    fake.fail("lose", where=lambda seen: seen.path == "/people-task/webhooks")
    fake.fail("lose", where=lambda seen: seen.method == "DELETE")
    webhook = client.webhooks.register(task.id, "https://engine.example.com/1", events=["approved"])
    registrations = [seen for seen in fake.seen if seen.path == "/people-task/webhooks"]
    assert len({seen.headers["idempotency-key"] for seen in registrations}) == 1
    assert [found.id for found in client.webhooks.list(task.id)][-1] == webhook.id
    assert client.webhooks.test(webhook.id).status_code == 200
    client.webhooks.delete(webhook.id)
    with pytest.raises(NotFound):
        client.webhooks.delete(webhook.id)


def test_a_test_call_is_not_repeated(fake: Fake, client: Any) -> None:
    task = client.create("Tell?", "grace@example.com")
    webhook = client.webhooks.register(task.id, "https://engine.example.com/1")
    fake.fail("lose", where=lambda seen: seen.path.endswith("/test"))
    with pytest.raises(ConnectionFailed):
        client.webhooks.test(webhook.id)
    assert len([seen for seen in fake.seen if seen.path.endswith("/test")]) == 1


def test_a_secret_stands_in_for_a_key(fake: Fake, make: Any) -> None:
    task = make().create("Secret?", "grace@example.com")
    visitor = make(key=None)
    assert visitor.get(task.id, secret=task.approver_secret).title == "Secret?"
    assert "authorization" not in fake.seen[-1].headers
    assert task.approver_secret not in str(fake.seen[-1].query)


def test_the_user_agent_names_client_and_program(fake: Fake, make: Any) -> None:
    make(user_agent="invoices/3").count()
    agent = fake.seen[0].headers["user-agent"]
    assert agent.startswith(f"invoices/3 countersign-client-python/{__version__} (Python 3.")


def test_identifiers_stay_in_their_place(fake: Fake, client: Any) -> None:
    with pytest.raises(NotFound):
        client.get("../users")
    assert fake.seen[-1].path == "/people-task/tasks/..%2Fusers"
    with pytest.raises(ValueError, match="identifier"):
        client.get("..")


def test_redirects_do_not_get_the_key(fake: Fake, client: Any) -> None:
    fake.fail("answer", answer=(302, {"Location": f"{fake.url}/elsewhere"}, b""))
    with pytest.raises(UnexpectedResponse, match="redirects"):
        client.count()
    assert len(fake.seen) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"id": "1"}',
        b'{"id": 1, "status": "pending"}',
        b"null",
        b'"text"',
        b"",
        b'{"id": "1", "decisionBy": "soon", "status": "pending"}',
    ],
)
def test_answers_of_another_shape(fake: Fake, client: Any, body: bytes) -> None:
    fake.fail("answer", answer=(200, {"Content-Type": "application/json"}, body))
    with pytest.raises(UnexpectedResponse):
        client.get("1" * 24)


def test_no_secret_is_shown(fake: Fake, make: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = make(retry_for=0.5)
    webhook_secret = "whsec_" + "c2VjcmV0" * 6
    webhook = {"url": "https://e.example.com", "secret": webhook_secret, "headers": {"X-Api": "header-value"}}
    task = client.create("Secret?", "grace@example.com", webhooks=[webhook])
    shown = [repr(client), repr(task), str(task)]
    fake.fail("answer", times=1, answer=problem(503, "overloaded"))
    fake.fail("cut", times=5)
    for call in (lambda: client.approve(task.id, secret=task.approver_secret), client.count):
        try:
            call()
        except Exception as error:
            shown += [str(error), repr(error), repr(error.__cause__), repr(vars(error))]
    text = "\n".join(shown) + caplog.text
    assert "No answer from the server" in text
    for secret in (KEY, task.approver_secret, task.requester_secret, webhook_secret, "header-value"):
        assert secret not in text


def test_errors_survive_pickling() -> None:
    task = Task("1", "T", "rejected", "g@example.com", "a@example.com", comment="No.")
    error = pickle.loads(pickle.dumps(Rejected("The task was rejected: No.", task=task, decision=Decision("rejected", task))))
    assert (error.decision.comment, error.task, str(error)) == ("No.", task, "The task was rejected: No.")
    failed = pickle.loads(pickle.dumps(ConnectionFailed("No answer", may_have_arrived=True)))
    assert failed.may_have_arrived


def test_a_status_of_a_later_version_is_no_decision(fake: Fake, client: Any) -> None:
    task = client.create("New?", "grace@example.com")
    fake.decide(task.id, "expired")
    with pytest.raises(UnexpectedResponse, match="expired"):
        client.wait(task.id, timeout=5)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://a", "http://", "http://u:p@host", "http://host?x=1"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Client(url, KEY)


def test_a_key_with_a_line_break_is_not_shown() -> None:
    with pytest.raises(ValueError, match="key") as caught:
        Client("http://localhost", "csk_abc\n")
    assert "csk_abc" not in str(caught.value)


def test_address_and_key_come_from_the_environment(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COUNTERSIGN_URL", raising=False)
    with pytest.raises(ValueError, match="COUNTERSIGN_URL"):
        Client()
    monkeypatch.setenv("COUNTERSIGN_URL", fake.url + "/")
    monkeypatch.setenv("COUNTERSIGN_KEY", KEY)
    with Client() as client:
        assert client.count() == 0
        assert client.url == fake.url


def test_a_client_of_httpx_is_used_and_not_closed(fake: Fake) -> None:
    with httpx.Client(headers={"X-Own": "1"}) as http:
        with Client(fake.url, KEY, http=http) as client:
            client.count()
        assert fake.seen[0].headers["x-own"] == "1"
        assert not http.is_closed


def test_threads_share_a_client(fake: Fake) -> None:
    with Client(fake.url, KEY) as client:
        threads = [threading.Thread(target=client.create, args=(f"T{number}", "grace@example.com")) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(fake.tasks) == 20
