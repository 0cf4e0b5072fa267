"""Reclaim: evict pods of other queues, which use more than their share, for gangs that lack members."""

from __future__ import annotations

from vcbatch.scheduler.actions.base import ERROR_CACHE
from vcbatch.scheduler.actions.gang_relief import MINIMIZE, PREVENT, SPARING, GangRelief
from vcbatch.scheduler.actions.protected import ProtectedVictims
from vcbatch.scheduler.actions.relief import Relief, Terms
from vcbatch.scheduler.actions.retaliation import Retaliation
from vcbatch.scheduler.actions.starving import in_order, may_preempt, starving
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.arguments import ArgumentSpec
from vcbatch.scheduler.framework.plugin import EvictionKind
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Task

NAME = "reclaim"


class Reclaim:
    """Serves the best queue and the best gang first. A queue that uses all it deserves gets nothing. Nodes are tried by
    name; the first on which evictions make the task fit is chosen. Gangs that are confined to network topology domains
    are left to gangreclaim: resources for single tasks don't help them."""

    arguments = ArgumentSpec(
        named={
            **ERROR_CACHE.named,
            **SPARING,
        }
    )

    def execute(self, cycle: Cycle) -> None:
        session = cycle.session
        given = session.policy.action_arguments[NAME]
        terms = Terms(kind=EvictionKind.RECLAIM, reason=NAME, scored=False, minimize=bool(given[MINIMIZE]))
        retaliation = Retaliation(session, EvictionKind.RECLAIM, prevent=bool(given[PREVENT]))
        protected = ProtectedVictims(session)
        relief = GangRelief(
            cycle, Relief(session, terms), retaliation, lambda task: _may_have(session, task), protected
        )
        waiting = starving(session, lambda job: not job.confined and not retaliation.sleeps(job))
        queues = [session.state.queues[name] for name in waiting]
        while queues:
            queue = min(queues, key=session.queue_key)
            queues.remove(queue)
            if session.overused(queue) is None:
                for job in in_order(session, waiting[queue.name]):
                    if not relief.serve(job):
                        retaliation.failed(job)


def _may_have(session: Session, task: Task) -> bool:
    """Whether pods of other queues may be evicted for the task now. A best-effort task needs no share; if its gang can
    run without it, backfill places it."""
    job = task.job
    if job is None or job.queue is None or not may_preempt(task):
        return False
    if task.cls.best_effort:
        return job.min_member >= len(job.tasks)
    return session.preemptive(job.queue, task.cls.request)
