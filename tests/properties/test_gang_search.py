"""A gang that fits on an empty cluster starts, whatever the order of its pods: small worlds decided by brute force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.cluster import Cluster

NODES = "abcd"
ZONES = ("x", "y")


@dataclass(frozen=True, slots=True)
class Kind:
    """Pods of one kind: CPUs, the labels that their node must have, and what they ask about other pods of the gang."""

    cpu: int
    zone: str = ""
    ssd: bool = False
    port: bool = False
    near: str = ""
    """The node label of which all pods with it share the value."""
    apart: str = ""
    """The node label of which no two pods with it share the value."""

    @property
    def spec(self) -> dict[str, Any]:
        """Of a pod of the kind."""
        container: dict[str, Any] = {"name": "main", "resources": {"requests": {"cpu": str(self.cpu)}}}
        if self.port:
            container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        selector = {**({"zone": self.zone} if self.zone else {}), **({"ssd": "y"} if self.ssd else {})}
        affinity: dict[str, Any] = {}
        for rule, key, label in (("podAffinity", self.near, "near"), ("podAntiAffinity", self.apart, "apart")):
            if key:
                term = {"labelSelector": {"matchLabels": {label: key}}, "topologyKey": _key(key)}
                affinity[rule] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"containers": [container], "nodeSelector": selector, "affinity": affinity}

    @property
    def labels(self) -> dict[str, str]:
        return {label: key for label, key in (("near", self.near), ("apart", self.apart)) if key}


@dataclass(frozen=True, slots=True)
class Node:
    cpus: int
    zone: str
    ssd: bool


def _key(label: str) -> str:
    return "kubernetes.io/hostname" if label == "host" else label


def _fits(nodes: Sequence[Node], pods: Sequence[Kind]) -> bool:
    """Whether some assignment of the pods to nodes breaks no rule."""
    return any(_valid(nodes, pods, places) for places in product(range(len(nodes)), repeat=len(pods)))


def _valid(nodes: Sequence[Node], pods: Sequence[Kind], places: Sequence[int]) -> bool:
    free = [node.cpus for node in nodes]
    ports: set[int] = set()
    for pod, at in zip(pods, places, strict=True):
        node = nodes[at]
        free[at] -= pod.cpu
        if free[at] < 0 or (pod.zone and pod.zone != node.zone) or (pod.ssd and not node.ssd):
            return False
        if pod.port and at in ports:
            return False
        if pod.port:
            ports.add(at)
    return all(_related(nodes, pods, places))


def _related(nodes: Sequence[Node], pods: Sequence[Kind], places: Sequence[int]) -> Iterator[bool]:
    """Whether each of the rules between pods holds."""
    values: Mapping[str, Sequence[object]] = {"zone": [node.zone for node in nodes], "host": range(len(nodes))}
    for label in values:
        near = [values[label][at] for pod, at in zip(pods, places, strict=True) if pod.near == label]
        apart = [values[label][at] for pod, at in zip(pods, places, strict=True) if pod.apart == label]
        yield len(set(near)) <= 1
        yield len(set(apart)) == len(apart)


nodes_of = st.lists(
    st.builds(Node, cpus=st.integers(1, 4), zone=st.sampled_from(ZONES), ssd=st.booleans()), min_size=1, max_size=4
)
kinds_of = st.builds(
    Kind,
    cpu=st.integers(1, 3),
    zone=st.sampled_from(("", "", *ZONES)),
    ssd=st.sampled_from((False, False, True)),
    port=st.sampled_from((False, False, True)),
    near=st.sampled_from(("", "", "", "zone", "host")),
    apart=st.sampled_from(("", "", "", "zone", "host")),
)
gangs_of = st.lists(st.tuples(kinds_of, st.integers(1, 3)), min_size=1, max_size=4).map(
    lambda parts: tuple(kind for kind, count in parts for _ in range(count))[:5]
)


@settings(max_examples=examples(250), suppress_health_check=list(HealthCheck))
@given(nodes_of, gangs_of)
@example([Node(1, "x", ssd=True), Node(1, "x", ssd=False)], (Kind(1), Kind(1, ssd=True)))
@example([Node(2, "x", ssd=False), *[Node(2, "y", ssd=False)] * 2], (Kind(1, near="zone"),) * 4)
@example([Node(1, "x", ssd=False), Node(3, "x", ssd=False)], (Kind(1), Kind(1), Kind(2)))
@example([Node(2, "x", ssd=True), Node(2, "y", ssd=False)], (Kind(1, port=True), Kind(2, ssd=True)))
def test_a_gang_starts_where_it_fits_and_else_stays_whole(nodes: Sequence[Node], pods: Sequence[Kind]) -> None:
    cluster = Cluster()
    for name, node in zip(NODES, nodes, strict=False):
        labels = {"zone": node.zone, **({"ssd": "y"} if node.ssd else {})}
        cluster.node(name, cpu=str(node.cpus), labels=labels)
    cluster.gang("g", 0, minimum=len(pods))
    for nth, kind in enumerate(pods):
        cluster.pod("g", nth, labels=kind.labels, **kind.spec)
    for _ in range(3):
        cluster.cycle()
    placed = cluster.placed("g")
    fits = _fits(nodes, pods)
    event("fits" if fits else "does not fit")
    assert len(placed) == (len(pods) if fits else 0)
    if fits:
        assert _valid(nodes, pods, [NODES.index(placed[f"g-worker-{nth}"]) for nth in range(len(pods))])
