"""Whether a job has started, whether a running job is over, and how it went (Volcano: pkg/controllers/job/state)."""

from __future__ import annotations

from vcbatch.api.job import JobPhase
from vcbatch.core.job.counts import Counts
from vcbatch.core.job.plan import Plan


def has_started(plan: Plan, counts: Counts) -> bool:
    """Whether minAvailable pods have started, whatever became of them."""
    return plan.min_available <= counts.running + counts.succeeded + counts.failed + counts.blocked


def running_outcome(plan: Plan, counts: Counts) -> JobPhase:
    """The phase that follows for a running job: Running where it goes on."""
    if plan.replicas == 0:
        return JobPhase.RUNNING
    if plan.min_success is not None and counts.succeeded >= plan.min_success:
        return JobPhase.COMPLETED
    if counts.succeeded + counts.failed + counts.blocked == plan.replicas:
        return JobPhase.COMPLETED if _enough_succeeded(plan, counts) else JobPhase.FAILED
    # The second condition keeps Pending and Running from alternating while pods of a larger size still exist.
    if counts.pending > plan.replicas - plan.min_available and not has_started(plan, counts):
        return JobPhase.PENDING
    return JobPhase.RUNNING


def _enough_succeeded(plan: Plan, counts: Counts) -> bool:
    """Judge a job all of whose pods are finished. The tasks' own minimums count where the job's is no smaller than
    their sum: below that the job as a whole may go on without some of them."""
    if plan.min_available >= plan.min_task_sum and any(
        task.explicit_minimum and task.name in counts.tasks and counts.succeeded_of(task.name) < task.min_pods
        for task in plan.tasks.values()
    ):
        return False
    if plan.min_success is not None:
        return False
    return counts.succeeded >= plan.min_available
