"""The report of a cycle: phases, conditions, queue usage, events and explanations, each only when it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import KeptShare
from vcbatch.scheduler.model.figures import Figures, FigureTracker, GangShare
from vcbatch.scheduler.model.objects import Job
from vcbatch.scheduler.model.result import CycleResult, Explanation, GateRemoval, Held, Protected, WaitReason
from vcbatch.scheduler.queues.amounts import QueueAmounts
from vcbatch.scheduler.reasons.report_writer import ReportWriter
from vcbatch.scheduler.reasons.said import PODS_GRACE, Said


class Reporter:
    """Turns a finished session into a `CycleResult`. Keeps what was reported last."""

    def __init__(self, *, pods_grace: timedelta = PODS_GRACE) -> None:
        """`pods_grace` is how long a gang may lack pods, and pods their PodGroup, before that is reported."""
        self._said = Said(pods_grace=pods_grace)
        self._queues = QueueAmounts()
        self._usage = FigureTracker()
        self._weighed = -1
        self._total = b""
        self._gone: list[str] = []
        self._protected: dict[str, Protected | KeptShare] = {}

    @property
    def waiting(self) -> Counter[tuple[str, WaitReason]]:
        """How many gangs of each queue are pending for which reason; the queue is "" where the PodGroup doesn't
        exist."""
        return self._said.waiting

    def explanation(self, uid: str) -> Explanation | None:
        """Why the gang with this PodGroup is pending; None if it isn't, as far as is known."""
        return self._said.explanations.get(uid)

    def report(self, session: Session, held: list[Held], gate_removals: Sequence[GateRemoval]) -> CycleResult:
        """The full report of this cycle, in which these gates are removed. The session's snapshot must be in its final
        state."""
        writer = ReportWriter(self._said, session, held)
        for job in self._due(session):
            writer.job(job)
        self._said.forget_groupless(session.state.jobs)
        turn = self._said.line.again(session.now)
        if turn is not None:
            writer.requeue_at(turn)
        writer.pods.refused_binds()
        writer.evictions()
        updates, later = self._queues.updates(session.state, session.now)
        if later is not None:
            writer.requeue_at(later)
        self._measure(session, writer.figures)
        return writer.result(updates, gate_removals)

    def _due(self, session: Session) -> list[Job]:
        """The gangs whose report may have changed, in the order of their keys."""
        due = {**self._said.take_deferred(), **session.state.touched}
        unlike = {key for key, found in session.protected.items() if self._protected.get(key) != found}
        gone = self._protected.keys() - session.protected.keys()
        self._protected = session.protected
        for key in (*session.blockers, *unlike, *gone):
            job = session.state.jobs.get(key)
            if job is not None:
                due[key] = job
        for uid in self._said.line.call(session.now):
            job = session.state.job_of_group(uid)
            if job is not None:
                due[job.key] = job
        return sorted(due.values(), key=lambda job: job.key)

    def _measure(self, session: Session, figures: Figures) -> None:
        """Record the changed metrics of queues, and the deleted queues and gangs."""
        state, measured = session.state, session.measured
        self._queues.measure(state, measured)
        figures.amounts = self._usage.amounts(measured, state.dims)
        figures.shares = self._usage.shares(measured)
        if state.queues_stamp != self._weighed:
            self._weighed = state.queues_stamp
            weights = {queue.name: queue.weight for queue in state.queues.values()}
            figures.weights, figures.queues_gone = self._usage.weights(weights)
        total = session.total.tobytes()
        if total != self._total:
            self._total = total
            figures.gang_shares = _all_shares(session)
        figures.gangs_gone, self._gone = self._gone, []

    def forget(self, uid: str) -> None:
        """Drop the state of a deleted PodGroup."""
        self._said.forget(uid)
        self._gone.append(uid)


def _all_shares(session: Session) -> list[GangShare]:
    """The shares of all gangs with allocated resources."""
    shares = session.measured.gang_shares
    if shares is None:
        return []
    known = shares.tolist()
    return [
        GangShare(job.group.metadata.uid, job.group.metadata.namespace, job.group.metadata.name, known[job.row])
        for job in session.state.jobs.values()
        if job.group is not None and known[job.row] > 0
    ]
