"""Preempt: evict pods of the same queue for gangs that lack members, first of other gangs, then of the gang itself.

A gang gets its minimum, pipelined tasks included, or no pods are evicted for it. Within a gang, single tasks of higher
priority replace tasks of lower priority.
"""

from __future__ import annotations

from vcbatch.scheduler.actions.base import ERROR_CACHE
from vcbatch.scheduler.actions.dry_run import DryRun
from vcbatch.scheduler.actions.gang_relief import MINIMIZE, PREVENT, SPARING, GangRelief
from vcbatch.scheduler.actions.protected import ProtectedVictims
from vcbatch.scheduler.actions.relief import Relief, Terms
from vcbatch.scheduler.actions.retaliation import Retaliation
from vcbatch.scheduler.actions.starving import (
    has_topology,
    in_order,
    may_preempt,
    starving,
    waiting_tasks,
)
from vcbatch.scheduler.cycle import Cycle
from vcbatch.scheduler.framework.arguments import Argument, Arguments, ArgumentSpec
from vcbatch.scheduler.framework.plugin import EvictionKind
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus

NAME = "preempt"
TOPOLOGY_AWARE = "enableTopologyAwarePreemption"


class Preempt:
    """Serves the best queue and the best gang first. Gangs that request a network topology are left to `gangpreempt`.

    With `enableTopologyAwarePreemption` a node is chosen by its victims, after trying several, instead of by its score;
    `topologyAwarePreemptWorkerNum` is accepted and has no effect.
    """

    arguments = ArgumentSpec(
        named={
            **ERROR_CACHE.named,
            TOPOLOGY_AWARE: Argument(default=False),
            "topologyAwarePreemptWorkerNum": Argument(default=16, minimum=1),
            "minCandidateNodesPercentage": Argument(default=10, minimum=0),
            "minCandidateNodesAbsolute": Argument(default=1, minimum=0),
            "maxCandidateNodesAbsolute": Argument(default=100, minimum=1),
            **SPARING,
        }
    )

    def execute(self, cycle: Cycle) -> None:
        session = cycle.session
        given = session.policy.action_arguments[NAME]
        retaliation = Retaliation(session, EvictionKind.PREEMPT, prevent=bool(given[PREVENT]))
        waiting = starving(session, lambda job: not has_topology(job) and not retaliation.sleeps(job))
        queues = [session.state.queues[name] for name in waiting]
        others = _relief(session, given, own=False)
        own = _relief(session, given, own=True)
        protected = ProtectedVictims(session)
        for queue in sorted(queues, key=session.queue_key):
            for job in in_order(session, waiting[queue.name]):
                _among_gangs(cycle, others, job, retaliation, protected)
            for job in sorted(waiting[queue.name], key=session.job_key):
                _inside(session, own, job, retaliation)


def _relief(session: Session, given: Arguments, *, own: bool) -> Relief:
    terms = Terms(kind=EvictionKind.PREEMPT, reason=NAME, own=own, minimize=bool(given[MINIMIZE]))
    return DryRun(session, terms, given) if given[TOPOLOGY_AWARE] else Relief(session, terms)


def _among_gangs(cycle: Cycle, others: Relief, job: Job, retaliation: Retaliation, protected: ProtectedVictims) -> None:
    """Evict pods of other gangs if this gang gets its minimum by that."""
    waits = False

    def may_have(task: Task) -> bool:
        nonlocal waits
        allowed = _eligible(cycle.session, task)
        waits = waits or (not allowed and bool(task.nominated))
        return allowed

    if not GangRelief(cycle, others, retaliation, may_have, protected).serve(job) and not waits:
        retaliation.failed(job)


def _inside(session: Session, relief: Relief, job: Job, retaliation: Retaliation) -> None:
    """Replace tasks of lower priority of the same gang, up to the first task for which that isn't possible."""
    relief.begin()
    asleep = retaliation.sleeps(job)
    for task in waiting_tasks(session, job):
        statement = Statement(session)
        if not _eligible(session, task) or not relief.find(statement, task):
            return
        if asleep and not statement.victims:
            session.state.changed = True  # it isn't tried again, so other gangs may use the resources now
        session.commit(statement)


def _eligible(session: Session, task: Task) -> bool:
    """Whether pods may be evicted for the task now. A nominated pod waits while pods of lower priority are terminating
    on its node, or if the node lacks nothing but resources that are being released."""
    if not may_preempt(task):
        return False
    row = session.state.row(task.nominated) if task.nominated else None
    if row is None or not session.placer.static(task.cls).mask[row]:
        return True
    if session.placer.admits(task, row, coupled=session.coupled([task])):
        return False
    there = session.nodes.infos[row].tasks.values()
    return not any(t.status is TaskStatus.RELEASING and t.priority < task.priority for t in there)
