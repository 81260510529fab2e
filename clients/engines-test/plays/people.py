"""A user of a real Countersign, who asks with one key and decides with another."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
from countersign_client import Client

T = TypeVar("T")
ASKS = ("tasks:read", "tasks:write", "users:read")
URL = os.environ["COUNTERSIGN_URL"]


def eventually(find: Callable[[], T | None], what: str, seconds: float = 60) -> T:
    """Waits until a function returns something, and returns that."""
    end = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.1)
    return found


class People:
    """A new user. The key that asks cannot decide."""

    def __init__(self) -> None:
        self.email = f"engines-{uuid.uuid4().hex[:12]}@example.com"
        credentials = {"email": self.email, "password": uuid.uuid4().hex}
        self._http = httpx.Client(base_url=URL, timeout=30)
        self._token = self._call("POST", "/user", credentials)["token"]
        self._asks = self.make_key(ASKS)
        self.key: str = self._asks["key"]
        self.client = Client(URL, self.make_key((*ASKS, "tasks:decide"))["key"])

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"} if path != "/user" else {}
        response = self._http.request(method, path, json=body, headers=headers)
        assert response.is_success, f"{method} {path}: {response.status_code}"
        return response.json()

    def make_key(self, scopes: tuple[str, ...]) -> dict[str, str]:
        """Makes a key with these scopes."""
        return self._call("POST", "/user/keys", {"name": f"engines {uuid.uuid4().hex[:6]}", "scopes": list(scopes)})

    def revoke(self) -> None:
        """Revokes the key that asks, and returns when it is refused."""
        self._call("DELETE", f"/user/keys/{self._asks['id']}")
        eventually(lambda: self._answer(self.key).status_code == 401, "the end of the key")

    def _answer(self, key: str) -> httpx.Response:
        return self._http.get("/people-task/tasks", headers={"Authorization": f"Bearer {key}"})

    def only_task(self, seconds: float = 60) -> str:
        """The only task of the user, as soon as there is one."""
        task = eventually(lambda: next(iter(self.client.tasks()), None), "the task", seconds)
        assert self.client.count() == 1
        return task.id

    def environment(self) -> dict[str, str]:
        """The environment of a program that asks."""
        return {**os.environ, "COUNTERSIGN_URL": URL, "COUNTERSIGN_KEY": self.key, "COUNTERSIGN_REQUESTER": self.email}

    def close(self) -> None:
        self.client.close()
        self._http.close()
