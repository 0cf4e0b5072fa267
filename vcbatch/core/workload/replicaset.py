"""The decision of one reconciliation of a ReplicaSet: it has as many pods as its spec requires, and counts of them
(kubernetes `pkg/controller/replicaset`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final

from vcbatch.api.apps import Condition, ReplicaSet
from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import WorkloadReason
from vcbatch.api.resources import PODS, REPLICASETS
from vcbatch.api.timestamps import format_time
from vcbatch.core.machine import Create, Decision, Delete, Emit, EventType, WriteStatus, ref_of
from vcbatch.core.workload.ownership import Owner, claim
from vcbatch.core.workload.pods import (
    available_at,
    free_names,
    is_active,
    is_ready,
    is_terminating,
    next_available,
    pod_body,
)
from vcbatch.core.workload.victims import victims

REPLICA_FAILURE: Final = "ReplicaFailure"
"""The one condition of a ReplicaSet, which its Deployment repeats."""
_MOST_AT_ONCE: Final = 500
"""The maximum of pods created or deleted in one reconciliation, so that others are reconciled in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What the server rejected at the last attempt."""

    reason: WorkloadReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSetView:
    """`pods`: those it controls, and those of its namespace without a controller."""

    replica_set: ReplicaSet
    status: Json = field(default_factory=dict[str, Any])
    """Its status as stored."""
    pods: Sequence[Pod] = ()
    taken: Callable[[str], bool] = lambda _name: False
    """Whether a pod name is in use in its namespace."""
    neighbours: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number of active pods by node, of this ReplicaSet and the others of the same Deployment."""
    refusal: Refusal | None = None


def replica_set_owner(replica_set: ReplicaSet) -> Owner:
    return Owner(resource=REPLICASETS, metadata=replica_set.metadata, selector=replica_set.spec.selector)


def decide(view: ReplicaSetView, *, now: datetime) -> Decision:
    """The next status, and the pods to adopt, release, create or delete. For a ReplicaSet that is being deleted only
    the counts are updated."""
    replica_set, owner = view.replica_set, replica_set_owner(view.replica_set)
    claimed = claim(owner, PODS, view.pods, lambda pod: pod.metadata)
    active = [pod for pod in claimed.mine if is_active(pod)]
    creates: list[Create] = []
    deletes: list[Delete] = []
    if replica_set.metadata.deletion_timestamp is None:
        missing = replica_set.size - len(active)
        creates = _creates(view, owner, min(missing, _MOST_AT_ONCE))
        surplus = victims(active, min(-missing, _MOST_AT_ONCE), view.neighbours, now=now) if missing < 0 else ()
        deletes = [Delete(ref=ref_of(PODS, pod.metadata)) for pod in surplus]
    return Decision(
        status=_status(view, claimed.mine, now),
        marks=claimed.marks,
        deletes=deletes,
        creates=creates,
        events=list(_events(owner, creates, deletes)),
        requeue_at=next_available(active, replica_set.spec.min_ready_seconds, now=now),
    )


def _creates(view: ReplicaSetView, owner: Owner, count: int) -> list[Create]:
    if count <= 0:
        return []
    stem = f"{owner.metadata.name}-"
    template = view.replica_set.spec.template
    names = islice(free_names(stem, owner.metadata.uid, view.taken), count)
    bodies = [pod_body(owner, template, name=name, generate_name=stem) for name in names]
    return [Create(resource=PODS, body=body) for body in bodies]


def _status(view: ReplicaSetView, mine: Sequence[Pod], now: datetime) -> WriteStatus | None:
    replica_set = view.replica_set
    wanted = part(part(replica_set.spec.template, "metadata"), "labels")
    active = [pod for pod in mine if is_active(pod)]
    moments = [available_at(pod, replica_set.spec.min_ready_seconds) for pod in active]
    counts = {
        "fullyLabeledReplicas": sum(wanted.items() <= (pod.metadata.labels or {}).items() for pod in active),
        "readyReplicas": sum(is_ready(pod) for pod in active),
        "availableReplicas": sum(moment is not None and moment <= now for moment in moments),
        "observedGeneration": replica_set.metadata.generation,
    }
    status: Json = {
        "replicas": len(active),
        **{key: count for key, count in counts.items() if count},
        "terminatingReplicas": sum(is_terminating(pod) for pod in mine),
    }
    condition = _failure(view, now)
    if condition is not None:
        status["conditions"] = [condition]
    if status == view.status:
        return None
    return WriteStatus(
        ref=replica_set_owner(replica_set).ref,
        resource_version=replica_set.metadata.resource_version,
        status=status,
    )


def _failure(view: ReplicaSetView, now: datetime) -> Json | None:
    if view.refusal is None:
        return None
    held = next(
        (each for each in view.replica_set.status.conditions or () if each.type == REPLICA_FAILURE), Condition()
    )
    return {
        "type": REPLICA_FAILURE,
        "status": "True",
        "reason": str(view.refusal.reason),
        "message": view.refusal.message,
        "lastTransitionTime": held.last_transition_time or format_time(now),
    }


def _events(owner: Owner, creates: Sequence[Create], deletes: Sequence[Delete]) -> Iterator[Emit]:
    for delete in deletes:
        text = f"Deleted pod: {delete.ref.name}"
        yield _event(owner, WorkloadReason.SUCCESSFUL_DELETE, text, after=delete)
    for create in creates:
        text = f"Created pod: {create.body['metadata']['name']}"
        yield _event(owner, WorkloadReason.SUCCESSFUL_CREATE, text, after=create)


def _event(owner: Owner, reason: WorkloadReason, message: str, *, after: Create | Delete) -> Emit:
    return Emit(ref=owner.ref, type=EventType.NORMAL, reason=reason, message=message, after=after)
