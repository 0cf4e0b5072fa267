"""NUMA: hints, policies and cpus as the kubelet chooses them, and the plugin that has pods placed by them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, policy, session, task_of
from vcbatch.api.numatopology import NumatopologyView
from vcbatch.api.resources import NUMATOPOLOGIES
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.index.numa import Hint, Layout, Place, TopologyPolicy, assign, hints, merged, parse_cpus, take
from vcbatch.scheduler.plugins.numa_aware import NONE_FREE, NumaAware

NAME = "numa-aware"
POLICY, DECISION = "volcano.sh/numa-topology-policy", "volcano.sh/topology-decision"


def _layout(sockets: int = 2, cores: int = 4, threads: int = 2, reserved: int = 0) -> Layout:
    """One NUMA node a socket; the threads of a core are numbered next to each other."""
    places = {
        (s * cores + c) * threads + t: Place(s, s, c)
        for s in range(sockets)
        for c in range(cores)
        for t in range(threads)
    }
    return Layout.of(places, reserved)


ALL = frozenset(range(16))


@pytest.mark.parametrize(("text", "cpus"), [("", set()), ("3", {3}), ("0-2, 8", {0, 1, 2, 8}), ("0-1,1-2", {0, 1, 2})])
def test_lists_of_cpus_are_read(text: str, cpus: set[int]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["x", "1-", "3-1", "-1", "0-99999999", "1--2"])
def test_lists_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_cpus(text)


@pytest.mark.parametrize("nodes", [0, 9])
def test_a_layout_has_as_many_numa_nodes_as_the_kubelet_handles(nodes: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 8"):
        Layout.of({n: Place(n, 0, n) for n in range(nodes)})


@pytest.mark.parametrize(
    ("free", "count", "taken"),
    [
        (ALL, 8, range(8)),
        (ALL, 10, range(10)),
        (ALL - {0}, 8, range(8, 16)),
        (ALL - {9}, 2, {10, 11}),
        (ALL - {0}, 1, {1}),
        (ALL - {0, 2}, 3, {4, 5, 1}),
        # Near what was taken, then in the socket with the fewest free, then in the core with the fewest free.
        (frozenset({0, 10, 11, 12}), 3, {10, 11, 12}),
        (frozenset({0, 2, 8}), 1, {8}),
        (frozenset({0, 1, 2}), 1, {2}),
        (ALL, 17, None),
    ],
)
def test_whole_sockets_then_whole_cores_then_threads_are_taken(
    free: frozenset[int], count: int, taken: Sequence[int] | None
) -> None:
    assert take(_layout(), free, count) == (None if taken is None else frozenset(taken))


@given(free=st.frozensets(st.integers(0, 15)), count=st.integers(0, 16))
def test_what_is_taken_is_free_and_as_much_as_asked(free: frozenset[int], count: int) -> None:
    taken = take(_layout(), free, count)
    if taken is None:
        assert len(free) < count
    else:
        assert taken <= free
        assert len(taken) == count


@pytest.mark.parametrize(
    ("free", "count", "want"),
    [
        (ALL, 4, [Hint((0,), True), Hint((1,), True), Hint((0, 1), False)]),
        (ALL, 10, [Hint((0, 1), True)]),
        (frozenset(range(4, 10)), 4, [Hint((0,), True), Hint((0, 1), False)]),
        (frozenset({0, 1, 8, 9}), 4, [Hint((0, 1), False)]),
        (frozenset({0}), 4, []),
    ],
)
def test_hints_are_sets_with_enough_and_the_smallest_possible_are_preferred(
    free: frozenset[int], count: int, want: list[Hint]
) -> None:
    assert hints(_layout(), free, count) == want


SPLIT, EITHER = [Hint((0, 1), False)], [Hint((1,), True), Hint((0,), True), Hint((0, 1), False)]


@pytest.mark.parametrize(
    ("found", "policy_", "best", "admitted"),
    [
        (EITHER, "none", Hint((0, 1), False), True),
        (EITHER, "best-effort", Hint((0,), True), True),
        (SPLIT, "best-effort", Hint((0, 1), False), True),
        ([], "best-effort", Hint((0, 1), False), True),
        (EITHER, "restricted", Hint((0,), True), True),
        (SPLIT, "restricted", Hint((0, 1), False), False),
        ([Hint((0, 1), True)], "restricted", Hint((0, 1), True), True),
        ([Hint((0, 1), True)], "single-numa-node", Hint((0, 1), False), False),
        (EITHER, "single-numa-node", Hint((0,), True), True),
        (None, "restricted", Hint((0, 1), True), True),
    ],
)
def test_policies_admit_hints(found: list[Hint] | None, policy_: str, best: Hint, admitted: bool) -> None:
    assert merged(_layout(), found, TopologyPolicy(policy_)) == (best, admitted)


def test_of_hints_that_nobody_prefers_the_narrowest_is_best() -> None:
    found = [Hint((0, 1, 2), False), Hint((1, 2), False), Hint((0, 2), False)]
    assert merged(_layout(sockets=3), found, TopologyPolicy.BEST_EFFORT) == (Hint((0, 2), False), True)


@pytest.mark.parametrize(
    ("free", "counts", "policy_", "cpus"),
    [
        (ALL, (4, 6), "restricted", set(range(4)) | set(range(8, 14))),
        (ALL, (4, 0, 4), "single-numa-node", set(range(8))),
        (ALL, (8, 9), "restricted", None),
        (frozenset({0, 1, 2, 8, 9, 10}), (4,), "best-effort", {0, 1, 8, 9}),
        (frozenset({0, 1}), (4,), "best-effort", set()),
    ],
)
def test_containers_get_cpus_one_after_the_other(
    free: frozenset[int], counts: tuple[int, ...], policy_: str, cpus: set[int] | None
) -> None:
    assert assign(_layout(), free, counts, TopologyPolicy(policy_)) == cpus


def test_reserved_cpus_are_given_to_nobody() -> None:
    assert assign(_layout(reserved=2), ALL, (6,), TopologyPolicy.SINGLE) == set(range(2, 8))
    assert assign(_layout(reserved=99), ALL, (1,), TopologyPolicy.RESTRICTED) is None


def _report(cluster: Cluster, node: str, free: str = "0-15", **given: Any) -> None:
    layout = _layout()
    policies = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node", **given.pop("policies", {})}
    spec: dict[str, Any] = {
        "policies": policies,
        "numares": {"cpu": {"allocatable": free, "capacity": 16}},
        "cpuDetail": {str(cpu): p._asdict() for cpu, p in layout.places},
        **given,
    }
    raw = {"metadata": {"name": node, "uid": f"numa-{node}"}, "spec": spec}
    cluster.scheduler.apply(NUMATOPOLOGIES, "MODIFIED", msgspec.convert(raw, NumatopologyView))


def _pod(cluster: Cluster, gang: str, cpus: str = "4", asked: str = "single-numa-node") -> None:
    cluster.gang(gang, 1)
    raw = cluster.pods[f"{gang}-worker-0"]
    amounts = {"cpu": cpus, "memory": "1Gi"}
    raw["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    if asked:
        raw["metadata"]["annotations"][POLICY] = asked
    cluster.change(f"{gang}-worker-0")


def _cluster(*nodes: str) -> Cluster:
    cluster = Cluster(policy(NAME, {}, "predicates"))
    for node in nodes:
        cluster.node(node, cpu="16")
    return cluster


def test_a_side_car_gets_cpus_of_its_own() -> None:
    cluster = _cluster("n")
    _report(cluster, "n", free="0-5")
    _pod(cluster, "g")
    raw = cluster.pods["g-worker-0"]["spec"]
    raw["initContainers"] = [{"name": "s", "restartPolicy": "Always", "resources": raw["containers"][0]["resources"]}]
    cluster.change("g-worker-0")
    assert not cluster.cycle().binds, "six are left and both want four"
    _report(cluster, "n", free="0-7")
    assert len(cluster.cycle().binds) == 1


@pytest.mark.parametrize(
    ("reported", "asked", "reason"),
    [
        (None, "single-numa-node", "had no NUMA information"),
        ({"cpuDetail": {}}, "single-numa-node", "had no NUMA information"),
        ({"policies": {"CPUManagerPolicy": "none"}}, "single-numa-node", "didn't run the static cpu manager"),
        ({}, "restricted", "had another topology manager policy than the pod"),
        ({"free": ""}, "single-numa-node", "had no cpus left to give away"),
        ({"free": "0-2,8-10"}, "single-numa-node", "couldn't align the cpus of the pod"),
        ({"free": "0-2,8-10"}, "", "couldn't align the cpus of the pod"),
        ({"resReserved": {"cpu": "12500m"}}, "single-numa-node", "couldn't align the cpus of the pod"),
    ],
)
def test_nodes_are_refused_with_a_reason(reported: dict[str, Any] | None, asked: str, reason: str) -> None:
    cluster = _cluster("n")
    if reported is not None:
        _report(cluster, "n", **reported)
    _pod(cluster, "g", asked=asked)
    assert reason in cluster.cycle().pod_conditions[0].message
    _report(cluster, "n", policies={"TopologyManagerPolicy": asked or "restricted"})
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "n"}


@pytest.mark.parametrize(
    "reported", [None, {"policies": {"CPUManagerPolicy": "none"}}, {"policies": {"TopologyManagerPolicy": "none"}}]
)
@pytest.mark.parametrize("asked", ["", "none"])
def test_who_asks_for_nothing_goes_where_nothing_is_aligned(reported: dict[str, Any] | None, asked: str) -> None:
    cluster = _cluster("n")
    if reported is not None:
        _report(cluster, "n", "", **reported)
    _pod(cluster, "g", asked=asked)
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "n"}


def test_pods_that_are_not_guaranteed_are_not_concerned() -> None:
    cluster = _cluster("n")
    _report(cluster, "n", "")
    cluster.gang("g", 1)
    cluster.pods["g-worker-0"]["metadata"]["annotations"][POLICY] = "restricted"
    cluster.change("g-worker-0")
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "n"}


def test_the_pod_is_told_its_cpus_and_the_next_gets_others() -> None:
    cluster = _cluster("n")
    _report(cluster, "n")
    for gang in ("a", "b", "c"):
        _pod(cluster, gang, cpus="6")
    result = cluster.cycle()
    reported = {b.name: json.loads((b.annotations or {})[DECISION]) for b in result.binds}
    assert reported == {
        "a-worker-0": {"numa": {"0": {"cpu": "6"}}},
        "b-worker-0": {"numa": {"1": {"cpu": "6"}}},
    }
    assert "couldn't align" in result.pod_conditions[0].message


def test_cpus_given_away_are_taken_until_the_node_reports_them_or_the_pod_is_gone() -> None:
    cluster = _cluster("n")
    _report(cluster, "n")
    _pod(cluster, "a", cpus="8")
    cluster.cycle()
    _pod(cluster, "b", cpus="8")
    _pod(cluster, "c", cpus="8")
    cluster.cycle()
    assert (len(cluster.placed("b")), len(cluster.placed("c"))) == (1, 0)
    cluster.run("a")
    _report(cluster, "n", "0-7")
    cluster.cycle()
    assert cluster.placed("c") == {}, "b's cpus aren't reported yet, as it doesn't run"
    cluster.change("b-worker-0", phase="Succeeded")
    cluster.cycle()
    assert cluster.placed("c") == {"c-worker-0": "n"}


def _wide(free: str = "0-15") -> Cluster:
    """One node that has cpus enough for many, of which 16 can be given away as a pod's own."""
    cluster = Cluster(policy(NAME, {}, "predicates"))
    cluster.node("n", cpu="64")
    _report(cluster, "n", free)
    return cluster


def _placed(cluster: Cluster, *gangs: str) -> list[str]:
    cluster.cycle()
    return [gang for gang in gangs if cluster.placed(gang)]


def test_cpus_of_a_pod_that_runs_are_taken_until_the_node_reports_otherwise() -> None:
    """Decisions of bound pods count until the node's object reflects them."""
    cluster = _wide()
    _pod(cluster, "a", cpus="8")
    cluster.cycle()
    cluster.run("a")
    for gang in ("b", "c"):
        _pod(cluster, gang, cpus="8")
    assert _placed(cluster, "b", "c") == ["b"]
    _report(cluster, "n", "0-15", policies={})  # the same amounts again
    assert _placed(cluster, "b", "c") == ["b"]


def test_cpus_of_a_pod_that_does_not_run_yet_are_taken_whatever_the_node_reports_meanwhile() -> None:
    cluster = _wide()
    _pod(cluster, "a", cpus="8")
    cluster.cycle()
    _report(cluster, "n", "0-14")
    for gang in ("b", "c"):
        _pod(cluster, gang, cpus="7")
    assert _placed(cluster, "b", "c") == ["b"]


def test_cpus_of_a_pod_that_ended_are_free() -> None:
    cluster = _wide()
    _pod(cluster, "a", cpus="8")
    cluster.cycle()
    cluster.change("a-worker-0", phase="Succeeded")
    for gang in ("b", "c"):
        _pod(cluster, gang, cpus="8")
    assert _placed(cluster, "b", "c") == ["b", "c"]


def test_what_is_promised_takes_cpus_too_and_gives_them_back() -> None:
    given = policy(NAME)
    cluster = _wide()
    for gang in ("a", "b"):
        _pod(cluster, gang, cpus="8")
    _pod(cluster, "c", cpus="1")
    opened = session(cluster, given)
    plugin, last = plugin_of(opened, NumaAware), task_of(opened, "c-worker-0")
    statement = Statement(opened)
    for gang in ("a", "b"):
        statement.pipeline([task_of(opened, f"{gang}-worker-0")], [0])
    assert [r.reason for r in plugin.task_rejections(last, [])] == [NONE_FREE]
    statement.discard()
    assert plugin.task_rejections(last, []) == []


def test_a_node_without_a_policy_aligns_nothing() -> None:
    """Where neither pod nor node has a policy no hints are evaluated, and no cpus are counted."""
    cluster = Cluster(policy(NAME, {}, "predicates"))
    cluster.node("n", cpu="64")
    _report(cluster, "n", policies={"TopologyManagerPolicy": "none"})
    for gang in ("a", "b", "c"):
        _pod(cluster, gang, cpus="8", asked="")
    result = cluster.cycle()
    assert len(result.binds) == 3
    assert not any((bind.annotations or {}).get(DECISION) for bind in result.binds)


def test_a_policy_that_nobody_knows_is_no_match() -> None:
    cluster = _cluster("n")
    _report(cluster, "n", policies={"TopologyManagerPolicy": "best-efort"})
    _pod(cluster, "g", asked="best-efort")
    assert "had another topology manager policy than the pod" in cluster.cycle().pod_conditions[0].message


AMOUNTS = {"cpu": "4", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("requests", "limits", "init"),
    [
        (AMOUNTS, {"cpu": "4", "memory": "2Gi"}, None),
        (AMOUNTS, {"cpu": "4"}, None),
        ({"memory": "1Gi"}, {"memory": "1Gi"}, None),
        ({"cpu": "0", "memory": "1Gi"}, {"cpu": "0", "memory": "1Gi"}, None),
        (AMOUNTS, AMOUNTS, {"requests": AMOUNTS}),
        (AMOUNTS, AMOUNTS, {}),
    ],
)
def test_every_container_has_to_have_its_limits_as_requests(
    requests: dict[str, str], limits: dict[str, str], init: dict[str, Any] | None
) -> None:
    """Only pods of Guaranteed quality that ask for cpu. Node n has none to give away."""
    cluster = _cluster("n")
    _report(cluster, "n", "")
    cluster.gang("g", 1)
    raw = cluster.pods["g-worker-0"]
    raw["metadata"]["annotations"][POLICY] = "restricted"
    raw["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": limits}
    if init is not None:
        raw["spec"]["initContainers"] = [{"name": "init", "resources": init}]
    cluster.change("g-worker-0")
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "n"}


def test_init_containers_get_no_cpus_beside_the_others() -> None:
    """The cpus are those of the containers; what runs before them is gone by then."""
    cluster = _cluster("n")
    _report(cluster, "n")
    cluster.gang("g", 1)
    raw = cluster.pods["g-worker-0"]
    raw["metadata"]["annotations"][POLICY] = "single-numa-node"
    whole = {"requests": AMOUNTS, "limits": AMOUNTS}
    raw["spec"]["containers"][0]["resources"] = whole
    raw["spec"]["initContainers"] = [{"name": "init", "resources": whole}]
    cluster.change("g-worker-0")
    (bind,) = cluster.cycle().binds
    assert json.loads((bind.annotations or {})[DECISION]) == {"numa": {"0": {"cpu": "4"}}}


def _points_by_node(cluster: Cluster, **arguments: Any) -> dict[str, float]:
    given = policy(NAME, arguments)
    opened = session(cluster, given)
    rows = np.arange(len(opened.nodes), dtype=np.intp)
    found = plugin_of(opened, NumaAware).task_scores(task_of(opened, "g-worker-0"), rows, [])
    assert found is not None
    return {info.name: float(found[info.row]) for info in opened.nodes.infos}


def _sockets(cluster: Cluster, node: str, sockets: int) -> None:
    """A node of so many sockets of 8 cpus each, all free."""
    cluster.node(node, cpu="64")
    places = {str(cpu): place._asdict() for cpu, place in _layout(sockets=sockets).places}
    policies = {"TopologyManagerPolicy": "best-effort"}
    _report(cluster, node, f"0-{8 * sockets - 1}", policies=policies, cpuDetail=places)


def test_points_are_whole_numbers_and_count_once_by_default() -> None:
    """NUMA nodes used, normalised and reversed as Kubernetes does it: 100 - 100 * 1 // 3."""
    cluster = Cluster(policy(NAME))
    _sockets(cluster, "three", 3)
    cluster.node("one", cpu="64")
    _report(cluster, "one", "0-1,8-9", policies={"TopologyManagerPolicy": "best-effort"})
    _pod(cluster, "g", cpus="24", asked="best-effort")
    assert _points_by_node(cluster) == {"three": 0, "one": 100 - 100 * 2 // 3}


def test_a_pod_that_gets_no_cpus_of_its_own_is_as_well_anywhere() -> None:
    cluster = Cluster(policy(NAME))
    for sockets in (1, 2):
        _sockets(cluster, f"n{sockets}", sockets)
    _pod(cluster, "g", cpus="1500m", asked="best-effort")
    assert _points_by_node(cluster) == {"n1": 100, "n2": 100}


def test_fewer_numa_nodes_are_better() -> None:
    given = policy(NAME, {"weight": 3})
    cluster = Cluster(given)
    for name, free in (("one", "0-15"), ("two", "0-2,8-10"), ("none", "0")):
        cluster.node(name, cpu="16")
        _report(cluster, name, free, policies={"TopologyManagerPolicy": "best-effort"})
    _pod(cluster, "g", asked="best-effort")
    opened = session(cluster, given)
    found = plugin_of(opened, NumaAware).task_scores(task_of(opened, "g-worker-0"), np.arange(3), [])
    assert found is not None
    assert {info.name: found[info.row] for info in opened.nodes.infos} == {"one": 150, "two": 0, "none": 0}
