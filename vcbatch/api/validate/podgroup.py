"""Whether a PodGroup may be made (volcano-sh/volcano `pkg/webhooks/admission/podgroups/validate`)."""

from __future__ import annotations

from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import QueueState
from vcbatch.api.validate.fault import Cause, Fault
from vcbatch.api.validate.job import TOPOLOGY_CONFLICT, topology_faults
from vcbatch.api.validate.lookup import Lookup


def podgroup_faults(group: PodGroup, lookup: Lookup) -> list[Fault]:
    """Its queue exists and is open, and no topology is given twice."""
    faults: list[Fault] = []
    name = group.spec.queue
    queue = lookup.queue(name) if name else None
    if name and queue is None:
        text = f'unable to find queue: queue.scheduling.volcano.sh "{name}" not found'
        faults.append(Fault("spec.queue", text, Cause.NOT_FOUND))
    elif queue is not None and (queue.status.state or QueueState.OPEN) != QueueState.OPEN:
        text = f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{queue.status.state}`"
        faults.append(Fault("spec.queue", text))
    faults += topology_faults(group.spec.network_topology, "spec.networkTopology")
    for index, policy in enumerate(group.spec.sub_group_policy):
        field = f"spec.subGroupPolicy[{index}].networkTopology"
        if any(topology_faults(policy.network_topology, field)):
            faults.append(Fault(field, f"in subGroupPolicy '{policy.name}': {TOPOLOGY_CONFLICT}"))
    return faults
