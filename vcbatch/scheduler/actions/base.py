"""Shared by actions: the gangs that may be placed, and the placement of best-effort tasks."""

from __future__ import annotations

from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.actions.homes import Homes
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.domain import Domain
from vcbatch.scheduler.model.objects import Job, Phase, Queue, Task, TaskStatus
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.reasons.blockers import no_node, not_enough_pods, not_open

ERROR_CACHE = ArgumentSpec(named={"predicateErrorCacheEnable": Argument(default=True)}, prefixed={})
"""Volcano's switch of a cache. Results here are the same either way; it is accepted so that existing files work."""


def eligible(session: Session) -> list[Job]:
    """The gangs whose tasks may be placed: admitted, valid, in an existing queue. The reason is recorded for all
    others. If the scheduler configuration has no `enqueue`, pending gangs are admitted here. Computed once for all
    actions after the last admission and the last eviction, since placing makes no gang valid or invalid."""
    if session.eligible is None:
        session.eligible = _eligible(session)
    return session.eligible


def _eligible(session: Session) -> list[Job]:
    admits = "enqueue" in session.policy.actions
    out: list[Job] = []
    errors: dict[str, Blocker | None] = {}
    for job in session.state.waiting.values():
        if job.group is None:
            continue
        if job.set_aside:
            session.blockers[job.key] = Blocker(reason=WaitReason.PLUGIN_FAILED, text=job.set_aside)
            continue
        if job.queue is None:
            name = job.group.spec.queue or session.state.default_queue
            session.blockers[job.key] = Blocker(
                reason=WaitReason.QUEUE_MISSING,
                text=f"queue {name} doesn't exist",
                remedies=[Remedy(RemedyAction.CREATE, f"queue/{name}", amount="1")],
            )
            continue
        if admits and job.phase is Phase.PENDING:
            continue
        wrong = _error(session, job.queue, errors)
        if wrong is not None:
            session.blockers[job.key] = wrong
            continue
        if job.phase is Phase.PENDING:
            if job.queue.closing and not job.queue_takes:
                session.blockers[job.key] = not_open(job.queue)
                continue
            session.admit(job)
        error = session.invalid(job)
        if error is not None:
            session.blockers[job.key] = not_enough_pods(job, error)
            continue
        out.append(job)
    return out


def _error(session: Session, queue: Queue, known: dict[str, Blocker | None]) -> Blocker | None:
    """The error of the queue itself; None without one."""
    if queue.name not in known:
        error = session.queue_error(queue)
        known[queue.name] = None if error is None else Blocker(reason=WaitReason.QUEUE_INVALID, text=error)
    return known[queue.name]


def place_best_effort(session: Session, job: Job, statement: Statement) -> None:
    """Place the gang's pending best-effort tasks, in task order, as many as find a node."""
    pending = [t for t in job.tasks.values() if t.status is TaskStatus.PENDING and t.cls.best_effort and not t.gated]
    homes = Homes(session, job, pending) if job.bound_to_domains else None
    for task in session.ordered(pending):
        home = None if homes is None else homes.of(task)
        if isinstance(home, Blocker):
            session.blockers.setdefault(job.key, home)
            continue
        row = None if task.cls.unsupported else _node(session, job, task, home)
        if row is None:
            session.blockers.setdefault(job.key, no_node(session, task, unplaced=1, placed=job.ready_count))
        else:
            statement.allocate([task], [row])


def _node(session: Session, job: Job, task: Task, home: Domain | None) -> int | None:
    within = None if home is None else home.rows
    leaning = session.leaning(job, task.sub, task.cls, home)
    if session.coupled([task]):
        found = session.place_for(task, within=within, leaning=leaning)
        return None if found is None else found[0]
    rows = session.placer.on_idle(task.cls, 1, within=within, leaning=leaning)
    return rows[0] if rows else None
