"""Commands to a job: each is executed at most once, and only on the job with the UID that it names.

The UID of a Command enters the job's ledger in the status write that records its effect, and the Command is deleted
after that. A crash in between leaves a Command that is in the ledger, and that the next reconciliation only deletes.
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
"""The actions that a Command may request for a job. A Command can't name a part of a job to restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """`order`: the oldest Command to execute, with its action. `deletes`: those that are done, `order` included.
    `rejected`: why each of the others is removed without effect. `more`: further Commands wait."""

    order: tuple[Command, Action] | None
    deletes: tuple[Delete, ...]
    rejected: tuple[str, ...]
    more: bool


def read_inbox(job: Job, commands: Sequence[Command], ledger: Ledger) -> Inbox:
    """Sort the Commands, and record the one to execute in the ledger."""
    order: tuple[Command, Action] | None = None
    # A Command that isn't in the ledger would be executed again: none is taken while the ledger is full.
    full = sum(command.uid in ledger.commands for command in commands) >= MOST_COMMANDS
    done: list[Command] = []
    rejected: list[str] = []
    more = False
    for command in sorted(commands, key=_age):
        if command.uid in ledger.commands:
            done.append(command)
            continue
        if command.metadata.deletion_timestamp is not None:
            continue  # withdrawn, or rejected and reported by an earlier reconciliation
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
