"""The meaning of fields of objects for the scheduler: statuses, priorities, indexes, taints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from vcbatch.api import names
from vcbatch.api.messages import read_wait
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.node import Node, Taint
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.api.quantity import MalformedQuantity, Quantity, parse_quantity
from vcbatch.api.reasons import WaitReason
from vcbatch.api.scheduling import PodGroupView
from vcbatch.scheduler.model.objects import TaskStatus
from vcbatch.scheduler.model.selectors import HARD_EFFECTS, NOT_READY_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT

Amount: TypeAlias = str | int | float


def status_of(pod: Pod) -> TaskStatus:
    """The pod's status by its phase, its node and whether it is being deleted."""
    phase = pod.status.phase or PodPhase.PENDING
    if phase == PodPhase.RUNNING:
        return TaskStatus.RELEASING if pod.metadata.deletion_timestamp else TaskStatus.RUNNING
    if phase == PodPhase.PENDING:
        if pod.metadata.deletion_timestamp:
            return TaskStatus.RELEASING
        return TaskStatus.BOUND if pod.spec.node_name else TaskStatus.PENDING
    if phase == PodPhase.SUCCEEDED:
        return TaskStatus.SUCCEEDED
    if phase == PodPhase.FAILED:
        return TaskStatus.FAILED
    return TaskStatus.UNKNOWN


def note(meta: ObjectMeta, key: str) -> str:
    """The annotation, else the label."""
    return (meta.annotations or {}).get(key) or (meta.labels or {}).get(key) or ""


def index_of(meta: ObjectMeta) -> int | None:
    """The pod's index in its task: the last part of a name `job-task-index`, by which Volcano sorts, else the pod's
    annotation or label."""
    parts = meta.name.split("-")
    named = _integer(parts[-1]) if len(parts) >= 3 else None
    return _integer(note(meta, names.TASK_INDEX)) if named is None else named


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def priority_of(pod: Pod) -> int:
    """The task-priority annotation, else the pod's priority, else 1 (Volcano's NewTaskInfo)."""
    own = _integer((pod.metadata.annotations or {}).get(names.TASK_PRIORITY, ""))
    if own is not None:
        return own
    return 1 if pod.spec.priority is None else pod.spec.priority


def preemptable(meta: ObjectMeta) -> bool:
    """Whether a pod may be evicted for others: true by default, false if the annotation or label isn't a boolean."""
    said = note(meta, names.PREEMPTABLE)
    return said in TRUE if said else True


TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
"""The strings that Go parses as true."""


def asks_for_room(pod: Pod) -> bool:
    """Whether the pod requests to wait behind the scheduling gate of its queue for capacity."""
    return (pod.metadata.annotations or {}).get(names.QUEUE_ALLOCATION_GATE) == "true"


def awaits_room(pod: Pod) -> bool:
    """Whether that gate is the pod's only gate."""
    gates = pod.spec.scheduling_gates
    return bool(gates) and asks_for_room(pod) and all(gate.name == names.QUEUE_ALLOCATION_GATE for gate in gates)


def unscheduled_reason(pod: Pod) -> str:
    """The reason of its condition PodScheduled=False, or that of this scheduler if its PodGroup was missing; empty
    without one."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            missing = read_wait(condition.message)[0] is WaitReason.POD_GROUP_MISSING
            return WaitReason.POD_GROUP_MISSING if missing else condition.reason
    return ""


def with_oversubscription(node: Node, offered: Mapping[str, Amount] | None) -> Mapping[str, Amount]:
    """The allocatable resources of a node, with those that Volcano's agent found to be spare: milli-cores and bytes, in
    annotations. An invalid annotation adds nothing."""
    notes = node.metadata.annotations
    if not notes or not (names.OVERSUBSCRIPTION_CPU in notes or names.OVERSUBSCRIPTION_MEMORY in notes):
        return offered or {}
    more = dict(offered or {})
    for key, resource, unit in (
        (names.OVERSUBSCRIPTION_CPU, "cpu", "m"),
        (names.OVERSUBSCRIPTION_MEMORY, "memory", ""),
    ):
        spare = _spare(notes.get(key, ""))
        if spare:
            given = _exact(more.get(resource, 0))
            more[resource] = f"{(given.milli() if unit else given.value()) + spare}{unit}"
    return more


def _spare(text: str) -> int:
    """The number truncated to an integer; 0 if it is invalid or negative."""
    try:
        number = float(text)
    except ValueError:
        return 0
    return max(int(number), 0) if math.isfinite(number) else 0


def _exact(given: Amount) -> Quantity:
    try:
        return parse_quantity(given)
    except MalformedQuantity:
        return Quantity(0)


def taints_of(node: Node) -> tuple[Taint, ...]:
    """The taints that keep pods from the node or evict them, with those that its state implies.

    In a cluster the node lifecycle controller taints a node that isn't ready; without that controller its condition
    counts all the same.
    """
    taints = list(node.spec.taints or ())
    keys = {t.key for t in taints if t.effect in HARD_EFFECTS}
    if node.spec.unschedulable and UNSCHEDULABLE_TAINT.key not in keys:
        taints.append(UNSCHEDULABLE_TAINT)
    for condition in node.status.conditions or ():
        if condition.type != "Ready" or condition.status == "True":
            continue
        implied = NOT_READY_TAINT if condition.status == "False" else UNREACHABLE_TAINT
        if implied.key not in keys:
            taints.append(implied)
    return tuple(taints)


def stays(pod: Pod) -> bool:
    """Whether the pod is part of its node or of the cluster: a pod of a DaemonSet, a static pod, or one of a system
    priority class in kube-system, which no scheduler evicts."""
    owner = pod.metadata.controller_owner()
    if owner is not None and owner.kind in ("DaemonSet", "Node"):
        return True
    if names.MIRROR_POD in (pod.metadata.annotations or {}):
        return True
    system = pod.spec.priority_class_name in names.SYSTEM_PRIORITY_CLASSES
    return system and pod.metadata.namespace == names.SYSTEM_NAMESPACE


def domain_of(group: PodGroupView) -> str:
    """The network topology domain of the gang's placed pods, as its PodGroup records; empty if it doesn't."""
    return (group.metadata.annotations or {}).get(names.JOB_ALLOCATED_HYPERNODE, "")


def same_notes(one: PodGroupView, other: PodGroupView) -> bool:
    """Whether both have the same annotations, apart from those that the scheduler itself writes on a pending gang."""
    return one.metadata.annotations == other.metadata.annotations or _others_notes(one) == _others_notes(other)


def _others_notes(group: PodGroupView) -> dict[str, str]:
    return {name: note for name, note in (group.metadata.annotations or {}).items() if name != names.WOULD_START_IF}
