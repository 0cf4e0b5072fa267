"""What queues by weight may lose and take back, where shares are no whole numbers."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, policy, requests, session, task_of
from vcbatch.scheduler.plugins.proportion import Proportion


def cluster(cpu: str) -> Cluster:
    """Of each resource `lender` deserves a twentieth, `default` the rest; both want more than there is."""
    made = Cluster(policy("proportion"))
    made.node("n", cpu=cpu, memory="64Gi", pods="1000")
    made.queue("lender", weight=1)
    made.queue("default", event="MODIFIED", weight=19)
    for queue in ("lender", "default"):
        made.gang(f"all-{queue}", 30, queue=queue, cpu="1")
    made.gang("new", 1, cpu="1")
    return made


def holding(made: Cluster, *cpu: str, queue: str = "lender") -> list[str]:
    made.gang("old", len(cpu), queue=queue, minimum=1, pod={"nodeName": "n"})
    for index, amount in enumerate(cpu):
        requests(made, f"old-worker-{index}", cpu=amount)
    made.run("old")
    return [f"old-worker-{index}" for index in range(len(cpu))]


def victims(made: Cluster, candidates: list[str]) -> list[str]:
    opened = session(made, policy("proportion"))
    found = plugin_of(opened, Proportion).reclaimable(
        task_of(opened, "new-worker-0"), [task_of(opened, name) for name in candidates]
    )
    return [task.name for task in found]


@pytest.mark.parametrize(
    ("cpu", "held", "gone"),
    [
        ("10039m", "502m", []),  # deserves 501.95m
        ("10041m", "502m", []),  # 502.05m
        ("10036m", "502m", ["old-worker-0"]),  # 501.8m
        ("10040m", "502m", []),  # as much
    ],
)
def test_a_tenth_of_the_smallest_amount_is_no_excess(cpu: str, held: str, gone: list[str]) -> None:
    made = cluster(cpu)
    assert victims(made, holding(made, held)) == gone


def test_a_queue_loses_pods_while_it_holds_too_much_of_any_resource() -> None:
    """It deserves half a core, and holds 0.7 with these."""
    made = cluster("10")
    pods = holding(made, "100m", "100m", "300m", "100m", "100m")
    assert victims(made, pods) == pods[:2]
    # 0.6 after the first, 0.3 after the third
    assert victims(made, [pods[0], pods[2], pods[1]]) == [pods[0], pods[2]]


@pytest.mark.parametrize(("cpu", "held", "may"), [("10039m", "501m", False), ("10040m", "501m", True)])
def test_what_a_queue_may_take_is_compared_without_tolerance(cpu: str, held: str, may: bool) -> None:
    """With one milli-core more the queue holds 502; it deserves 501.95 or 502."""
    made = cluster(cpu)
    holding(made, held)
    requests(made, "all-lender-worker-0", cpu="1m")
    opened = session(made, policy("proportion"))
    task = task_of(opened, "all-lender-worker-0")
    assert task.job is not None
    assert task.job.queue is not None
    plugin = plugin_of(opened, Proportion)
    assert plugin.preemptive(task.job.queue, task.cls.request) is may
    assert plugin.room(task.job.queue, task.cls.request) == int(may)


@pytest.mark.parametrize("cpu", ["10039m", "10041m"])
def test_a_queue_is_overused_once_it_holds_all_it_deserves(cpu: str) -> None:
    """Within a tenth of the smallest amount: it deserves 501.95 or 502.05 milli-cores, one pod and one byte."""
    made = cluster(cpu)
    made.node("n", event="MODIFIED", cpu=cpu, memory="20", pods="20")
    holding(made, "502m")
    for held, overused in (("502m", True), ("501m", False)):
        requests(made, "old-worker-0", cpu=held, memory="1")
        opened = session(made, policy("proportion"))
        reported = plugin_of(opened, Proportion).overused(opened.state.queues["lender"])
        assert (reported is not None) is overused


def test_what_a_queue_without_gangs_is_guaranteed_is_nobody_else_s() -> None:
    made = Cluster(policy("proportion"))
    made.node("n", cpu="10", memory="64Gi", pods="1000")
    made.queue("idle", guarantee={"resource": {"cpu": "4"}})
    made.gang("new", 1, cpu="1")
    opened = session(made, policy("proportion"))
    queue = opened.state.queues["default"]
    ledger = plugin_of(opened, Proportion).ledger(queue, task_of(opened, "new-worker-0").cls.request)
    assert ledger is not None
    assert ledger.ever is not None
    assert ledger.ever[0] == 6000
    assert ledger.limit[0] == 1000
