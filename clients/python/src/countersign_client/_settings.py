"""What a client is told when it is made."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx

from ._version import __version__

CLOCK_TOLERANCE = timedelta(minutes=1)
"""A clock that differs less from the server's is right."""

LONGEST_AHEAD = timedelta(days=365_000)
"""About a thousand years."""


@dataclass
class Settings:
    """The address of the server, the key, and how long things take, in seconds."""

    url: str
    key: str | None = field(repr=False)
    requester: str | None
    timeout: float
    """How long a request may take."""
    retry_for: float
    """How long a call is repeated that fails for a reason that passes."""
    outage: float
    """How long `ask` and `wait` go on without any answer."""
    longest_poll: float
    """How long one request of a wait takes."""
    user_agent: str
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    ahead: timedelta = timedelta()
    """How much the server's clock is ahead of this computer's."""
    began: float = 0.0
    """What this computer's clock would then have shown when `time.monotonic` began."""

    def learn_time(self, headers: httpx.Headers) -> None:
        """Learns the server's time from the header `Date` of an answer. The page of a proxy is not the server's."""
        try:
            difference = parsedate_to_datetime(headers.get("date", "")) - datetime.now(timezone.utc)
        except (TypeError, ValueError, OverflowError):
            return
        # A date must be possible some time after it.
        if "json" in headers.get("content-type", "") and difference < LONGEST_AHEAD:
            self.ahead = timedelta() if abs(difference) < CLOCK_TOLERANCE else difference
            self.began = time.time() - time.monotonic()

    def now(self) -> datetime:
        """The time by the server's clock: that of this computer may be wrong."""
        # A clock that was set since then has been corrected.
        is_set = abs(time.time() - time.monotonic() - self.began) >= CLOCK_TOLERANCE.total_seconds()
        return datetime.now(timezone.utc) + (timedelta() if is_set else self.ahead)

    def headers(self) -> dict[str, str]:
        """What every request has."""
        return {"User-Agent": self.user_agent, "Accept": "application/json"}


def make_settings(
    url: str | None,
    key: str | None,
    requester: str | None,
    timeout: float,
    retry_for: float,
    outage: float,
    user_agent: str | None,
) -> Settings:
    """Reads what is not given from the environment, and checks it."""
    url = url or os.environ.get("COUNTERSIGN_URL")
    if not url:
        raise ValueError("Give the address of Countersign as `url`, or in the variable COUNTERSIGN_URL.")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("The address must begin with http:// or https:// and a host.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("The address must have no user name, password, query or fragment.")
    key = key or os.environ.get("COUNTERSIGN_KEY") or None
    if key is not None and not re.fullmatch(r"[!-~]+", key):
        # httpx would show the value.
        raise ValueError("The key has characters that no key has. Is there a line break at its end?")
    if min(timeout, retry_for, outage) < 0 or timeout == 0:
        raise ValueError("Times must not be negative, and `timeout` not 0.")
    agent = f"countersign-client-python/{__version__} (Python {platform.python_version()}; httpx {httpx.__version__})"
    return Settings(
        url=url.rstrip("/"),
        key=key,
        requester=requester or os.environ.get("COUNTERSIGN_REQUESTER") or None,
        timeout=timeout,
        retry_for=retry_for,
        outage=outage,
        longest_poll=25,
        user_agent=f"{user_agent} {agent}" if user_agent else agent,
    )
