"""What the server answers, with the names and types of Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

Status = Literal["pending", "approved", "rejected", "cancelled"]

FIELDS = (
    "public,created,mtime,decisionMade,decidedBy,decidedVia,comment,"
    "commentRequired,confirmationRequired,deciders,selfApproval,metadata,version"
)
"""What the client asks for beside the fields that every task has."""


def parse_time(text: str | None) -> datetime | None:
    """A moment in UTC, from RFC 3339 or ``YYYY-MM-DD HH:MM:SS``."""
    if not text:
        return None
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Webhook:
    """A URL that is called when its task is decided."""

    id: str
    url: str
    task_id: str
    status: str
    """``pending`` until it is delivered, then ``sent``; ``fail`` if it was given up."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Webhook:
        """From what the server answers."""
        return cls(json["id"], json["url"], json["taskId"], json["status"], json)


@dataclass(frozen=True)
class Task:
    """A question to a person, and what became of it."""

    id: str
    title: str
    status: str
    """``pending``, ``approved``, ``rejected`` or ``cancelled``; in calls of webhooks also ``due`` and ``test``."""
    approver: str
    """The address of the person who decides."""
    requester: str
    description: str = ""
    decision_by: datetime | None = None
    """When a decision is needed."""
    comment: str | None = None
    """What the person wrote who decided or withdrew the task."""
    decided_by: str | None = None
    """The address of that person."""
    decided_at: datetime | None = None
    decided_via: Any = None
    """How the task was decided."""
    created: datetime | None = None
    modified: datetime | None = None
    version: int | None = None
    """Counts the changes of what is decided on. Send it with a decision, to decide what was seen."""
    metadata: Mapping[str, Any] | None = None
    public: bool | None = None
    deciders: str | None = None
    self_approval: bool | None = None
    comment_required: bool | None = None
    confirmation_required: bool | None = None
    approver_secret: str | None = field(default=None, repr=False)
    """Opens the task without an account, and decides it by default. Only the answers to a creation and to an edit that makes
    another one have it."""
    requester_secret: str | None = field(default=None, repr=False)
    webhooks: tuple[Webhook, ...] = field(default=(), repr=False)
    """The webhooks that were created with the task. Only the answer to a creation has them."""

    @property
    def is_pending(self) -> bool:
        """Whether there is no decision yet."""
        return self.status == "pending"

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Task:
        """From what the server answers, or a webhook is called with."""
        identifier, status = json["id"], json["status"]
        if not isinstance(identifier, str) or not isinstance(status, str):
            raise TypeError("A task has an identifier and a status.")
        return cls(
            id=identifier,
            title=json.get("title", ""),
            status=status,
            approver=json.get("approver", ""),
            requester=json.get("requester", ""),
            description=json.get("description", ""),
            decision_by=parse_time(json.get("decisionBy")),
            comment=json.get("comment"),
            decided_by=json.get("decidedBy"),
            decided_at=parse_time(json.get("decisionMade")),
            decided_via=json.get("decidedVia"),
            created=parse_time(json.get("created")),
            modified=parse_time(json.get("mtime")),
            version=json.get("version"),
            metadata=json.get("metadata"),
            public=json.get("public"),
            deciders=json.get("deciders"),
            self_approval=json.get("selfApproval"),
            comment_required=json.get("commentRequired"),
            confirmation_required=json.get("confirmationRequired"),
            approver_secret=json.get("approverSecret"),
            requester_secret=json.get("requesterSecret"),
            webhooks=tuple(Webhook.from_json(webhook) for webhook in json.get("webhooks") or ()),
        )


@dataclass(frozen=True)
class Decision:
    """What a person decided."""

    status: Literal["approved", "rejected"]
    task: Task

    @property
    def approved(self) -> bool:
        """Whether the answer is yes."""
        return self.status == "approved"

    @property
    def comment(self) -> str | None:
        """What the person wrote about it."""
        return self.task.comment

    @property
    def decided_by(self) -> str | None:
        """The address of the person."""
        return self.task.decided_by

    @property
    def decided_at(self) -> datetime | None:
        """When it was decided."""
        return self.task.decided_at

    def __bool__(self) -> bool:
        """Whether the answer is yes."""
        return self.approved

    @classmethod
    def of(cls, task: Task) -> Decision | None:
        """The decision of a task; ``None`` if it has none."""
        if task.status == "approved" or task.status == "rejected":
            return cls(task.status, task)
        return None


@dataclass(frozen=True)
class WebhookTest:
    """What came of a call that tried a webhook."""

    id: str
    success: bool
    """Whether a delivery with this answer would count as sent."""
    status_code: int | None
    error: str | None
    duration: float
    """In seconds."""

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> WebhookTest:
        """From what the server answers."""
        return cls(json["id"], json["success"], json["statusCode"], json["error"], json["durationMs"] / 1000)


@dataclass(frozen=True)
class Attempt:
    """One call of a webhook."""

    at: datetime | None
    duration: float
    """In seconds."""
    status_code: int | None
    error: str | None
    response: str | None


@dataclass(frozen=True)
class Delivery:
    """A decision on its way to one webhook."""

    id: str
    """The ``webhook-id`` of all its calls."""
    webhook_id: str
    url: str
    task_status: str
    status: str
    """``pending`` until the last attempt ends, then ``sent`` or ``fail``."""
    suspended: bool
    """It waits, because the user who registered the webhook has no right to the task now."""
    created: datetime | None
    next_attempt: datetime | None
    attempts: tuple[Attempt, ...]

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Delivery:
        """From what the server answers."""
        attempts = (
            Attempt(
                parse_time(attempt["at"]),
                attempt["durationMs"] / 1000,
                attempt["statusCode"],
                attempt["error"],
                attempt.get("response"),
            )
            for attempt in json["attempts"]
        )
        return cls(
            json["id"],
            json["webhookId"],
            json["url"],
            json["taskStatus"],
            json["status"],
            json.get("suspended", False),
            parse_time(json["created"]),
            parse_time(json["nextAttempt"]),
            tuple(attempts),
        )
