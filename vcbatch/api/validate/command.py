"""Validation of Commands to a queue. Volcano doesn't validate Commands: every user who may create one in any namespace
can open and close every queue, and no UID is compared."""

from __future__ import annotations

from collections.abc import Iterator

from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.resources import QUEUES
from vcbatch.api.validate.errors import Cause, ValidationError


def commanded_queue(command: Json | None) -> str:
    """The queue that the Command targets, as the queue controller reads it; empty where it targets another object."""
    target = part(command or {}, "target")
    if (target.get("apiVersion"), target.get("kind")) != (QUEUES.api_version, QUEUES.kind):
        return ""
    return str(target.get("name") or "")


def command_errors(command: Json) -> Iterator[ValidationError]:
    """Errors where a Command to a queue has no UID of the queue: without it, it could be executed on another one of the
    same name."""
    queue = commanded_queue(command)
    if queue and not part(command, "target").get("uid"):
        text = f"target.uid: Required value: want the UID of queue {queue} (kubectl get queue {queue} -o yaml)"
        yield ValidationError("target.uid", text, Cause.REQUIRED)
