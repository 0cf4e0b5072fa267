"""The decision of one reconciliation of a StatefulSet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from vcbatch.api.apps import ControllerRevision, StatefulSet, StrategyType
from vcbatch.api.model import Json
from vcbatch.api.pod import PodPhase
from vcbatch.api.reasons import WorkloadReason
from vcbatch.api.resources import CONTROLLERREVISIONS, PERSISTENTVOLUMECLAIMS, PODS
from vcbatch.core.machine import Create, Decision, Delete, Emit, EventType, Mark, WriteStatus, ref_of
from vcbatch.core.workload.ownership import Owner, claim
from vcbatch.core.workload.pods import is_available, next_available
from vcbatch.core.workload.revisions import Chosen, choose, outdated, template_of
from vcbatch.core.workload.statefulset.identity import (
    claim_body,
    claim_name,
    identity_mark,
    pod_name,
    retention_mark,
    stateful_pod,
)
from vcbatch.core.workload.statefulset.steps import Steps, is_running_and_ready, next_steps, of_the_old_revision
from vcbatch.core.workload.statefulset.view import (
    Row,
    StatefulSetView,
    ordinal_of,
    replicas_of,
    revision_label,
    row_of,
    stateful_set_owner,
)

_REVISION_TURN, _CLAIM_TURN, _POD_TURN = 0, 1, 2


def decide(view: StatefulSetView, *, now: datetime) -> Decision:
    """The next status, the revision of the template, and the pods and claims to create or delete. For a StatefulSet
    that is being deleted only the status is updated."""
    stateful_set, owner = view.stateful_set, stateful_set_owner(view.stateful_set)
    kept = claim(owner, CONTROLLERREVISIONS, view.revisions, lambda each: each.metadata)
    pods = claim(
        owner,
        PODS,
        view.pods,
        lambda pod: pod.metadata,
        fits=lambda metadata: ordinal_of(stateful_set, metadata) is not None,
    )
    row = row_of(stateful_set, pods.mine)
    update = choose(
        owner,
        stateful_set.spec.template,
        stateful_set.metadata.annotations,
        kept.mine,
        view.taken,
        collisions=stateful_set.status.collision_count,
    )
    current = next((each for each in kept.mine if each.metadata.name == stateful_set.status.current_revision), None)
    current_name = current.metadata.name if current is not None else update.name
    status = _write(view, _status(stateful_set, row, current_name, update, now))
    if stateful_set.metadata.deletion_timestamp is not None or update.collisions > stateful_set.status.collision_count:
        return Decision(status=status)
    steps = next_steps(stateful_set, row, update.name, lambda ordinal: _startable(view, ordinal), now=now)
    creates = [*update.creates, *_claims(view, row, steps), *_pods(view, steps, current, update)]
    deletes = [Delete(ref=ref_of(PODS, pod.metadata)) for pod in steps.delete]
    used = {update.name, current_name, *(revision_label(pod) for pod in row.pods)}
    adopted = {mark.ref.uid for mark in kept.marks}
    return Decision(
        status=status,
        marks=[
            *kept.marks,
            *pods.marks,
            *(mark for mark in update.marks if mark.ref.uid not in adopted),
            *_corrections(view, row, {mark.ref.uid for mark in pods.marks}),
        ],
        deletes=[*deletes, *outdated(kept.mine, used, stateful_set.spec.revision_history_limit)],
        creates=creates,
        events=list(_events(owner, creates, deletes)),
        requeue_at=_requeue_at(view, row, now),
    )


def _requeue_at(view: StatefulSetView, row: Row, now: datetime) -> datetime | None:
    """When a pod becomes available, or the name of a missing one is free."""
    moments = [view.free_at(pod_name(view.stateful_set, ordinal)) for ordinal, pod in row.seats.items() if pod is None]
    moments.append(next_available(row.pods, view.stateful_set.spec.min_ready_seconds, now=now))
    return min((moment for moment in moments if moment is not None), default=None)


def _status(stateful_set: StatefulSet, row: Row, current: str, update: Chosen, now: datetime) -> Json:
    """`kubectl rollout status` reads the counts, `observedGeneration` and both revisions."""
    ready = [pod for pod in row.pods if is_running_and_ready(pod)]
    staying = [revision_label(pod) for pod in row.pods if pod.metadata.deletion_timestamp is None]
    least = stateful_set.spec.min_ready_seconds
    counts = {
        "readyReplicas": len(ready),
        "currentReplicas": staying.count(current),
        "updatedReplicas": staying.count(update.name),
    }
    rolls = stateful_set.spec.update_strategy.type == StrategyType.ROLLING_UPDATE
    done = counts["updatedReplicas"] == counts["readyReplicas"] == len(row.pods) == replicas_of(stateful_set)
    if rolls and done:
        counts["currentReplicas"], current = counts["updatedReplicas"], update.name
    return {
        "observedGeneration": stateful_set.metadata.generation,
        "replicas": len(row.pods),
        "availableReplicas": sum(is_available(pod, least, now=now) for pod in ready),
        **{key: count for key, count in counts.items() if count},
        "currentRevision": current,
        "updateRevision": update.name,
        "collisionCount": update.collisions,
    }


def _write(view: StatefulSetView, status: Json) -> WriteStatus | None:
    if status == view.status:
        return None
    metadata = view.stateful_set.metadata
    ref = stateful_set_owner(view.stateful_set).ref
    return WriteStatus(ref=ref, resource_version=metadata.resource_version, status=status)


def _startable(view: StatefulSetView, ordinal: int) -> bool:
    """Whether the pod's name is free, and none of its claims is being deleted: the claim of a condemned pod is deleted
    with it."""
    if view.free_at(pod_name(view.stateful_set, ordinal)) is not None:
        return False
    for template in view.stateful_set.spec.volume_claim_templates or ():
        held = view.claim(claim_name(view.stateful_set, template, ordinal))
        if held is not None and held.metadata.deletion_timestamp is not None:
            return False
    return True


def _claims(view: StatefulSetView, row: Row, steps: Steps) -> Iterator[Create]:
    """The missing claims of pods that are created or wait to start."""
    waiting = [
        ordinal for ordinal, pod in row.seats.items() if pod is not None and pod.status.phase == PodPhase.PENDING
    ]
    for ordinal in sorted({*steps.make, *waiting}):
        for template in view.stateful_set.spec.volume_claim_templates or ():
            if view.claim(claim_name(view.stateful_set, template, ordinal)) is None:
                body = claim_body(view.stateful_set, template, ordinal)
                yield Create(resource=PERSISTENTVOLUMECLAIMS, body=body, turn=_CLAIM_TURN)


def _pods(view: StatefulSetView, steps: Steps, current: ControllerRevision | None, update: Chosen) -> Iterator[Create]:
    for ordinal in steps.make:
        template, revision = view.stateful_set.spec.template, update.name
        if current is not None and of_the_old_revision(view.stateful_set, ordinal):
            template, revision = template_of(current), current.metadata.name
        body = stateful_pod(view.stateful_set, template, ordinal=ordinal, revision=revision)
        yield Create(resource=PODS, body=body, turn=_POD_TURN)


def _corrections(view: StatefulSetView, row: Row, busy: set[str]) -> Iterator[Mark]:
    """Labels of adopted pods, and the owners of claims. `busy`: UIDs of objects that other marks patch."""
    stateful_set = view.stateful_set
    for pod in row.pods:
        mark = identity_mark(stateful_set, pod)
        if mark is not None and mark.ref.uid not in busy:
            yield mark
        ordinal = ordinal_of(stateful_set, pod.metadata)
        for template in stateful_set.spec.volume_claim_templates or ():
            held = view.claim(claim_name(stateful_set, template, ordinal)) if ordinal is not None else None
            if held is None or held.metadata.deletion_timestamp is not None:
                continue
            retention = retention_mark(stateful_set, held.metadata, pod, condemned=ordinal not in row.seats)
            if retention is not None:
                yield retention


def _events(owner: Owner, creates: Sequence[Create], deletes: Sequence[Delete]) -> Iterator[Emit]:
    name = owner.metadata.name
    for delete in deletes:
        text = f"Delete Pod {delete.ref.name} in StatefulSet {name} successful"
        yield _event(owner, WorkloadReason.SUCCESSFUL_DELETE, text, after=delete)
    for create in creates:
        made = create.body["metadata"]["name"]
        if create.resource == PODS:
            text = f"Create Pod {made} in StatefulSet {name} successful"
        elif create.resource == PERSISTENTVOLUMECLAIMS:
            pod = made[made.rindex(f"-{name}-") + 1 :]
            text = f"Create Claim {made} Pod {pod} in StatefulSet {name} success"
        else:
            continue
        yield _event(owner, WorkloadReason.SUCCESSFUL_CREATE, text, after=create)


def _event(owner: Owner, reason: WorkloadReason, message: str, *, after: Create | Delete) -> Emit:
    return Emit(ref=owner.ref, type=EventType.NORMAL, reason=reason, message=message, after=after)
