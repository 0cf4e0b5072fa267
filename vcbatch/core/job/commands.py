"""Commands to a job: each is carried out at most once, and only on the very job that it names.

The UID of a Command enters the job's ledger in the same status write that follows it, and the Command is deleted
after that. A crash in between leaves a Command that is known, and merely deleted by the next look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api.command import Command
from vcbatch.api.job import Action, Job
from vcbatch.api.resources import COMMANDS
from vcbatch.core.job.ledger import MOST_COMMANDS, Ledger
from vcbatch.core.machine import Delete, ref_of

ALLOWED: Final = (
    Action.ABORT_JOB,
    Action.RESUME_JOB,
    Action.RESTART_JOB,
    Action.COMPLETE_JOB,
    Action.TERMINATE_JOB,
    Action.SYNC_JOB,
)
"""What a Command may ask of a job. Restarts of a part have no way to say which part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """`order`: the oldest Command to carry out, with its action. `deletes`: those that are done with, `order`
    included. `rejected`: why each of the others is removed without effect. `more`: others wait for their turn."""

    order: tuple[Command, Action] | None
    deletes: tuple[Delete, ...]
    rejected: tuple[str, ...]
    more: bool


def read_inbox(job: Job, commands: Sequence[Command], ledger: Ledger) -> Inbox:
    """Sort the Commands, and note in the ledger the one that is taken."""
    order: tuple[Command, Action] | None = None
    # What can't be remembered would be carried out again: with so many that can't be removed, none is taken.
    full = sum(command.uid in ledger.commands for command in commands) >= MOST_COMMANDS
    done: list[Command] = []
    rejected: list[str] = []
    more = False
    for command in sorted(commands, key=_age):
        if command.uid in ledger.commands:
            done.append(command)
            continue
        if command.metadata.deletion_timestamp is not None:
            continue  # withdrawn, or rejected by an earlier look and told so
        verdict = _read(job, command)
        if not isinstance(verdict, Action):
            rejected.append(verdict.why)
            done.append(command)
        elif full:
            continue
        elif order is None:
            order = (command, verdict)
            done.append(command)
        else:
            more = True
    if order is not None:
        ledger.remember_command(order[0].uid, present={command.uid for command in commands})
    return Inbox(order=order, deletes=tuple(_deletes(done)), rejected=tuple(rejected), more=more)


@dataclass(frozen=True, slots=True)
class _Rejection:
    why: str


def _read(job: Job, command: Command) -> Action | _Rejection:
    target = command.target
    if target is not None and target.uid and target.uid != job.uid:
        return _Rejection(f"Command {command.name} is for a job {job.name} with UID {target.uid}, which is no more")
    allowed = next((action for action in ALLOWED if action == command.action), None)
    if allowed is None:
        asked = f"Command {command.name} has the action {command.action[:64]!r}"
        return _Rejection(f"{asked}, want one of {', '.join(ALLOWED)}")
    return allowed


def _age(command: Command) -> tuple[str, str]:
    return (command.metadata.creation_timestamp or "", command.name)


def _deletes(commands: Sequence[Command]) -> Iterator[Delete]:
    for command in commands:
        ref = ref_of(COMMANDS, command)
        yield Delete(ref=ref)
