"""Ask a person, and wait for the decision: the client of Countersign.

>>> from countersign_client import Client, Rejected
>>> with Client() as countersign:  # COUNTERSIGN_URL, COUNTERSIGN_KEY
...     decision = countersign.ask("Deploy 1.4?", "grace@example.com")  # doctest: +SKIP
"""

from ._async_client import AsyncClient, AsyncWebhooks
from ._client import Client, Webhooks
from ._signatures import WebhookCall
from ._version import __version__
from .errors import (
    AlreadyResolved,
    ApiError,
    Conflict,
    ConnectionFailed,
    CountersignError,
    FieldError,
    Forbidden,
    IdempotencyKeyReused,
    KeysUnavailable,
    NotFound,
    NotInterrupted,
    Overdue,
    QuestionChanged,
    RateLimited,
    Rejected,
    ServerError,
    TaskChanged,
    Unauthorized,
    Undecided,
    UnexpectedResponse,
    ValidationFailed,
    VerificationError,
    WaitTimeout,
    Withdrawn,
)
from .models import Attempt, Decision, Delivery, Task, Webhook, WebhookTest
from .options import Event, NewWebhook, Success, TaskChanges, TaskOptions, WebhookOptions

__all__ = [
    "AlreadyResolved",
    "ApiError",
    "AsyncClient",
    "AsyncWebhooks",
    "Attempt",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "CountersignError",
    "Decision",
    "Delivery",
    "Event",
    "FieldError",
    "Forbidden",
    "IdempotencyKeyReused",
    "KeysUnavailable",
    "NewWebhook",
    "NotFound",
    "NotInterrupted",
    "Overdue",
    "QuestionChanged",
    "RateLimited",
    "Rejected",
    "ServerError",
    "Success",
    "Task",
    "TaskChanged",
    "TaskChanges",
    "TaskOptions",
    "Unauthorized",
    "Undecided",
    "UnexpectedResponse",
    "ValidationFailed",
    "VerificationError",
    "WaitTimeout",
    "Webhook",
    "WebhookCall",
    "WebhookOptions",
    "WebhookTest",
    "Webhooks",
    "Withdrawn",
    "__version__",
]
