"""Place what asks for nothing: pods without requests go wherever the filters let them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcbatch.scheduler.actions.allocate import eligible
from vcbatch.scheduler.actions.base import ERROR_CACHE
from vcbatch.scheduler.blockers import no_node
from vcbatch.scheduler.model import Job, Queue, Task, TaskStatus
from vcbatch.scheduler.statement import Statement

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session


class Backfill:
    """Queue after queue, gang after gang. Quotas aren't asked: such pods hold nothing of them but their slot.

    A gang's tasks are bound together: unlike in Volcano, where tasks that only might be placed count as ready, a gang
    that doesn't get its minimum gets nothing.
    """

    arguments = ERROR_CACHE

    def execute(self, session: Session) -> None:
        by_queue: dict[str, list[tuple[Job, list[Task]]]] = {}
        queues: dict[str, Queue] = {}
        for job in eligible(session):
            if not job.pending_best_effort or job.queue is None:
                continue
            tasks = [
                t for t in job.tasks.values() if t.status is TaskStatus.PENDING and t.cls.best_effort and not t.gated
            ]
            if tasks:
                by_queue.setdefault(job.queue.name, []).append((job, tasks))
                queues[job.queue.name] = job.queue
        for queue in sorted(queues.values(), key=session.queue_key):
            for job, tasks in sorted(by_queue[queue.name], key=lambda entry: session.job_key(entry[0])):
                self._place(session, job, session.ordered(job, tasks))

    def _place(self, session: Session, job: Job, tasks: list[Task]) -> None:
        session.attempted.append(job)
        statement = Statement(session)
        for task in tasks:
            row = None if task.cls.unsupported else self._node(session, task)
            if row is None:
                blocker = no_node(session, job, task, unplaced=1, placed=job.ready_count)
                session.blockers.setdefault(job.key, blocker)
                continue
            statement.allocate([task], [row])
        if not statement:
            return
        if session.ready(job) and session.ready_without_hope(job):
            session.commit(statement)
        else:
            session.held.append(statement)

    def _node(self, session: Session, task: Task) -> int | None:
        if session.coupled([task]):
            found = session.placer.one(task)
            return None if found is None else found[0]
        rows = session.placer.on_idle(task.cls, 1)
        return rows[0] if rows else None
