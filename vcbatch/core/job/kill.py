"""KillJob and KillTarget: which pods are to be deleted."""

from __future__ import annotations

from typing import assert_never

from vcbatch.api.pod import PodPhase
from vcbatch.core.job.ledger import Ledger
from vcbatch.core.job.roster import Member, Roster
from vcbatch.core.job.states import Retain


def whole_job(roster: Roster, *, retain: Retain) -> list[Member]:
    """Every pod that isn't retained and isn't being deleted already."""
    return [member for member in roster.all() if not member.terminating and not _retained(member, retain)]


def doomed(roster: Roster, ledger: Ledger) -> list[Member]:
    """The pods of the parts that are being restarted."""
    return [member for member in roster.all() if not member.terminating and ledger.doomed(member)]


def drained(roster: Roster, ledger: Ledger) -> bool:
    """Whether all pods of the parts that are being restarted are deleted."""
    return not any(ledger.doomed(member) for member in roster.all())


def _retained(member: Member, retain: Retain) -> bool:
    match retain:
        case Retain.NOTHING:
            return False
        case Retain.SUCCEEDED:
            return member.phase == PodPhase.SUCCEEDED
        case Retain.FINISHED:
            return member.finished
        case _:
            assert_never(retain)
