"""Writes one report: on each gang of a finished session, and on its pods."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from vcbatch.api import messages, names
from vcbatch.api.reasons import PodGroupReason, SchedulingEvent
from vcbatch.api.remedies import Remedy, RemedyAction, written
from vcbatch.api.resources import PODGROUPS
from vcbatch.api.scheduling import PodGroupView
from vcbatch.api.timestamps import format_time
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import Blocker, KeptShare
from vcbatch.scheduler.model.figures import Figures, GangFigures, GangShare
from vcbatch.scheduler.model.objects import Job, Phase, TaskStatus
from vcbatch.scheduler.model.remedies import wait_for
from vcbatch.scheduler.model.result import (
    AHEAD_SHOWN,
    CycleResult,
    EventRecord,
    Eviction,
    Explanation,
    GateRemoval,
    Held,
    PodGroupUpdate,
    QueueStatusUpdate,
    WaitReason,
)
from vcbatch.scheduler.reasons.blockers import gated, not_enough_pods
from vcbatch.scheduler.reasons.conditions import ConditionWriter, Status, counts, same_headlines, waiting_since
from vcbatch.scheduler.reasons.phases import next_phase, only_ending
from vcbatch.scheduler.reasons.pod_news import PodNews, histogram_text
from vcbatch.scheduler.reasons.said import Said
from vcbatch.scheduler.topology.domain_search import DomainSearch

_NEXT_GROUPLESS = timedelta(seconds=1)
_WORDS = [status.wire for status in TaskStatus]


class ReportWriter:
    """Collects reports until `result` is called; what was reported before (`said`) isn't repeated."""

    def __init__(self, said: Said, session: Session, held: list[Held]) -> None:
        self._said = said
        self._session = session
        self._state = session.state
        self._now = session.now
        self._conditions_by = ConditionWriter(transition=session.uid, time=format_time(session.now))
        self._held = held
        tasks = [self._state.tasks[uid] for uid in session.nominations]
        self._nominating = {task.job.key for task in tasks if task.job is not None}
        self._updates: list[PodGroupUpdate] = []
        self._events: list[EventRecord] = []
        self.pods = PodNews(session, held, self._events)
        self._explain: list[Explanation] = []
        self.figures = Figures()
        self._requeue_at: datetime | None = session.wake_at
        self._order: dict[str, list[Job]] = {}
        self._position: dict[str, int] = {}

    def result(self, queues: list[QueueStatusUpdate], gate_removals: Sequence[GateRemoval]) -> CycleResult:
        """The complete result, with the updates of queues and the gates to remove."""
        return CycleResult(
            binds=self._session.binds,
            held=self._held,
            evictions=self._session.evictions,
            gate_removals=gate_removals,
            podgroup_updates=self._updates,
            pod_conditions=self.pods.conditions,
            queue_statuses=queues,
            events=self._events,
            explain=self._explain,
            figures=self.figures,
            requeue_at=self._requeue_at,
        )

    # Gangs -----------------------------------------------------------------------------------------------------------

    def job(self, job: Job) -> None:
        """Report on one gang."""
        group = job.group
        if group is None:
            self._groupless(job)
            return
        self._said.groupless(job.key, reported=False)
        ready = self._session.ready(job) and self._session.ready_without_hope(job)
        short = not ready and bool(job.tasks) and self._session.lacks_members(job) and not only_ending(job)
        blocker = self._blocker(job, short=short)
        later = None
        if blocker is not None and blocker.reason is WaitReason.NOT_ENOUGH_PODS:
            later = self._said.lacking(job.uid, self._now)
            if later is not None:
                self._again(job, later)
                blocker = None
        else:
            self._said.complete(job.uid)
        phase = next_phase(job, unschedulable=short)
        if job.phase is Phase.PENDING and phase is not Phase.PENDING:
            blocker = None  # it was rejected and is admitted now, as its pods are placed
        waits = blocker is not None and (not ready or phase is Phase.PENDING)
        message = self._message(job, blocker, ready=ready) if blocker is not None else ""
        if job.phase is not phase:
            self._state.changed = True  # the next cycle treats it differently
            self._state.set_phase(job, phase)
        self._explained(job, blocker, message)
        if blocker is not None and blocker.volcano:
            message = messages.shorten(f"{message}; {blocker.volcano}")
        found = self._session.blockers.get(job.key)
        lacks_pods = found is not None and found.reason is WaitReason.NOT_ENOUGH_PODS
        why = PodGroupReason.NOT_ENOUGH_TASKS if lacks_pods else PodGroupReason.NOT_ENOUGH_RESOURCES
        waiting = message if waits else ""
        news = waits and blocker is not None and job.reported != blocker.kind
        status = self._conditions_by.status(job, phase, waits=waiting, reason=why, ready=ready)
        self._write(job, status, blocker if waits else None, news=news)
        self._report(job, blocker if waits else None, message, ready=ready)
        self._measure(job, group, blocker if waits else None, status, ready=ready)
        of_pods = None if lacks_pods else blocker
        if of_pods is not None or job.key in self._nominating:
            self.pods.gang(job, of_pods)
        if job.reported_groupless and later is None:
            self.pods.found_group(job, blocker)

    def _groupless(self, job: Job) -> None:
        """Report on pods whose PodGroup doesn't exist, after the time that its controller has to create it."""
        waiting = self._state.groupless(job)
        if not waiting:
            job.groupless_since = None
            self._said.groupless(job.key, reported=False)
            return
        job.groupless_since = job.groupless_since or self._now
        later = self._said.made_by(job.groupless_since, self._now)
        self._said.groupless(job.key, reported=later is None)
        if later is None and not self.pods.groupless(job, waiting):
            later = self._now + _NEXT_GROUPLESS
        if later is not None:
            self._again(job, later)

    def _measure(self, job: Job, group: PodGroupView, blocker: Blocker | None, status: Status, *, ready: bool) -> None:
        meta = group.metadata
        lacking = 0 if blocker is None else max(job.min_member - max(blocker.placed, job.ready_count), 0)
        figures = GangFigures(
            uid=meta.uid,
            namespace=meta.namespace,
            name=meta.name,
            queue=job.queue_name,
            creation=meta.creation_timestamp or "",
            lacking=lacking,
            placed=job.ready_count,
            binding=job.counts[TaskStatus.BINDING],
            ready=ready,
            tried=blocker is not None and job.key in self._session.blockers,
            waiting_since="" if blocker is None else waiting_since(status) or meta.creation_timestamp or "",
        )
        self.figures.gangs.append(figures)
        shares = self._session.measured.gang_shares
        if shares is not None:
            share = float(shares[job.row])
            self.figures.gang_shares.append(GangShare(meta.uid, meta.namespace, meta.name, share))

    def _blocker(self, job: Job, *, short: bool) -> Blocker | None:
        """Why the gang is pending: as found in this cycle, because its queue was closed to it, as it was parked before,
        or because members that don't exist yet are missing; with the note that evicting protected pods would help."""
        blocker = self._obstacle(job, short=short)
        protected = self._session.protected.get(job.key)
        if blocker is None or protected is None:
            return blocker
        return protected.explain(blocker) if isinstance(protected, KeptShare) else blocker.but_for(protected)

    def _obstacle(self, job: Job, *, short: bool) -> Blocker | None:
        found = self._session.blockers.get(job.key)
        if found is not None or job.queue is None:
            return found
        closed = self._session.closed_queues.get(job.queue.name)
        pending = job.counts[TaskStatus.PENDING] - job.pending_best_effort
        if closed is not None and pending > 0 and job.phase is not Phase.PENDING:
            first = messages.first_in_line(closed)
            then = wait_for(first) if first else [Remedy(RemedyAction.WAIT, f"queue/{job.queue.name}")]
            return Blocker(reason=WaitReason.QUEUE_LIMIT, text=closed, placed=job.ready_count, remedies=then)
        if job.parked is not None:
            return job.blocker
        error = self._session.invalid(job) if short else None
        if error is not None:
            return not_enough_pods(job, error)
        return gated(job) if short else None

    def _message(self, job: Job, blocker: Blocker, *, ready: bool) -> str:
        statuses = {word: count for word, count in zip(_WORDS, job.counts, strict=True) if count}
        why = messages.gang_counts(ready=ready, statuses=statuses, min_available=job.min_member)
        pending = job.counts[TaskStatus.PENDING]
        placed = min(max(blocker.placed - job.ready_count, 0), pending)
        if pending:
            parts = sorted(
                f"{n} {word}" for n, word in ((pending - placed, "Unschedulable"), (placed, "Schedulable")) if n
            )
            why += f"; Pending: {', '.join(parts)}"
        origin = blocker.sentence
        if blocker.nodes_examined or blocker.nodes:
            origin = f"{blocker.task}: {histogram_text(blocker)}"
            origin += f" {blocker.sentence}" if blocker.text else ""
        if blocker.remedy:
            origin = f"{blocker.remedy}; {origin}"
        # Of a gang that has its minimum, or needs none, those that are pending nevertheless.
        unready = max(job.min_member - job.ready_count - placed, 0) or pending - placed
        why = messages.with_origin(why, messages.waits_for(blocker.reason, origin))
        total = len(job.tasks) or job.min_member  # before it has pods, of those that it will have
        return messages.gang_unschedulable(unready=unready, total=total, why=why)

    def _write(self, job: Job, status: Status, blocker: Blocker | None, *, news: bool) -> None:
        """Write the status if it differs, with the remedies and the gang's network topology domain: at once if there is
        `news`, else when it is due."""
        domain = self._domain(job)
        if (status == job.written and domain == job.domain) or job.group is None:
            return
        if not news and domain == job.domain and not self._timely(job, status):
            return
        meta = job.group.metadata
        self._updates.append(
            PodGroupUpdate(
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
                resource_version=meta.resource_version,
                status=status,
                annotations=self._annotations(job, job.group, domain, blocker),
            )
        )
        job.written = status
        job.domain = domain
        self._said.written(job.uid, self._now)

    def _annotations(
        self, job: Job, group: PodGroupView, domain: str, blocker: Blocker | None
    ) -> dict[str, str | None] | None:
        found: dict[str, str | None] = {names.JOB_ALLOCATED_HYPERNODE: domain or None} if job.bound_to_domains else {}
        remedies = "" if blocker is None else written(blocker.remedies)
        if remedies != (group.metadata.annotations or {}).get(names.WOULD_START_IF, ""):
            found[names.WOULD_START_IF] = remedies or None
        return found or None

    def _timely(self, job: Job, status: Status) -> bool:
        """Whether a status without news, or with new numbers at most, may be written now."""
        if status["phase"] != job.written.get("phase") or not same_headlines(status, job.written):
            return True
        if counts(status) == counts(job.written):
            return self._said.may_report(job.uid, self._now)
        wait = self._said.counts_due(job.uid, self._now)
        if wait is not None:
            self._again(job, wait)
        return wait is None

    def _domain(self, job: Job) -> str:
        """The name of the lowest network topology domain that has all placed pods of a gang with a topology; empty
        while none is placed, or if there are no HyperNodes."""
        if not job.bound_to_domains:
            return job.domain
        search = self._session.shared(DomainSearch)
        if search.tree.error is not None:
            return job.domain
        held = search.allocated(job)
        return "" if held is None or len(search.tree) == 1 else search.tree.names[held]

    def _report(self, job: Job, blocker: Blocker | None, message: str, *, ready: bool) -> None:
        """One event when a gang becomes pending, when it is pending for another reason, and when it starts."""
        if blocker is not None:
            key = blocker.kind
            if job.reported != key:
                job.reported = key
                self._event(job, "Warning", SchedulingEvent.UNSCHEDULABLE, message)
        elif ready and job.tasks and job.reported != ("ready",):
            job.reported = ("ready",)
            self._event(job, "Normal", SchedulingEvent.SCHEDULED, messages.POD_GROUP_READY)

    def _event(self, job: Job, kind: str, reason: str, message: str) -> None:
        if job.group is not None:
            meta = job.group.metadata
            self._events.append(
                EventRecord(
                    resource=PODGROUPS,
                    namespace=meta.namespace,
                    name=meta.name,
                    uid=meta.uid,
                    type=kind,
                    reason=reason,
                    message=message,
                )
            )

    def evictions(self) -> None:
        """Report evictions: on each evicted pod for which gang, and on its gang how many pods it loses."""
        lost: dict[str, list[Eviction]] = {}
        for eviction in self._session.evictions:
            task = self._state.tasks.get(eviction.uid)
            if task is None:
                continue
            message = messages.shorten(f"{eviction.reason}: {eviction.message}")
            self.pods.event(task, message, reason=SchedulingEvent.EVICT)
            if task.job is not None:
                lost.setdefault(task.job.key, []).append(eviction)
        for key, evictions in sorted(lost.items()):
            first = evictions[0]
            whom = first.name if len(evictions) == 1 else f"{len(evictions)} pods"
            message = messages.shorten(f"{first.reason}: {whom} evicted: {first.message}")
            self._event(self._state.jobs[key], "Normal", SchedulingEvent.EVICT, message)

    # Explanations ----------------------------------------------------------------------------------------------------

    def _explained(self, job: Job, blocker: Blocker | None, message: str) -> None:
        if blocker is None or job.group is None:
            self._said.explain(job.uid, None)
            return
        position, ahead = self._ahead(job)
        explanation = Explanation(
            namespace=job.group.metadata.namespace,
            name=job.group.metadata.name,
            uid=job.uid,
            queue=job.queue.name if job.queue else job.group.spec.queue,
            reason=blocker.reason,
            message=message,
            minimum=job.min_member,
            placed=max(blocker.placed, job.ready_count),
            task=blocker.task,
            shortages=blocker.shortages,
            place=blocker.place,
            remedies=blocker.remedies,
            nodes_examined=blocker.nodes_examined,
            nodes=blocker.nodes,
            closest=blocker.closest,
            protected=blocker.protected,
            position=position,
            ahead=ahead,
            expected_start=blocker.expected_start,
        )
        self._explain.append(explanation)
        self._said.explain(job.uid, explanation)

    def _ahead(self, job: Job) -> tuple[int, tuple[str, ...]]:
        """The gang's position among the pending gangs of its queue, and the first of those ahead of it."""
        queue = job.queue
        if queue is None:
            return 0, ()
        order = self._order.get(queue.name)
        if order is None:
            known = self._state.waiting
            if len(known) < len(queue.jobs):
                waiting = [j for j in known.values() if j.queue is queue]
            else:
                waiting = [j for j in queue.jobs.values() if j.key in known]
            order = self._order[queue.name] = sorted(waiting, key=self._session.job_key)
            self._position.update({j.key: i for i, j in enumerate(order)})
        at = self._position.get(job.key, 0)
        return at + 1, tuple(j.key for j in order[: min(at, AHEAD_SHOWN)])

    def _again(self, job: Job, when: datetime) -> None:
        self._said.defer(job)
        self.requeue_at(when)

    def requeue_at(self, when: datetime) -> None:
        """Have a cycle run at this time, even if nothing changes."""
        self._requeue_at = when if self._requeue_at is None else min(self._requeue_at, when)
