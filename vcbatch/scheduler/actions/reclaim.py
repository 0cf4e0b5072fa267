"""Make room for gangs that lack members by evicting pods of other queues, which hold more than their share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcbatch.scheduler.actions.relief import Relief, Terms
from vcbatch.scheduler.actions.retaliation import Retaliation
from vcbatch.scheduler.actions.starving import (
    in_order,
    may_preempt,
    note_promise,
    starving,
    waiting_tasks,
)
from vcbatch.scheduler.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.model import Job, Queue
from vcbatch.scheduler.plugins.base import EvictionKind
from vcbatch.scheduler.statement import Statement

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

NAME = "reclaim"
MINIMIZE = "minimizeVictims"
PREVENT = "preventTakeBack"


class Reclaim:
    """Best queue first, best gang first. A queue that has all it deserves gets nothing. Nodes are tried by name; the
    first where evictions make the task fit is taken. Gangs that are confined to domains of the network are left to
    gangreclaim: room for single tasks is of no use to them.
    """

    arguments = ArgumentSpec(
        named={
            "predicateErrorCacheEnable": Argument(default=True),
            MINIMIZE: Argument(default=False),
            PREVENT: Argument(default=False),
        }
    )

    def execute(self, session: Session) -> None:
        given = session.policy.action_arguments[NAME]
        terms = Terms(kind=EvictionKind.RECLAIM, reason=NAME, scored=False, minimize=bool(given[MINIMIZE]))
        relief = Relief(session, terms)
        retaliation = Retaliation(session, EvictionKind.RECLAIM, prevent=bool(given[PREVENT]))
        waiting = starving(session, lambda job: not job.confined and not retaliation.sleeps(job))
        queues = [session.state.queues[name] for name in waiting]
        while queues:
            queue = min(queues, key=session.queue_key)
            queues.remove(queue)
            if session.overused(queue) is None:
                for job in in_order(session, waiting[queue.name]):
                    _serve(session, relief, queue, job, retaliation)


def _serve(session: Session, relief: Relief, queue: Queue, job: Job, retaliation: Retaliation) -> None:
    """Evict pods of other queues until the gang has its minimum, or nobody."""
    relief.begin(retaliation.untouchable(job))
    statement = Statement(session)
    indivisible = session.votes_on_holding and job.min_member >= len(job.tasks)
    for task in waiting_tasks(session, job):
        if not session.starving(job):
            break
        allowed = may_preempt(task) and session.preemptive(queue, task.cls.request)
        if not (allowed and relief.find(statement, task)) and indivisible:
            break
    if statement and session.pipelined(job) and retaliation.permits(statement, job):
        note_promise(session, job, statement)
        session.commit(statement)
        return
    statement.discard()
    retaliation.failed(job)
