"""Why reclaim doesn't help a queue that deserves more: the gang that would go would leave its own queue too little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from vcbatch.api.messages import keeps_share
from vcbatch.scheduler.model.objects import Queue, Task
from vcbatch.scheduler.model.result import Shortage, WaitReason

if TYPE_CHECKING:
    from vcbatch.scheduler.framework.session import Session
    from vcbatch.scheduler.reasons.blockers import Blocker


class KeptShare(NamedTuple):
    """So many `pods` of these `gangs` (keys) of a queue would be evicted, were the queue not left with less than it
    deserves: `left` has what it deserves of each resource, what it would have of it, and the difference."""

    queue: str
    pods: int
    gangs: Sequence[str]
    left: Sequence[Shortage]

    def explain(self, blocker: Blocker) -> Blocker:
        """Why the gang waits, with that before what it lacks."""
        obstacle = keeps_share(
            queue=self.queue,
            pods=self.pods,
            gangs=self.gangs,
            left=[(s.resource, s.available, s.requested, s.short_by) for s in self.left],
        )
        text = f"{obstacle}; {blocker.text}" if blocker.text else obstacle
        return replace(blocker, reason=WaitReason.RECLAIM_BLOCKED, text=text)


def kept_share(session: Session, victims: Sequence[Task]) -> KeptShare | None:
    """The share that keeps these pods, which would make room for a gang of another queue; None where none does."""
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
