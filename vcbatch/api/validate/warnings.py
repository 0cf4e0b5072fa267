"""Warnings about valid fields that are probably a mistake, or have no effect: the object is stored all the same.

One line each, short enough for the header in which an API server returns it (256 characters).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, cast

from vcbatch.api import cron, names
from vcbatch.api.cronjob import CronJob
from vcbatch.api.defaults import DEFAULT_MAX_RETRY, default_job
from vcbatch.api.hypernode import HyperNode, MemberType
from vcbatch.api.job import Action, Event, Job, JobSpec, LifecyclePolicy, TaskSpec
from vcbatch.api.jobflow import JobFlow
from vcbatch.api.jobtemplate import JobTemplate
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.pod import PodPhase
from vcbatch.api.queue import Queue
from vcbatch.api.resource_names import doubt, doubts
from vcbatch.api.validate.completion import restart_policy_warnings
from vcbatch.api.validate.cronjob import some_job_name
from vcbatch.api.validate.job import LONGEST_HOST_NAME
from vcbatch.api.validate.lookup import Lookup
from vcbatch.api.validate.plugin_warnings import argument_warnings, ray_warnings
from vcbatch.api.validate.policies import POLICY_ACTIONS
from vcbatch.api.validate.schedulers import scheduler_warnings
from vcbatch.api.validate.written import written_job_warnings

_RESTARTS: Final = frozenset(
    {Action.RESTART_JOB, Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION, Action.RESUME_JOB}
)
_ITERATIONS: Final = ("", "any", "all")
_MOST_NAMED: Final = 3
_POD_PHASES: Final = tuple(map(str, PodPhase))


def job_warnings(
    spec: JobSpec, name: str, lookup: Lookup, schedulers: Sequence[str], path: str = "spec"
) -> Iterator[str]:
    """Warnings for a job with its defaults, created now or by a CronJob later. Those that depend on the `lookup` are
    `priority_class_warnings`."""
    yield from _size_warnings(spec, path)
    yield from template_warnings(spec, path)
    yield from _policy_warnings(spec, path)
    yield from _name_warnings(spec, name, path)
    if spec.running_estimate is not None:
        yield f"{path}.runningEstimate: nothing reads it; vcbatch.dev/max-run-seconds limits how long a job runs"
    for index, task in enumerate(spec.tasks):
        if task.depends_on is not None and task.depends_on.iteration not in _ITERATIONS:
            given = task.depends_on.iteration[:40]
            yield f'{path}.tasks[{index}].dependsOn.iteration: "{given}" means all; want any or all'
    yield from scheduler_warnings(spec, schedulers, path)
    yield from priority_class_warnings(spec, lookup, path)


def template_warnings(spec: JobSpec, path: str = "spec") -> Iterator[str]:
    """The job's warnings that also apply to a JobTemplate, to which a flow may add fields."""
    yield from restart_policy_warnings(spec, path)
    yield from argument_warnings(spec, path)
    yield from ray_warnings(spec, path)
    yield from _resource_warnings(spec, path)


def _resource_warnings(spec: JobSpec, path: str) -> Iterator[str]:
    """Resources that containers request and no node offers, each name once."""
    asked: dict[str, str] = {}
    for index, task in enumerate(spec.tasks):
        for kind in ("initContainers", "containers"):
            for number, container in enumerate(listed(task.pod_spec, kind)):
                resources = part(cast(Json, container), "resources") if isinstance(container, dict) else {}
                for field in ("requests", "limits"):
                    place = f"{path}.tasks[{index}].template.spec.{kind}[{number}].resources.{field}"
                    for name in part(resources, field):
                        asked.setdefault(name, place)
    yield from islice((f"{place}: {why}" for name, place in asked.items() if (why := doubt(name))), _MOST_NAMED)


def priority_class_warnings(spec: JobSpec, lookup: Lookup, path: str = "spec") -> Iterator[str]:
    """PriorityClasses that don't exist (yet); an API server rejects pods that name them."""
    given: list[tuple[str, Any]] = [(f"{path}.priorityClassName", spec.priority_class_name)]
    for index, task in enumerate(spec.tasks):
        field = f"{path}.tasks[{index}].template.spec.priorityClassName"
        given.append((field, task.pod_spec.get("priorityClassName")))
    unknown = {name: field for field, name in reversed(given) if isinstance(name, str) and name}
    missing = [(field, name) for name, field in unknown.items() if not lookup.has_priority_class(name)]
    for field, name in missing[: -_MOST_NAMED - 1 : -1]:
        yield f"{field}: no PriorityClass with name {name[:63]} was found: no pod is created before there is one"


def cronjob_warnings(cron_job: CronJob, lookup: Lookup, schedulers: Sequence[str]) -> Iterator[str]:
    """Warnings for a CronJob and the jobs that it creates."""
    if cron.never_comes(cron_job.spec.schedule):
        yield f"spec.schedule: no month has the day of {cron_job.spec.schedule!r}, so that it never comes"
    path, given = "spec.jobTemplate.spec", cron_job.spec.job_template.spec.dump()
    yield from written_job_warnings(given, path)
    job = Job.parse(default_job({"spec": given}))
    yield from job_warnings(job.spec, some_job_name(cron_job), lookup, schedulers, path)


def jobtemplate_warnings(template: JobTemplate) -> Iterator[str]:
    """Warnings for a JobTemplate."""
    given = template.spec.dump()
    yield from written_job_warnings(given, "spec")
    yield from template_warnings(Job.parse(default_job({"spec": given})).spec)


def hypernode_warnings(hypernode: HyperNode) -> Iterator[str]:
    """Members that select nothing: labels select nodes only."""
    found = [
        f"spec.members[{index}].selector.labelMatch"
        for index, member in enumerate(hypernode.spec.members)
        if member.selector.label_match is not None and member.type == MemberType.HYPERNODE
    ]
    if found:
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        yield f"{found[0]}{others}: labels select members of type Node only, so that this selects nothing"


def jobflow_warnings(flow: JobFlow) -> Iterator[str]:
    """Warnings for a JobFlow: names that are listed more than once, the contents of its patches, and probes that can
    never pass, so that the jobs wait until their dependencies are completed."""
    yield from _repeated_flows(flow)
    for index, entry in enumerate(flow.spec.flows):
        if entry.patch is not None and entry.patch.job_spec is not None:
            yield from written_job_warnings(entry.patch.job_spec.dump(), f"spec.flows[{index}].patch.jobSpec")
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
    given = (("capability", queue.spec.capability), ("deserved", queue.spec.deserved),
             ("guarantee.resource", queue.spec.guarantee.resource))  # fmt: skip
    for field, resources in given:
        yield from islice(doubts(resources, f"spec.{field}"), _MOST_NAMED)


def finished_job_warnings(new: Job, old: Job) -> Iterator[str]:
    """Changes of fields of a job that can't run any more."""
    if old.phase.finished and new.spec != old.spec:
        yield f"the job is {old.phase}: the change is stored and has no effect"


def _repeated_flows(flow: JobFlow) -> Iterator[str]:
    last = {entry.name: index for index, entry in enumerate(flow.spec.flows)}
    repeated = [index for index, entry in enumerate(flow.spec.flows) if last[entry.name] != index]
    for index in repeated[:_MOST_NAMED]:
        name = flow.spec.flows[index].name
        text = f"{name[:63]!r} is listed again in spec.flows[{last[name]}], and has one job: only the last counts"
        yield f"spec.flows[{index}].name: {text}"


def _name_warnings(spec: JobSpec, name: str, path: str) -> Iterator[str]:
    for index, task in enumerate(spec.tasks):
        longest = len(names.pod_name(name, task.name, max(task.replicas - 1, 0)))
        if longest > LONGEST_HOST_NAME and not task.pod_spec.get("hostname"):
            text = f"pod names have up to {longest} characters, and host names are cut off after {LONGEST_HOST_NAME}"
            yield f"{path}.tasks[{index}].name: {text}"
            return


def _size_warnings(spec: JobSpec, path: str) -> Iterator[str]:
    if spec.total_replicas == 0:
        yield f"{path}.tasks: no task has replicas, so no pod is made"
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
    elif policy.action not in POLICY_ACTIONS:
        yield f"{at}.action: {policy.action[:40]!r} does nothing, want one of {', '.join(POLICY_ACTIONS)}"
    if policy.action == Action.RESTART_PARTITION and task is not None and task.partition_policy is None:
        yield f"{at}: the task has no partitions, so {Action.RESTART_PARTITION} restarts the pod"
