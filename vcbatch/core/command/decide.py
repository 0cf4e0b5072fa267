"""When a Command is deleted whose target doesn't execute it.

The reconciliation of an existing job handles its Commands (`vcbatch.core.job.commands`). All others would stay for ever
(Volcano leaks them); they are deleted after a period in which their target may still be created.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from vcbatch.api.command import Command
from vcbatch.api.resources import COMMANDS
from vcbatch.api.timestamps import parse_time
from vcbatch.core.machine import Decision, Delete, ref_of

PATIENCE: Final = timedelta(minutes=1)


def decide(command: Command, *, taken: bool, now: datetime) -> Decision:
    """`taken`: the object that the Command names exists, and its reconciliation handles its Commands."""
    if taken or command.metadata.deletion_timestamp:
        return Decision()
    due = _created(command, now) + PATIENCE
    if now < due:
        return Decision(requeue_at=due)
    ref = ref_of(COMMANDS, command)
    return Decision(deletes=[Delete(ref=ref)])


def _created(command: Command, now: datetime) -> datetime:
    try:
        return parse_time(command.metadata.creation_timestamp or "")
    except ValueError:
        return now
