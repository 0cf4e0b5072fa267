"""Commands to a flow: each is executed at most once, and only on the flow with the UID that it names.

The UID of a Command enters the flow's ledger in the status write that records its effect, and the Command is deleted
after that, as with Commands to jobs (`vcbatch.core.job.commands`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api.command import Command
from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlow, JobFlowLedger
from vcbatch.api.resources import COMMANDS
from vcbatch.core.jobflow.states import Cell, Verb, cell_of
from vcbatch.core.machine import Delete, ref_of

ALLOWED: Final = (Action.ABORT_JOB, Action.RESUME_JOB, Action.RESTART_JOB, Action.TERMINATE_JOB, Action.SYNC_JOB)
MOST_COMMANDS: Final = 16
"""While this many Commands that were executed can't be removed, no further one is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """`order`: the action of the oldest Command to execute, with its cell and the Command's UID. `deletes`: those that
    are done. `rejected`: why others are removed without effect. `more`: further Commands wait."""

    order: tuple[Action, Cell, str] | None
    deletes: tuple[Delete, ...]
    rejected: tuple[str, ...]
    known: tuple[str, ...]
    """UIDs of the Commands that were executed and still exist."""
    more: bool

    def remembered(self) -> list[str]:
        """The ledger's next `commands`: those that no longer exist are dropped."""
        return [*self.known, self.order[2]] if self.order is not None else list(self.known)


def read_inbox(flow: JobFlow, commands: Sequence[Command], ledger: JobFlowLedger) -> Inbox:
    """Take the oldest Command that can be executed; it and those that can't be are to be deleted."""
    order: tuple[Action, Cell, str] | None = None
    known = [command.uid for command in commands if command.uid in ledger.commands]
    done: list[Command] = []
    rejected: list[str] = []
    more = False
    for command in sorted(commands, key=lambda command: (command.metadata.creation_timestamp or "", command.name)):
        if command.uid in ledger.commands:
            done.append(command)
        elif command.metadata.deletion_timestamp is not None:
            continue
        elif order is not None:
            more = True
        elif isinstance(verdict := _read(flow, command, ledger), str):
            rejected.append(verdict)
            done.append(command)
        elif len(known) < MOST_COMMANDS:
            order = (*verdict, command.uid)
            done.append(command)
    return Inbox(
        order=order, deletes=tuple(_deletes(done)), rejected=tuple(rejected), known=tuple(sorted(known)), more=more
    )


def _read(flow: JobFlow, command: Command, ledger: JobFlowLedger) -> tuple[Action, Cell] | str:
    target = command.target
    if target is not None and target.uid and target.uid != flow.uid:
        return f"Command {command.name} is for a flow {flow.name} with UID {target.uid}, which is no more"
    action = next((action for action in ALLOWED if action == command.action), None)
    if action is None:
        asked = f"Command {command.name} has the action {command.action[:64]!r}"
        return f"{asked}, want one of {', '.join(ALLOWED)}"
    cell = cell_of(flow.phase, action)
    if cell is None:
        return f"Command {command.name}: {action} does nothing to a flow that is {flow.phase}"
    if cell.verb is Verb.SUSPEND and ledger.suspended:
        return f"Command {command.name}: the flow is suspended already"
    if cell.verb is Verb.RESUME and not ledger.suspended:
        return f"Command {command.name}: the flow isn't suspended"
    return action, cell


def _deletes(commands: Sequence[Command]) -> Iterator[Delete]:
    for command in commands:
        ref = ref_of(COMMANDS, command)
        yield Delete(ref=ref)
