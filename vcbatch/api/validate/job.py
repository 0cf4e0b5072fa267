"""Validation of new Jobs (volcano-sh/volcano `pkg/webhooks/admission/jobs/validate`).

All errors are reported at once. Messages are Volcano's where it has the same rule, since tools and users match on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from vcbatch.api import names
from vcbatch.api.field_errors import FieldError
from vcbatch.api.flags import PLUGIN_FLAGS, parse_flags
from vcbatch.api.job import Job, JobSpec, TaskSpec
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json, NetworkTopology
from vcbatch.api.name_rules import dns_label, qualified_name
from vcbatch.api.names import Plugin
from vcbatch.api.parallel_limit import parallel_limit_error
from vcbatch.api.podspec.template import written_template_errors
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.queue import ROOT, QueueState
from vcbatch.api.start_conditions import start_condition_errors
from vcbatch.api.time_limit import time_limit_error
from vcbatch.api.validate import graph
from vcbatch.api.validate.access import namespace_errors
from vcbatch.api.validate.budget import job_budget_errors
from vcbatch.api.validate.errors import Cause, ValidationError
from vcbatch.api.validate.hosts import host_list_errors
from vcbatch.api.validate.lookup import Lookup
from vcbatch.api.validate.policies import duration_errors, policy_errors
from vcbatch.api.validate.volumes import volume_errors

TOPOLOGY_CONFLICT: Final = (
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
)

MOST_PODS: Final = 100_000
"""The maximum of pods of one job, as for an indexed Job of Kubernetes."""
MOST_TASKS: Final = 10_000
"""The maximum of tasks of one job; so many can be validated quickly."""

_REMEMBERED: Final = 128
_REMEMBERED_BYTES: Final = 8 * 1024
"""The maximum number of templates whose errors are cached, and the maximum of their bytes."""

LONGEST_HOST_NAME: Final = 63
"""The maximum length of a pod's host name; the kubelet truncates longer pod names to it."""

# The length of the prefix in names that k8s.io/apiserver `pkg/storage/names` generates.
_LONGEST_PREFIX: Final = 58
_SUFFIX_LENGTH: Final = 5


def job_errors(job: Job, lookup: Lookup) -> list[ValidationError]:
    """All errors of a new job, which has its defaults already."""
    name = job.name or generated_name(job.metadata.generate_name)
    errors = [*_name_errors(name), *spec_errors(job.spec, name)]
    errors += _queue_errors(job.spec.queue, lookup)
    errors += namespace_errors(job.spec.queue, job.namespace, lookup, "spec.queue")
    errors += time_limit_errors(job)
    errors += parallel_limit_errors(job)
    errors += start_errors(job)
    errors += job_budget_errors(job)
    return errors


def spec_errors(spec: JobSpec, name: str, *, path: str = "spec") -> list[ValidationError]:
    """The errors of a job's spec by itself, independent of its queue. `name` is the job's; the names of its pods depend
    on its length."""
    if not spec.tasks:
        return [ValidationError(f"{path}.tasks", "No task specified in job spec", Cause.REQUIRED)]
    if len(spec.tasks) > MOST_TASKS:
        return [ValidationError(f"{path}.tasks", f"{path}.tasks: {len(spec.tasks)} tasks, want at most {MOST_TASKS}")]
    errors = list(topology_errors(spec.network_topology, f"{path}.networkTopology"))
    errors += _duplicate_tasks(spec.tasks, path)
    for index, task in enumerate(spec.tasks):
        errors += _task_errors(task, index, name, spec, path)
    if spec.min_available > spec.total_replicas:
        text = "job 'minAvailable' should not be greater than total replicas in tasks"
        detail = f"{text}: {spec.min_available} > {spec.total_replicas}"
        errors.append(ValidationError(f"{path}.minAvailable", detail))
    errors += size_errors(spec, path)
    errors += policy_errors(spec.policies, f"{path}.policies")
    if spec.running_estimate is not None:
        errors += duration_errors(spec.running_estimate, f"{path}.runningEstimate")
    errors += _plugin_errors(spec, name, path)
    errors += host_list_errors(spec, name, path)
    errors += volume_errors(spec, path)
    errors += _dependency_errors(spec.tasks, path)
    return errors


def topology_errors(topology: NetworkTopology | None, path: str) -> Iterator[ValidationError]:
    """Errors of the highest tier, which may be given by number or by name, but not both."""
    if topology is not None and topology.highest_tier_allowed is not None and topology.highest_tier_name:
        yield ValidationError(path, TOPOLOGY_CONFLICT)


def size_errors(spec: JobSpec, path: str) -> Iterator[ValidationError]:
    """Errors of a job with more pods than a cluster can start, so that a typing mistake doesn't overload the control
    plane."""
    if spec.total_replicas > MOST_PODS:
        yield ValidationError(
            f"{path}.tasks", f"{path}.tasks: {spec.total_replicas} pods in total, want at most {MOST_PODS}"
        )


def partition_errors(task: TaskSpec, job: str, path: str) -> Iterator[ValidationError]:
    """Errors where the partitions don't cover the task's pods exactly."""
    policy = task.partition_policy
    if policy is None:
        return
    where = f"in task: {task.name}, job: {job}"
    if policy.total_partitions <= 0:
        yield ValidationError(
            f"{path}.partitionPolicy.totalPartitions", f"'TotalPartitions' must be greater than 0 {where}"
        )
    if policy.partition_size <= 0:
        yield ValidationError(
            f"{path}.partitionPolicy.partitionSize", f"'PartitionSize' must be greater than 0 {where}"
        )
    if task.replicas != policy.total_partitions * policy.partition_size:
        yield ValidationError(f"{path}.replicas", f"'Replicas' are not equal to TotalPartitions*PartitionSize {where}")
    least = policy.min_partitions * policy.partition_size
    if policy.min_partitions > 0 and task.min_available is not None and task.min_available != least:
        yield ValidationError(
            f"{path}.minAvailable", f"'MinAvailable' is not equal to MinPartitions*PartitionSize {where}"
        )
    yield from topology_errors(policy.network_topology, f"{path}.partitionPolicy.networkTopology")


def pod_name_errors(task: TaskSpec, spec: JobSpec, job: str, path: str) -> Iterator[ValidationError]:
    """Errors of pod names: the name of the task's first pod has to be a qualified name, as in Volcano. Where the pods'
    names become host names, the longest of them has to be short enough for one."""
    pod = names.pod_name(job, task.name, max(task.replicas - 1, 0))
    complaints = qualified_name(pod)
    if complaints and (has_host_names(task, spec) or qualified_name(names.pod_name(job, task.name, 0))):
        detail = f"create pod with name {pod} validate failed [{' '.join(complaints)}]"
        yield ValidationError(f"{path}.name", f"{detail}; shorten the name of the job or of the task {task.name}")


def has_host_names(task: TaskSpec, spec: JobSpec) -> bool:
    """Whether the plugin svc makes the names of the task's pods their host names, which have 63 characters at most.
    Without svc, the kubelet truncates a longer name."""
    return Plugin.SVC in spec.plugins and not task.pod_spec.get("hostname")


def time_limit_errors(job: Job) -> Iterator[ValidationError]:
    """Errors of the annotation with the time limit of the job: it has to be a number of seconds."""
    error = time_limit_error(job.metadata.annotations)
    if error:
        yield ValidationError(f"metadata.annotations[{names.MAX_RUN_SECONDS}]", error)


def parallel_limit_errors(job: Job) -> Iterator[ValidationError]:
    """Errors of the annotation with the maximum of pods alive together: a number that isn't smaller than the gang."""
    error = parallel_limit_error(job.metadata.annotations, minimum=job.spec.min_available)
    if error:
        yield ValidationError(f"metadata.annotations[{names.MAX_PARALLEL_PODS}]", error)


def start_errors(job: Job) -> Iterator[ValidationError]:
    """Errors of the annotations with the job's dependencies, its begin time and its deadline."""
    for name, error in start_condition_errors(job.metadata.annotations):
        yield ValidationError(f"metadata.annotations[{name}]", error)


def generated_name(prefix: str) -> str:
    """An example of the name that an API server generates from a `generateName`, to validate an object before it has
    one."""
    return f"{prefix[:_LONGEST_PREFIX]}{'x' * _SUFFIX_LENGTH}" if prefix else ""


def _name_errors(name: str) -> Iterator[ValidationError]:
    complaints = qualified_name(name) if name else ()
    if complaints:
        yield ValidationError("metadata.name", f"create job with name {name} validate failed [{' '.join(complaints)}]")


def _duplicate_tasks(tasks: Iterable[TaskSpec], path: str) -> Iterator[ValidationError]:
    for name, count in Counter(task.name for task in tasks).items():
        if count > 1:
            yield ValidationError(f"{path}.tasks", f"duplicated task name {name}", Cause.DUPLICATE)


def _task_errors(task: TaskSpec, index: int, job: str, spec: JobSpec, spec_path: str) -> Iterator[ValidationError]:
    path = f"{spec_path}.tasks[{index}]"
    if task.min_available is not None and task.min_available > task.replicas:
        text = f"'minAvailable' is greater than 'replicas' in task: {task.name}, job: {job}"
        yield ValidationError(f"{path}.minAvailable", text)
    yield from (ValidationError(f"{path}.name", f"{path}.name: {text}") for text in dns_label(task.name))
    yield from policy_errors(task.policies, f"{path}.policies")
    yield from pod_name_errors(task, spec, job, path)
    # Volcano reports errors of templates under spec.task, which isn't the field's name: the sentence has it for users
    # and tools that match on it, `field` has the real path.
    volcano_path = f"{spec_path}.task[{index}].template"
    for error in _template_errors(task.template, volcano_path):
        yield ValidationError(error.field.replace(volcano_path, f"{path}.template", 1), str(error), Cause(error.reason))
    yield from _whole_cpu_errors(task, index, path)
    yield from partition_errors(task, job, path)


def _template_errors(template: Json, path: str) -> Sequence[FieldError]:
    """Errors of a pod template. Cached: jobs that are created by the thousand are mostly alike, and the rules of pods
    are most of the cost of validating one."""
    try:
        written = msgspec.json.encode(template)
    except (TypeError, ValueError, RecursionError):
        written = b""
    if not written or len(written) > _REMEMBERED_BYTES:
        return written_template_errors(template, path)
    return _known_template_errors(written, path)


@lru_cache(maxsize=_REMEMBERED)
def _known_template_errors(written: bytes, path: str) -> Sequence[FieldError]:
    return tuple(written_template_errors(msgspec.json.decode(written), path))


def _whole_cpu_errors(task: TaskSpec, position: int, path: str) -> Iterator[ValidationError]:
    """Errors of a task with NUMA alignment that doesn't request whole cores."""
    if task.topology_policy in ("", "none"):
        return
    for group in ("containers", "initContainers"):
        for index, container in enumerate(listed(task.pod_spec, group)):
            if not _asks_whole_cpus(container):
                field = f"{path}.template.spec.{group}[{index}].resources.requests[cpu]"
                name = cast(Json, container).get("name") if isinstance(container, dict) else None
                # Volcano reports container[i] for init containers too, which is another container.
                which = "container" if group == "containers" else group
                where = f"spec.task[{position}] {which}[{index}] ({name})"
                text = f"the cpu request isn't an integer in {where}, as topologyPolicy {task.topology_policy} needs"
                yield ValidationError(field, text)


def _asks_whole_cpus(container: Any) -> bool:
    if not isinstance(container, dict):
        return False
    given = part(cast(Json, container), "resources")
    amounts = part(given, "requests") or part(given, "limits")
    try:
        milli = parse_quantity(amounts.get("cpu", 0)).milli()
    except MalformedQuantity:
        return False
    return milli > 0 and milli % 1000 == 0


def _plugin_errors(spec: JobSpec, job: str, path: str) -> Iterator[ValidationError]:
    for name, arguments in spec.plugins.items():
        field = f"{path}.plugins[{name}]"
        if name not in PLUGIN_FLAGS:
            yield ValidationError(field, f"unable to find job plugin: {name}; known plugins: {', '.join(PLUGIN_FLAGS)}")
            continue
        # Malformed arguments get their defaults, as in Volcano, and a warning.
        flags = parse_flags(arguments, PLUGIN_FLAGS[name])
        if name == Plugin.MPI and spec.task(flags.text("master")) is None:
            yield ValidationError(field, f"The specified mpi master task was not found: {flags.text('master')}")
        elif name == Plugin.RAY and spec.task(flags.text("head")) is None:
            yield ValidationError(field, f"The specified ray head task was not found: {flags.text('head')}")
        elif name == Plugin.RAY and dns_label(names.ray_head_service(job)):
            reason = f"{dns_label(names.ray_head_service(job))[0]}, as the plugin ray makes a Service of it"
            yield ValidationError(
                "metadata.name", f'metadata.name: Invalid value: "{job}": {names.ray_head_service(job)} {reason}'
            )
        elif name == Plugin.SVC and dns_label(job):
            # The job's name becomes the pods' subdomain and, before the task's name, their host name.
            reason = f"{dns_label(job)[0]}, as the plugin svc makes host names of it"
            yield ValidationError("metadata.name", f'metadata.name: Invalid value: "{job}": {reason}')


def _dependency_errors(tasks: Iterable[TaskSpec], path: str) -> Iterator[ValidationError]:
    edges = {task.name: task.depends_on.name if task.depends_on else () for task in tasks}
    text = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"
    unknown = graph.unknown_target(edges)
    if unknown:
        task, target = unknown
        yield ValidationError(f"{path}.tasks", f"{text}: task {task} depends on {target}, which is no task of the job")
    looped = graph.cycle(edges)
    if looped:
        yield ValidationError(f"{path}.tasks", f"{text}: circle of {', '.join(looped)}")


def _queue_errors(name: str, lookup: Lookup) -> Iterator[ValidationError]:
    field = "spec.queue"
    queue = lookup.queue(name)
    if queue is None:
        text = f'unable to find job queue: queue.scheduling.volcano.sh "{name}" not found'
        yield ValidationError(field, text, Cause.NOT_FOUND)
        return
    # A queue without a state was just created, and its controller is about to open it.
    state = queue.status.state or QueueState.OPEN
    if state != QueueState.OPEN:
        yield ValidationError(
            field, f"can only submit job to queue with state `Open`, queue `{name}` status is `{state}`"
        )
    if name == ROOT:
        yield ValidationError(field, "can not submit job to root queue")
    children = sorted(other.name for other in lookup.queues() if other.spec.parent == name)
    if children and name != ROOT:
        listed = ", ".join(children[:5])
        yield ValidationError(field, f"can only submit job to leaf queue, queue `{name}` has child queues: {listed}")


def normalized(value: Any) -> Any:
    """JSON without the values that Go's types can't distinguish from absence: nulls, empty strings, lists and
    objects."""
    if isinstance(value, dict):
        kept = {key: normalized(item) for key, item in cast(Json, value).items()}
        return {key: item for key, item in kept.items() if item not in (None, "", [], {})}
    if isinstance(value, list):
        return [normalized(item) for item in cast("list[Any]", value)]
    return value
