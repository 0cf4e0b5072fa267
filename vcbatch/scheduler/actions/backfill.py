"""Place best-effort pods: pods without requests fit on every node that passes the filters."""

from __future__ import annotations

from vcbatch.scheduler.actions.base import ERROR_CACHE, eligible, place_best_effort
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import Job, Queue
from vcbatch.scheduler.model.result import WaitReason


class Backfill:
    """Place best-effort pods queue by queue, gang by gang. Quotas don't apply: such pods use nothing of them but a pod
    slot.

    A gang's tasks are bound together: a gang that doesn't get its minimum gets nothing.
    """

    arguments = ERROR_CACHE

    def execute(self, cycle: Cycle) -> None:
        session = cycle.session
        for statement in session.held:
            statement.release_best_effort()
        by_queue: dict[str, list[Job]] = {}
        queues: dict[str, Queue] = {}
        for job in eligible(session):
            if job.pending_best_effort and job.queue is not None:
                by_queue.setdefault(job.queue.name, []).append(job)
                queues[job.queue.name] = job.queue
        for queue in sorted(queues.values(), key=session.queue_key):
            for job in sorted(by_queue[queue.name], key=session.job_key):
                self._serve(session, job)

    def _serve(self, session: Session, job: Job) -> None:
        if job.parked is not None and job.blocker is not None:
            session.blockers.setdefault(job.key, job.blocker)  # its other members still wait for the same reason
        session.attempted.append(job)
        statement = Statement(session)
        place_best_effort(session, job, statement)
        if not statement:
            return
        if session.ready(job) and session.ready_without_hope(job):
            session.commit(statement)
            blocker = session.blockers.get(job.key)
            if blocker is not None and blocker.reason is WaitReason.WAITING_FOR_RELEASE and not job.waiting_count:
                del session.blockers[job.key]  # only these tasks were waiting
        else:
            session.held.append(statement)
