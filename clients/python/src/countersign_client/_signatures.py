"""The signatures of webhook calls, as Standard Webhooks has them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .errors import VerificationError
from .models import Decision, Task

TOLERANCE = 300
"""How many seconds a call may be off, as Standard Webhooks recommends."""

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True)
class WebhookCall:
    """A call whose signature is valid."""

    id: str
    """The same for every attempt of a delivery: handle each value once."""
    timestamp: int
    """When this attempt was made, in seconds since 1970."""
    is_test: bool
    """A user tries the webhook: this is no decision."""
    json: Any = field(repr=False)
    """The body."""
    task: Task | None
    """The task that the body describes; ``None`` if the webhook has a body of its own."""

    @property
    def decision(self) -> Decision | None:
        """The decision that the call tells; ``None`` for other events, tests and bodies of other kinds."""
        return None if self.task is None or self.is_test else Decision.of(self.task)


@dataclass(frozen=True)
class SignedCall:
    """A call as it came, whose time is right, and whose signature is not checked yet."""

    id: str
    timestamp: int
    signatures: Mapping[str, Sequence[bytes]] = field(repr=False)
    """By kind: ``v1`` and ``v1a``."""
    signed: bytes = field(repr=False)
    body: bytes = field(repr=False)
    is_test: bool

    def has_hmac(self, secrets: Iterable[bytes]) -> bool:
        """Whether one of the secrets made one of the signatures."""
        found = False
        for secret in secrets:
            expected = hmac.digest(secret, self.signed, hashlib.sha256)
            for signature in self.signatures["v1"]:
                found |= hmac.compare_digest(expected, signature)
        return found

    def has_signature(self, keys: Iterable[Ed25519PublicKey]) -> bool:
        """Whether one of the keys made one of the signatures."""
        for key in keys:
            for signature in self.signatures["v1a"]:
                try:
                    key.verify(signature, self.signed)
                except InvalidSignature:
                    continue
                return True
        return False

    def accept(self) -> WebhookCall:
        """The call, after its signature was found valid."""
        try:
            value: Any = json.loads(self.body)
        except ValueError:
            raise VerificationError("The body is not JSON.") from None
        task = task_of(value)
        is_test = self.is_test or (task is not None and task.status == "test")
        return WebhookCall(self.id, self.timestamp, is_test, value, task)


def task_of(value: Any) -> Task | None:
    """The task that a body describes, unless it is a body of another kind."""
    if isinstance(value, dict) and {"id", "title", "status", "approver"} <= set(cast("dict[str, Any]", value)):
        try:
            return Task.from_json(cast("dict[str, Any]", value))
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
    return None


def read_call(headers: Headers, body: bytes, now: float | None = None) -> SignedCall:
    """Reads the headers of a call.

    Raises `VerificationError` if one is missing or malformed, or if the call is too old or too new.
    """
    if not isinstance(body, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("The body must be the raw bytes of the request, not text or parsed JSON.")
    body = bytes(body)
    pairs = cast("Iterable[tuple[str, str]]", headers.items() if isinstance(headers, Mapping) else headers)
    found: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        if name.startswith("webhook-"):
            if name in found:
                raise VerificationError(f"The header {name} is there twice.")
            found[name] = value
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if not found.get(name):
            raise VerificationError(f"The header {name} is missing.")
    identifier, timestamp = found["webhook-id"], found["webhook-timestamp"]
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16 and identifier.isascii()):
        raise VerificationError("A header of the webhook is malformed.")
    now = time.time() if now is None else now
    if abs(now - int(timestamp)) > TOLERANCE:
        raise VerificationError("The call is too old or too new.")
    signatures: dict[str, list[bytes]] = {"v1": [], "v1a": []}
    for text in found["webhook-signature"].split()[:20]:
        kind, _, encoded = text.partition(",")
        if kind in signatures:
            try:
                signatures[kind].append(base64.b64decode(encoded, validate=True))
            except (binascii.Error, ValueError):
                continue
    return SignedCall(
        id=identifier,
        timestamp=int(timestamp),
        signatures=signatures,
        signed=f"{identifier}.{timestamp}.".encode() + body,
        body=body,
        is_test=found.get("webhook-test", "").lower() == "true",
    )


def parse_secret(text: str) -> bytes:
    """The bytes of a ``whsec_…`` secret."""
    try:
        secret = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    is_exact = text == "whsec_" + base64.b64encode(secret).decode()
    if not is_exact or not 24 <= len(secret) <= 64:
        raise ValueError("A secret is `whsec_` followed by 24 to 64 bytes in base64.")
    return secret


def parse_keys(published: Any) -> list[Ed25519PublicKey]:
    """The keys of ``/.well-known/webhook-keys.json``. Those of other kinds are left out."""
    keys: list[Ed25519PublicKey] = []
    for jwk in published["keys"]:
        if jwk.get("kty") == "OKP" and jwk.get("crv") == "Ed25519":
            x = jwk["x"]
            keys.append(Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "=" * (-len(x) % 4))))
    if not keys:
        raise ValueError("There is no key.")
    return keys
