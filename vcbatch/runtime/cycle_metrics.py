"""What a cycle says to the metrics system: who waits for what in the words of the PodGroups, who was evicted, what
queues hold; some of it also under the names that dashboards of Volcano know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.runtime.meter import Meter
from vcbatch.scheduler.result import CycleResult, QueueStatusUpdate, WaitReason


class Waiting(Protocol):
    """Who knows how many gangs of each queue wait for which reason."""

    def waiting(self) -> Mapping[tuple[str, WaitReason], int]: ...


class CycleMetrics:
    """Told of every cycle."""

    def __init__(self, meter: Meter, scheduler: Waiting) -> None:
        self._meter = meter
        self._scheduler = scheduler
        self._shown: dict[tuple[str, WaitReason], int] = {}

    def of(self, result: CycleResult, *, seconds: float) -> None:
        """One cycle and how long it took."""
        meter = self._meter
        meter.count("cycles")
        meter.seconds("cycle_seconds", seconds)
        meter.seconds("e2e_scheduling_latency_milliseconds", seconds * 1000)
        for eviction in result.evictions:
            meter.count("evictions", action=eviction.reason)
            meter.count("eviction_transactions", action=eviction.reason)
        meter.gauge("pod_preemption_victims", len(result.evictions))
        if result.evictions:
            meter.count("total_preemption_attempts")
        for update in result.queue_statuses:
            self._queue(update)
        for share in result.queue_shares:
            meter.gauge("queue_share", share.share, queue_name=share.queue)
            meter.gauge("queue_overused", float(share.share > 1), queue_name=share.queue)
        self._waiting()

    def _waiting(self) -> None:
        now = {key: count for key, count in self._scheduler.waiting().items() if count}
        if now == self._shown:
            return
        for queue, reason in sorted(now.keys() | self._shown.keys()):
            self._meter.gauge("gangs_waiting", now.get((queue, reason), 0), queue=queue, reason=reason.value)
        self._meter.gauge("unschedule_job_count", sum(now.values()))
        self._shown = now

    def _queue(self, update: QueueStatusUpdate) -> None:
        for resource, text in update.allocated.items():
            try:
                amount = parse_quantity(text or "0")
            except MalformedQuantity:
                continue
            match resource:
                case "cpu":
                    self._meter.gauge("queue_allocated_milli_cpu", amount.milli(), queue_name=update.name)
                case "memory":
                    self._meter.gauge("queue_allocated_memory_bytes", amount.value(), queue_name=update.name)
                case _:
                    self._meter.gauge(
                        "queue_allocated_scalar_resources",
                        amount.milli(),
                        queue_name=update.name,
                        resource=resource,
                    )
