"""Checking calls of webhooks, with both kinds of signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign_client import KeysUnavailable, VerificationError

from .fake import Fake, problem

RAW = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(RAW).decode()
OTHER = "whsec_" + base64.b64encode(bytes(32)).decode()
TASK = {"id": "1", "title": "Buy a “chair”", "status": "approved", "approver": "g@example.com", "requester": "a@example.com"}


def signed(
    body: bytes, *, secret: bytes | None = RAW, keys: tuple[Ed25519PrivateKey, ...] = (), at: float | None = None, **more: str
) -> dict[str, str]:
    timestamp = str(int(time.time() if at is None else at))
    text = b"msg-1." + timestamp.encode() + b"." + body
    signatures = [f"v1a,{base64.b64encode(key.sign(text)).decode()}" for key in keys]
    if secret:
        signatures.append("v1," + base64.b64encode(hmac.digest(secret, text, hashlib.sha256)).decode())
    more = {name.replace("_", "-"): value for name, value in more.items()}
    return {
        "Webhook-Id": "msg-1",
        "Webhook-Timestamp": timestamp,
        "Webhook-Signature": " ".join(signatures),
        "Content-Type": "application/json",
        **more,
    }


BODY = json.dumps(TASK).encode()


def test_a_call_with_a_secret(fake: Fake, client: Any) -> None:
    call = client.verify(signed(BODY), BODY, secret=SECRET)
    assert (call.id, call.is_test, call.json, call.task.title) == ("msg-1", False, TASK, TASK["title"])
    assert call.decision.approved
    assert client.verify(signed(BODY), BODY, secret=[OTHER, SECRET]).id == "msg-1"
    assert client.verify(list(signed(BODY).items()), BODY, secret=SECRET).id == "msg-1"
    assert fake.seen == []


def test_the_vector_of_standard_webhooks(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1614265330)
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    call = client.verify(headers, b'{"test": 2432232314}', secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert (call.json, call.task, call.decision) == ({"test": 2432232314}, None, None)


def change(headers: dict[str, str], name: str, value: str | None) -> dict[str, str]:
    changed = {key: text for key, text in headers.items() if key != name}
    return changed if value is None else {**changed, name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Webhook-Id", "msg-2"),
        ("Webhook-Id", None),
        ("Webhook-Timestamp", None),
        ("Webhook-Timestamp", "soon"),
        ("Webhook-Timestamp", "-1"),
        ("Webhook-Timestamp", "9" * 400),
        ("Webhook-Signature", None),
        ("Webhook-Signature", "v1,"),
        ("Webhook-Signature", "v1,####"),
        ("Webhook-Signature", "v1," + base64.b64encode(bytes(32)).decode()),
        ("Webhook-Signature", "v2,AAAA v1a,AAAA"),
    ],
)
@pytest.mark.parametrize("secret", [SECRET, None])
def test_forged_headers(fake: Fake, client: Any, name: str, value: str | None, secret: str | None) -> None:
    genuine = signed(BODY, keys=tuple(fake.signing))
    client.verify(genuine, BODY, secret=secret)
    with pytest.raises(VerificationError):
        client.verify(change(genuine, name, value), BODY, secret=secret)


@pytest.mark.parametrize("secret", [SECRET, None])
def test_forged_bodies_and_replays(fake: Fake, client: Any, secret: str | None) -> None:
    keys = tuple(fake.signing)
    for headers, body in [
        (signed(BODY, keys=keys), BODY + b" "),
        (signed(BODY, keys=keys, at=time.time() - 301), BODY),
        (signed(BODY, keys=keys, at=time.time() + 302), BODY),
        (signed(BODY, secret=bytes(32), keys=(Ed25519PrivateKey.generate(),)), BODY),
    ]:
        with pytest.raises(VerificationError):
            client.verify(headers, body, secret=secret)
    doubled = [*signed(BODY, keys=keys).items(), ("webhook-id", "msg-1")]
    with pytest.raises(VerificationError, match="twice"):
        client.verify(doubled, BODY, secret=secret)
    with pytest.raises(TypeError, match="raw bytes"):
        client.verify(signed(BODY, keys=keys), BODY.decode(), secret=secret)


def test_a_call_with_the_published_key(fake: Fake, client: Any) -> None:
    for _ in range(3):
        assert client.verify(signed(BODY, secret=None, keys=tuple(fake.signing)), BODY).decision.approved
    assert [seen.path for seen in fake.seen] == ["/.well-known/webhook-keys.json"]
    assert "authorization" not in fake.seen[0].headers


def test_a_new_key_is_fetched_but_forgeries_cause_no_flood(fake: Fake, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client.verify(signed(BODY, keys=tuple(fake.signing)), BODY)
    fake.signing.insert(0, Ed25519PrivateKey.generate())
    genuine = signed(BODY, secret=None, keys=(fake.signing[0],))
    with pytest.raises(VerificationError):
        client.verify(genuine, BODY)
    assert len(fake.seen) == 1
    later(client, monkeypatch, 61)
    assert client.verify(genuine, BODY).id == "msg-1"
    for _ in range(5):
        with pytest.raises(VerificationError):
            client.verify(signed(BODY, keys=(Ed25519PrivateKey.generate(),)), BODY)
    assert len(fake.seen) == 2


def test_a_removed_key_is_forgotten_and_an_outage_is_not_a_forgery(
    fake: Fake, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = signed(BODY, keys=tuple(fake.signing))
    client.verify(old, BODY)
    fake.fail("answer", times=1000, answer=problem(503, "overloaded"))
    later(client, monkeypatch, 3601)
    assert client.verify(old, BODY).id == "msg-1"
    with pytest.raises(KeysUnavailable):
        client.verify(signed(BODY, keys=(Ed25519PrivateKey.generate(),)), BODY)
    later(client, monkeypatch, 25 * 3600)
    with pytest.raises(KeysUnavailable):
        client.verify(old, BODY)
    fake.faults.clear()
    fake.signing[:] = [Ed25519PrivateKey.generate()]
    with pytest.raises(VerificationError):
        client.verify(old, BODY)


def test_keys_that_come_too_late_for_the_caller_are_not_waited_for(fake: Fake, make: Any) -> None:
    fake.fail("hang")
    client, begun = make(timeout=30), time.monotonic()
    with pytest.raises(KeysUnavailable):
        client.verify(signed(BODY, keys=tuple(fake.signing)), BODY)
    assert time.monotonic() - begun < 10


def test_tests_and_other_bodies_are_no_decisions(client: Any) -> None:
    tried = client.verify(signed(BODY, webhook_test="true"), BODY, secret=SECRET)
    assert (tried.is_test, tried.decision) == (True, None)
    body = json.dumps({**TASK, "status": "test"}).encode()
    assert client.verify(signed(body), body, secret=SECRET).is_test
    body = json.dumps({**TASK, "status": "due"}).encode()
    due = client.verify(signed(body), body, secret=SECRET)
    assert (due.is_test, due.decision, due.task.status) == (False, None, "due")
    own = b'{"run_input": {"status": "approved"}}'
    assert client.verify(signed(own), own, secret=SECRET).decision is None


@pytest.mark.parametrize("secret", ["", "abc", "whsec_", "whsec_AAAA", "whsec_" + "é" * 40, SECRET[6:], SECRET + "="])
def test_secrets_that_are_none(client: Any, secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_") as caught:
        client.verify(signed(BODY), BODY, secret=secret)
    assert not isinstance(caught.value, VerificationError)


def later(client: Any, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Moves the clock of a client."""
    settings = getattr(client, "_inner", client)._settings
    clock = settings.clock
    monkeypatch.setattr(settings, "clock", lambda: clock() + seconds)
