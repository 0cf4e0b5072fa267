"""What follows from one look at a queue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from vcbatch.api.job import Action
from vcbatch.api.podgroup import PodGroupPhase
from vcbatch.api.queue import ROOT, QueueStatus
from vcbatch.api.resources import QUEUES
from vcbatch.core.machine import Decision, Json, Mark, ObjectRef, WriteStatus
from vcbatch.core.queue.states import rule_of
from vcbatch.core.queue.view import QueueView


def decide(view: QueueView, *, now: datetime) -> Decision:
    """The state and the counts of PodGroups by phase, where they differ from what is stored; everything else in the
    status belongs to others (the scheduler writes `allocated`) and is kept as it was read. A queue without a parent
    hangs below `root`.

    PodGroups that are Completed use nothing, and don't keep a queue from being Closed.
    """
    del now
    queue = view.queue
    if queue.metadata.deletion_timestamp:
        return Decision()
    empty = not any(number for phase, number in view.pod_groups.items() if phase != PodGroupPhase.COMPLETED)
    state = rule_of(queue.status.state, Action.SYNC_QUEUE).decide(empty)
    stored = queue.status.dump()
    decided = _with_counts({**stored, "state": str(state)}, view.pod_groups)
    ref = ObjectRef(resource=QUEUES, namespace="", name=queue.name, uid=queue.uid)
    orphan = queue.name != ROOT and not queue.spec.parent
    return Decision(
        status=None
        if decided == stored
        else WriteStatus(ref=ref, resource_version=queue.metadata.resource_version, status=decided),
        marks=[Mark(ref=ref, patch={"spec": {"parent": ROOT}})] if orphan else (),
    )


def _with_counts(status: Json, pod_groups: Mapping[str, int]) -> Json:
    """Counts of zero are left out, unless they were written by somebody who writes them."""
    counts = QueueStatus(
        pending=pod_groups.get(PodGroupPhase.PENDING, 0) + pod_groups.get("", 0),
        running=pod_groups.get(PodGroupPhase.RUNNING, 0),
        inqueue=pod_groups.get(PodGroupPhase.INQUEUE, 0),
        unknown=pod_groups.get(PodGroupPhase.UNKNOWN, 0),
        completed=pod_groups.get(PodGroupPhase.COMPLETED, 0),
    ).dump()
    return status | {key: number for key, number in counts.items() if number or status.get(key)}
