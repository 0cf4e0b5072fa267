"""Metrics of single gangs, under the names that dashboards for Volcano use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vcbatch.api.timestamps import parse_time
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.scheduler.model.figures import Figures, GangFigures

_TIMES = ("e2e_job_scheduling_start_time", "e2e_job_scheduling_last_time", "e2e_job_scheduling_duration")


@dataclass(slots=True)
class _Shown:
    """The last exported state of a gang."""

    figures: GangFigures
    created: datetime | None

    @property
    def labels(self) -> dict[str, str]:
        figures = self.figures
        return {"job_name": figures.name, "queue": figures.queue, "job_namespace": figures.namespace}

    @property
    def key(self) -> str:
        return f"{self.figures.namespace}/{self.figures.name}"


class GangMetrics:
    """Exports the gangs that a cycle processed. The series of a gang are removed with its PodGroup."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._gangs: dict[str, _Shown] = {}
        self._waiting = _Waiting(meter)

    def of(self, figures: Figures, *, now: datetime) -> None:
        """Export one cycle."""
        for uid in figures.gangs_gone:
            self._forget(uid)
        for gang in figures.gangs:
            self._gang(gang, now)
        for uid, namespace, name, share in figures.gang_shares:
            if uid in self._gangs:
                self._meter.gauge("job_share", share, job_ns=namespace, job_id=name)
        self._waiting.show()

    def _gang(self, gang: GangFigures, now: datetime) -> None:
        shown = self._gangs.get(gang.uid)
        if shown is None:
            shown = self._gangs[gang.uid] = _Shown(gang, _time(gang.creation))
            self._meter.gauge("e2e_job_scheduling_start_time", int(now.timestamp()), **shown.labels)
            before = None
            if gang.binding:  # created and placed in one cycle
                self._placed(shown, gang._replace(placed=gang.placed - gang.binding, ready=False), now)
        else:
            before = shown.figures
            if before.queue != gang.queue:
                self._move(shown, gang)
            shown.figures = gang
        if gang.tried:
            self._meter.count("job_retry_counts", job_id=shown.key)
        if before is None or before.lacking != gang.lacking:
            self._meter.gauge("unschedule_task_count", gang.lacking, job_id=shown.key)
        if before is not None:
            self._placed(shown, before, now)
        self._waiting.take(gang)

    def _placed(self, shown: _Shown, before: GangFigures, now: datetime) -> None:
        """Export the times of a placed gang. Gangs that were placed before the scheduler started have none: it isn't
        known when."""
        gang = shown.figures
        taken = None if shown.created is None else max((now - shown.created).total_seconds() * 1000, 0.0)
        if gang.placed > before.placed and taken is not None:
            self._meter.gauge("e2e_job_scheduling_last_time", int(now.timestamp()), **shown.labels)
            self._meter.gauge("e2e_job_scheduling_duration", taken, **shown.labels)
        if gang.ready and not before.ready and taken is not None:
            self._meter.duration("e2e_job_scheduling_latency_milliseconds", taken)

    def _move(self, shown: _Shown, gang: GangFigures) -> None:
        """The gang is in another queue now: the queue is a label of its times."""
        for name in _TIMES:
            self._meter.forget(name, **shown.labels)
        shown.figures = gang

    def _forget(self, uid: str) -> None:
        self._waiting.forget(uid)
        shown = self._gangs.pop(uid, None)
        if shown is None:
            return
        for name in _TIMES:
            self._meter.forget(name, **shown.labels)
        for name in ("job_retry_counts", "unschedule_task_count"):
            self._meter.forget(name, job_id=shown.key)
        self._meter.forget("job_share", job_ns=shown.figures.namespace, job_id=shown.figures.name)


class _Waiting:
    """Since when the longest-waiting gang of each queue waits."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._queue_of: dict[str, str] = {}
        self._since: dict[str, dict[str, float]] = {}
        """Queue -> UID -> since when, in Unix seconds."""
        self._changed: set[str] = set()

    def take(self, gang: GangFigures) -> None:
        """Record a gang's state after a cycle."""
        since = _time(gang.waiting_since) if gang.waiting_since else None
        if since is None:
            self.forget(gang.uid)
            return
        before = self._queue_of.get(gang.uid)
        if before != gang.queue:
            self.forget(gang.uid)
            self._queue_of[gang.uid] = gang.queue
        waiting = self._since.setdefault(gang.queue, {})
        if waiting.get(gang.uid) != since.timestamp():
            waiting[gang.uid] = since.timestamp()
            self._changed.add(gang.queue)

    def forget(self, uid: str) -> None:
        """The gang isn't waiting any more."""
        queue = self._queue_of.pop(uid, None)
        if queue is not None:
            del self._since[queue][uid]
            self._changed.add(queue)

    def show(self) -> None:
        """Export the changes."""
        for queue in sorted(self._changed):
            waiting = self._since.get(queue)
            if waiting:
                self._meter.gauge("oldest_pending_gang_timestamp_seconds", min(waiting.values()), queue=queue)
            else:
                self._since.pop(queue, None)
                self._meter.forget("oldest_pending_gang_timestamp_seconds", queue=queue)
        self._changed.clear()


def _time(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except ValueError:
        return None
