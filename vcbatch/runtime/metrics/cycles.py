"""The metrics of a cycle: pending gangs by the reasons of their PodGroups, evictions, durations; many under the names
that dashboards for Volcano use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from vcbatch.runtime.metrics.gangs import GangMetrics
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.runtime.metrics.queues import QueueMetrics
from vcbatch.scheduler.model.result import CycleResult, WaitReason


class Waiting(Protocol):
    """Returns how many gangs of each queue are pending for which reason."""

    def waiting(self) -> Mapping[tuple[str, WaitReason], int]: ...


class CycleMetrics:
    """Records every cycle."""

    def __init__(self, meter: Meter, scheduler: Waiting) -> None:
        self._meter = meter
        self._scheduler = scheduler
        self._queues = QueueMetrics(meter)
        self._gangs = GangMetrics(meter)
        self._shown: dict[tuple[str, WaitReason], int] = {}

    def of(self, result: CycleResult, *, now: datetime, seconds: float) -> None:
        """Record a successful cycle: when it was and how many seconds it took."""
        meter = self._meter
        meter.count("cycles")
        meter.gauge("last_cycle_timestamp_seconds", now.timestamp())
        meter.gauge("cycle_due_timestamp_seconds", 0)
        meter.duration("cycle_duration_seconds", seconds)
        meter.duration("e2e_scheduling_latency_milliseconds", seconds * 1000)
        for eviction in result.evictions:
            meter.count("evictions", action=eviction.reason)
            meter.count("eviction_transactions", action=eviction.reason)
        meter.gauge("pod_preemption_victims", len(result.evictions))
        if result.evictions:
            meter.count("total_preemption_attempts")
        self._attempts(result)
        self._queues.of(result.figures)
        self._gangs.of(result.figures, now=now)
        self._waiting()
        for key in [key for key in self._shown if key[0] in result.figures.queues_gone]:
            del self._shown[key]
            meter.forget("pending_gangs", queue=key[0], reason=key[1].value)

    def _attempts(self, result: CycleResult) -> None:
        if result.binds:
            self._meter.count("schedule_attempts", len(result.binds), result="scheduled")
        lacking = sum(gang.lacking for gang in result.figures.gangs if gang.tried)
        if lacking:
            self._meter.count("schedule_attempts", lacking, result="unschedulable")

    def _waiting(self) -> None:
        now = {key: count for key, count in self._scheduler.waiting().items() if count}
        if now == {key: count for key, count in self._shown.items() if count}:
            return
        for queue, reason in sorted(now.keys() | self._shown.keys()):
            self._meter.gauge("pending_gangs", now.get((queue, reason), 0), queue=queue, reason=reason.value)
        self._meter.gauge("unschedule_job_count", sum(now.values()))
        self._shown = {key: now.get(key, 0) for key in now.keys() | self._shown.keys()}
