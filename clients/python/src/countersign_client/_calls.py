"""One call of the API: sent, repeated while that is useful, and its answer read."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar, cast

from ._effects import Op, Pause, Request, Response, Send
from ._settings import Settings
from .errors import ApiError, ConnectionFailed, CountersignError, UnexpectedResponse, api_error

T = TypeVar("T")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0
MAX_RETRY_AFTER = 3600.0

log = logging.getLogger("countersign_client")


class Repeat(Enum):
    """When a failed request is sent again."""

    ALWAYS = "always"
    """It changes nothing the second time."""
    NOT_ARRIVED = "not-arrived"
    """Only if the server has not got it, or has refused it unread."""


@dataclass(frozen=True)
class Answer:
    """The JSON of a success."""

    json: Any
    headers: Mapping[str, str]

    def read(self, parse: Callable[[Any], T]) -> T:
        """Parses the answer; `UnexpectedResponse` if it is not what the API promises."""
        return read(parse, self.json, 200)

    def read_list(self, parse: Callable[[Any], T]) -> list[T]:
        """Parses the rows of a list."""
        value: Any = self.json
        if not isinstance(value, list):
            raise UnexpectedResponse("The answer is not a list.", status=200)
        return [read(parse, row, 200) for row in cast("list[Any]", value)]


def read(parse: Callable[[Any], T], value: Any, status: int) -> T:
    """Parses a value of an answer."""
    try:
        return parse(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        # The cause could show what is in the answer.
        raise UnexpectedResponse("The answer lacks fields of the API.", status=status) from None


def pause_after(failures: int, error: CountersignError | None) -> float:
    """How long to wait after so many failures in a row, at least as long as the server asks for."""
    longest = min(FIRST_PAUSE * 2 ** min(failures - 1, 16), LONGEST_PAUSE)
    pause = random.uniform(longest / 2, longest)
    asked = error.retry_after if isinstance(error, ApiError) else None
    return max(pause, min(asked, MAX_RETRY_AFTER)) if asked else pause


def is_passing(status: int) -> bool:
    """Whether the same call may get another status later. Proxies have statuses of their own, such as Cloudflare's 520 to 527."""
    return status in (408, 429) or (status >= 500 and status not in (501, 505))


def passes(error: CountersignError) -> bool:
    """Whether the reason of a failure may be over soon."""
    if isinstance(error, ApiError):
        return is_passing(error.status) or error.code == "idempotency-key-in-use"
    if isinstance(error, UnexpectedResponse):
        # Proxies answer so while the server starts.
        return is_passing(error.status) or 200 <= error.status < 300
    return isinstance(error, ConnectionFailed)


def arrived(error: CountersignError) -> bool:
    """Whether the request may have had an effect though it failed."""
    if isinstance(error, ConnectionFailed):
        return error.may_have_arrived
    if isinstance(error, ApiError):
        # The database may have been lost while it committed.
        return (error.status >= 500 and error.status != 503) or error.code in ("database-unavailable", "no-test-result")
    return True


def call(
    settings: Settings,
    request: Request,
    repeat: Repeat = Repeat.ALWAYS,
    retry_for: float | None = None,
    on_failure: Callable[[CountersignError], object] | None = None,
) -> Op[Answer]:
    """Sends a request, and sends it again until there is an answer or `retry_for` seconds are over."""
    end = settings.clock() + (settings.retry_for if retry_for is None else retry_for)
    failures = 0
    while True:
        try:
            return (yield from once(request))
        except CountersignError as error:
            failures += 1
            pause = pause_after(failures, error)
            if not passes(error) or settings.clock() + pause > end:
                raise
            if repeat is Repeat.NOT_ARRIVED and arrived(error):
                raise
            if on_failure:
                on_failure(error)
            log_failure(failures, error, end - settings.clock())
        yield Pause(pause)


def log_failure(failures: int, error: CountersignError, seconds: float) -> None:
    """Says that a call is repeated: the first time of a row at level INFO, then as a warning."""
    log.log(logging.WARNING if failures > 1 else logging.INFO, "%s; trying again for %.0f s at most", error, seconds)


def once(request: Request) -> Op[Answer]:
    """Sends a request once."""
    response: Response = yield Send(request)
    return judge(response)


def judge(response: Response) -> Answer:
    """The JSON of a success; everything else is raised."""
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    value: Any = None
    is_json = content_type == "application/json" or content_type.endswith("+json")
    if is_json:
        try:
            value = json.loads(response.body)
        except ValueError:
            is_json = False
    if 200 <= response.status < 300 and (is_json or not response.body):
        return Answer(value, response.headers)
    if response.status >= 400 and is_problem(value):
        raise api_error(response.status, cast("dict[str, Any]", value), retry_after(response))
    if 300 <= response.status < 400:
        message = f"The server redirects ({response.status}), which the client does not follow: give it the final address."
    else:
        message = f"The answer ({response.status}, {content_type or 'no type'}) is not one of Countersign."
    raise UnexpectedResponse(message, status=response.status)


def is_problem(value: Any) -> bool:
    """Whether JSON is a problem of Countersign. Proxies have errors of their own, whose `code` may be a number."""
    if not isinstance(value, dict):
        return False
    problem = cast("dict[str, Any]", value)
    return isinstance(problem.get("code"), str) and isinstance(problem.get("detail"), str)


def retry_after(response: Response) -> float | None:
    """The seconds of `Retry-After`. Dates, which the API does not send, count as absent."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
