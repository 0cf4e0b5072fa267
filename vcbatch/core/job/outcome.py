"""Whether a job has started, whether a running job has ended, and its result (Volcano: pkg/controllers/job/state)."""

from __future__ import annotations

from vcbatch.api.job import JobPhase
from vcbatch.core.job.counts import Counts
from vcbatch.core.job.plan import Plan


def has_started(plan: Plan, counts: Counts) -> bool:
    """Whether minAvailable pods have started, even if they ended since."""
    return plan.min_available <= counts.running + counts.succeeded + counts.failed + counts.blocked


def running_outcome(plan: Plan, counts: Counts) -> JobPhase:
    """The next phase of a running job: Running where it continues."""
    if plan.replicas == 0:
        return JobPhase.RUNNING
    if plan.min_success is not None and counts.succeeded >= plan.min_success:
        return JobPhase.COMPLETED
    if counts.succeeded + counts.failed + counts.blocked == plan.replicas:
        return JobPhase.COMPLETED if _enough_succeeded(plan, counts) else JobPhase.FAILED
    # The second condition prevents alternation of Pending and Running while pods of a larger size still exist.
    if counts.pending > plan.replicas - plan.min_available and not has_started(plan, counts):
        return JobPhase.PENDING
    return JobPhase.RUNNING


def _enough_succeeded(plan: Plan, counts: Counts) -> bool:
    """Whether a job all of whose pods have finished succeeded. The tasks' own minimums count where the job's is no
    smaller than their sum: below that the job as a whole may continue without some of them."""
    if plan.min_available >= plan.min_task_sum and any(
        task.explicit_minimum and task.name in counts.tasks and counts.succeeded_of(task.name) < task.min_pods
        for task in plan.tasks.values()
    ):
        return False
    if plan.min_success is not None:
        return False
    return counts.succeeded >= plan.min_available
