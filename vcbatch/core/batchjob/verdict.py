"""Whether a Job has failed or succeeded: the rules in order of precedence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from vcbatch.api.batch_job import BatchJob, ConditionType, FailureAction
from vcbatch.api.loose import part
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.api.reasons import BatchJobReason
from vcbatch.api.timestamps import parse_time
from vcbatch.core.batchjob.ledger import Seen
from vcbatch.core.batchjob.pods import has_failed, restarts
from vcbatch.core.batchjob.policies import failure_of, success_of
from vcbatch.core.workload.pods import is_active


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reason and message of the condition that announces the end."""

    type: ConditionType
    reason: str
    message: str


def judge(job: BatchJob, pods: Sequence[Pod], now_seen: Seen, *, now: datetime) -> Verdict | None:
    """The first rule that is met: rules that fail a Job precede those that complete it."""
    message = _policy_fails(job, pods)
    if message:
        return _failed(BatchJobReason.POD_FAILURE_POLICY, message)
    if now_seen.failed > job.backoff_limit or _restarted_too_often(job, pods):
        return _failed(BatchJobReason.BACKOFF_LIMIT_EXCEEDED, "Job has reached the specified backoff limit")
    due = deadline_of(job)
    if due is not None and now >= due:
        return _failed(BatchJobReason.DEADLINE_EXCEEDED, "Job was active longer than specified deadline")
    return _indexes_fail(job, now_seen) or _succeeds(job, pods, now_seen)


def deadline_of(job: BatchJob) -> datetime | None:
    """When the Job exceeds its active deadline; None while it isn't active or has no deadline."""
    limit, started = job.spec.active_deadline_seconds, started_at(job)
    if limit is None or started is None or job.suspended:
        return None
    try:
        return started + timedelta(seconds=limit)
    except OverflowError:
        return None


def started_at(job: BatchJob) -> datetime | None:
    """When it was started or last resumed; None where it wasn't, or where the time is malformed."""
    try:
        return parse_time(job.status.start_time) if job.status.start_time else None
    except ValueError:
        return None


def _policy_fails(job: BatchJob, pods: Sequence[Pod]) -> str:
    """Why a pod fails the whole Job by the pod failure policy; empty where none does."""
    if job.spec.pod_failure_policy is None:
        return ""
    matched = (failure_of(pod, job) for pod in pods if has_failed(pod, job))
    return next((each.message for each in matched if each.action is FailureAction.FAIL_JOB), "")


def _restarted_too_often(job: BatchJob, pods: Sequence[Pod]) -> bool:
    """Whether the restarts in place exceed the limit, where containers are restarted in place."""
    if part(job.spec.template, "spec").get("restartPolicy") != "OnFailure":
        return False
    count = sum(restarts(pod) for pod in pods if pod.status.phase in (PodPhase.RUNNING, PodPhase.PENDING))
    return count >= max(job.backoff_limit, 1)


def _indexes_fail(job: BatchJob, now_seen: Seen) -> Verdict | None:
    if not job.counts_per_index:
        return None
    failed, most = len(now_seen.failed_indexes), job.spec.max_failed_indexes
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return _failed(BatchJobReason.MAX_FAILED_INDEXES_EXCEEDED, message)
    if failed and failed + len(now_seen.completed) >= job.indices:
        return _failed(BatchJobReason.FAILED_INDEXES, "Job has failed indexes")
    return None


def _succeeds(job: BatchJob, pods: Sequence[Pod], now_seen: Seen) -> Verdict | None:
    message = success_of(job, now_seen.completed) if job.indexed else ""
    if message:
        return Verdict(ConditionType.SUCCESS_CRITERIA_MET, BatchJobReason.SUCCESS_POLICY, message)
    # Without `completions`, one success is enough, and the results of the other pods don't matter.
    wanted = 1 if job.spec.completions is None else job.spec.completions
    if now_seen.succeeded < wanted or any(is_active(pod) for pod in pods):
        return None
    message = "Reached expected number of succeeded pods"
    return Verdict(ConditionType.SUCCESS_CRITERIA_MET, BatchJobReason.COMPLETIONS_REACHED, message)


def _failed(reason: BatchJobReason, message: str) -> Verdict:
    return Verdict(ConditionType.FAILURE_TARGET, reason, message)
