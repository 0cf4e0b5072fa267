"""Commands to a queue: open it, or close it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api.command import Command
from vcbatch.api.job import Action
from vcbatch.api.queue import ROOT, Queue, QueueState
from vcbatch.api.resources import COMMANDS
from vcbatch.core.machine import Delete, ref_of

ALLOWED: Final = (Action.OPEN_QUEUE, Action.CLOSE_QUEUE)
SHUT: Final = (QueueState.CLOSING, QueueState.CLOSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """`action`: what the oldest executable Command requests, None where there is none. `rejected`: why others are
    removed without effect. Executing a Command twice (after a crash in between) has the same effect as once."""

    action: Action | None
    deletes: tuple[Delete, ...]
    rejected: tuple[str, ...]
    more: bool


def read_inbox(queue: Queue, parent: Queue | None, commands: Sequence[Command]) -> Inbox:
    """Take the oldest Command that can be executed; it and those that can't be are to be deleted."""
    action: Action | None = None
    done: list[Command] = []
    rejected: list[str] = []
    more = False
    for command in sorted(commands, key=lambda command: (command.metadata.creation_timestamp or "", command.name)):
        asked = next((allowed for allowed in ALLOWED if allowed == command.action), None)
        error = _error(queue, parent, command, asked)
        if error:
            rejected.append(error)
        elif action is None:
            action = asked
        else:
            more = True
            continue
        done.append(command)
    return Inbox(action=action, deletes=tuple(map(_delete, done)), rejected=tuple(rejected), more=more)


def _error(queue: Queue, parent: Queue | None, command: Command, asked: Action | None) -> str:
    target = command.target
    if target is None or not target.uid:
        return f"Command {command.name} names no UID of queue {queue.name}, want target.uid: {queue.uid}"
    if target.uid != queue.uid:
        return f"Command {command.name} is for a queue {queue.name} with UID {target.uid[:64]}, which is no more"
    if asked is None:
        return f"Command {command.name} has the action {command.action[:64]!r}, want one of {', '.join(ALLOWED)}"
    if asked is Action.CLOSE_QUEUE and queue.name == ROOT:
        return f"queue {ROOT} can't be closed"
    if asked is Action.OPEN_QUEUE and parent is not None and parent.status.state in SHUT:
        return f"queue {queue.name} can't be opened while its parent {parent.name} is {parent.status.state}"
    return ""


def _delete(command: Command) -> Delete:
    ref = ref_of(COMMANDS, command)
    return Delete(ref=ref)
