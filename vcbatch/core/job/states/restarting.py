"""Restarting: pods of the old attempt are being deleted, and none of the new one exists.

A restart of the whole job ends when the last of them is deleted, so that two attempts never run side by side; a restart
of a part ends when enough of the gang is left to continue. A user's cancellation has precedence over a restart (Volcano
ignores it here).
"""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action, JobPhase
from vcbatch.core.job.states.cells import Cell, Outlook, Row, Rule, Verb, leave, to


def _drained(outlook: Outlook) -> JobPhase:
    if outlook.ledger.restarting_job:
        return JobPhase.PENDING if outlook.drained else JobPhase.RESTARTING
    enough = outlook.plan.replicas - outlook.counts.terminating >= outlook.plan.min_available
    return JobPhase.PENDING if enough or outlook.drained else JobPhase.RESTARTING


RESTARTING: Final[Row] = {
    Action.RESTART_JOB: Cell(Verb.KILL, to(JobPhase.RESTARTING), ends_attempt=True),
    Action.RESTART_TASK: Cell(Verb.TARGET, to(JobPhase.RESTARTING)),
    Action.RESTART_POD: Cell(Verb.TARGET, to(JobPhase.RESTARTING)),
    Action.RESTART_PARTITION: Cell(Verb.TARGET, to(JobPhase.RESTARTING)),
    Action.ABORT_JOB: leave(JobPhase.ABORTING),
    Action.COMPLETE_JOB: leave(JobPhase.COMPLETING),
    Action.TERMINATE_JOB: leave(JobPhase.TERMINATING),
    Action.SYNC_JOB: Cell(
        Verb.DRAIN,
        Rule(
            "Pending when all old pods are gone; of a part: when replicas − terminating ≥ minAvailable",
            (JobPhase.PENDING,),
            _drained,
        ),
    ),
}
