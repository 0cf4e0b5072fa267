"""Cycles in metrics: who waits for what in the reasons' own words, who was evicted, what queues and gangs hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.metrics import Scrape
from tests.support.virtual_time import VirtualClock
from tests.unit.scheduler.cluster import START, Cluster
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.metrics.cycles import CycleMetrics
from vcbatch.runtime.metrics.laps import CycleLaps
from vcbatch.scheduler import CycleResult, parse_policy
from vcbatch.scheduler.framework.laps import Part
from vcbatch.scheduler.model.result import Eviction, WaitReason
from vcbatch.scheduler.reasons.conditions import waiting_since

PLUGINS = "actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"


class Waiting:
    def __init__(self) -> None:
        self.now: dict[tuple[str, WaitReason], int] = {}

    def waiting(self) -> dict[tuple[str, WaitReason], int]:
        return self.now


class Ticks(VirtualClock):
    """Stands still but when it is moved."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Measured:
    """A little cluster whose cycles are measured."""

    def __init__(self, *plugins: str) -> None:
        policy = PLUGINS + "".join(f"  - {plugin}\n" for plugin in plugins)
        self.cluster = Cluster(parse_policy(policy))
        self.meter = PrometheusMeter()
        self.metrics = CycleMetrics(self.meter, self.cluster.scheduler)

    def cycle(self) -> Scrape:
        result = self.cluster.cycle()
        self.metrics.of(result, now=self.cluster.now, seconds=0.01)
        return Scrape(self.meter)


def reported(*results: CycleResult, waiting: Waiting | None = None) -> tuple[CycleMetrics, PrometheusMeter]:
    meter = PrometheusMeter()
    metrics = CycleMetrics(meter, waiting or Waiting())
    for result in results:
        metrics.of(result, now=START, seconds=0.02)
    return metrics, meter


def amounts(scrape: Scrape, queue: str, resource: str = "milli_cpu") -> dict[str, float | None]:
    kinds = ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
    return {kind: scrape.value(f"volcano_queue_{kind}_{resource}", queue_name=queue) for kind in kinds}


def test_gangs_that_wait_are_counted_by_queue_and_reason_until_they_start() -> None:
    waiting = Waiting()
    waiting.now = {("q", WaitReason.IMPOSSIBLE): 2, ("p", WaitReason.QUEUE_LIMIT): 1, ("p", WaitReason.VOLUMES): 0}
    metrics, meter = reported(CycleResult(), waiting=waiting)
    scrape = Scrape(meter)
    assert scrape.value("vcbatch_pending_gangs", queue="q", reason="Impossible") == 2
    assert scrape.value("vcbatch_pending_gangs", queue="p", reason="QueueLimit") == 1
    assert scrape.value("volcano_unschedule_job_count") == 3
    waiting.now = {("q", WaitReason.IMPOSSIBLE): 1}
    metrics.of(CycleResult(), now=START, seconds=0.01)
    scrape = Scrape(meter)
    assert scrape.value("vcbatch_pending_gangs", queue="q", reason="Impossible") == 1
    assert scrape.value("vcbatch_pending_gangs", queue="p", reason="QueueLimit") == 0
    assert scrape.value("volcano_unschedule_job_count") == 1


def test_evictions_are_counted_by_action_under_both_names() -> None:
    evictions = [Eviction(namespace="ns", name=str(i), uid=str(i), reason="preempt", message="") for i in range(3)]
    metrics, meter = reported(CycleResult(evictions=evictions))
    scrape = Scrape(meter)
    assert scrape.value("vcbatch_evictions_total", action="preempt") == 3
    assert scrape.value("volcano_eviction_transactions_total", action="preempt") == 3
    assert scrape.value("volcano_pod_preemption_victims") == 3
    metrics.of(CycleResult(), now=START, seconds=0.5)
    scrape = Scrape(meter)
    assert scrape.value("volcano_pod_preemption_victims") == 0
    assert scrape.counted("volcano_total_preemption_attempts") == 1


def test_a_cycle_is_timed_in_both_units() -> None:
    _, meter = reported(CycleResult())
    scrape = Scrape(meter)
    assert scrape.value("vcbatch_cycles_total") == 1
    assert scrape.value("vcbatch_cycle_duration_seconds_sum") == 0.02
    assert scrape.value("volcano_e2e_scheduling_latency_milliseconds_sum") == 20


def test_what_queues_by_quota_hold_and_may_hold_is_in_volcanos_units() -> None:
    made = Measured("name: capacity")
    made.cluster.node("n", cpu="8", nvidia_gpu="4")
    made.cluster.queue(
        "q", weight=3, capability={"cpu": "6"}, deserved={"cpu": "2", "nvidia/gpu": "2"}, guarantee={"resource": {}}
    )
    made.cluster.queue("other", guarantee={"resource": {"cpu": "1"}})
    made.cluster.gang("runs", 3, queue="q")
    made.cluster.gang("waits", 2, queue="q", cpu="7", minResources={"cpu": "14"})
    scrape = made.cycle()
    assert amounts(scrape, "q") == {
        "allocated": 3000,
        "request": 3000 + 14_000,
        "deserved": 2000,
        "capacity": 6000,
        "real_capacity": 6000,
        "inqueue": 14_000,
    }
    assert amounts(scrape, "q", "memory_bytes")["allocated"] == 3 * 2**30
    assert amounts(scrape, "other")["real_capacity"] == 8000
    assert amounts(scrape, "other")["capacity"] is None, "nothing limits it"
    assert amounts(scrape, "default")["real_capacity"] == 7000, "less what another is guaranteed"
    gpus = {"queue_name": "q", "resource": "nvidia/gpu"}
    assert scrape.value("volcano_queue_deserved_scalar_resources", **gpus) == 2000
    assert scrape.value("volcano_queue_real_capacity_scalar_resources", **gpus) == 4000
    assert scrape.value("volcano_queue_share", queue_name="q") == 1.5
    assert scrape.value("volcano_queue_overused", queue_name="q") == 1
    assert scrape.value("volcano_queue_overused", queue_name="other") == 0
    assert scrape.value("volcano_queue_weight", queue_name="q") == 3


def test_what_queues_by_weight_deserve() -> None:
    made = Measured("name: proportion")
    made.cluster.node("n", cpu="8")
    made.cluster.queue("a", weight=3)
    made.cluster.queue("b", weight=1)
    made.cluster.gang("one", 8, queue="a", minimum=6)
    made.cluster.gang("two", 4, queue="b", minimum=1)
    scrape = made.cycle()
    assert amounts(scrape, "a")["deserved"] == 6000
    assert amounts(scrape, "b")["deserved"] == 2000
    assert amounts(scrape, "a")["allocated"] == 6000
    assert amounts(scrape, "a")["request"] == 8000
    assert scrape.value("volcano_queue_share", queue_name="a") == 1
    assert scrape.value("volcano_queue_overused", queue_name="a") == 0, "of memory it has less than it deserves"


def test_a_queue_takes_its_series_with_it() -> None:
    made = Measured("name: capacity")
    made.cluster.node("n", cpu="8")
    made.cluster.queue("q", deserved={"cpu": "2"}, capability={"cpu": "4", "nvidia/gpu": "1"})
    made.cluster.gang("waits", 1, queue="q", cpu="20")
    scrape = made.cycle()
    assert _series_of_queues(scrape, "q")
    assert scrape.value("vcbatch_pending_gangs", queue="q", reason="Impossible") == 1
    made.cluster.delete_gang("waits")
    made.cluster.queue("q", event="DELETED")
    scrape = made.cycle()
    assert _series_of_queues(scrape, "q") == []
    assert _series_of_queues(scrape, "default")


def test_amounts_that_no_plugin_knows_any_more_end() -> None:
    made = Measured("name: capacity")
    made.cluster.node("n", cpu="8")
    assert amounts(made.cycle(), "default")["deserved"] == 0
    made.cluster.scheduler.set_policy(parse_policy(PLUGINS))
    scrape = made.cycle()
    assert amounts(scrape, "default")["deserved"] is None
    assert amounts(scrape, "default")["allocated"] == 0
    assert scrape.value("volcano_queue_share", queue_name="default") is None
    assert scrape.value("volcano_queue_weight", queue_name="default") == 1


def test_only_what_changed_is_told() -> None:
    made = Measured("name: proportion", "name: drf")
    made.cluster.node("n", cpu="8")
    for name in ("a", "b"):
        made.cluster.queue(name)
        made.cluster.gang(f"of-{name}", 1, queue=name)
    made.cycle()
    made.cycle()
    made.cluster.gang("more", 1, queue="b")
    figures = made.cluster.cycle().figures
    assert {reported.queue for reported in figures.amounts} == {"b"}
    assert {gang.name for gang in figures.gangs} == {"more"}
    assert not made.cluster.cycle().figures.amounts


def test_how_a_gang_fares_is_told_until_its_podgroup_is_gone() -> None:
    made = Measured("name: drf")
    made.cluster.node("n", cpu="8")
    made.cluster.gang("g", 3, cpu="4")
    scrape = made.cycle()
    seen = int(made.cluster.now.timestamp())
    gang = {"job_name": "g", "queue": "default", "job_namespace": "ns"}
    assert scrape.value("volcano_e2e_job_scheduling_start_time", **gang) == seen
    assert scrape.value("volcano_e2e_job_scheduling_last_time", **gang) is None
    assert scrape.value("volcano_unschedule_task_count", job_id="ns/g") == 1, "two would have a place"
    assert scrape.counted("volcano_job_retry_counts", job_id="ns/g") == 1
    assert scrape.value("volcano_schedule_attempts_total", result="unschedulable") == 1
    made.cluster.node("m", cpu="8")
    scrape = made.cycle()
    placed = made.cluster.now
    created = START.replace(month=5, second=0)
    taken = (placed - created) / timedelta(milliseconds=1)
    assert scrape.value("volcano_e2e_job_scheduling_last_time", **gang) == int(placed.timestamp())
    assert scrape.value("volcano_e2e_job_scheduling_duration", **gang) == taken
    assert scrape.value("volcano_e2e_job_scheduling_latency_milliseconds_sum") == taken
    assert scrape.value("volcano_unschedule_task_count", job_id="ns/g") == 0
    assert scrape.value("volcano_job_share", job_ns="ns", job_id="g") == 0.75
    assert scrape.value("volcano_schedule_attempts_total", result="scheduled") == 3
    made.cluster.delete_gang("g")
    scrape = made.cycle()
    for name in ("unschedule_task_count", "job_share", "e2e_job_scheduling_duration"):
        assert scrape.labels(f"volcano_{name}") == []
    assert scrape.counted("volcano_job_retry_counts", job_id="ns/g") is None
    assert scrape.value("volcano_e2e_job_scheduling_latency_milliseconds_count") == 1


def test_a_gang_that_changes_its_queue_leaves_no_series_behind() -> None:
    made = Measured()
    made.cluster.node("n", cpu="8")
    made.cluster.queue("q")
    made.cluster.gang("g", 1)
    made.cycle()
    made.cluster.gang("late", 1, cpu="20")
    made.cycle()
    made.cluster.groups["late"]["spec"]["queue"] = "q"
    made.cluster.report_group("late")
    made.cluster.node("m", cpu="32")
    scrape = made.cycle()
    queues = {labels["queue"] for labels in scrape.labels("volcano_e2e_job_scheduling_last_time")}
    assert queues == {"default", "q"}
    late = [x for x in scrape.labels("volcano_e2e_job_scheduling_duration") if x["job_name"] == "late"]
    assert [labels["queue"] for labels in late] == ["q"]


def test_shares_of_gangs_move_with_the_cluster() -> None:
    made = Measured("name: drf")
    made.cluster.node("n", cpu="8")
    made.cluster.gang("g", 1, cpu="4")
    assert made.cycle().value("volcano_job_share", job_ns="ns", job_id="g") == 0.5
    made.cluster.node("m", cpu="8")
    assert made.cycle().value("volcano_job_share", job_ns="ns", job_id="g") == 0.25


def test_gangs_that_ran_before_the_scheduler_have_no_times() -> None:
    made = Measured()
    made.cluster.node("n", cpu="8")
    made.cluster.gang("g", 0, minimum=1, phase="Running")
    made.cluster.pod("g", 0, nodeName="n")
    made.cluster.change("g-worker-0", phase="Running")
    scrape = made.cycle()
    assert scrape.labels("volcano_e2e_job_scheduling_duration") == []
    assert not scrape.value("volcano_e2e_job_scheduling_latency_milliseconds_count")


def test_since_when_the_longest_waiting_gang_of_a_queue_waits() -> None:
    made = Measured()
    made.cluster.node("n", cpu="8")
    made.cluster.queue("q")
    made.cluster.gang("late", 1, queue="q", cpu="20", created="2026-05-02T10:00:00Z")
    made.cluster.gang("early", 1, queue="q", cpu="20", created="2026-05-01T10:00:00Z")
    made.cluster.gang("runs", 1, cpu="4")

    def since(queue: str) -> float | None:
        return made.cycle().value("vcbatch_oldest_pending_gang_timestamp_seconds", queue=queue)

    assert since("q") == datetime(2026, 5, 1, 10, tzinfo=UTC).timestamp()
    assert since("default") is None
    made.cluster.delete_gang("early")
    assert since("q") == datetime(2026, 5, 2, 10, tzinfo=UTC).timestamp()
    made.cluster.node("m", cpu="32")
    assert since("q") is None, "it has its place"


def test_a_gang_that_ran_waits_since_it_waits_again() -> None:
    status = {
        "conditions": [
            {"type": "Scheduled", "status": "False", "lastTransitionTime": "2026-05-03T10:00:00Z"},
            {"type": "Unschedulable", "status": "True", "lastTransitionTime": "2026-05-03T10:00:00Z"},
        ]
    }
    assert waiting_since(status) == "2026-05-03T10:00:00Z"
    status["conditions"][1]["status"] = "False"
    assert waiting_since(status) == "", "it runs"
    del status["conditions"][0]
    status["conditions"][0]["status"] = "True"
    assert waiting_since(status) == "", "it never ran: its creation counts"


def test_the_parts_of_a_cycle_are_timed() -> None:
    clock, meter = Ticks(), PrometheusMeter()
    laps = CycleLaps(clock, meter)
    laps.start()
    for seconds, part, name in (
        (0.001, Part.PLUGIN_OPENED, "gang"),
        (0.002, Part.OPENED, ""),
        (0.004, Part.ACTION, "allocate"),
        (0.008, Part.PLUGIN_CLOSED, "gang"),
    ):
        clock.seconds += seconds
        laps.lap(part, name)
    scrape = Scrape(meter)
    plugin = "volcano_plugin_scheduling_latency_milliseconds_sum"
    assert scrape.value(plugin, plugin="gang", OnSession="OnSessionOpen") == pytest.approx(1)
    assert scrape.value(plugin, plugin="gang", OnSession="OnSessionClose") == pytest.approx(8)
    assert scrape.value("volcano_open_session_duration_milliseconds_sum") == pytest.approx(3)
    action = scrape.value("volcano_action_scheduling_latency_milliseconds_sum", action="allocate")
    assert action == pytest.approx(4)


def test_every_plugin_and_action_of_the_policy_is_timed() -> None:
    made = Measured("name: capacity")
    made.cluster.scheduler.laps = CycleLaps(Ticks(), made.meter)
    scrape = made.cycle()
    opened = scrape.labels("volcano_plugin_scheduling_latency_milliseconds_count")
    assert {x["plugin"] for x in opened if x["OnSession"] == "OnSessionOpen"} == {"gang", "predicates", "capacity"}
    assert {x["plugin"] for x in opened if x["OnSession"] == "OnSessionClose"} == {"capacity"}
    actions = scrape.labels("volcano_action_scheduling_latency_milliseconds_count")
    assert {x["action"] for x in actions} == {"enqueue", "allocate"}


def _series_of_queues(scrape: Scrape, queue: str) -> list[Any]:
    names = [f"volcano_queue_{kind}" for kind in ("share", "weight", "overused")]
    for kind in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue"):
        names += [f"volcano_queue_{kind}_{unit}" for unit in ("milli_cpu", "memory_bytes", "scalar_resources")]
    found = [(n, x) for n in names for x in scrape.labels(n) if x["queue_name"] == queue]
    found += [("waiting", x) for x in scrape.labels("vcbatch_pending_gangs") if x["queue"] == queue]
    return found
