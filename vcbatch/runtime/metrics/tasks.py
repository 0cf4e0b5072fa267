"""The time from a pod's creation until it is watched, placed, ready to be bound and bound."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from vcbatch.api.pod import Pod
from vcbatch.api.timestamps import parse_time
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.scheduler.model.result import Bind

_LATENCY = "task_scheduling_latency_milliseconds"
_STAGE = "scheduling_stage_duration_milliseconds"


class _Underway(NamedTuple):
    """A placed pod: its creation time, and the monotonic time of its placement."""

    created: datetime
    placed: float


class TaskMetrics:
    """Measures the stages of pods. Creation times are whole seconds, so the first stages of a fast scheduler show
    little."""

    def __init__(self, meter: Meter, pods: Cache[Pod], *, clock: Clock, scheduler_names: Collection[str]) -> None:
        self._meter = meter
        self._pods = pods
        self._clock = clock
        self._names = scheduler_names
        self._underway: dict[str, _Underway] = {}

    def watch(self) -> None:
        """Measure pods that appear from now on: earlier ones existed before the scheduler started."""
        self._pods.listen(self._seen)

    def _seen(self, change: Change[Pod]) -> None:
        pod = change.new
        if change.old is None and pod is not None and not pod.spec.node_name and pod.spec.scheduler_name in self._names:
            self._observe("Watched", self._created(pod))

    def placed(self, binds: Iterable[Bind]) -> None:
        """Record that these pods are placed."""
        now = self._clock.monotonic()
        for bind in binds:
            pod = self._pods.get(bind.uid)
            created = None if pod is None else self._created(pod)
            if created is not None:
                self._underway[bind.uid] = _Underway(created, now)
                self._observe("Assumed", created)

    def prepared(self, binds: Iterable[Bind]) -> None:
        """Record that the claims of these pods are bound and their nodes locked: the pods may be bound."""
        now = self._clock.monotonic()
        for bind in binds:
            known = self._underway.get(bind.uid)
            if known is not None:
                self._observe("PreBound", known.created)
                self._meter.duration(_STAGE, (now - known.placed) * 1000, stage="PreBind")

    def bound(self, bind: Bind) -> None:
        """Record that this pod is bound."""
        known = self._underway.pop(bind.uid, None)
        if known is not None:
            self._observe("Bound", known.created)

    def failed(self, uid: str) -> None:
        """Record that the bind was refused: the pod is pending again."""
        if self._underway.pop(uid, None) is not None:
            self._meter.count("schedule_attempts", result="error")

    @staticmethod
    def _created(pod: Pod) -> datetime | None:
        try:
            return parse_time(pod.metadata.creation_timestamp or "")
        except ValueError:
            return None

    def _observe(self, stage: str, created: datetime | None) -> None:
        if created is not None:
            taken = (self._clock.now() - created).total_seconds() * 1000
            self._meter.duration(_LATENCY, max(taken, 0.0), stage=stage)
