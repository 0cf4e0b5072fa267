"""What a user reads about a gang that waits: in the PodGroup's condition, in the pods' conditions, as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import WaitReason
from vcbatch.scheduler.model.result import Shortage
from vcbatch.scheduler.simulation.outcome import reason_json

INFRA = {"key": "dedicated", "value": "infra", "effect": "NoSchedule"}


class Report(NamedTuple):
    """What the gang `big` is told; `head` is of the condition's message what comes before the origin of it."""

    head: str
    origin: str
    pod: str
    reason: WaitReason
    shortages: list[Shortage]
    ahead: tuple[str, ...] = ()


def _nodes(count: int = 3) -> Cluster:
    cluster = Cluster()
    for number in range(count):
        cluster.node(f"n{number}")
    return cluster


def _gang_too_large() -> Cluster:
    cluster = _nodes()
    cluster.gang("big", 40)
    return cluster


def _pod_too_large() -> Cluster:
    cluster = _nodes()
    cluster.gang("big", 2, cpu="64")
    return cluster


def _over_its_share() -> Cluster:
    cluster = _nodes()
    cluster.queue("small", weight=1)
    cluster.queue("large", weight=3)
    cluster.gang("old", 16, queue="large")
    cluster.cycle()
    cluster.run("old")
    cluster.gang("more", 8, queue="large")
    cluster.gang("big", 12, queue="small")
    return cluster


def _selector_without_nodes() -> Cluster:
    cluster = _nodes()
    cluster.gang("big", 2, pod={"nodeSelector": {"gpu": "a100"}})
    return cluster


def _tainted() -> Cluster:
    cluster = Cluster()
    for number in range(3):
        cluster.node(f"n{number}", taints=[INFRA])
    cluster.gang("big", 2)
    return cluster


def _mixture() -> Cluster:
    cluster = _nodes(2)
    cluster.node("tainted", taints=[INFRA])
    cluster.node("cordoned", unschedulable=True)
    cluster.node("small", cpu="4")
    cluster.gang("old", 14)
    cluster.cycle()
    cluster.run("old")
    cluster.gang("first", 4, cpu="3")
    cluster.gang("big", 2, cpu="6")
    return cluster


CASES: dict[str, tuple[Callable[[], Cluster], Report]] = {
    "a gang larger than the cluster": (
        _gang_too_large,
        Report(
            "40/40 tasks in gang unschedulable: pod group is not ready, 40 Pending, 40 minAvailable; "
            "Pending: 40 Unschedulable",
            "the gang needs cpu 40 with 0 held of 24 in the whole cluster (queue default): short by cpu 16",
            "the gang needs cpu 40 with 0 held of 24 in the whole cluster (queue default): short by cpu 16",
            WaitReason.IMPOSSIBLE,
            [Shortage("cpu", "40", "24", "16")],
        ),
    ),
    "a pod larger than any node": (
        _pod_too_large,
        Report(
            "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; "
            "Pending: 2 Unschedulable",
            "big-worker-0: 0/3 nodes are unavailable: 3 Insufficient cpu. "
            "big-worker-0 needs cpu 64, the largest node has 8",
            "0/3 nodes are unavailable: 3 Insufficient cpu. big-worker-0 needs cpu 64, the largest node has 8",
            WaitReason.IMPOSSIBLE,
            [Shortage("cpu", "64", "8", "56")],
        ),
    ),
    "a queue that has its share": (
        _over_its_share,
        Report(
            "12/12 tasks in gang unschedulable: pod group is not ready, 12 Pending, 12 minAvailable; "
            "Pending: 12 Unschedulable",
            "the gang needs cpu 12 with 0 held of 6 deserved (queue small): short by cpu 6",
            "the gang needs cpu 12 with 0 held of 6 deserved (queue small): short by cpu 6",
            WaitReason.QUEUE_LIMIT,
            [Shortage("cpu", "12", "6", "6")],
        ),
    ),
    "a selector that no node matches": (
        _selector_without_nodes,
        Report(
            "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; "
            "Pending: 2 Unschedulable",
            "big-worker-0: 0/3 nodes are unavailable: 3 node(s) didn't match Pod's node affinity/selector. "
            "no node passes the constraints of big-worker-0",
            "0/3 nodes are unavailable: 3 node(s) didn't match Pod's node affinity/selector. "
            "no node passes the constraints of big-worker-0",
            WaitReason.IMPOSSIBLE,
            [],
        ),
    ),
    "taints everywhere": (
        _tainted,
        Report(
            "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; "
            "Pending: 2 Unschedulable",
            "big-worker-0: 0/3 nodes are unavailable: 3 node(s) had untolerated taint {dedicated: infra}. "
            "no node passes the constraints of big-worker-0",
            "0/3 nodes are unavailable: 3 node(s) had untolerated taint {dedicated: infra}. "
            "no node passes the constraints of big-worker-0",
            WaitReason.IMPOSSIBLE,
            [],
        ),
    ),
    "a mixture, and somebody ahead": (
        _mixture,
        Report(
            "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; "
            "Pending: 2 Unschedulable",
            "big-worker-0: 0/5 nodes are unavailable: 1 node(s) had untolerated taint {dedicated: infra}, "
            "1 node(s) were unschedulable, 3 Insufficient cpu. big-worker-0 needs cpu 6, largest free 4; "
            "the 2 pods still needed ask for cpu 12 of 6 free in all nodes together, short by cpu 4 "
            "on node n1 and something on 1 more",
            "0/5 nodes are unavailable: 1 node(s) had untolerated taint {dedicated: infra}, "
            "1 node(s) were unschedulable, 3 Insufficient cpu. big-worker-0 needs cpu 6, largest free 4; "
            "the 2 pods still needed ask for cpu 12 of 6 free in all nodes together, short by cpu 4 "
            "on node n1 and something on 1 more",
            WaitReason.INSUFFICIENT,
            [Shortage("cpu", "6", "2", "4")],
            ("ns/first",),
        ),
    ),
}


@pytest.mark.parametrize(("build", "reported"), CASES.values(), ids=CASES)
def test_what_a_user_reads(build: Callable[[], Cluster], reported: Report) -> None:
    cluster = build()
    result = cluster.cycle()
    message = f"{reported.head}. Origin reason is {reported.reason.value}: {reported.origin}"
    condition = cluster.condition("big", "Unschedulable")
    assert condition is not None
    assert (condition["reason"], condition["message"]) == ("NotEnoughResources", message)
    assert {c.message for c in result.pod_conditions if c.name.startswith("big-")} == {
        f"{reported.reason.value}: {reported.pod}"
    }
    assert [e.message for e in result.events if e.name == "big"] == [message]
    explanation = cluster.scheduler.explain("ns", "big")
    assert explanation is not None
    assert (explanation.reason, explanation.message) == (reported.reason, message)
    assert cluster.scheduler.waiting()[explanation.queue, reported.reason] >= 1, "the label of the metric"
    assert reason_json(explanation)["reason"] == reported.reason.value, "what the command line prints"
    assert list(explanation.shortages) == reported.shortages
    assert tuple(explanation.ahead) == reported.ahead
    assert len(message.encode()) < 1024


def test_gangs_of_one_kind_are_told_about_their_own_pods() -> None:
    """The reason is found once for all of them; the names aren't shared."""
    cluster = _nodes(1)
    for name in ("one", "two", "three"):
        cluster.gang(name, 2, cpu="64")
    reported = cluster.cycle().pod_conditions
    assert {c.message.split(". ")[1] for c in reported} == {
        f"{name}-worker-0 needs cpu 64, the largest node has 8" for name in ("one", "two", "three")
    }


def test_the_first_of_a_fifo_queue_holds_the_others_up_also_while_nothing_changes() -> None:
    cluster = _nodes(1)
    cluster.queue("line", dequeueStrategy="fifo")
    cluster.gang("holder", 1)
    cluster.cycle()
    cluster.gang("first", 8, queue="line")
    cluster.gang("second", 1, queue="line")
    for _ in range(3):
        cluster.cycle()
    assert not cluster.placed("second")
