"""Why reclaim doesn't help a queue that deserves more: the eviction would leave another queue less than it deserves."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import KeptShare
from vcbatch.scheduler.model.objects import Queue, Task


def kept_share(session: Session, victims: Sequence[Task]) -> KeptShare | None:
    """The deserved share that protects these pods, whose eviction would let a gang of another queue start; None if none
    does."""
    by_queue: dict[str, tuple[Queue, list[Task]]] = {}
    for task in victims:
        if task.job is not None and task.job.queue is not None:
            by_queue.setdefault(task.job.queue.name, (task.job.queue, []))[1].append(task)
    for queue, tasks in by_queue.values():
        left = session.share_left(queue, tasks)
        if left:
            gangs = dict.fromkeys(task.job.key for task in tasks if task.job is not None)
            return KeptShare(queue.name, len(tasks), tuple(gangs), tuple(left))
    return None
