"""The events of a job. Each is emitted once, with the status write that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from vcbatch.api import messages
from vcbatch.api.duration import format_duration
from vcbatch.api.job import Action, Job
from vcbatch.api.podgroup import PodGroup, PodGroupCondition
from vcbatch.api.reasons import JobReason, PodGroupConditionType
from vcbatch.api.resources import JOBS
from vcbatch.core.job.causes import describe
from vcbatch.core.job.ledger import Loss
from vcbatch.core.job.status import Explanation
from vcbatch.core.machine import Emit, EventType, ref_of

_MOST_PODS_NAMED = 3


def warning(job: Job, reason: JobReason, message: str) -> Emit:
    """A warning on the job, its message shortened to the maximum length of an event."""
    return Emit(ref=ref_of(JOBS, job), type=EventType.WARNING, reason=reason, message=messages.shorten(message))


def executing(job: Job, action: Action, cause: str) -> Emit:
    message = messages.executing(action=action, cause=cause)
    return Emit(ref=ref_of(JOBS, job), type=EventType.NORMAL, reason=JobReason.EXECUTE_ACTION, message=message)


def command_issued(job: Job, action: Action) -> Emit:
    message = messages.command_issued(action=action)
    return Emit(ref=ref_of(JOBS, job), type=EventType.NORMAL, reason=JobReason.COMMAND_ISSUED, message=message)


def delayed(job: Job, begun: Iterable[tuple[Action, timedelta, str]]) -> Iterator[Emit]:
    """The events about policies whose timeout started."""
    for action, delay, cause in begun:
        message = messages.delayed(action=action, delay=format_duration(delay), cause=cause)
        yield Emit(ref=ref_of(JOBS, job), type=EventType.NORMAL, reason=JobReason.EXECUTE_ACTION, message=message)


def losses(job: Job, lost: Sequence[Loss]) -> Iterator[Emit]:
    """One event for all pods that failed since the last reconciliation, and one for all pods that the infrastructure
    took down, each naming the first few. The reasons are those of the policy events that match such losses."""
    taken = [loss for loss in lost if loss.failure.cause.infrastructure]
    failed = [loss for loss in lost if not loss.failure.cause.infrastructure]
    for reason, of_one_kind in ((JobReason.POD_FAILED, failed), (JobReason.POD_EVICTED, taken)):
        if of_one_kind:
            yield warning(job, reason, _named(of_one_kind))


def _named(lost: Sequence[Loss]) -> str:
    reported = [describe(pod=loss.pod, failure=loss.failure, node=loss.node) for loss in lost[:_MOST_PODS_NAMED]]
    if len(lost) > _MOST_PODS_NAMED:
        reported.append(f"and {len(lost) - _MOST_PODS_NAMED} more")
    return "; ".join(reported)


def pod_group_trouble(pod_group: PodGroup | None) -> Explanation | None:
    """Why the gang doesn't start, as the scheduler reports it: the newest condition with status True, unless that is
    Scheduled."""
    if pod_group is None:
        return None
    holding = [condition for condition in pod_group.status.conditions if condition.status == "True"]
    if not holding:
        return None
    newest = max(holding, key=_time)
    if newest.type == PodGroupConditionType.SCHEDULED:
        return None
    return Explanation(newest.reason or JobReason.POD_GROUP_PENDING, newest.message)


def pod_group_pending(job: Job, trouble: Explanation) -> Emit:
    """The event in Volcano's words, which name the job and not its PodGroup."""
    message = f"PodGroup {job.namespace}:{job.name} unschedulable, reason: {trouble.message}"
    return warning(job, JobReason.POD_GROUP_PENDING, message)


def _time(condition: PodGroupCondition) -> str:
    return condition.last_transition_time or ""
