"""The gangs that provably can't start even on empty nodes; cached until the nodes change."""

from __future__ import annotations

from typing import Final

import numpy as np

from vcbatch.api.dra import DeviceClass, ResourceSlice
from vcbatch.api.numatopology import NumatopologyView
from vcbatch.api.scheduling import HyperNodeView
from vcbatch.scheduler.feasibility.bounds import ruled_out
from vcbatch.scheduler.feasibility.empty_nodes import EmptyNodes
from vcbatch.scheduler.feasibility.gangs import GangProblem, Shape, shape_of
from vcbatch.scheduler.feasibility.search import placeable
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Job
from vcbatch.scheduler.snapshot.snapshot import Snapshot

STEPS: Final = 20_000
"""The budget of the search for one gang, in pods tried on nodes."""
STEPS_OF_CYCLE: Final = 40_000
"""The budget for all gangs of a cycle together; the remaining gangs are searched in later cycles."""
_MEMORY: Final = "feasibility"
_MOST_KEPT: Final = 4096
_KINDS: Final = (HyperNodeView, NumatopologyView, DeviceClass, ResourceSlice)


class _Memory:
    """Verdicts by the shapes of gangs, and the state of the nodes for which they are valid. Class numbers are never
    reused, so verdicts that are keyed by them stay valid as long."""

    def __init__(self, stamp: tuple[object, ...]) -> None:
        self.stamp = stamp
        self.verdicts: dict[tuple[object, ...], bool] = {}
        self.nodes: EmptyNodes | None = None

    def keep(self, key: tuple[object, ...], verdict: bool) -> None:
        """Cache the verdict on gangs of a shape."""
        if len(self.verdicts) >= _MOST_KEPT:
            self.verdicts.clear()
        self.verdicts[key] = verdict


def forget_where_nodes_changed(state: Snapshot) -> None:
    """Called before a cycle: if nodes changed, drop the verdicts; any gang may fit now, and counts as one that does
    until it is tried."""
    stamp = (
        state.ground_stamp,
        state.static_stamp,
        state.volumes.stamp,
        state.total().tobytes(),
        len(state.dims),
        *map(state.facts.stamp, _KINDS),
    )
    memory: _Memory | None = state.memory.get(_MEMORY)
    if memory is not None and memory.stamp == stamp:
        return
    state.memory[_MEMORY] = _Memory(stamp)
    for row in np.flatnonzero(state.jobs_table.unstartable).tolist():
        state.jobs_table.set_unstartable(row, unstartable=False)


class Judge:
    """Decides whether gangs could start on empty nodes (`EmptyNodes`), queues and quotas aside.

    Sums over nodes and domains exclude most gangs that don't fit; for others a placement is searched, in a bounded
    number of steps. A gang that isn't proven impossible counts as possible.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        if _MEMORY not in session.state.memory:
            forget_where_nodes_changed(session.state)
        self._memory: _Memory = session.state.memory[_MEMORY]
        self._steps = STEPS_OF_CYCLE

    @property
    def nodes(self) -> EmptyNodes:
        """The empty nodes that verdicts refer to."""
        if self._memory.nodes is None:
            self._memory.nodes = EmptyNodes(self._session)
        return self._memory.nodes

    def impossible(self, job: Job) -> bool:
        """Whether it is proven that the gang can't start."""
        known = job.verdict
        if known is not None and known[0] is self._memory:
            return known[1]
        plain = self._plain_key(job)
        verdict = None if plain is None else self._memory.verdicts.get(plain)
        if verdict is None:
            shape = shape_of(self._session, job)
            verdict = None if shape is None else self._of_shape(job, shape)
            if shape is not None and (verdict is None or not shape.lasting):
                return bool(verdict)
            if plain is not None and verdict is not None:
                self._memory.keep(plain, verdict)
        job.verdict = (self._memory, bool(verdict))
        return bool(verdict)

    def note_failure(self, job: Job) -> None:
        """The gang was tried and found too few slots: report it as impossible if it couldn't start on empty nodes
        either. Its admission then uses no capacity."""
        session = self._session
        blocker = session.blockers.get(job.key)
        if blocker is not None and not blocker.reason.hopeless and self.impossible(job):
            blocker = session.blockers[job.key] = blocker.on_empty_nodes()
        hopeless = blocker is not None and blocker.reason.hopeless
        table = session.state.jobs_table
        if hopeless is not bool(table.unstartable[job.row]):
            table.set_unstartable(job.row, unstartable=hopeless)
            if hopeless and table.has_minimum[job.row]:
                session.state.changed = True  # other gangs may be admitted in its place

    def _plain_key(self, job: Job) -> tuple[object, ...] | None:
        """A key that is equal for gangs of one shape and cheaper than the shape; None for gangs with placed pods, or
        whose pods have inter-pod terms or claims."""
        runs = self._session.runs(job)
        if sum(len(run.tasks) for run in runs) != len(job.tasks):
            return None
        if any(run.cls.inter_pod.any or run.cls.claiming for run in runs):
            return None
        kinds = tuple((run.cls.id, run.role, run.sub, len(run.tasks)) for run in runs)
        return kinds, job.min_member, tuple(job.role_minimums.items()), job.topology, job.rules

    def _of_shape(self, job: Job, shape: Shape) -> bool | None:
        """Whether gangs of this shape can't start; None if the cycle has no steps left to find out."""
        claiming = not shape.lasting and not shape.foreign
        known = None if claiming else self._memory.verdicts.get(shape.key)
        if known is None:
            known = self._found(job, shape)
            if known is not None and not claiming:
                self._memory.keep(shape.key, known)
        return known

    def _found(self, job: Job, shape: Shape) -> bool | None:
        problem = GangProblem(self._session, self.nodes, job, shape).problem()
        if ruled_out(problem):
            return True
        if len(problem.groups) == 1 and not problem.coupled:
            return False
        steps = min(STEPS, self._steps)
        found, left = placeable(problem, steps)
        self._steps -= steps - left
        if found is None and steps < STEPS:
            return None
        return found is False
