"""Runs operations: with threads and blocking calls, or in a loop."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import anyio
import httpx

from ._effects import Call, Op, Pause, Request, Response, Send
from ._settings import Settings
from .errors import ConnectionFailed, UnexpectedResponse

T = TypeVar("T")

MAX_BODY = 64 * 1024 * 1024
"""The longest answer that is read, in bytes. Pages of lists are shorter."""


def arguments(settings: Settings, request: Request) -> dict[str, Any]:
    """The arguments of httpx for a request."""
    headers = {**settings.headers(), **request.headers}
    if request.signed_in and settings.key:
        headers["Authorization"] = f"Bearer {settings.key}"
    content = None
    if request.body is not None:
        headers["Content-Type"] = "application/json"
        content = json.dumps(request.body, allow_nan=False).encode()
    limit = settings.timeout + request.extra_time
    return {
        "method": request.method,
        "url": settings.url + request.path,
        "params": request.params or None,
        "headers": headers,
        "content": content,
        "timeout": httpx.Timeout(limit, connect=min(limit, settings.timeout)),
        "follow_redirects": False,
    }


def failed(error: httpx.RequestError) -> ConnectionFailed:
    """The error of a request that has no answer."""
    before = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol))
    why = str(error) or type(error).__name__
    return ConnectionFailed(f"No answer from the server: {why}", may_have_arrived=not before)


def too_slow() -> ConnectionFailed:
    """The error of an answer that does not end."""
    return ConnectionFailed("No answer from the server: it takes too long", may_have_arrived=True)


def too_long(status: int) -> UnexpectedResponse:
    """The error of an answer that is longer than any of the API."""
    return UnexpectedResponse("The answer is too long.", status=status)


def response_of(settings: Settings, response: httpx.Response, body: bytes | bytearray) -> Response:
    """The answer for an operation."""
    settings.learn_time(response.headers)
    headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
    return Response(response.status_code, headers, bytes(body))


def send(http: httpx.Client, settings: Settings, request: Request) -> Response:
    """Sends a request once, in at most its time."""
    end = time.monotonic() + settings.timeout + request.extra_time
    try:
        with http.stream(**arguments(settings, request)) as response:
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > MAX_BODY:
                    raise too_long(response.status_code)
                if time.monotonic() > end:
                    raise too_slow()
            return response_of(settings, response, body)
    except httpx.RequestError as error:
        raise failed(error) from error


async def send_async(http: httpx.AsyncClient, settings: Settings, request: Request) -> Response:
    """Sends a request once, in at most its time."""
    try:
        # The connection may take its time beside that of the answer.
        with anyio.fail_after(2 * settings.timeout + request.extra_time):
            async with http.stream(**arguments(settings, request)) as response:
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_BODY:
                        raise too_long(response.status_code)
                return response_of(settings, response, body)
    except httpx.RequestError as error:
        raise failed(error) from error
    except TimeoutError:
        raise too_slow() from None


def run(http: httpx.Client, settings: Settings, operation: Op[T]) -> T:
    """Runs an operation to its end."""
    result: object = None
    error: BaseException | None = None
    while True:
        try:
            effect = operation.send(result) if error is None else operation.throw(error)
        except StopIteration as stop:
            return stop.value
        result, error = None, None
        if isinstance(effect, Send):
            try:
                result = send(http, settings, effect.request)
            except (ConnectionFailed, UnexpectedResponse) as caught:
                error = caught
        elif isinstance(effect, Pause):
            time.sleep(effect.seconds)
        else:
            call_now(effect)


def call_now(effect: Call) -> None:
    """Calls a function of the caller."""
    if inspect.isawaitable(effect.function(effect.argument)):
        raise TypeError("The function must not be asynchronous here. Use AsyncClient.")


async def run_async(http: httpx.AsyncClient, settings: Settings, operation: Op[T]) -> T:
    """Runs an operation to its end."""
    result: object = None
    error: BaseException | None = None
    while True:
        try:
            effect = operation.send(result) if error is None else operation.throw(error)
        except StopIteration as stop:
            return stop.value
        result, error = None, None
        if isinstance(effect, Send):
            try:
                result = await send_async(http, settings, effect.request)
            except (ConnectionFailed, UnexpectedResponse) as caught:
                error = caught
        elif isinstance(effect, Pause):
            await anyio.sleep(effect.seconds)
        else:
            returned = effect.function(effect.argument)
            if inspect.isawaitable(returned):
                await returned
