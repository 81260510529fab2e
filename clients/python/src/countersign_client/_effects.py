"""What the operations need of the outside world.

An operation is a generator: it yields effects, and gets their results. It neither sends nor sleeps by itself, so the two
clients run the same operations, one with threads and one with a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """A request to the server."""

    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    signed_in: bool = True
    """Whether to send the key."""
    extra_time: float = 0
    """How many seconds longer than usual the answer may take."""


@dataclass(frozen=True)
class Response:
    """An answer of any status. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Send:
    """Sends a request once. The result is a `Response`; without an answer, `ConnectionFailed` is raised."""

    request: Request


@dataclass(frozen=True)
class Pause:
    """Waits for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Call:
    """Calls a function of the caller, and waits for what it returns if that can be awaited."""

    function: Callable[..., object]
    argument: object


Effect = Send | Pause | Call
Op = Generator[Effect, Any, T]
