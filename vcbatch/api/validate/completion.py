"""Whether a job can complete with the restart policies of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from vcbatch.api.job import Action, Event, JobSpec, LifecyclePolicy, TaskSpec
from vcbatch.api.podspec.restarts import RestartPolicy

_ENDS: Final = frozenset({Action.COMPLETE_JOB, Action.TERMINATE_JOB, Action.ABORT_JOB})


def restart_policy_warnings(spec: JobSpec, path: str) -> Iterator[str]:
    """Warnings about tasks without a restart policy in a job that therefore never completes (volcano-sh/volcano#1075).
    Kubernetes' default is Always: a container that succeeds is restarted, so the pod never succeeds."""
    running = [(index, task) for index, task in enumerate(spec.tasks) if task.replicas > 0]
    unsaid = [index for index, task in running if not task.pod_spec.get("restartPolicy")]
    if not unsaid or _completes(spec, [task for _, task in running]):
        return
    others = f" (and {len(unsaid) - 1} more)" if len(unsaid) > 1 else ""
    text = "not set: Kubernetes' default, Always, restarts containers that succeed, so the job never completes"
    yield f"{path}.tasks[{unsaid[0]}].template.spec.restartPolicy{others}: {text}; set Never or OnFailure"


def _completes(spec: JobSpec, running: Iterable[TaskSpec]) -> bool:
    """Whether the job can complete before all its pods have ended: through enough tasks whose pods end, or by a
    policy."""
    ending = [task for task in running if _ends(task)]
    if spec.min_success is not None and sum(task.replicas for task in ending) >= spec.min_success:
        return True
    return any(_answers(policy, bool(ending)) for policy in spec.policies) or any(
        _answers(policy, _ends(task)) for task in running for policy in task.policies
    )


def _answers(policy: LifecyclePolicy, ending: bool) -> bool:
    """Whether the policy completes the job. `ending`: whether the pods it applies to end by themselves."""
    if Event.TASK_COMPLETED in policy.all_events or Event.ANY in policy.all_events:
        return ending and policy.action in _ENDS
    if policy.action != Action.COMPLETE_JOB:
        return False
    return ending or not (policy.exit_code is not None or set(policy.all_events) <= {Event.POD_FAILED})


def _ends(task: TaskSpec) -> bool:
    return task.pod_spec.get("restartPolicy") in (RestartPolicy.NEVER, RestartPolicy.ON_FAILURE)
