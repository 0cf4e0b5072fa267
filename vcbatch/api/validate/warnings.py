"""What is legal and probably a mistake, or has no effect: told to the user, and stored all the same.

One line each, short enough for the header in which an API server passes it on (256 characters).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from vcbatch.api import cron, names
from vcbatch.api.cronjob import CronJob
from vcbatch.api.defaults import DEFAULT_MAX_RETRY, default_job
from vcbatch.api.job import Action, Event, Job, JobSpec, LifecyclePolicy, TaskSpec
from vcbatch.api.jobflow import JobFlow
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.pod import PodPhase
from vcbatch.api.queue import Queue
from vcbatch.api.validate.schedulers import named_schedulers

_RESTARTS: Final = frozenset(
    {Action.RESTART_JOB, Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION, Action.RESUME_JOB}
)
_ITERATIONS: Final = ("", "any", "all")
_MOST_NAMED: Final = 3
_POD_PHASES: Final = tuple(map(str, PodPhase))


def job_warnings(spec: JobSpec, schedulers: Sequence[str], path: str = "spec") -> Iterator[str]:
    """Warnings for a job with its defaults, made now or by a CronJob later."""
    yield from _size_warnings(spec, path)
    yield from _policy_warnings(spec, path)
    if spec.running_estimate is not None:
        yield f"{path}.runningEstimate: nothing reads it; vcbatch.dev/max-run-seconds limits how long a job runs"
    for index, task in enumerate(spec.tasks):
        if task.depends_on is not None and task.depends_on.iteration not in _ITERATIONS:
            given = task.depends_on.iteration[:40]
            yield f'{path}.tasks[{index}].dependsOn.iteration: "{given}" means all; want any or all'
    foreign = [(field, name) for field, name in named_schedulers(spec, path) if name not in schedulers]
    for field, name in foreign[:_MOST_NAMED]:
        yield f"{field}: {name!r} isn't a scheduler of vcbatch, and may not wait for minAvailable pods"


def cronjob_warnings(cron_job: CronJob, schedulers: Sequence[str]) -> Iterator[str]:
    """Warnings for a CronJob and the jobs that it makes."""
    if cron.never_comes(cron_job.spec.schedule):
        yield f"spec.schedule: no month has the day of {cron_job.spec.schedule!r}, so that it never comes"
    job = Job.parse(default_job({"spec": cron_job.spec.job_template.spec.dump()}))
    yield from job_warnings(job.spec, schedulers, "spec.jobTemplate.spec")


def jobflow_warnings(flow: JobFlow) -> Iterator[str]:
    """Warnings for a JobFlow: probes that can never hold, so that the jobs wait until those before are completed."""
    for index, entry in enumerate(flow.spec.flows):
        depends = entry.depends_on
        if depends is None or depends.probe is None:
            continue
        at = f"spec.flows[{index}].dependsOn.probe"
        if not depends.targets:
            yield f"{at}: there are no targets to probe, so it has no effect"
        for kind, asked in (
            ("httpGetList", depends.probe.http_get_list),
            ("tcpSocketList", depends.probe.tcp_socket_list),
        ):
            for place, question in enumerate(asked):
                if not question.port:
                    yield f"{at}.{kind}[{place}].port: nothing listens at port 0"
        for place, state in enumerate(depends.probe.task_status_list):
            if state.phase not in _POD_PHASES:
                given = f"{state.phase[:40]!r} is no phase of pods, want one of {', '.join(_POD_PHASES)}"
                yield f"{at}.taskStatusList[{place}].phase: {given}"


def queue_warnings(queue: Queue) -> Iterator[str]:
    """Warnings for a queue."""
    annotations = queue.metadata.annotations
    if annotations.get(names.HIERARCHY) or annotations.get(names.HIERARCHY_WEIGHTS):
        yield f"metadata.annotations[{names.HIERARCHY}]: deprecated, and not followed; give the queue a spec.parent"
    if queue.spec.extend_clusters:
        yield "spec.extendClusters: jobs aren't forwarded to other clusters"


def finished_job_warnings(new: Job, old: Job) -> Iterator[str]:
    """A change of what can't run any more."""
    if old.phase.finished and new.spec != old.spec:
        yield f"the job is {old.phase}: the change is stored and has no effect"


def _size_warnings(spec: JobSpec, path: str) -> Iterator[str]:
    least = sum(task.min_pods for task in spec.tasks)
    if spec.total_replicas == 0:
        yield f"{path}.tasks: no task has replicas, so no pod is made"
    if 0 < spec.min_available < least:
        text = f"{spec.min_available} is below {least}, the sum of the tasks' minAvailable"
        yield f"{path}.minAvailable: {text}: a task may start with less than its own minimum"
    if spec.min_success is not None and spec.min_success > spec.total_replicas:
        text = f"{spec.min_success} of {spec.total_replicas} pods can't succeed"
        yield f"{path}.minSuccess: {text}, so it has no effect"
    bare = [place for index, task in enumerate(spec.tasks) for place in _bare_containers(task, index, path)]
    if spec.min_available > 1 and bare:
        shown = ", ".join(bare[:_MOST_NAMED]) + (" and more" if len(bare) > _MOST_NAMED else "")
        yield f"{shown}: no resource requests, so the gang may be placed where it doesn't fit"


def _bare_containers(task: TaskSpec, index: int, path: str) -> Iterator[str]:
    for position, container in enumerate(listed(task.pod_spec, "containers")):
        if isinstance(container, dict):
            given = part(cast(Json, container), "resources")
            whole: Any = part(task.pod_spec, "resources")
            if not any(part(amounts, key) for amounts in (given, whole) for key in ("requests", "limits")):
                yield f"{path}.tasks[{index}].template.spec.containers[{position}]"


def _policy_warnings(spec: JobSpec, path: str) -> Iterator[str]:
    lists = [(f"{path}.policies", spec.policies, None)]
    lists += [(f"{path}.tasks[{index}].policies", task.policies, task) for index, task in enumerate(spec.tasks)]
    policies = [policy for _, listed_policies, _ in lists for policy in listed_policies]
    if spec.max_retry not in (0, DEFAULT_MAX_RETRY) and not any(policy.action in _RESTARTS for policy in policies):
        yield f"{path}.maxRetry: {spec.max_retry} retries are allowed, and no policy restarts anything"
    for at, listed_policies, task in lists:
        for index, policy in enumerate(listed_policies):
            yield from _policy_warning(policy, task, f"{at}[{index}]")


def _policy_warning(policy: LifecyclePolicy, task: TaskSpec | None, at: str) -> Iterator[str]:
    if Event.JOB_UPDATED in policy.all_events:
        yield f"{at}: the event {Event.JOB_UPDATED} never comes"
    if Event.POD_PENDING in policy.all_events and policy.timeout is None:
        yield f"{at}: the event {Event.POD_PENDING} needs a timeout to have an effect"
    if not policy.action and policy.exit_code is not None:
        yield f"{at}: without an action nothing is done"
    if policy.action == Action.RESTART_PARTITION and task is not None and task.partition_policy is None:
        yield f"{at}: the task has no partitions, so {Action.RESTART_PARTITION} restarts the pod"
