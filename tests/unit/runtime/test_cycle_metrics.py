"""Cycles in metrics: who waits for what in the reasons' own words, who was evicted, what queues hold."""

from __future__ import annotations

from typing import Any

from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.cycle_metrics import CycleMetrics
from vcbatch.scheduler.result import CycleResult, Eviction, QueueShare, QueueStatusUpdate, WaitReason


class Scheduler:
    def __init__(self) -> None:
        self.now: dict[tuple[str, WaitReason], int] = {}

    def waiting(self) -> dict[tuple[str, WaitReason], int]:
        return self.now


def measured() -> tuple[Scheduler, CycleMetrics, Any]:
    meter, scheduler = PrometheusMeter(), Scheduler()

    def value(name: str, **labels: str) -> float | None:
        return meter.registry.get_sample_value(name, labels)

    return scheduler, CycleMetrics(meter, scheduler), value


def test_gangs_that_wait_are_counted_by_queue_and_reason_and_forgotten_when_they_start():
    scheduler, metrics, value = measured()
    scheduler.now = {("q", WaitReason.IMPOSSIBLE): 2, ("p", WaitReason.QUEUE_LIMIT): 1, ("p", WaitReason.VOLUMES): 0}
    metrics.of(CycleResult(), seconds=0.01)
    assert value("vcbatch_gangs_waiting", queue="q", reason="Impossible") == 2
    assert value("vcbatch_gangs_waiting", queue="p", reason="QueueLimit") == 1
    assert value("volcano_unschedule_job_count") == 3
    scheduler.now = {("q", WaitReason.IMPOSSIBLE): 1}
    metrics.of(CycleResult(), seconds=0.01)
    assert value("vcbatch_gangs_waiting", queue="q", reason="Impossible") == 1
    assert value("vcbatch_gangs_waiting", queue="p", reason="QueueLimit") == 0
    assert value("volcano_unschedule_job_count") == 1


def test_evictions_are_counted_by_action_under_both_names():
    _, metrics, value = measured()
    evictions = [Eviction(namespace="ns", name=str(i), uid=str(i), reason="preempt", message="") for i in range(3)]
    metrics.of(CycleResult(evictions=evictions), seconds=0.5)
    assert value("vcbatch_evictions_total", action="preempt") == 3
    assert value("volcano_eviction_transactions_total", action="preempt") == 3
    assert value("volcano_pod_preemption_victims") == 3
    metrics.of(CycleResult(), seconds=0.5)
    assert value("volcano_pod_preemption_victims") == 0
    assert value("volcano_total_preemption_attempts_total") == 1


def test_what_queues_hold_is_in_volcanos_units():
    _, metrics, value = measured()
    amounts = {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": "4", "gone": None, "odd": "?"}
    update = QueueStatusUpdate(name="q", uid="q", resource_version="1", allocated=amounts)
    metrics.of(CycleResult(queue_statuses=[update]), seconds=0.5)
    assert value("volcano_queue_allocated_milli_cpu", queue_name="q") == 1500
    assert value("volcano_queue_allocated_memory_bytes", queue_name="q") == 2 * 2**30
    assert value("volcano_queue_allocated_scalar_resources", queue_name="q", resource="nvidia.com/gpu") == 4000
    assert value("volcano_queue_allocated_scalar_resources", queue_name="q", resource="gone") == 0
    assert value("volcano_queue_allocated_scalar_resources", queue_name="q", resource="odd") is None


def test_a_queue_that_holds_more_than_it_deserves_is_overused():
    _, metrics, value = measured()
    metrics.of(CycleResult(queue_shares=[QueueShare("q", 1.5), QueueShare("p", 1.0)]), seconds=0.5)
    assert value("volcano_queue_share", queue_name="q") == 1.5
    assert value("volcano_queue_overused", queue_name="q") == 1
    assert value("volcano_queue_overused", queue_name="p") == 0


def test_a_cycle_is_timed_in_both_units():
    _, metrics, value = measured()
    metrics.of(CycleResult(), seconds=0.02)
    assert value("vcbatch_cycles_total") == 1
    assert value("vcbatch_cycle_seconds_sum") == 0.02
    assert value("volcano_e2e_scheduling_latency_milliseconds_sum") == 20
