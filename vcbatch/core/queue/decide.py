"""The decision of one reconciliation of a queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from vcbatch.api import names
from vcbatch.api.job import Action
from vcbatch.api.podgroup import PodGroupPhase
from vcbatch.api.queue import ROOT, Queue, QueueState, QueueStatus
from vcbatch.api.reasons import JobReason, QueueReason
from vcbatch.api.resources import QUEUES
from vcbatch.core.machine import Decision, Emit, EventType, Json, Mark, WriteStatus, ref_of
from vcbatch.core.queue.commands import SHUT, Inbox, read_inbox
from vcbatch.core.queue.states import rule_of
from vcbatch.core.queue.view import QueueView

MANAGER: Final = "queue-controller"
"""The field manager as which Volcano's queue controller applies `status.state`, without force. Where another manager
owns the field, its next apply that changes the state is rejected with a conflict."""


def decide(view: QueueView, *, now: datetime) -> Decision:
    """The state, the counts of PodGroups by phase, and the queue's position in the hierarchy, where they differ from
    the stored ones. All other status fields belong to other clients (the scheduler writes `allocated`) and are kept as
    read.

    A queue closes and opens with its parent; one that was closed on its own stays closed when the parent opens. A queue
    is empty when no unfinished Job names it, no pod of it is on a node, and all its PodGroups are Completed and of
    workloads that have ended.
    """
    queue = view.queue
    if queue.metadata.deletion_timestamp:
        return Decision()
    inbox = read_inbox(queue, view.parent, view.commands)
    if inbox.action is Action.CLOSE_QUEUE and _was_closed_by_parent(view):
        # Without the mark, it would be unknown after a crash that this Command closed it.
        return Decision(marks=[_mark(queue, closed_by_parent=False)], requeue_at=now)
    marks = list(_marks(view, inbox))
    unfinished = any(number for phase, number in view.pod_groups.items() if phase != PodGroupPhase.COMPLETED)
    empty = not (unfinished or view.jobs or view.workloads or view.pods)
    action = _action(view, inbox)
    state = rule_of(queue.status.state, action).decide(empty)
    stored = queue.status.dump()
    decided = _with_counts({**stored, "state": str(state)}, view.pod_groups)
    status = WriteStatus(
        ref=ref_of(QUEUES, queue),
        resource_version=queue.metadata.resource_version,
        status=decided,
        applied=("state",),
        manager=MANAGER,
    )
    return Decision(
        status=None if decided == stored else status,
        marks=marks,
        deletes=inbox.deletes,
        events=list(_events(view, inbox, action, state)),
        requeue_at=now if inbox.more else None,
    )


def _action(view: QueueView, inbox: Inbox) -> Action:
    """The action that a user requests, else the one that follows from the parent's state.

    That the parent closes a queue is recorded on it first: a crash in between must not leave a closed queue that isn't
    reopened with the parent.
    """
    if inbox.action is not None:
        return inbox.action
    closed_by_parent = _closed_by_parent(view.queue)
    shut = view.queue.status.state in SHUT
    if view.parent is None or not closed_by_parent:
        return Action.SYNC_QUEUE
    if view.parent.status.state in SHUT:
        return Action.CLOSE_QUEUE
    return Action.OPEN_QUEUE if shut and view.parent.status.state == QueueState.OPEN else Action.SYNC_QUEUE


def _marks(view: QueueView, inbox: Inbox) -> Iterator[Mark]:
    queue, parent = view.queue, view.parent
    if queue.name != ROOT and not queue.spec.parent:
        yield Mark(ref=ref_of(QUEUES, queue), patch={"spec": {"parent": ROOT}})
    shut, marked = queue.status.state in SHUT, _closed_by_parent(queue)
    if inbox.action is Action.OPEN_QUEUE and marked:
        yield _mark(queue, closed_by_parent=False)
    if parent is None or inbox.action is not None:
        return
    if parent.status.state in SHUT and not shut and not marked:
        yield _mark(queue, closed_by_parent=True)
    elif parent.status.state == QueueState.OPEN and not shut and marked:
        yield _mark(queue, closed_by_parent=False)


def _mark(queue: Queue, *, closed_by_parent: bool) -> Mark:
    value = "true" if closed_by_parent else "false"
    return Mark(ref=ref_of(QUEUES, queue), patch={"metadata": {"annotations": {names.CLOSED_BY_PARENT: value}}})


def _closed_by_parent(queue: Queue) -> bool:
    return queue.metadata.annotations.get(names.CLOSED_BY_PARENT) == "true"


def _was_closed_by_parent(view: QueueView) -> bool:
    """Whether the queue is open again but still marked as closed by its parent."""
    parent_shut = view.parent is not None and view.parent.status.state in SHUT
    return _closed_by_parent(view.queue) and view.queue.status.state not in SHUT and not parent_shut


def _events(view: QueueView, inbox: Inbox, action: Action, state: QueueState) -> Iterator[Emit]:
    queue, parent = view.queue, view.parent
    ref = ref_of(QUEUES, queue)
    for why in inbox.rejected:
        yield Emit(ref=ref, type=EventType.WARNING, reason=JobReason.COMMAND_REJECTED, message=why)
    if state == queue.status.state:  # or the same Command is read again
        return
    if inbox.action is not None:
        because = "as a Command asked for"
    elif parent is not None and action is not Action.SYNC_QUEUE and (state in SHUT) != (queue.status.state in SHUT):
        because = f"since its parent {parent.name} is {parent.status.state}"
    else:
        return
    reason = QueueReason.OPEN_QUEUE if action is Action.OPEN_QUEUE else QueueReason.CLOSE_QUEUE
    yield Emit(ref=ref, type=EventType.NORMAL, reason=reason, message=f"queue {queue.name} is {state}, {because}")


def _with_counts(status: Json, pod_groups: Mapping[str, int]) -> Json:
    """The status with these counts. Counts of zero are left out, unless another client wrote them."""
    counts = QueueStatus(
        pending=pod_groups.get(PodGroupPhase.PENDING, 0) + pod_groups.get("", 0),
        running=pod_groups.get(PodGroupPhase.RUNNING, 0),
        inqueue=pod_groups.get(PodGroupPhase.INQUEUE, 0),
        unknown=pod_groups.get(PodGroupPhase.UNKNOWN, 0),
        completed=pod_groups.get(PodGroupPhase.COMPLETED, 0),
    ).dump()
    return status | {key: number for key, number in counts.items() if number or status.get(key)}
