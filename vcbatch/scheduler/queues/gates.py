"""The scheduling gate `scheduling.volcano.sh/queue-allocation-gate`: a pod waits behind it for capacity in its queue.

A pod requests the gate by an annotation of the same name. While its queue has no capacity left, the gate keeps
autoscalers from adding nodes for the pod. Once the queue has capacity for the pods that the gang still needs, their
gates are removed, and that capacity is reserved for them until they are placed. Pods with further gates wait until
those are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.objects import Job, Queue, Task, TaskStatus
from vcbatch.scheduler.model.reading import asks_for_room
from vcbatch.scheduler.model.resources import Vector
from vcbatch.scheduler.model.result import GateRemoval, WaitReason
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_MEMORY = "opened gates"


def opened(state: Snapshot) -> set[str]:
    """UIDs of the pods whose gate is being removed, until a watch confirms the removal."""
    return state.memory.setdefault(_MEMORY, set())


def reserving(state: Snapshot) -> dict[str, dict[int, tuple[TaskClass, int]]]:
    """By gang and class, how many pods have queue capacity reserved: pending pods whose gate is removed or being
    removed."""
    done = opened(state)
    found: dict[str, dict[int, tuple[TaskClass, int]]] = {}
    seen: set[str] = set()
    for job in state.waiting.values():
        for task in job.tasks.values():
            if task.status is not TaskStatus.PENDING or not asks_for_room(task.pod):
                continue
            if task.gated:
                if task.uid not in done:
                    continue
                seen.add(task.uid)
            classes = found.setdefault(job.key, {})
            count = classes[task.cls.id][1] if task.cls.id in classes else 0
            classes[task.cls.id] = (task.cls, count + 1)
    done &= seen
    return found


class Gates:
    """Removes gates during a cycle, one gang after another in the order in which they are served."""

    def __init__(self, session: Session, full: Callable[[Session, Queue, Task, int, Vector], Blocker]) -> None:
        """`full` returns why a queue has no capacity for that many tasks like the given one; its last argument is the
        capacity that is reserved for the gang already, [R]."""
        self._session = session
        self._full = full
        self._opened = set(opened(session.state))
        self.removals: list[GateRemoval] = []

    def closed(self, job: Job) -> list[Task]:
        """The gang's pods that wait for nothing but capacity in their queue, in task order."""
        if not job.awaiting_room:
            return []
        held = [t for t in job.tasks.values() if t.status is TaskStatus.PENDING and t.awaits_room]
        return self._session.ordered([task for task in held if task.uid not in self._opened])

    def open(self, job: Job) -> None:
        """Remove as many gates as the queue has capacity for, if that is enough for the gang to start."""
        tasks = self.closed(job)
        if not tasks or job.queue is None:
            return
        session, kept = self._session, list[Task]()
        for task in tasks:
            if session.room_for(job, task.cls.request) < 1 or session.barred(task) is not None:
                break
            session.reserve(job, task.cls, 1)
            kept.append(task)
        if len(kept) < self._needed(job, tasks):
            for task in kept:
                session.reserve(job, task.cls, -1)
            self._refused(job, tasks)
            return
        for task in kept:
            self._opened.add(task.uid)
            self.removals.append(GateRemoval(task.namespace, task.name, task.uid))
        text = "the gates of its pods are being opened, as its queue has room for them"
        session.blockers.setdefault(job.key, Blocker(reason=WaitReason.GATED, text=text, placed=job.ready_count))

    def close(self) -> None:
        """Commit the cycle: the pods whose gates were removed are remembered, so that no later cycle removes them
        again."""
        opened(self._session.state).update(removal.uid for removal in self.removals)

    @staticmethod
    def _needed(job: Job, tasks: Sequence[Task]) -> int:
        """How many of these pods the gang needs to reach its minimum; 1 if it has reached it."""
        others = job.valid_count - len(tasks)
        return max(min(job.min_member - others, len(tasks)), 1)

    def _refused(self, job: Job, tasks: Sequence[Task]) -> None:
        session, queue = self._session, job.queue
        assert queue is not None  # noqa: S101 - a gang without a queue isn't tried
        own: Vector = 0.0 * tasks[0].cls.request
        alike = sum(task.cls is tasks[0].cls for task in tasks)
        blocker = self._full(session, queue, tasks[0], alike, own)
        session.blockers.setdefault(job.key, blocker)
