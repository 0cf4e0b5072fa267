"""Pending: the job waits for its queue, or for enough of its pods to run."""

from __future__ import annotations

from typing import Final

from vcbatch.api.job import Action, JobPhase
from vcbatch.core.job.outcome import has_started
from vcbatch.core.job.states.cells import Cell, Outlook, Row, Rule, Verb, leave, restart_all, restart_part


def _started(outlook: Outlook) -> JobPhase:
    return JobPhase.RUNNING if has_started(outlook.plan, outlook.counts) else JobPhase.PENDING


PENDING: Final[Row] = {
    Action.RESTART_JOB: restart_all(),
    Action.RESTART_TASK: restart_part(),
    Action.RESTART_POD: restart_part(),
    Action.RESTART_PARTITION: restart_part(),
    Action.ABORT_JOB: leave(JobPhase.ABORTING),
    Action.COMPLETE_JOB: leave(JobPhase.COMPLETING),
    Action.TERMINATE_JOB: leave(JobPhase.TERMINATING),
    Action.SYNC_JOB: Cell(
        Verb.SYNC, Rule("Running when minAvailable ≤ running + succeeded + failed", (JobPhase.RUNNING,), _started)
    ),
}
