"""Whether a PodGroup may be made (volcano-sh/volcano `pkg/webhooks/admission/podgroups/validate`)."""

from __future__ import annotations

from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import QueueState
from vcbatch.api.validate.access import namespace_faults
from vcbatch.api.validate.fault import Cause, Fault
from vcbatch.api.validate.job import TOPOLOGY_CONFLICT, topology_faults
from vcbatch.api.validate.lookup import Lookup


def podgroup_faults(group: PodGroup, lookup: Lookup, *, old: PodGroup | None = None) -> list[Fault]:
    """Its queue exists, is open and takes its namespace, and no topology is given twice. Of one that is changed only a
    changed queue is judged: its status is written through the same resource, and has to pass when the queue is closed.
    """
    if old is not None and old.spec.queue == group.spec.queue:
        return []
    faults: list[Fault] = []
    name = group.spec.queue
    queue = lookup.queue(name) if name else None
    if name and queue is None:
        text = f'unable to find queue: queue.scheduling.volcano.sh "{name}" not found'
        faults.append(Fault("spec.queue", text, Cause.NOT_FOUND))
    elif queue is not None and (queue.status.state or QueueState.OPEN) != QueueState.OPEN:
        text = f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{queue.status.state}`"
        faults.append(Fault("spec.queue", text))
    faults += namespace_faults(name, group.namespace, lookup, "spec.queue")
    faults += topology_faults(group.spec.network_topology, "spec.networkTopology")
    for index, policy in enumerate(group.spec.sub_group_policy):
        field = f"spec.subGroupPolicy[{index}].networkTopology"
        if any(topology_faults(policy.network_topology, field)):
            faults.append(Fault(field, f"in subGroupPolicy '{policy.name}': {TOPOLOGY_CONFLICT}"))
    return faults
