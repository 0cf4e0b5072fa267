"""Taking back what other queues hold beyond their share."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import CycleResult, parse_policy

POLICY = """
actions: "allocate, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
configurations:
- name: reclaim
  arguments: {{preventTakeBack: {prevent}}}
"""


def cluster(*, nodes: int = 1, cpu: str = "4", prevent: bool = False) -> Cluster:
    found = Cluster(parse_policy(POLICY.format(prevent=str(prevent).lower())))
    for i in range(nodes):
        found.node(f"n{i}", cpu=cpu)
    found.queue("lender")
    found.queue("other")
    return found


def running(found: Cluster, name: str, size: int, **given: object) -> None:
    found.gang(name, size, **{"minimum": 1, "queue": "lender", **given})
    while found.cycle().binds:
        pass
    found.run(name)
    assert len(found.placed(name)) == size


def evicted(result: CycleResult) -> list[str]:
    return sorted(eviction.name for eviction in result.evictions)


def test_a_queue_gets_its_share_back_and_not_more() -> None:
    found = cluster()
    running(found, "old", 4)
    found.gang("new", 3, minimum=2)
    result = found.cycle()
    assert evicted(result) == ["old-worker-2", "old-worker-3"]
    assert {h.name for h in result.held if h.nominated} == {"new-worker-0", "new-worker-1"}
    assert {e.reason for e in result.evictions} == {"reclaim"}
    assert "queue default takes back what queue lender holds beyond its share" in result.evictions[0].message


def test_a_gang_that_needs_more_than_the_share_gets_nothing() -> None:
    found = cluster()
    running(found, "old", 4)
    found.gang("new", 3)
    assert evicted(found.cycle()) == []


def test_a_queue_that_is_not_reclaimable_keeps_what_it_has() -> None:
    found = cluster()
    found.queue("lender", event="MODIFIED", reclaimable=False)
    running(found, "old", 4)
    found.gang("new", 2)
    assert evicted(found.cycle()) == []


def test_a_queue_that_is_closed_takes_nothing() -> None:
    found = cluster()
    found.queue("default", event="MODIFIED", state="Closed")
    running(found, "old", 4)
    found.gang("new", 2)
    assert evicted(found.cycle()) == []


def test_a_pod_that_was_bound_and_does_not_run_yet_stays() -> None:
    found = cluster()
    found.gang("old", 4, minimum=1, queue="lender")
    while found.cycle().binds:
        pass
    found.gang("new", 2)
    assert evicted(found.cycle()) == []
    found.run("old")
    assert evicted(found.cycle()) == ["old-worker-2", "old-worker-3"]


def test_the_first_node_by_name_where_it_works_is_taken() -> None:
    found = cluster(nodes=2, cpu="2")
    running(found, "old", 4)
    found.gang("new", 1, cpu="2")
    result = found.cycle()
    assert {h.node for h in result.held} == {"n0"}
    assert {found.placed("old")[name] for name in evicted(result)} == {"n0"}


def test_what_filters_still_refuse_after_evictions_is_no_place() -> None:
    term = {"labelSelector": {"matchLabels": {"gang": "kept"}}, "topologyKey": "kubernetes.io/hostname"}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    found = cluster(nodes=1, cpu="4")
    running(found, "kept", 1, pod={"notes": {"volcano.sh/preemptable": "false"}})
    running(found, "old", 3)
    found.gang("new", 1, pod={"affinity": away})
    assert evicted(found.cycle()) == []
    found.delete("kept-worker-0")
    assert {bind.name for bind in found.cycle().binds} == {"new-worker-0"}


def test_a_share_that_is_no_whole_number_of_pods_does_not_go_to_and_fro() -> None:
    """Three cpus, two queues, pods of two cpus: half the cluster is less than a pod, and the memory of a queue that has
    none of it is below its share."""
    for prevent in (False, True):
        found = cluster(cpu="3", prevent=prevent)
        running(found, "old", 1, cpu="2")
        found.gang("new", 1, cpu="2")
        count = 0
        for round_ in range(6):
            result = found.cycle()
            for eviction in result.evictions:
                count += 1
                gang = eviction.name.split("-")[0]
                found.delete(eviction.name)
                found.pod(gang, round_ + 1, cpu="2")
            for gang in ("old", "new"):
                found.run(gang)
        assert count <= 1


ANY = POLICY.replace("proportion", "capacity")


def pushers(prevent: str) -> Cluster:
    """Two queues that deserve less cpu than a pod takes, and more memory than all of them: so each may always take from
    the other, which always holds too much."""
    found = Cluster(parse_policy(ANY.format(prevent=prevent)))
    found.node("n0", cpu="6")
    for queue in ("one", "two"):
        found.queue(queue, deserved={"cpu": "3", "memory": "64Gi"})
        found.gang(queue, 1, cpu="4", queue=queue)
    found.cycle()
    found.run("one")
    return found


def cycles(found: Cluster, count: int) -> int:
    """How many pods are evicted in so many cycles. Who is bound runs; victims are back once others have places."""
    gone: list[str] = []
    evictions = 0
    for _ in range(count):
        result = found.cycle()
        for gang in found.groups:
            found.run(gang)
        for gang in gone:
            found.pod(gang, 0, cpu="4")
        gone = [eviction.name.partition("-")[0] for eviction in result.evictions]
        for eviction in result.evictions:
            found.delete(eviction.name)
        evictions += len(gone)
    return evictions


def wake_ups(found: Cluster, rounds: int) -> int:
    """The same while gangs that have nothing to do with it come and go."""
    evictions = 0
    for number in range(rounds):
        found.gang(f"passer-by-{number}", 1)
        evictions += cycles(found, 4)
        found.delete_gang(f"passer-by-{number}")
    return evictions


def test_gangs_push_each_other_out_no_further_than_once_while_nothing_else_changes() -> None:
    assert cycles(pushers("false"), 20) == 1


def test_nobody_is_evicted_who_could_take_the_place_back_at_once() -> None:
    assert wake_ups(pushers("true"), 20) == 0


def test_gangs_that_push_each_other_out_leave_off_for_twice_as_long_each_time() -> None:
    found = pushers("false")
    first = wake_ups(found, 16)
    assert 2 <= first <= 10
    assert wake_ups(found, 48) <= 4, "of four times as many rounds"


@pytest.mark.parametrize(
    ("spare", "idle", "gone"),
    [
        pytest.param(0, 2, ["idle-worker-1"], id="all of its gang are needed"),
        pytest.param(1, 2, [], id="its gang has one more than it needs"),
        pytest.param(0, 0, [], id="all the others ask for something"),
    ],
)
def test_what_asks_for_nothing_takes_the_place_of_its_like_where_its_gang_needs_it(
    spare: int, idle: int, gone: list[str]
) -> None:
    """The node has room for five pods, of which the gang has one; it waits for another. A spare one fits nowhere."""
    found = cluster()
    found.node("n0", event="MODIFIED", cpu="40", pods="5")
    running(found, "mine", 1, queue="default")
    running(found, "busy", 4 - idle)
    found.gang("idle", idle, minimum=1, queue="lender", cpu=None, pod={"nodeName": "n0"})
    found.run("idle")
    found.groups["mine"]["spec"]["minMember"] = 2
    found.report_group("mine")
    found.pod("mine", 1, cpu=None)
    for index in range(spare):
        found.pod("mine", 2 + index, cpu="100")
    assert evicted(found.cycle()) == gone
