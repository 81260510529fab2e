"""The Countersign that the clients ask: the one of COUNTERSIGN_URL, or one that is started here and stopped in the end."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

from .places import LOGS, ROOT, STACK
from .programs import run

# The first build takes some minutes.
START_SECONDS = 1800.0
STOP_SECONDS = 120.0
RESTART_SECONDS = 300.0


class NotStarted(Exception):
    """There is no Countersign to ask."""


@dataclass(frozen=True)
class Countersign:
    """A running Countersign."""

    url: str
    admin: tuple[str, str] | None
    is_ours: bool

    def variables(self) -> dict[str, str]:
        """What the tests of the clients read from their environment."""
        named = {"COUNTERSIGN_URL": self.url, "BASE": self.url}
        if self.admin:
            named["ADMIN_USER"], named["ADMIN_PASSWORD"] = self.admin
        return named

    def restart(self) -> None:
        """Stops and starts it at the same address, if it was started here."""
        _xtask("down", STOP_SECONDS)
        _xtask("up", RESTART_SECONDS, "--detach", "--port", str(urlsplit(self.url).port))

    def stop(self) -> None:
        """Stops it if it was started here."""
        if self.is_ours:
            _xtask("down", STOP_SECONDS)


def _xtask(verb: str, seconds: float, *options: str) -> str:
    ended = run(["cargo", "xtask", verb, *options], log=LOGS / f"countersign-{verb}.log", seconds=seconds, folder=ROOT)
    if not ended.succeeded:
        lines = "\n  ".join(ended.text.strip().splitlines()[-8:])
        raise NotStarted(f"cargo xtask {verb} failed:\n  {lines}")
    return ended.text


def _wait_until_ready(url: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):  # noqa: S310
                return
        except (urllib.error.URLError, OSError) as error:
            if time.monotonic() > end:
                raise NotStarted(f"{url} does not answer: {error}") from None
            time.sleep(0.2)


def use() -> Countersign:
    """Finds or starts it."""
    given = os.environ.get("COUNTERSIGN_URL", "").rstrip("/")
    if given:
        admin = os.environ.get("ADMIN_USER"), os.environ.get("ADMIN_PASSWORD")
        _wait_until_ready(given)
        return Countersign(given, (admin[0], admin[1]) if admin[0] and admin[1] else None, is_ours=False)
    printed = _xtask("up", START_SECONDS, "--detach")
    stack = json.loads(STACK.read_text(encoding="utf-8"))
    admin = stack["admin"]["username"], stack["admin"]["password"]
    started = Countersign(stack["gateway"], admin, is_ours="already up" not in printed)
    try:
        _wait_until_ready(started.url)
    except BaseException:
        started.stop()
        raise
    return started
