"""Checking webhook calls with a secret, or with the keys that the server publishes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ._calls import call
from ._effects import Op, Request
from ._settings import Settings
from ._signatures import Headers, WebhookCall, parse_keys, parse_secret, read_call
from .errors import CountersignError, KeysUnavailable, VerificationError

FRESH = 3600
"""After so many seconds the keys are fetched again."""
USABLE = 24 * 3600
"""So long they serve if that fails, in seconds."""
PAUSE = 60
"""The time between two fetches that calls with unknown signatures cause, in seconds."""
LONGEST_FETCH = 5
"""How long a fetch may take, in seconds: the caller that waits for our answer gives up after ten."""


@dataclass
class KeyCache:
    """The published keys, as they were last fetched."""

    keys: list[Ed25519PublicKey] = field(default_factory=list[Ed25519PublicKey], repr=False)
    fetched: float | None = None
    tried: float | None = None

    def age(self, now: float) -> float:
        """How old the keys are."""
        return float("inf") if self.fetched is None else now - self.fetched

    def may_try(self, now: float) -> bool:
        """Whether the last fetch is long enough ago."""
        return self.tried is None or now - self.tried >= PAUSE


def fetch(settings: Settings, cache: KeyCache) -> Op[None]:
    """Fetches the keys. Those that are in the cache stay there if that fails."""
    cache.tried = settings.clock()
    less = min(LONGEST_FETCH - settings.timeout, 0)
    request = Request("GET", "/.well-known/webhook-keys.json", signed_in=False, extra_time=less)
    answer = yield from call(settings, request, retry_for=1)
    cache.keys = answer.read(parse_keys)
    cache.fetched = settings.clock()


def current_keys(settings: Settings, cache: KeyCache) -> Op[list[Ed25519PublicKey]]:
    """The keys, fetched if there are none or they are old."""
    age = cache.age(settings.clock())
    if age > USABLE or (age > FRESH and cache.may_try(settings.clock())):
        try:
            yield from fetch(settings, cache)
        except CountersignError as error:
            if age > USABLE:
                raise KeysUnavailable(f"The published keys could not be fetched: {error}") from error
    return cache.keys


def verify(
    settings: Settings, cache: KeyCache, headers: Headers, body: bytes, secret: str | Sequence[str] | None
) -> Op[WebhookCall]:
    """Checks the time and a signature of a call."""
    received = read_call(headers, body)
    if secret is not None:
        secrets = [parse_secret(text) for text in ([secret] if isinstance(secret, str) else secret)]
        if received.has_hmac(secrets):
            return received.accept()
        raise VerificationError("No signature by the secret.")
    if received.signatures["v1a"]:
        keys = yield from current_keys(settings, cache)
        if received.has_signature(keys):
            return received.accept()
        if cache.may_try(settings.clock()):
            try:
                yield from fetch(settings, cache)
            except CountersignError as error:
                raise KeysUnavailable(f"The published keys could not be fetched: {error}") from error
            if received.has_signature(cache.keys):
                return received.accept()
        elif cache.fetched is None or cache.fetched < (cache.tried or 0):
            raise KeysUnavailable("The published keys are being fetched, or could not be fetched a moment ago.")
    raise VerificationError("No signature by a published key.")
