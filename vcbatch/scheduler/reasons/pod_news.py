"""Reports on pods: why each is pending (once per reason), evictions, and failed binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vcbatch.api import messages
from vcbatch.api.reasons import PodReason, SchedulingEvent
from vcbatch.api.resources import PODS
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus
from vcbatch.scheduler.model.result import EventRecord, Held, PodConditionUpdate, WaitReason

PODS_WITH_EVENTS = 1
"""How many pods of a gang get a FailedScheduling event; the PodGroup's own event covers the others, so that the cost
doesn't depend on the gang's size."""
GROUPLESS_AT_ONCE = 16
"""How many pods that name one missing PodGroup are reported in one cycle: the pods of a gang that is being deleted are
deleted anyway, maybe after their PodGroup."""

_NO_LONGER_KEPT = "the place that was kept for it is no longer"


class PodNews:
    """Collects the pod conditions and events of one cycle."""

    def __init__(self, session: Session, held: Sequence[Held], events: list[EventRecord]) -> None:
        """Events are appended to `events`."""
        self.conditions: list[PodConditionUpdate] = []
        self._events = events
        self._state = session.state
        self._places = {h.uid: h.node for h in held}
        self._nominated: Mapping[str, str] = session.nominations

    def gang(self, job: Job, blocker: Blocker | None) -> None:
        """Report the reason on each pending pod: once, and again only if the reason or its nominated node changed;
        without a blocker only the nominated node."""
        waiting = [t for t in job.tasks.values() if t.status is TaskStatus.PENDING and not t.gated]
        nominated = self._nominated
        news = [t for t in waiting if t.uid in nominated]
        if blocker is not None:
            kind = "/".join(blocker.kind)
            news = [
                t for t in waiting if t.uid in nominated or (t.condition != kind and (t.reported or not t.condition))
            ]
            for task in waiting:
                task.condition, task.reported = kind, True
        why = _NO_LONGER_KEPT if blocker is None else _pod_message(blocker)
        for nth, task in enumerate(sorted(news, key=lambda t: t.name)):
            place = self._places.get(task.uid)
            message = why if place is None else messages.possibly_assigned(node=place, once=messages.ONCE_RELEASED)
            self._condition(task, PodReason.UNSCHEDULABLE, message, nominated=nominated.get(task.uid))
            if nth < PODS_WITH_EVENTS:
                self.event(task, message)

    def groupless(self, job: Job, waiting: Sequence[Task]) -> bool:
        """Report on pending pods that their PodGroup doesn't exist, with an event on the first. They don't count as
        unschedulable, because a new node wouldn't help them. Returns whether all of them were reported."""
        kind = WaitReason.POD_GROUP_MISSING
        news = sorted((task for task in waiting if task.condition != kind), key=lambda task: task.name)
        message = messages.waits_for(kind, messages.no_pod_group(job.key))
        first = len(news) == len(waiting)
        for task in news[:GROUPLESS_AT_ONCE]:
            task.condition, task.reported = kind, True
            self._condition(task, PodReason.SCHEDULER_ERROR, message)
            if first:
                self.event(task, message)
                first = False
        job.reported_groupless = True
        return len(news) <= GROUPLESS_AT_ONCE

    def found_group(self, job: Job, blocker: Blocker | None) -> None:
        """Update pods that were reported to have no PodGroup, now that it exists."""
        job.reported_groupless = False
        kind = WaitReason.POD_GROUP_MISSING
        for task in sorted(job.tasks.values(), key=lambda task: task.name):
            if task.status is TaskStatus.PENDING and task.condition == kind:
                task.condition = "" if blocker is None else "/".join(blocker.kind)
                message = messages.pod_group_found(job.key) if blocker is None else _pod_message(blocker)
                self._condition(task, PodReason.SCHEDULABLE, message)

    def refused_binds(self) -> None:
        """Report failed binds on their pods, also while the pods are tried again."""
        for uid, error in sorted(self._state.refused.items()):
            task = self._state.tasks.get(uid)
            if task is None:
                continue
            message = messages.shorten(f"binding was refused: {error}")
            task.condition, task.reported = PodReason.SCHEDULER_ERROR, True
            self._condition(task, PodReason.SCHEDULER_ERROR, message)
            self.event(task, message)

    def event(self, task: Task, message: str, *, reason: str = SchedulingEvent.FAILED_SCHEDULING) -> None:
        """Add one Warning event on the pod."""
        self._events.append(
            EventRecord(
                resource=PODS,
                namespace=task.namespace,
                name=task.name,
                uid=task.uid,
                type="Warning",
                reason=reason,
                message=message,
            )
        )

    def _condition(self, task: Task, reason: str, message: str, *, nominated: str | None = None) -> None:
        self.conditions.append(
            PodConditionUpdate(
                namespace=task.namespace,
                name=task.name,
                uid=task.uid,
                reason=reason,
                message=message,
                nominated=nominated,
            )
        )


def histogram_text(blocker: Blocker) -> str:
    """How many nodes fail for which reason, in kube-scheduler's words."""
    return messages.node_histogram(examined=blocker.nodes_examined, reasons=blocker.nodes, within=blocker.within)


def _pod_message(blocker: Blocker) -> str:
    """The message of a pending pod: the reason as in other reports, then kube-scheduler's words."""
    why = f"{histogram_text(blocker)} {blocker.sentence}" if blocker.nodes_examined else blocker.sentence
    return messages.shorten(
        f"{blocker.reason}: {blocker.remedy}; {why}" if blocker.remedy else f"{blocker.reason}: {why}"
    )
