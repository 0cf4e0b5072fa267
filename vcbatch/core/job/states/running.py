"""Running: at least minAvailable members of the gang run or have succeeded.

Every action other than a plain sync leaves this phase; the sync decides the outcome from the ledger, never from the
pods that happen to exist (volcano#791, volcano#3296).
"""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action, JobPhase
from vcbatch.core.job.outcome import running_outcome
from vcbatch.core.job.states.cells import Cell, Outlook, Row, Rule, Verb, leave, restart_all, restart_part


def _outcome(outlook: Outlook) -> JobPhase:
    phase = running_outcome(outlook.plan, outlook.counts)
    if phase is JobPhase.FAILED and outlook.ledger.delayed:
        # No policy has handled the failure yet: one will, once its timeout is over.
        return JobPhase.RUNNING
    return phase


RUNNING: Final[Row] = {
    Action.RESTART_JOB: restart_all(),
    Action.RESTART_TASK: restart_part(),
    Action.RESTART_POD: restart_part(),
    Action.RESTART_PARTITION: restart_part(),
    Action.ABORT_JOB: leave(JobPhase.ABORTING),
    Action.COMPLETE_JOB: leave(JobPhase.COMPLETING),
    Action.TERMINATE_JOB: leave(JobPhase.TERMINATING),
    Action.SYNC_JOB: Cell(
        Verb.SYNC,
        Rule(
            "Completed or Failed by minSuccess, the tasks' minAvailable and minAvailable, "
            "not Failed while a policy's timeout lasts; "
            "Pending when pending > replicas − minAvailable and fewer than minAvailable have started",
            (JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.PENDING),
            _outcome,
        ),
    ),
}
