"""Cycles on given worlds: what they decide, and what has become of the world in the next one."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.scheduler import PolicyError, default_policy, parse_policy
from vcbatch.scheduler.framework.switches import Switch
from vcbatch.scheduler.simulation import Case, Simulation, World, WorldError, simulate
from vcbatch.scheduler.simulation.cases import read_policy

Json = dict[str, Any]
GPU = "nvidia.com/gpu"


def node(name: str, *, gpus: int = 4) -> Json:
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "pods": "20", GPU: gpus}}}


def group(name: str, minimum: int, **spec: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"minMember": minimum, "queue": "q", **spec}}


def pod(gang: str, index: int, *, gpus: int = 1, **given: Any) -> Json:
    notes = {"scheduling.k8s.io/group-name": gang}
    meta = {"name": f"{gang}-{index}", "namespace": "ns", "annotations": notes, **given.pop("metadata", {})}
    container = {"name": "c", "resources": {"requests": {"cpu": "1", GPU: gpus}}}
    return {
        "metadata": meta,
        "spec": {"containers": [container], **given.pop("spec", {})},
        "status": {"phase": "Pending", **given.pop("status", {})},
    }


def world(**lists: list[Json]) -> World:
    return World.read({"queues": [{"metadata": {"name": "q"}}], "nodes": [node("a")], **lists})


def test_a_gang_that_fits_is_bound_and_one_that_does_not_says_by_how_much():
    pods = [pod("fits", i) for i in range(3)] + [pod("large", i, gpus=3) for i in range(2)]
    found = simulate(world(podGroups=[group("fits", 3), group("large", 2)], pods=pods))
    assert found.binds == {f"ns/fits-{i}": "a" for i in range(3)}
    assert found.phases == {"ns/fits": "Inqueue", "ns/large": "Inqueue"}
    assert found.counts == {"ns/fits": {"Binding": 3}, "ns/large": {"Pending": 2}}
    reported = found.as_json()["reasons"]["ns/large"]
    assert (reported["reason"], reported["minimum"], reported["placed"], reported["queue"]) == ("Impossible", 2, 0, "q")
    assert reported["shortages"] == [{"resource": GPU, "requested": "6", "available": "1", "shortBy": "5"}]
    assert "ns/fits" not in found.reasons


def test_what_one_round_binds_runs_in_the_next():
    made = world(podGroups=[group("g", 2)], pods=[pod("g", 0), pod("g", 1)])
    found = Simulation(made).run(rounds=5)
    assert [len(done.binds) for done in found.rounds][:2] == [2, 0]
    assert (found.phases["ns/g"], found.counts["ns/g"]) == ("Running", {"Running": 2})
    assert found.binds == {"ns/g-0": "a", "ns/g-1": "a"}
    assert len(found.rounds) < 5, "it ends when nothing is left to be decided"


def test_pods_promised_a_place_are_counted_as_such_until_it_is_free():
    leaving = {"metadata": {"deletionTimestamp": "2026-06-01T00:00:00Z"}, "spec": {"nodeName": "a"}}
    old = pod("old", 0, gpus=3, **leaving, status={"phase": "Running"})
    made = world(podGroups=[group("g", 2), group("old", 1)], pods=[old, pod("g", 0, gpus=1), pod("g", 1, gpus=3)])
    found = simulate(made)
    assert found.binds == {}
    assert found.pipelined == {"ns/g-1": "a"}
    assert found.allocated == {"ns/g-0": "a"}
    assert found.counts["ns/g"] == {"Allocated": 1, "Pipelined": 1}
    assert found.counts["ns/old"] == {"Releasing": 1}


def test_a_gang_that_lacks_pods_says_so_at_once():
    found = simulate(world(podGroups=[group("g", 3)], pods=[pod("g", 0)]))
    assert found.reasons["ns/g"].reason == "NotEnoughPods"


def test_pods_of_other_schedulers_hold_room_and_are_left_alone():
    other = {"schedulerName": "default-scheduler"}
    pods = [
        pod("x", 0, gpus=4, spec={**other, "nodeName": "a"}, status={"phase": "Running"}),
        pod("x", 1, spec=other),
        pod("g", 0),
    ]
    found = simulate(world(podGroups=[group("g", 1)], pods=pods))
    assert found.binds == {}
    assert found.reasons["ns/g"].reason == "InsufficientResources"


def test_claims_of_bound_pods_are_bound_before_the_next_round():
    claim = {
        "metadata": {"name": "data", "namespace": "ns"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": 1}},
        },
        "status": {"phase": "Pending"},
    }
    kind = {"metadata": {"name": "local"}, "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"}
    volume = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    made = world(podGroups=[group("g", 1)], pods=[pod("g", 0, spec=volume)], pvcs=[claim], storageClasses=[kind])
    simulation = Simulation(made)
    found = simulation.run(rounds=3)
    assert found.binds == {"ns/g-0": "a"}
    assert found.counts["ns/g"] == {"Running": 1}


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ({"nodes": ["a"]}, "nodes[0]: must be a mapping, got 'a'"),
        ({"widgets": []}, "widgets: the scheduler doesn't read these; allowed: "),
        (
            {"podGroups": [group("g", "2")]},  # type: ignore[arg-type]
            "podGroups[0] ns/g: Expected `int`, got `str` - at `$.spec.minMember`",
        ),
    ],
)
def test_objects_of_another_shape_are_named(lists: Json, said: str):
    with pytest.raises(WorldError) as caught:
        World.read(lists)
    assert str(caught.value).startswith(said)


# Recorded cases ------------------------------------------------------------------------------------------------------


def test_a_switch_that_a_case_does_not_list_is_off():
    case = {"actions": ["allocate"], "tiers": [{"plugins": [{"name": "gang", "enabled": ["enableJobReady"]}]}]}
    [option] = read_policy(case).tiers[0].plugins
    assert [switch for switch in Switch if option.enabled(switch)] == [Switch.JOB_READY]


def test_a_switch_that_the_policy_of_a_world_does_not_name_is_on():
    text = "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobReady: false}]}]"
    [option] = read_policy({"policy": text}).tiers[0].plugins
    assert [s for s in Switch if not option.enabled(s)] == [Switch.CLUSTER_ORDER, Switch.JOB_READY, Switch.HIERARCHY]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            {"actions": "allocate", "tiers": []},
            "actions: a recorded case has a list; a policy file is given as --policy FILE",
        ),
        ({"actions": ["allocate"], "tiers": ["x"]}, "tiers: must be mappings with a list `plugins`, got 'x'"),
        (
            {"actions": ["allocate"], "tiers": [{"plugins": [{"name": "gang", "enabled": ["fly"]}]}]},
            "plugin 'gang': unknown switch 'fly'",
        ),
        (
            {"actions": ["allocate"], "tiers": [{"plugins": [{"name": "gang", "enabled": True}]}]},
            "plugin 'gang': enabled: must be a list of switches, got True",
        ),
        ({"policy": {"actions": "allocate"}}, "policy: must be the text of a policy file, got {'actions': 'allocate'}"),
        ({"actions": ["fly"], "tiers": []}, "policy.actions: unknown action 'fly'; supported: "),
    ],
)
def test_what_is_wrong_with_the_policy_of_a_case_is_said(document: Json, said: str):
    with pytest.raises(PolicyError) as caught:
        Case.read(document)
    assert str(caught.value).startswith(said)


def test_another_policy_may_take_the_place_of_the_recorded_one():
    mine = default_policy()
    assert Case.read({"actions": ["fly"], "tiers": []}, policy=mine).policy is mine


def test_a_gang_that_lost_members_is_unknown_and_was_recorded_as_pending():
    running = {"spec": {"nodeName": "a"}, "status": {"phase": "Running"}}
    made = world(podGroups=[group("g", 3)], pods=[pod("g", 0, **running), pod("g", 1, gpus=9)])
    found = simulate(made)
    assert (found.phases, found.recorded_phases) == ({"ns/g": "Unknown"}, {"ns/g": "Pending"})
    assert found.as_json()["podGroupPhase"] == {"ns/g": "Unknown"}
    assert found.as_json(recorded=True)["podGroupPhase"] == {"ns/g": "Pending"}
    leaving = pod("g", 2, **running, metadata={"deletionTimestamp": "2026-06-01T00:00:00Z"})
    ending = simulate(world(podGroups=[group("g", 2)], pods=[pod("g", 0, **running), pod("g", 1, gpus=9), leaving]))
    assert (ending.phases, ending.recorded_phases) == ({"ns/g": "Unknown"}, {"ns/g": "Running"})


PREEMPTING = parse_policy(
    "actions: enqueue, allocate, preempt\n"
    "tiers: [{plugins: [{name: priority}, {name: gang}, {name: conformance}]}, {plugins: [{name: predicates}]}]"
)


def test_whom_one_round_evicts_is_gone_in_the_next_and_others_are_in_its_place():
    running = {"spec": {"nodeName": "a", "priority": 1}, "status": {"phase": "Running"}}
    made = world(
        priorityClasses=[{"metadata": {"name": "high"}, "value": 100}],
        podGroups=[group("old", 1), group("new", 2, priorityClassName="high")],
        pods=[pod("old", i, gpus=2, **running) for i in range(2)]
        + [pod("new", i, gpus=1, spec={"priority": 100}) for i in range(2)],
    )
    found = Simulation(made, PREEMPTING).run(rounds=5)
    first, second = found.rounds[:2]
    assert len(first.evictions) == 1
    assert {held.name for held in first.held if held.promised} == {"new-0", "new-1"}
    assert {bind.name for bind in second.binds} == {"new-0", "new-1"}
    assert found.evicted == [f"ns/{first.evictions[0].name}"]
    assert found.pipelined == {}
    assert found.gangs[found.evicted[0]] == "ns/old"
    assert (found.counts["ns/new"], found.counts["ns/old"]) == ({"Running": 2}, {"Running": 1})


@pytest.mark.parametrize("key", ["hyperNodesByTier", "hyperNodeMembers"])
def test_domains_of_a_case_are_mappings(key: str) -> None:
    with pytest.raises(WorldError, match=f"{key}: must be a mapping to lists of names, got 3"):
        Case.read({"actions": ["allocate"], "tiers": [], key: 3})


QUOTAS = """
actions: enqueue, allocate
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: resourcequota}]
"""


def _quota(hard: str, used: str = "0") -> Json:
    return {
        "metadata": {"name": "rq", "namespace": "ns"},
        "status": {"hard": {"requests.cpu": hard}, "used": {"requests.cpu": used}},
    }


def _gang(name: str, size: int) -> tuple[Json, list[Json]]:
    """Of pods with a CPU each."""
    least = {"requests.cpu": str(size)}
    return group(name, size, minResources=least), [pod(name, i, gpus=0) for i in range(size)]


@pytest.mark.parametrize(("hard", "used", "admitted"), [("5", "0", ["a"]), ("6", "0", ["a", "b"]), ("6", "1", ["a"])])
def test_pods_of_one_round_use_the_quota_in_the_next(hard: str, used: str, admitted: list[str]) -> None:
    first, second = _gang("a", 4), _gang("b", 2)
    made = world(podGroups=[first[0], second[0]], pods=[*first[1], *second[1]], resourceQuotas=[_quota(hard, used)])
    found = Simulation(made, parse_policy(QUOTAS)).run(rounds=6)
    assert [name for name in ("a", "b") if found.phases[f"ns/{name}"] == "Running"] == admitted


def test_an_admitted_gang_uses_the_quota_while_it_waits_for_nodes() -> None:
    first, second = _gang("a", 4), _gang("b", 2)
    made = world(
        nodes=[{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "3", "pods": "20"}}}],
        podGroups=[first[0], second[0]], pods=[*first[1], *second[1]], resourceQuotas=[_quota("5")],
    )  # fmt: skip
    found = Simulation(made, parse_policy(QUOTAS)).run(rounds=6)
    assert (found.phases["ns/a"], found.phases["ns/b"], found.binds) == ("Inqueue", "Pending", {})


BUDGETS = """
actions: enqueue, allocate, preempt
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: pdb}, {name: predicates}]
"""


@pytest.mark.parametrize(
    ("budget", "allowed", "evicted"),
    [
        ({"minAvailable": 3}, 1, 1),
        ({"minAvailable": "50%"}, 2, 2),
        ({"maxUnavailable": 1}, 1, 1),
        ({"minAvailable": 0}, 4, 3),
    ],
)
def test_pods_that_one_round_evicts_are_taken_of_the_budget_in_the_next(
    budget: Json, allowed: int, evicted: int
) -> None:
    """Three gangs of one pod, of which one preempts in each round."""
    running = {"spec": {"nodeName": "a", "priority": 0}, "status": {"phase": "Running"}}
    low = [pod("low", i, metadata={"labels": {"app": "x"}}, **running) for i in range(4)]
    high = [pod(f"high{i}", 0, spec={"priority": 10}) for i in range(3)]
    groups = [group("low", 1), *(group(f"high{i}", 1, priorityClassName="high") for i in range(3))]
    made = world(
        podGroups=groups, pods=[*low, *high],
        priorityClasses=[{"metadata": {"name": "high"}, "value": 10}],
        podDisruptionBudgets=[{
            "metadata": {"name": "pdb", "namespace": "ns"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, **budget},
            "status": {"disruptionsAllowed": allowed},
        }],
    )  # fmt: skip
    found = Simulation(made, parse_policy(BUDGETS)).run(rounds=8)
    assert len(found.evicted) == evicted
