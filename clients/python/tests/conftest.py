"""The clients under test: every test that takes `make` runs with both."""

from __future__ import annotations

import inspect
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from countersign_client import AsyncClient, Client

from .fake import KEY, Fake, serving
from .prefect_server import prefect_server

# Reading them takes longer than most tests.
CERTIFICATES = ssl.create_default_context()


class Blocking:
    """An asynchronous client, called from blocking code."""

    def __init__(self, inner: Any, portal: BlockingPortal) -> None:
        self._inner, self._portal = inner, portal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "webhooks":
            return Blocking(found, self._portal)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            returned = found(*args, **kwargs)
            if inspect.isasyncgen(returned):
                return self._portal.call(partial(collect, returned))
            return self._portal.call(partial(result_of, returned)) if inspect.isawaitable(returned) else returned

        return call

    def __repr__(self) -> str:
        return repr(self._inner)


async def collect(rows: Any) -> list[Any]:
    return [row async for row in rows]


async def result_of(awaitable: Any) -> Any:
    return await awaitable


@pytest.fixture
def fake() -> Iterator[Fake]:
    with serving(Fake()) as fake:
        yield fake


Make = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest, fake: Fake) -> Iterator[Make]:
    """Makes clients of the fake."""
    with ExitStack() as stack:

        def make_client(url: str | None = None, key: str | None = KEY, **options: Any) -> Any:
            if request.param == "sync":
                http = stack.enter_context(httpx.Client(verify=CERTIFICATES))
                return stack.enter_context(Client(url or fake.url, key, http=http, **options))
            portal = stack.enter_context(start_blocking_portal())
            asynchronous = httpx.AsyncClient(verify=CERTIFICATES)
            stack.callback(portal.call, asynchronous.aclose)
            client = AsyncClient(url or fake.url, key, http=asynchronous, **options)
            return Blocking(client, portal)

        yield make_client


@pytest.fixture
def client(make: Make) -> Any:
    return make()


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prefect server of its own."""
    with prefect_server(tmp_path_factory.mktemp("prefect")) as url:
        yield url
