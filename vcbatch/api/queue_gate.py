"""The scheduling gate behind which a pod waits for capacity in its queue, as admission adds it.

Source: volcano-sh/volcano `pkg/webhooks/admission/pods/mutate`, feature SchedulingGatesQueueAdmission.
"""

from __future__ import annotations

from collections.abc import Collection

from vcbatch.api import names
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json


def gated_pod(pod: Json, schedulers: Collection[str]) -> Json:
    """A new pod with the gate, where its annotation requests it and one of these schedulers will remove it. The
    unchanged pod where it doesn't, has the gate, or has a node already."""
    spec = part(pod, "spec")
    asked = part(part(pod, "metadata"), "annotations").get(names.QUEUE_ALLOCATION_GATE) == "true"
    if not asked or spec.get("nodeName") or spec.get("schedulerName") not in schedulers:
        return pod
    gates = listed(spec, "schedulingGates")
    if any(part({"gate": gate}, "gate").get("name") == names.QUEUE_ALLOCATION_GATE for gate in gates):
        return pod
    gate = {"name": names.QUEUE_ALLOCATION_GATE}
    return {**pod, "spec": {**spec, "schedulingGates": [*gates, gate]}}
