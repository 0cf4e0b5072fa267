"""One cycle: a session with the nominations that it keeps, and the scheduling gates that it removes."""

from __future__ import annotations

from datetime import datetime

from vcbatch.scheduler.feasibility.judge import forget_where_nodes_changed
from vcbatch.scheduler.framework.consultant import Consultant
from vcbatch.scheduler.framework.laps import Laps
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.framework.policy import Policy
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.objects import Queue, Task
from vcbatch.scheduler.model.resources import Vector
from vcbatch.scheduler.model.result import Held
from vcbatch.scheduler.queues.gates import Gates
from vcbatch.scheduler.reasons.blockers import queue_limit
from vcbatch.scheduler.reservations.promises import Promises
from vcbatch.scheduler.snapshot.snapshot import Snapshot


class Cycle:
    """The state that actions work on.

    Attributes:
        session: the snapshot with the plugins, and the decisions made so far.
        promises: the nominations from earlier cycles.
        gates: removes the gates of pods that wait for capacity in their queue; None if that is disabled.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.promises = Promises(session)
        self.gates = Gates(session, _full) if session.state.queue_gates else None

    @classmethod
    def open(
        cls,
        state: Snapshot,
        policy: Policy,
        cache: StaticCache,
        *,
        now: datetime,
        uid: str,
        consultant: Consultant | None = None,
        laps: Laps | None = None,
    ) -> Cycle:
        """Begin a cycle on this snapshot: every plugin of the scheduler configuration is created and opened."""
        forget_where_nodes_changed(state)
        return cls(Session(state, policy, cache, now=now, uid=uid, consultant=consultant, laps=laps))

    def close(self) -> list[Held]:
        """End the cycle: roll back and return the placements that aren't bound. Gangs that failed are parked until what
        they failed on changes, unless other gangs held resources while they were tried."""
        session = self.session
        session.retract()
        session.close_plugins()
        if self.gates is not None:
            self.gates.close()
        given_up = self.promises.settle()
        held = [place for statement in session.held for place in statement.held()]
        session.nominations = self.promises.remember(held)
        session.discard_held()
        if not held and not given_up:
            session.park()
        session.show_evicted()
        return held


def _full(session: Session, queue: Queue, task: Task, unplaced: int, own: Vector) -> Blocker:
    placed = 0 if task.job is None else task.job.ready_count
    return queue_limit(session, queue, task, unplaced=unplaced, placed=placed, own=own)
