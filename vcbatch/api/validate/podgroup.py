"""Validation of PodGroups (volcano-sh/volcano `pkg/webhooks/admission/podgroups/validate`)."""

from __future__ import annotations

from vcbatch.api.loose import part
from vcbatch.api.names import ATTEMPT, DEFAULT_QUEUE, SCHEDULING_QUEUE_NAME, pod_group_name
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import QueueState
from vcbatch.api.resources import JOBS
from vcbatch.api.unfinished import is_unfinished_job, queue_of
from vcbatch.api.validate.access import namespace_errors
from vcbatch.api.validate.errors import Cause, ValidationError
from vcbatch.api.validate.job import TOPOLOGY_CONFLICT, topology_errors
from vcbatch.api.validate.lookup import WorkLookup


def podgroup_errors(group: PodGroup, lookup: WorkLookup, *, old: PodGroup | None = None) -> list[ValidationError]:
    """Errors where its queue doesn't exist, isn't open or doesn't allow its namespace, or where a topology is given
    twice. On an update only a changed queue is validated: the status is written through the same resource, and the
    write has to pass when the queue is closed.

    A Closing queue accepts the new PodGroup of an unfinished Job that was admitted to it, since the Job may be between
    two attempts. Volcano rejects it, and the Job waits for ever.
    """
    if old is not None and old.spec.queue == group.spec.queue:
        return []
    errors: list[ValidationError] = []
    name = group.spec.queue
    queue = lookup.queue(name) if name else None
    if name and queue is None:
        text = f'unable to find queue: queue.scheduling.volcano.sh "{name}" not found'
        errors.append(ValidationError("spec.queue", text, Cause.NOT_FOUND))
    elif queue is not None and not _takes(queue.status.state, group, lookup, new=old is None):
        text = f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{queue.status.state}`"
        errors.append(ValidationError("spec.queue", text))
    errors += namespace_errors(name, group.namespace, lookup, "spec.queue")
    errors += topology_errors(group.spec.network_topology, "spec.networkTopology")
    for index, policy in enumerate(group.spec.sub_group_policy):
        field = f"spec.subGroupPolicy[{index}].networkTopology"
        if any(topology_errors(policy.network_topology, field)):
            errors.append(ValidationError(field, f"in subGroupPolicy '{policy.name}': {TOPOLOGY_CONFLICT}"))
    return errors


def attempt_errors(group: PodGroup, lookup: WorkLookup) -> list[ValidationError]:
    """Errors of a new annotation of a later attempt, with which a PodGroup may start in a Closing queue. Its value has
    to be the number of retries in the status of the PodGroup's unfinished Job."""
    value = group.metadata.annotations.get(ATTEMPT)
    owner = group.metadata.controller_owner()
    job = lookup.job(group.namespace, owner.name) if owner is not None and _of_admitted_job(group, lookup) else None
    retries = part(job, "status").get("retryCount") if job is not None else None
    if retries and value == str(retries):
        return []
    text = f"annotation {ATTEMPT}: {value!r} isn't the number of retries of the Job that the PodGroup belongs to"
    return [ValidationError(f"metadata.annotations[{ATTEMPT}]", text)]


def _takes(state: str, group: PodGroup, lookup: WorkLookup, *, new: bool) -> bool:
    """Whether a queue in that state accepts the PodGroup."""
    if state in ("", QueueState.OPEN):
        return True
    return new and state == QueueState.CLOSING and _of_admitted_job(group, lookup)


def _of_admitted_job(group: PodGroup, lookup: WorkLookup) -> bool:
    """Whether it is the PodGroup of an unfinished Job of the same queue. The PodGroup of a Job in the default queue may
    be in the queue of its namespace."""
    owner = group.metadata.controller_owner()
    if owner is None or (owner.api_version, owner.kind) != (JOBS.api_version, JOBS.kind):
        return False
    job = lookup.job(group.namespace, owner.name)
    if job is None or job["metadata"].get("uid") != owner.uid or not is_unfinished_job(job):
        return False
    queue = queue_of(job)
    if queue == DEFAULT_QUEUE:
        queue = lookup.namespace_annotations(group.namespace).get(SCHEDULING_QUEUE_NAME, queue)
    return group.name == pod_group_name(owner.name, owner.uid) and queue == group.spec.queue
