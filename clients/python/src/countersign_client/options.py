"""The optional arguments of calls. All of them are keyword arguments."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

if sys.version_info >= (3, 11):
    from typing import NotRequired, Required, Unpack
else:
    from typing_extensions import NotRequired, Required, Unpack

__all__ = ["Event", "NewWebhook", "Success", "TaskChanges", "TaskOptions", "Unpack", "WebhookOptions"]

Event = Literal["approved", "rejected", "due", "cancelled"]


class Success(TypedDict, total=False):
    """Which answer of a receiver counts, in place of any 2xx."""

    status: Sequence[int]
    pointer: str
    value: Any


class WebhookOptions(TypedDict, total=False):
    """How a webhook is called."""

    secret: str
    """``whsec_`` and 24 to 64 bytes in base64. With it, calls also have an HMAC signature."""
    events: Sequence[Event]
    """What to call it for; by default ``approved`` and ``rejected``."""
    include: Sequence[str]
    """Fields that the body has beside the usual ones, such as ``decidedBy``."""
    headers: Mapping[str, str]
    method: Literal["POST", "PUT", "PATCH"]
    body: Any
    """The body of the calls, with placeholders such as ``{{status}}``."""
    success: Success


class NewWebhook(WebhookOptions):
    """A webhook to create with a task."""

    url: Required[str]


class _Texts(TypedDict, total=False):
    description: str
    decision_by: datetime | timedelta | str | None
    """When a decision is needed: a moment with a time zone, a time from now, or text as in the API."""
    public: bool
    """Whether every signed-in user may read the task."""
    comment_required: bool
    """Whether a rejection needs a comment."""
    confirmation_required: bool
    """Whether the page asks for a second press."""


class TaskOptions(_Texts):
    """What a new task may have beside its title and its approver."""

    requester: NotRequired[str]
    """The address of the person who needs the decision; by default the one of the client, or of its account."""
    deciders: NotRequired[Literal["approver", "signed-in"]]
    """Who decides, if not also the creator of the task and administrators."""
    self_approval: NotRequired[bool]
    """``False`` if who created or requested the task must not decide it."""
    metadata: NotRequired[Mapping[str, Any]]
    """What to keep with the task, for its creator: at most 4 KiB as JSON."""
    notify: NotRequired[bool]
    """Whether the approver and the requester get mail about the task."""
    language: NotRequired[str]
    """The language of that mail."""
    webhooks: NotRequired[Sequence[NewWebhook]]
    """What to call about the task; each has ``url`` and the options of a webhook."""


class TaskChanges(_Texts, total=False):
    """What to change of a pending task."""

    title: str
    approver: str
    requester: str
    metadata: Mapping[str, Any] | None
    renew_approver_secret: bool
    """Gives the approver a new secret, so that the old one stops working."""
    version: int
    """The version that the changes are made to."""
