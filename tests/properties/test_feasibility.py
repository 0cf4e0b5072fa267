"""Of small worlds, whatever runs in them: a gang is called impossible where it couldn't start on the nodes without any
pod that can go, and nowhere else. `tests/oracle/emptied.py` tries every placement."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.oracle.emptied import HOSTNAME, Node, Pod, could_start
from tests.support.examples import examples
from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import WaitReason

_KEYS = st.sampled_from(["zone", HOSTNAME])


@st.composite
def node_sets(draw: st.DrawFn) -> list[Node]:
    """Up to four nodes, of which some have no zone."""
    made: list[Node] = []
    for i in range(draw(st.integers(1, 4))):
        labels = {HOSTNAME: f"n{i}", "pool": draw(st.sampled_from("xy"))}
        zone = draw(st.sampled_from(["", "a", "b"]))
        made.append(
            Node(
                f"n{i}",
                draw(st.integers(1, 5)),
                draw(st.sampled_from([1, 2, 9])),
                labels | ({"zone": zone} if zone else {}),
            )
        )
    return made


@st.composite
def pod_sets(draw: st.DrawFn) -> list[Pod]:
    """Up to five pods of up to two kinds. Pods of both kinds have the same label, or each kind has its own."""
    kinds: list[Pod] = []
    shared = draw(st.booleans())
    for kind in range(draw(st.integers(1, 2))):
        rule = draw(st.sampled_from(["", "apart", "near", "spread", "port"]))
        kinds.append(
            Pod(
                cpu=draw(st.integers(1, 4)),
                a="s" if shared else str(kind),
                role=f"k{kind}",
                selector=draw(st.sampled_from([{}, {"pool": "x"}])),
                port=8080 if rule == "port" else 0,
                apart=draw(_KEYS) if rule == "apart" else "",
                near=draw(_KEYS) if rule == "near" and not shared else "",
                spread=(draw(_KEYS), draw(st.integers(1, 2)), draw(st.integers(1, 3))) if rule == "spread" else None,
            )
        )
    return [pod for kind in kinds for pod in [kind] * draw(st.integers(1, 5 - 2 * (len(kinds) - 1)))]


def _spec(pod: Pod) -> dict[str, Any]:
    selector = {"matchLabels": {"a": pod.a}}
    spec: dict[str, Any] = {"nodeSelector": dict(pod.selector)}
    if pod.port:
        requests = {"requests": {"cpu": str(pod.cpu)}}
        ports = [{"containerPort": 80, "hostPort": pod.port}]
        spec["containers"] = [{"name": "main", "resources": requests, "ports": ports}]
    sides = (("podAntiAffinity", pod.apart), ("podAffinity", pod.near))
    spec["affinity"] = {
        side: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": selector}]}
        for side, key in sides
        if key
    }
    if pod.spread is not None:
        key, skew, least = pod.spread
        rule = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        spec["topologySpreadConstraints"] = [rule | ({"minDomains": least} if least > 1 else {})]
    return spec


def _order_matters(pods: list[Pod]) -> bool:
    """Whether a spread constraint selects pods that don't have it: that these fit an even end doesn't say that there is
    an order which leads there, which isn't looked for."""
    return len({(pod.spread, pod.role) for pod in pods if any(p.spread and p.a == pod.a for p in pods)}) > 1


def _world(nodes: list[Node], others: list[tuple[int, int]], staying: list[int]) -> Cluster:
    """`others` are pods that can go, each a node and cpus; `staying` has cpus of a DaemonSet's pods, by node."""
    cluster = Cluster()
    for node in nodes:
        cluster.node(node.name, cpu=str(node.cpu), pods=str(node.pods), labels=dict(node.labels))
    for i, (node, cpu) in enumerate(others):
        where = nodes[node % len(nodes)].name
        cluster.pod("other", i, schedulerName="default-scheduler", nodeName=where, cpu=str(cpu))
    for i, cpu in enumerate(staying[: len(nodes)]):
        if cpu:
            owner = {"kind": "DaemonSet", "name": "d", "uid": "d"}
            cluster.pod("d", i, schedulerName="default-scheduler", nodeName=nodes[i].name, cpu=str(cpu), owner=owner)
    return cluster


@settings(max_examples=examples(100), deadline=None)
@given(
    nodes=node_sets(),
    pods=pod_sets(),
    spare=st.integers(0, 1),
    others=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2)), max_size=3),
    staying=st.lists(st.integers(0, 1), max_size=4),
)
def test_a_gang_is_impossible_where_no_placement_exists_without_other_pods(
    nodes: list[Node], pods: list[Pod], spare: int, others: list[tuple[int, int]], staying: list[int]
) -> None:
    cluster = _world(nodes, others, staying)
    least = max(len(pods) - spare, 1)
    cluster.gang("g", 0, minimum=least)
    for i, pod in enumerate(pods):
        cluster.pod("g", i, cpu=str(pod.cpu), role=pod.role, labels={"a": pod.a}, **_spec(pod))
    cluster.cycle()
    placed = cluster.placed("g")
    left = [
        Node(n.name, n.cpu - cpu, n.pods - bool(cpu), n.labels)
        for n, cpu in zip(nodes, [*staying, 0, 0, 0, 0], strict=False)
    ]
    possible = could_start(left, pods, least)
    reported = cluster.scheduler.explain("ns", "g")
    if placed:
        assert possible
        return
    assert reported is not None
    event(f"possible: {possible}")
    if reported.reason is WaitReason.IMPOSSIBLE or not _order_matters(pods):
        assert (reported.reason is WaitReason.IMPOSSIBLE) is not possible, reported.message
