"""The PodGroup of a job: what the scheduler reads about the gang."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from vcbatch.api import names
from vcbatch.api.job import PartitionPolicy
from vcbatch.api.model import NetworkTopology, owner_of
from vcbatch.api.pod_usage import Amounts, add, pod_usage, read_of_spec, wire
from vcbatch.api.podgroup import PodGroup, PodGroupPhase
from vcbatch.api.resources import JOBS, PODGROUPS
from vcbatch.core.job import events
from vcbatch.core.job.plan import Plan, Task, by_priority
from vcbatch.core.machine import Ensure, Json

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The manifest that a user applied as this object; a copy on another object would break their next `kubectl apply`."""

_NOT_COPIED: Final = frozenset({LAST_APPLIED, names.ATTEMPT})


def lets_create(pod_group: PodGroup | None) -> bool:
    """Whether the scheduler admitted the gang, so that its pods may be created."""
    return pod_group is not None and pod_group.status.phase not in ("", PodGroupPhase.PENDING)


def read_of_group(pod_group: PodGroup) -> object:
    """The properties of a PodGroup that a decision about its job reads: where they are equal, so is the decision."""
    metadata, status = pod_group.metadata, pod_group.status
    return (
        (metadata.uid, metadata.deletion_timestamp, metadata.labels, metadata.annotations, metadata.owner_references),
        pod_group.spec,
        lets_create(pod_group),
        status.phase == PodGroupPhase.UNKNOWN,
        events.pod_group_trouble(pod_group),
    )


def ensure(
    plan: Plan,
    pod_group: PodGroup | None,
    priority_classes: Mapping[str, int],
    *,
    out: Mapping[str, int],
    closing: bool = False,
) -> Ensure | None:
    """Create the PodGroup, or update its fields from the job; None where they are equal.

    `out` is the number of indices of each task that have no pod that a scheduler counts for the gang, and won't have
    one while it waits: failed, done and their pod deleted, or waiting for a dependency. A gang whose minimum included
    them could never be complete.

    Where the queue is Closing (`closing`), the PodGroup of a later attempt is marked as such: the queue accepted the
    job before.
    """
    body = _body(plan, priority_classes, out)
    if closing and plan.job.status.retry_count:
        body["metadata"].setdefault("annotations", {})[names.ATTEMPT] = str(plan.job.status.retry_count)
    if pod_group is None:
        return Ensure(resource=PODGROUPS, body=body)
    update = _changes(body, pod_group)
    return Ensure(resource=PODGROUPS, body=body, update=update) if update else None


def min_resources(plan: Plan, priority_classes: Mapping[str, int]) -> Json:
    """The requests of minAvailable pods, those of the highest priority first.

    Where minAvailable is less than the sum of its tasks' minimums, pods are taken task by task. Else each
    task first contributes its minimum and then its other replicas.
    """
    tasks = by_priority(plan.tasks.values(), priority_classes)
    taken = _taken(plan, tasks)
    return dict(
        _needed(tuple((read_of_spec(task.spec.pod_spec), taken[task.name]) for task in tasks if taken[task.name]))
    )


@lru_cache(maxsize=1024)
def _needed(pods: tuple[tuple[bytes, int], ...]) -> Mapping[str, str]:
    """The sum of the requests of these pods, each given by its spec as `read_of_spec` returns it and a number. Cached:
    jobs that are created by the thousand are mostly alike, and each is reconciled several times."""
    total: Amounts = {}
    for spec, times in pods:
        add(total, pod_usage(msgspec.json.decode(spec)), times=times)
    return wire(total)


def _taken(plan: Plan, tasks: list[Task]) -> dict[str, int]:
    left = plan.min_available
    taken = dict.fromkeys(plan.tasks, 0)
    if plan.min_available < plan.min_task_sum:
        for task in tasks:
            taken[task.name] = min(task.replicas, left)
            left -= taken[task.name]
        return taken
    for task in tasks:
        if task.explicit_minimum:
            taken[task.name] = min(task.min_pods, left)
            left -= taken[task.name]
    for task in tasks:
        more = min(max(task.replicas - taken[task.name], 0), left)
        taken[task.name] += more
        left -= more
    return taken


def _body(plan: Plan, priority_classes: Mapping[str, int], out: Mapping[str, int]) -> Json:
    job = plan.job
    left = {task.name: task.replicas - out.get(task.name, 0) for task in plan.tasks.values()}
    spec: Json = {
        "queue": plan.queue,
        "minMember": min(plan.min_available, sum(left.values())),
        "minTaskMember": {task.name: min(task.min_pods, left[task.name]) for task in plan.tasks.values()},
        "minResources": min_resources(plan, priority_classes),
    }
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if job.spec.network_topology is not None:
        spec["networkTopology"] = _topology(job.spec.network_topology)
    partitions = {task.name: task.spec.partition_policy for task in plan.tasks.values()}
    sub_groups = [_sub_group(name, policy) for name, policy in partitions.items() if policy is not None]
    if sub_groups:
        spec["subGroupPolicy"] = sub_groups
    metadata: Json = {
        "name": names.pod_group_name(job.name, job.uid),
        "namespace": job.namespace,
        "ownerReferences": [owner_of(job, JOBS)],
    }
    if job.metadata.labels:
        metadata["labels"] = dict(job.metadata.labels)
    annotations = {key: value for key, value in job.metadata.annotations.items() if key not in _NOT_COPIED}
    schedulers = _schedulers(plan)
    if schedulers:
        annotations[names.SCHEDULERS] = ",".join(schedulers)
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": PODGROUPS.api_version, "kind": PODGROUPS.kind, "metadata": metadata, "spec": spec}


def _schedulers(plan: Plan) -> list[str]:
    """The schedulers of the job's pods; empty where neither the job nor a template names one."""
    given: set[str] = {
        t.spec.pod_spec.get("schedulerName") or plan.job.spec.scheduler_name for t in plan.tasks.values()
    }
    return sorted(given - {""})


def _sub_group(task: str, policy: PartitionPolicy) -> Json:
    """A task's partitions as gangs within the gang."""
    sub_group: Json = {
        "name": task,
        "labelSelector": {"matchLabels": {names.TASK_SPEC: task}},
        "matchLabelKeys": [names.PARTITION_ID],
        "subGroupSize": policy.partition_size,
        "minSubGroups": policy.min_partitions,
    }
    if policy.network_topology is not None:
        sub_group["networkTopology"] = _topology(policy.network_topology)
    return sub_group


def _topology(given: NetworkTopology) -> Json:
    """The mode, and one of the two fields that name the highest tier."""
    topology: Json = {}
    if given.mode:
        topology["mode"] = given.mode
    if given.highest_tier_allowed is not None:
        topology["highestTierAllowed"] = given.highest_tier_allowed
    elif given.highest_tier_name:
        topology["highestTierName"] = given.highest_tier_name
    return topology


def _replaced(stored: Json | None, wanted: Json | None) -> Json | None:
    """The merge patch from the stored object to the wanted one."""
    return wanted if stored is None or wanted is None else wanted | dict.fromkeys(stored.keys() - wanted.keys())


def _changes(body: Json, stored: PodGroup) -> Json:
    """The merge patch for the fields that the job decides. The queue isn't changed, since admission may have put the
    PodGroup into its namespace's queue; other clients' labels and annotations are kept."""
    patch: Json = {}
    wanted, have = body["spec"], stored.spec
    if wanted["minMember"] != have.min_member:
        patch["minMember"] = wanted["minMember"]
    minimums: dict[str, int] = wanted["minTaskMember"]
    tasks: Json = {task: count for task, count in minimums.items() if have.min_task_member.get(task) != count}
    tasks |= dict.fromkeys(have.min_task_member.keys() - minimums.keys())
    if tasks:
        patch["minTaskMember"] = tasks
    resources: Json = wanted["minResources"]
    present = have.min_resources or {}
    if resources != present:
        patch["minResources"] = resources | dict.fromkeys(present.keys() - resources.keys())
    stored_groups = [group.dump() for group in have.sub_group_policy]
    if wanted.get("subGroupPolicy", []) != stored_groups:
        patch["subGroupPolicy"] = wanted.get("subGroupPolicy")
    topology = have.network_topology.dump() if have.network_topology else None
    if wanted.get("networkTopology") != topology:
        patch["networkTopology"] = _replaced(topology, wanted.get("networkTopology"))
    priority = wanted.get("priorityClassName", "")
    if priority != have.priority_class_name:
        patch["priorityClassName"] = priority or None
    changes: Json = {"spec": patch} if patch else {}
    metadata: Json = {}
    for field, have_all in (("labels", stored.metadata.labels), ("annotations", stored.metadata.annotations)):
        wanted_all: dict[str, str] = body["metadata"].get(field, {})
        changed = {key: value for key, value in wanted_all.items() if have_all.get(key) != value}
        if changed:
            metadata[field] = changed
    if metadata:
        changes["metadata"] = metadata
    return changes
