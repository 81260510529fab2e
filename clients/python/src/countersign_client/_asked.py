"""What an engine keeps of a question, so that a repeat finds its task."""

from __future__ import annotations

import hashlib
import json

from .errors import QuestionChanged
from .models import Task
from .options import TaskOptions


def asked(task: Task, title: str, approver: str, options: TaskOptions) -> dict[str, str]:
    """What is kept of a question. It has no secrets."""
    return {"task_id": task.id, "digest": _digest(title, approver, options)}


def task_of(kept: dict[str, str], title: str, approver: str, options: TaskOptions, otherwise: str) -> str:
    """The task of a question that was asked before. Raises `QuestionChanged` with the text `otherwise` for another question."""
    if kept["digest"] != _digest(title, approver, options):
        raise QuestionChanged(otherwise)
    return kept["task_id"]


def _digest(title: str, approver: str, options: TaskOptions) -> str:
    """Identifies what is decided on."""
    parts = [title, approver, options.get("description", "")]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
