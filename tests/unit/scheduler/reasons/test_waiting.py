"""A gang that waits says why, with numbers, and says it once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.names import WOULD_START_IF
from vcbatch.api.remedies import Remedy, RemedyAction, read_remedies
from vcbatch.scheduler import DEFAULT_POLICY, CycleResult, Explanation, WaitReason, parse_policy


def _explained(cluster: Cluster, gang: str) -> Explanation:
    found = cluster.scheduler.explain("ns", gang)
    assert found is not None
    return found


def test_a_gang_that_is_larger_than_the_cluster_says_what_is_short() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.node("b", cpu="4")
    cluster.node("c", cpu="4")
    cluster.gang("big", 3, cpu="5")
    cluster.cycle()
    reported = _explained(cluster, "big")
    assert reported.reason is WaitReason.IMPOSSIBLE
    assert [tuple(s) for s in reported.shortages] == [("cpu", "5", "4", "1")]
    assert reported.nodes == {"Insufficient cpu": 3}
    assert reported.message.startswith(
        "2/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; "
        "Pending: 1 Schedulable, 2 Unschedulable. Origin reason is Impossible: big-worker-1: "
        "0/3 nodes are unavailable: 3 Insufficient cpu. big-worker-1 needs cpu 5, largest free 4"
    )
    condition = cluster.condition("big", "Unschedulable")
    assert condition is not None
    assert condition["message"] == reported.message
    assert condition["reason"] == "NotEnoughResources"


def test_a_pod_that_no_node_could_ever_take_is_impossible() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="8")
    cluster.gang("huge", 1, cpu="12")
    cluster.cycle()
    reported = _explained(cluster, "huge")
    assert reported.reason is WaitReason.IMPOSSIBLE
    assert [tuple(s) for s in reported.shortages] == [("cpu", "12", "8", "4")]


def test_a_gang_whose_sum_is_short_says_by_how_much() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="8")
    cluster.gang("wide", 10, cpu="3")
    cluster.cycle()
    reported = _explained(cluster, "wide")
    assert reported.reason is WaitReason.IMPOSSIBLE
    assert [tuple(s) for s in reported.shortages] == [("cpu", "30", "8", "22")]
    assert "the gang needs cpu 30 with 0 held of 8 in the whole cluster (queue default)" in reported.message
    cluster.pod("other", 0, schedulerName="default-scheduler", nodeName="a", cpu="4")
    cluster.gang("narrow", 2, cpu="3")
    cluster.cycle()
    reported = _explained(cluster, "narrow")
    assert reported.reason is WaitReason.INSUFFICIENT
    assert [tuple(s) for s in reported.shortages] == [("cpu", "3", "1", "2")]


def test_a_gang_that_runs_is_not_told_that_it_would_not_be_let_in() -> None:
    """A gang that lost a member and got another is Pending for a moment, and the cluster has no room for it twice."""
    cluster = Cluster()
    cluster.node("a", cpu="4")
    cluster.gang("whole", 2, cpu="2", minResources={"cpu": "4"})
    cluster.cycle()
    cluster.run("whole")
    cluster.cycle()
    cluster.groups["whole"]["status"]["phase"] = "Pending"
    cluster.report_group("whole")
    cluster.cycle()
    assert cluster.scheduler.phase("ns", "whole") == "Running"
    assert cluster.condition("whole", "Unschedulable") is None
    assert cluster.scheduler.explain("ns", "whole") is None


def test_a_queue_that_may_hold_everything_isnt_to_blame() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="8")
    cluster.gang("holder", 6)
    cluster.cycle()
    cluster.gang("next", 3)
    cluster.cycle()
    reported = _explained(cluster, "next")
    assert reported.reason is WaitReason.INSUFFICIENT
    assert "the gang needs cpu 3 with 6 held of 8 in the whole cluster" in reported.message
    assert [tuple(s) for s in reported.shortages] == [("cpu", "3", "2", "1")]


@pytest.mark.parametrize(
    ("node", "pod", "reason", "text"),
    [
        ({"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}, {}, WaitReason.IMPOSSIBLE, "taint {k: v}"),
        ({"unschedulable": True}, {}, WaitReason.NODE_UNSCHEDULABLE, "1 node(s) were unschedulable"),
        ({"ready": "False"}, {}, WaitReason.TAINT_TOLERATION, "taint {node.kubernetes.io/not-ready}"),
        ({}, {"nodeSelector": {"a": "b"}}, WaitReason.IMPOSSIBLE, "didn't match Pod's node affinity/selector"),
        ({"pods": "0"}, {}, WaitReason.IMPOSSIBLE, "1 node(s) pod number exceeded"),
        (
            {},
            {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]},
            WaitReason.VOLUMES,
            'persistentvolumeclaim "c" not found',
        ),
        ({}, {"resourceClaims": [{"name": "gpu"}]}, WaitReason.DEVICES, 'resourceclaim "gpu" of the pod'),
    ],
)
def test_constraints_are_named(node: dict[str, Any], pod: dict[str, Any], reason: WaitReason, text: str) -> None:
    cluster = Cluster()
    cluster.node("a", **node)
    cluster.gang("g", 1, pod=pod)
    assert not cluster.cycle().binds
    reported = _explained(cluster, "g")
    assert reported.reason is reason
    assert text in reported.message


def test_a_full_queue_is_named_with_its_ledger() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="16")
    cluster.queue("small", capability={"cpu": "4"})
    cluster.gang("first", 2, queue="small")
    cluster.gang("g", 3, queue="small")
    cluster.cycle()
    reported = _explained(cluster, "g")
    assert reported.reason is WaitReason.QUEUE_LIMIT
    assert "the gang needs cpu 3 with 2 held of 4 deserved (queue small)" in reported.message
    assert [tuple(s) for s in reported.shortages] == [("cpu", "3", "2", "1")]


def test_a_refused_admission_says_what_is_left() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="16")
    cluster.queue("small", capability={"cpu": "4"})
    cluster.gang("first", 2, queue="small", minResources={"cpu": "2"})
    cluster.cycle()
    cluster.gang("g", 0, minimum=3, phase="Pending", queue="small", minResources={"cpu": "3"})
    cluster.cycle()
    reported = _explained(cluster, "g")
    assert reported.reason is WaitReason.QUEUE_LIMIT
    assert "insufficient cpu (cpu: 3 asked, 2 left of 4 in queue small)" in reported.message
    assert cluster.groups["g"]["status"]["phase"] == "Pending"


@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
def test_more_than_a_queue_may_ever_hold_is_impossible(sharing: str) -> None:
    cluster = Cluster(parse_policy(DEFAULT_POLICY.replace("proportion", sharing)))
    cluster.node("a", cpu="16")
    cluster.queue("small", capability={"cpu": "2"})
    cluster.gang("made", 3, queue="small")
    cluster.gang("unmade", 0, minimum=3, phase="Pending", queue="small", minResources={"cpu": "3"})
    cluster.cycle()
    made, unmade = _explained(cluster, "made"), _explained(cluster, "unmade")
    assert (made.reason, unmade.reason) == (WaitReason.IMPOSSIBLE, WaitReason.IMPOSSIBLE)
    assert "the gang needs cpu 3 with 0 held of 2 allowed (queue small)" in made.message
    assert [tuple(s) for s in made.shortages] == [("cpu", "3", "2", "1")]
    assert "insufficient cpu (cpu: 3 asked, 2 left of 2 in queue small)" in unmade.message
    cluster.queue("small", capability={"cpu": "6"}, event="MODIFIED")
    assert len(cluster.cycle().binds) == 3
    assert cluster.groups["unmade"]["status"]["phase"] == "Inqueue"


def test_more_than_the_cluster_is_not_admitted() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="10")
    for name in ("first", "second"):
        cluster.gang(name, 0, minimum=1, phase="Pending", minResources={"cpu": "8"})
    cluster.cycle()
    assert cluster.groups["first"]["status"]["phase"] == "Inqueue"
    reported = _explained(cluster, "second")
    assert reported.reason is WaitReason.CLUSTER_OVERCOMMITTED
    assert "cpu: 8 asked, 2 left to admit" in reported.message


def test_more_than_may_ever_be_admitted_is_impossible() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="10")
    cluster.gang("large", 0, minimum=1, phase="Pending", minResources={"cpu": "13"})
    cluster.cycle()
    reported = _explained(cluster, "large")
    assert reported.reason is WaitReason.IMPOSSIBLE
    assert "the gang asks for more than the cluster has (cpu: 13 asked, the cluster has 10)" in reported.message
    assert "overused" not in reported.message, "nothing is used"
    condition = cluster.condition("large", "Unschedulable")
    assert condition is not None
    assert "resource in cluster is overused: overused cpu" in condition["message"], "tools match on Volcano's sentence"
    cluster.node("b", cpu="10")
    cluster.cycle()
    assert cluster.groups["large"]["status"]["phase"] == "Inqueue", "the cluster has grown"


def test_a_closed_and_a_missing_queue() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.queue("shut", state="Closed")
    cluster.gang("closed", 1, queue="shut", phase="Pending")
    cluster.gang("lost", 1, queue="nowhere")
    cluster.cycle()
    assert _explained(cluster, "closed").reason is WaitReason.QUEUE_NOT_OPEN
    assert _explained(cluster, "lost").reason is WaitReason.QUEUE_MISSING
    cluster.queue("nowhere")
    assert len(cluster.cycle().binds) == 1
    assert cluster.scheduler.explain("ns", "lost") is None


def test_another_obstacle_is_written_at_once() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="16")
    cluster.gang("lost", 0, minimum=3, phase="Pending", queue="small", minResources={"cpu": "3"})
    cluster.cycle()
    assert "queue small doesn't exist" in _condition(cluster, "lost")
    cluster.queue("small", capability={"cpu": "2"})
    cluster.cycle()
    assert "cpu: 3 asked, 2 left of 2 in queue small" in _condition(cluster, "lost")


def _condition(cluster: Cluster, gang: str) -> str:
    condition = cluster.condition(gang, "Unschedulable")
    assert condition is not None
    return condition["message"]


def test_who_is_ahead() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="1")
    for name in ("one", "two", "three"):
        cluster.gang(name, 2)
    cluster.cycle()
    assert (_explained(cluster, "one").position, _explained(cluster, "one").ahead) == (1, ())
    assert (_explained(cluster, "three").position, _explained(cluster, "three").ahead) == (3, ("ns/one", "ns/two"))


def _said(result: CycleResult) -> tuple[int, int, int]:
    return len(result.podgroup_updates), len(result.pod_conditions), len(result.events)


def test_a_reason_is_said_once_and_new_numbers_seldom() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.gang("big", 9)
    assert _said(cluster.cycle()) == (1, 9, 2)
    assert not cluster.scheduler.dirty
    assert _said(cluster.cycle()) == (0, 0, 0)
    cluster.node("b", cpu="500m")
    result = cluster.cycle()
    assert _said(result) == (0, 0, 0), "only numbers changed"
    assert result.requeue_at is not None
    assert _said(cluster.cycle(after=31)) == (1, 0, 0)
    condition = cluster.condition("big", "Unschedulable")
    assert condition is not None
    assert "8500m in the whole cluster" in condition["message"]


def test_conditions_follow_the_gang() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="2")
    cluster.gang("g", 3)
    cluster.cycle()
    assert cluster.condition("g", "Unschedulable")["status"] == "True"  # type: ignore[index]
    assert cluster.condition("g", "Scheduled") is None
    cluster.node("b")
    result = cluster.cycle()
    assert len(result.binds) == 3
    assert [e.reason for e in result.events] == ["Scheduled"]
    assert cluster.condition("g", "Unschedulable")["status"] == "False"  # type: ignore[index]
    assert cluster.condition("g", "Scheduled")["status"] == "True"  # type: ignore[index]


def test_a_gang_of_any_size_costs_the_same_writes() -> None:
    def writes(size: int) -> int:
        cluster = Cluster()
        cluster.node("a", cpu="2000", memory="4Ti", pods="2000")
        cluster.gang("g", size, phase="Pending", minResources={"cpu": str(size)})
        count = 0
        for step in range(6):
            result = cluster.cycle()
            count += len(result.podgroup_updates) + len(result.events) + len(result.pod_conditions)
            if step == 1:
                cluster.run("g")
            if step == 3:
                for name in list(cluster.pods):
                    cluster.change(name, phase="Succeeded")
        assert cluster.groups["g"]["status"]["phase"] == "Completed"
        return count

    assert writes(2) == writes(200)


def test_missing_pods_are_not_mentioned_while_they_are_made() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.gang("g", 1, minimum=2)
    result = cluster.cycle()
    assert _said(result) == (0, 0, 0)
    assert result.requeue_at is not None
    cluster.cycle(after=6)
    assert cluster.condition("g", "Unschedulable")["reason"] == "NotEnoughTasks"  # type: ignore[index]
    cluster.pod("g", 1)
    assert len(cluster.cycle().binds) == 2


def test_a_write_that_failed_is_made_again() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="1")
    cluster.gang("g", 2)
    first = cluster.scheduler.cycle(cluster.now).podgroup_updates
    assert len(first) == 1
    cluster.scheduler.podgroup_write_failed("group-g")
    assert cluster.scheduler.dirty
    again = cluster.scheduler.cycle(cluster.now).podgroup_updates
    assert [u.status["phase"] for u in again] == [first[0].status["phase"]]


def test_parked_gangs_are_asked_again_only_when_room_comes() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="2")
    cluster.gang("runs", 1, cpu="2")
    cluster.gang("waits", 1, cpu="2")
    cluster.cycle()
    job = cluster.scheduler._state.jobs["ns/waits"]
    parked = job.parked
    assert parked is not None
    cluster.run("runs")
    cluster.cycle()
    assert job.parked is parked, "a pod that starts makes no room"
    cluster.change("runs-worker-0", phase="Succeeded")
    assert [b.name for b in cluster.cycle().binds] == ["waits-worker-0"]


def test_a_gang_that_is_to_be_admitted_counts_the_pods_that_it_will_have() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="4")
    cluster.gang("early", 0, minimum=3, phase="Pending", minResources={"cpu": "12"})
    cluster.cycle()
    assert _explained(cluster, "early").message.startswith(
        "3/3 tasks in gang unschedulable: pod group is not ready, 3 minAvailable. Origin reason is Impossible: "
    )


def test_a_gang_that_needs_no_minimum_counts_the_pods_that_wait() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="4")
    cluster.gang("loose", 4, minimum=0, cpu="3")
    cluster.cycle()
    cluster.cycle()
    assert _explained(cluster, "loose").message.startswith(
        "3/4 tasks in gang unschedulable: pod group is ready, 1 Bound, 3 Pending, 0 minAvailable; "
        "Pending: 3 Unschedulable. Origin reason is InsufficientResources: "
    )


def test_what_would_let_it_start_is_written_while_it_waits() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="4")
    cluster.gang("old", 1, cpu="3")
    cluster.cycle()
    cluster.gang("new", 1, cpu="2")
    [waits] = [u for u in cluster.cycle().podgroup_updates if u.name == "new"]
    assert waits.annotations is not None
    assert read_remedies(waits.annotations[WOULD_START_IF] or "") == [Remedy(RemedyAction.FREE, "node/a", "cpu", "1")]
    cluster.cycle()
    assert not cluster.scheduler.dirty
    cluster.groups["new"]["metadata"]["annotations"] = dict(waits.annotations)
    cluster.report_group("new")
    assert not cluster.scheduler.dirty, "what the scheduler wrote itself is no news"
    cluster.change("old-worker-0", phase="Succeeded")
    [starts] = [u for u in cluster.cycle().podgroup_updates if u.name == "new"]
    assert starts.annotations == {WOULD_START_IF: None}


def test_a_gated_gang_says_so_with_an_event() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.gang("g", 2, pod={"schedulingGates": [{"name": "example.com/wait"}]})
    events = [e for e in cluster.cycle().events if (e.name, e.reason) == ("g", "Unschedulable")]
    assert len(events) == 1
    assert "SchedulingGated: 2 pods have scheduling gates: example.com/wait" in events[0].message
