"""A Job's policies for single pods and indexes: which failures count, and when the Job counts as successful."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vcbatch.api.batch_job import BatchJob, FailureAction, FailureRule, OnExitCodes, SuccessRule
from vcbatch.api.pod import ContainerStatus, Pod
from vcbatch.core.batchjob.indexes import Indexes


@dataclass(frozen=True, slots=True)
class Matched:
    """The action of the first rule that matches a pod; `message` is the reason, where the action ends the Job."""

    action: FailureAction
    message: str = ""


_COUNTED = Matched(FailureAction.COUNT)


def failure_of(pod: Pod, job: BatchJob) -> Matched:
    """What the pod failure policy decides for a failed pod. Without a matching rule, the failure counts."""
    policy = job.spec.pod_failure_policy
    for place, rule in enumerate(policy.rules if policy is not None else ()):
        reported = _reported(pod, rule)
        if reported and rule.action in tuple(FailureAction):
            action = FailureAction(rule.action)
            message = f"{reported} matching {action} rule at index {place}" if action is FailureAction.FAIL_JOB else ""
            return Matched(action, message)
    return _COUNTED


def is_ignored(pod: Pod, job: BatchJob) -> bool:
    """Whether the failure of this pod counts against no limit."""
    return failure_of(pod, job).action is FailureAction.IGNORE


def success_of(job: BatchJob, succeeded: Indexes) -> str:
    """The success policy rule that is met, in the words of the condition; empty where none is."""
    policy = job.spec.success_policy
    if policy is None or not succeeded:
        return ""
    for place, rule in enumerate(policy.rules):
        if _is_met(rule, succeeded, below=job.indices):
            return f"Matched rules at index {place}"
    return ""


def _reported(pod: Pod, rule: FailureRule) -> str:
    """The property of the pod that the rule matches; empty where it doesn't match."""
    metadata = pod.metadata
    if rule.on_exit_codes is not None:
        for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
            for name, code in _exits(statuses or ()):
                if _fits(name, code, rule.on_exit_codes):
                    return f"Container {name} for pod {metadata.namespace}/{metadata.name} failed with exit code {code}"
        return ""
    patterns = {(pattern.type, pattern.status) for pattern in rule.on_pod_conditions}
    for condition in pod.status.conditions or ():
        if (condition.type, condition.status) in patterns:
            return f"Pod {metadata.namespace}/{metadata.name} has condition {condition.type}"
    return ""


def _exits(statuses: Iterable[ContainerStatus]) -> Iterable[tuple[str, int]]:
    for status in statuses:
        if status.state is not None and status.state.terminated is not None and status.state.terminated.exit_code:
            yield status.name, status.state.terminated.exit_code


def _fits(container: str, code: int, wanted: OnExitCodes) -> bool:
    if wanted.container_name not in (None, container):
        return False
    return {"In": code in wanted.values, "NotIn": code not in wanted.values}.get(wanted.operator, False)


def _is_met(rule: SuccessRule, succeeded: Indexes, *, below: int) -> bool:
    if rule.succeeded_indexes is None:
        return rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
    wanted = Indexes.parse(rule.succeeded_indexes, below=below)
    if not wanted:
        return False
    reached = succeeded.shared(wanted)
    return reached == len(wanted) or (rule.succeeded_count is not None and reached >= rule.succeeded_count)
