"""What the predicates plugin's filters let through: ports, taints, other pods by namespace and label, nominations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import Cluster, Json
from vcbatch.api.namespace import Namespace
from vcbatch.api.pod import Pod
from vcbatch.api.resources import NAMESPACES, PODS
from vcbatch.scheduler import Policy, PolicyError, WaitReason, build_policy

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def _policy(**arguments: Any) -> Policy:
    plugins = [{"name": "gang"}, {"name": "predicates", "arguments": arguments}, {"name": "nodeorder"}]
    return build_policy({"actions": "enqueue, allocate, backfill", "tiers": [{"plugins": plugins}]})


class Rules(Cluster):
    """Two nodes of four cores each, `a` in zone x and `b` in zone y."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(_policy(**arguments))
        self.node("a", cpu="4", labels={ZONE: "x"})
        self.node("b", cpu="4", labels={ZONE: "y"})

    def namespace(self, name: str, **labels: str) -> None:
        raw = {"metadata": {"name": name, "uid": f"ns-{name}", "labels": labels}}
        self.scheduler.apply(NAMESPACES, "ADDED", msgspec.convert(raw, Namespace))

    def stranger(self, name: str, node: str, *, namespace: str = "ns", labels: Json | None = None, **spec: Any) -> None:
        """A running pod of another scheduler."""
        raw = {
            "metadata": {"name": name, "namespace": namespace, "uid": f"s-{name}", "labels": labels or {}},
            "spec": {"schedulerName": "other", "nodeName": node, "containers": [{"name": "main"}], **spec},
            "status": {"phase": "Running"},
        }
        self.scheduler.apply(PODS, "ADDED", msgspec.convert(raw, Pod))

    def nodes(self, gang: str) -> set[str]:
        self.cycle()
        return set(self.placed(gang).values())


def _near(**term: Any) -> Json:
    required = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}, **term}]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _apart(**term: Any) -> Json:
    required = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}, **term}]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_a_term_chooses_namespaces_by_label() -> None:
    cluster = Rules()
    cluster.namespace("shop", team="red")
    cluster.namespace("lab", team="blue")
    cluster.stranger("one", "a", namespace="lab", labels={"app": "db"})
    cluster.stranger("two", "b", namespace="shop", labels={"app": "db"})
    chosen = {"namespaceSelector": {"matchLabels": {"team": "red"}}}
    cluster.gang("g", 1, pod={"affinity": _near(**chosen)})
    assert cluster.nodes("g") == {"b"}


def test_namespaces_named_and_chosen_by_label_are_added_up_and_the_own_one_is_none_of_them() -> None:
    cluster = Rules()
    cluster.namespace("shop", team="red")
    cluster.stranger("own", "a", labels={"app": "db"})
    term = {"namespaces": ["other"], "namespaceSelector": {"matchLabels": {"team": "red"}}}
    cluster.gang("g", 1, pod={"affinity": _near(**term)})
    assert cluster.nodes("g") == set()
    cluster.stranger("named", "b", namespace="other", labels={"app": "db"})
    assert cluster.nodes("g") == {"b"}


def test_every_namespace_has_its_name_as_a_label() -> None:
    cluster = Rules()
    cluster.stranger("one", "b", namespace="shop", labels={"app": "db"})
    term = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}
    cluster.gang("g", 1, pod={"affinity": _near(**term)})
    assert cluster.nodes("g") == {"b"}


def test_a_gang_is_tried_again_when_a_namespace_gets_another_label() -> None:
    cluster = Rules()
    cluster.namespace("shop", team="blue")
    cluster.stranger("one", "a", namespace="shop", labels={"app": "db"})
    term = {"namespaceSelector": {"matchLabels": {"team": "red"}}}
    cluster.gang("g", 1, pod={"affinity": _near(**term)})
    assert cluster.nodes("g") == set()
    cluster.namespace("shop", team="red")
    assert cluster.nodes("g") == {"a"}


def test_the_anti_affinity_of_a_pod_that_runs_goes_by_the_namespace_of_who_comes() -> None:
    cluster = Rules()
    cluster.namespace("ns", team="red")
    term = {"namespaceSelector": {"matchLabels": {"team": "red"}}, "labelSelector": {"matchLabels": {"gang": "g"}}}
    cluster.stranger("guard", "a", namespace="far", affinity=_apart(**term))
    cluster.gang("g", 1)
    assert cluster.nodes("g") == {"b"}


@pytest.mark.parametrize(("wanted", "node"), [(1, "a"), (2, "b")])
def test_a_pod_that_must_have_others_near_draws_them_as_a_wish_of_weight_one_does(wanted: int, node: str) -> None:
    cluster = Rules()
    others = {"labelSelector": {"matchLabels": {"gang": "g"}}}
    cluster.stranger("must", "a", affinity=_near(**others))
    liked = [{"weight": wanted, "podAffinityTerm": {"topologyKey": ZONE, **others}}]
    soft = {"preferredDuringSchedulingIgnoredDuringExecution": liked}
    cluster.stranger("would", "b", affinity={"podAffinity": soft})
    cluster.gang("g", 1)
    assert cluster.nodes("g") == {node}


@pytest.mark.parametrize(("keys", "node"), [("matchLabelKeys", "b"), ("mismatchLabelKeys", "a")])
def test_a_term_compares_with_the_own_value_of_a_label(keys: str, node: str) -> None:
    cluster = Rules()
    cluster.stranger("old", "a", labels={"app": "db", "gang": "before"})
    cluster.stranger("new", "b", labels={"app": "db", "gang": "g"})
    cluster.gang("g", 1, pod={"affinity": _near(**{keys: ["gang"]})})
    assert cluster.nodes("g") == {node}


def test_pods_with_other_values_of_such_a_label_are_told_apart() -> None:
    cluster = Rules()
    cluster.stranger("old", "a", labels={"app": "db", "gang": "g"})
    cluster.stranger("new", "b", labels={"app": "db", "gang": "h"})
    for gang in ("g", "h"):
        cluster.gang(gang, 1, pod={"affinity": _near(matchLabelKeys=["gang"])})
    cluster.cycle()
    assert (cluster.placed("g"), cluster.placed("h")) == ({"g-worker-0": "a"}, {"h-worker-0": "b"})


def test_spread_counts_only_pods_with_the_own_value_of_a_label() -> None:
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["gang"],
    }
    cluster = Rules()
    for index in range(3):
        cluster.stranger(f"old-{index}", "a", labels={"gang": "before"})
    cluster.gang("g", 4, pod={"topologySpreadConstraints": [constraint]})
    cluster.cycle()
    assert sorted(cluster.placed("g").values()) == ["a", "a", "b", "b"]


def _port(number: int, **given: Any) -> list[Json]:
    return [{"name": "main", "ports": [{"hostPort": number, **given}]}]


@pytest.mark.parametrize(
    ("theirs", "mine", "conflict"),
    [
        ({}, {}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, False),
        ({"hostIP": "10.0.0.1"}, {}, True),
        ({"hostIP": "0.0.0.0"}, {"hostIP": "10.0.0.2"}, True),
        ({"protocol": "UDP"}, {}, False),
    ],
)
def test_host_ports_conflict_by_address_protocol_and_number(theirs: Json, mine: Json, conflict: bool) -> None:
    cluster = Rules()
    cluster.stranger("one", "a", containers=_port(80, **theirs))
    cluster.gang("g", 1, pod={"containers": _port(80, **mine), "nodeSelector": {HOST: "a"}}, cpu=None)
    assert cluster.nodes("g") == (set() if conflict else {"a"})


def test_the_ports_of_a_sidecar_are_taken_and_those_of_an_init_container_that_ends_are_not() -> None:
    cluster = Rules()
    cluster.stranger("one", "a", initContainers=[{**_port(80)[0], "restartPolicy": "Always"}])
    cluster.stranger("two", "b", initContainers=_port(80))
    cluster.gang("g", 1, pod={"containers": _port(80)})
    assert cluster.nodes("g") == {"b"}


@pytest.mark.parametrize(
    ("toleration", "admitted"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "dedicated", "value": "gpu"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "cpu"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_taint_is_tolerated_by_key_operator_value_and_effect(toleration: Json, admitted: bool) -> None:
    cluster = Cluster(_policy())
    cluster.node("a", taints=[{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}])
    cluster.gang("g", 1, pod={"tolerations": [toleration]})
    cluster.cycle()
    assert bool(cluster.placed("g")) is admitted


def test_a_gated_pod_is_left_alone_until_its_gates_are_gone() -> None:
    cluster = Rules()
    cluster.gang("g", 1, pod={"schedulingGates": [{"name": "wait"}]})
    assert cluster.nodes("g") == set()
    cluster.pods["g-worker-0"]["spec"]["schedulingGates"] = []
    cluster.change("g-worker-0")
    assert len(cluster.nodes("g")) == 1


# Nominations


def _nominate(cluster: Cluster, pod: str, node: str) -> None:
    raw = cluster.pods[pod]
    raw["status"] = {**raw["status"], "nominatedNodeName": node}
    cluster.change(pod)


def test_the_node_that_was_kept_for_a_pod_is_asked_first() -> None:
    cluster = Rules()
    cluster.stranger("one", "b", containers=[{"name": "m", "resources": {"requests": {"cpu": "2"}}}])
    cluster.gang("g", 2)
    _nominate(cluster, "g-worker-1", "b")
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "a", "g-worker-1": "b"}, "the emptier one is better but for that"


@pytest.mark.parametrize("node", ["b", "gone"])
def test_where_the_kept_node_does_not_do_any_other_is_taken(node: str) -> None:
    cluster = Rules()
    cluster.stranger("one", "b", containers=[{"name": "m", "resources": {"requests": {"cpu": "4"}}}])
    cluster.gang("g", 2)
    for index in range(2):
        _nominate(cluster, f"g-worker-{index}", node)
    assert cluster.nodes("g") == {"a"}


def test_room_that_is_coming_on_the_kept_node_goes_before_room_that_is_there() -> None:
    cluster = Rules()
    cluster.gang("old", 1, cpu="4", pod={"nodeName": "a"}, phase="Running")
    cluster.change("old-worker-0", phase="Running", deleting=True)
    cluster.gang("g", 2)
    for index in range(2):
        _nominate(cluster, f"g-worker-{index}", "a")
    result = cluster.cycle()
    assert not result.binds
    assert {(h.name, h.node, h.promised) for h in result.held} == {
        ("g-worker-0", "a", True),
        ("g-worker-1", "a", True),
    }


def test_a_pod_that_minds_others_goes_to_its_kept_node_where_these_let_it() -> None:
    cluster = Rules()
    cluster.stranger("one", "a", labels={"app": "db"})
    cluster.stranger("two", "b", labels={"app": "db"})
    cluster.gang("g", 1, pod={"affinity": _near()})
    _nominate(cluster, "g-worker-0", "b")
    cluster.gang("h", 1, pod={"affinity": _apart()})
    _nominate(cluster, "h-worker-0", "b")
    cluster.cycle()
    assert (cluster.placed("g"), cluster.placed("h")) == ({"g-worker-0": "b"}, {})


# Switches


@pytest.mark.parametrize(
    ("argument", "pod"),
    [
        ("predicate.NodeAffinityEnable", {"nodeSelector": {HOST: "nowhere"}}),
        ("predicate.PodAffinityEnable", {"affinity": _near()}),
        ("predicate.NodePortsEnable", {"containers": _port(80)}),
        (
            "predicate.PodTopologySpreadEnable",
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack", "labelSelector": {}}]},
        ),
    ],
)
def test_a_filter_that_is_switched_off_refuses_nothing(argument: str, pod: Json) -> None:
    for on in (True, False):
        cluster = Rules(**{argument: on})
        for name in ("a", "b"):
            cluster.stranger(f"one-{name}", name, containers=_port(80))
        cluster.gang("g", 1, pod=pod)
        assert bool(cluster.nodes("g")) is not on


@pytest.mark.parametrize(("on", "placed"), [(True, {"b"}), (False, {"a", "b"})])
def test_taints_that_are_switched_off_leave_cordoned_nodes_out(on: bool, placed: set[str]) -> None:
    cluster = Rules(**{"predicate.TaintTolerationEnable": on})
    cluster.node("a", event="MODIFIED", cpu="4", taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    cluster.node("c", cpu="4", unschedulable=True)
    cluster.gang("g", 12, minimum=1)
    assert cluster.nodes("g") == placed


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("x", "must be a list of points"),
        ([{"utilization": 0, "score": 11}], "[0].score: must be an integer from 0 to 10, got 11"),
        ([{"utilization": 50}, {"utilization": 50}], "[1].utilization: must be above 50"),
        ([{"use": 1}], "unknown field 'use'; allowed: score, utilization"),
    ],
)
def test_a_shape_that_is_none_is_refused(shape: object, words: str) -> None:
    with pytest.raises(PolicyError) as refused:
        _policy(**{"volumebinding.shape": shape})
    assert "volumebinding.shape" in str(refused.value)
    assert words in str(refused.value)


def test_a_pod_that_waits_for_its_like_says_so() -> None:
    cluster = Rules()
    cluster.gang("g", 1, pod={"affinity": _near()})
    cluster.cycle()
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.reason is WaitReason.INTER_POD_AFFINITY
    assert reported.nodes == {"node(s) didn't match pod affinity rules": 2}
