"""Admission: which pending gangs may have pods at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcbatch.scheduler.arguments import NO_ARGUMENTS
from vcbatch.scheduler.blockers import Blocker
from vcbatch.scheduler.model import Job, Phase, Queue
from vcbatch.scheduler.result import WaitReason

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session


class Enqueue:
    """Best queue first and best gang first, each gang that the plugins let in. A refused gang doesn't hold up the
    smaller ones behind it, unless its queue is first in, first out.

    Admission changes no share, so the order of queues and gangs is the same throughout.
    """

    arguments = NO_ARGUMENTS

    def execute(self, session: Session) -> None:
        pending: dict[str, list[Job]] = {}
        queues: dict[str, Queue] = {}
        for job in session.state.waiting.values():
            if job.phase is not Phase.PENDING or job.group is None or job.queue is None:
                continue
            pending.setdefault(job.queue.name, []).append(job)
            queues[job.queue.name] = job.queue
        for queue in sorted(queues.values(), key=session.queue_key):
            for job in sorted(pending[queue.name], key=session.job_key):
                if not self._consider(session, queue, job) and queue.fifo:
                    break

    def _consider(self, session: Session, queue: Queue, job: Job) -> bool:
        """A queue that isn't open admits nobody; a gang without minResources is admitted unasked otherwise."""
        refusal = None
        if not queue.open:
            refusal = f"queue {queue.name} is {queue.view.status.state}"
        elif session.state.jobs_table.has_minimum[job.row]:
            refusal = session.enqueue_refusal(job)
        if refusal is None:
            session.admit(job)
            return True
        if not queue.open:
            reason = WaitReason.QUEUE_NOT_OPEN
        elif refusal.startswith("queue"):
            reason = WaitReason.QUEUE_LIMIT
        else:
            reason = WaitReason.CLUSTER_OVERCOMMITTED
        session.blockers[job.key] = Blocker(reason=reason, text=refusal)
        return False
