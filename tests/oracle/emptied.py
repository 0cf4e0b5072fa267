"""Decides whether a gang could start on nodes without other pods, by trying every order and placement of its pods.

kube-scheduler's rules on mappings, pod by pod: resources, pod slots, node selector, host ports, affinity, anti-affinity
and topology spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Node:
    name: str
    cpu: int
    pods: int
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Pod:
    """`apart` and `near` are topology keys of anti-affinity and affinity to pods with the same label `a`; `spread` is a
    topology key, a maximum skew and the minimum number of domains."""

    cpu: int
    a: str = ""
    role: str = "worker"
    selector: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    apart: str = ""
    near: str = ""
    spread: tuple[str, int, int] | None = None


Places = dict[int, str]


def could_start(nodes: Sequence[Node], pods: Sequence[Pod], least: int) -> bool:
    """Whether at least `least` of the pods can be placed, in some order."""
    known: set[frozenset[tuple[int, str]]] = set()

    def go_on(places: Places) -> bool:
        if len(places) >= least:
            return True
        key = frozenset(places.items())
        if key in known:
            return False
        known.add(key)
        return any(
            go_on({**places, i: node.name})
            for i in range(len(pods))
            if i not in places
            for node in nodes
            if _takes(nodes, pods, places, pods[i], node)
        )

    return go_on({})


def _takes(nodes: Sequence[Node], pods: Sequence[Pod], places: Places, pod: Pod, node: Node) -> bool:
    there = [pods[i] for i, name in places.items() if name == node.name]
    if sum(p.cpu for p in there) + pod.cpu > node.cpu or len(there) + 1 > node.pods:
        return False
    if any(node.labels.get(key) != value for key, value in pod.selector.items()):
        return False
    if pod.port and any(p.port == pod.port for p in there):
        return False
    by_name = {n.name: n.labels for n in nodes}

    def like(key: str, other: Pod) -> list[str]:
        """The domains of placed pods that have the other's label."""
        return [by_name[name][key] for i, name in places.items() if pods[i].a == other.a and key in by_name[name]]

    if pod.apart and node.labels.get(pod.apart, "-") in like(pod.apart, pod):
        return False
    for i, name in places.items():
        key = pods[i].apart
        if key and pods[i].a == pod.a and node.labels.get(key, "-") == by_name[name].get(key, "+"):
            return False
    if pod.near:
        domains = like(pod.near, pod)
        if pod.near not in node.labels or (domains and node.labels[pod.near] not in domains):
            return False
    return pod.spread is None or _evenly(nodes, pod, node, like(pod.spread[0], pod))


def _evenly(nodes: Sequence[Node], pod: Pod, node: Node, there: Sequence[str]) -> bool:
    assert pod.spread is not None
    key, skew, least_domains = pod.spread
    eligible = [n for n in nodes if all(n.labels.get(k) == v for k, v in pod.selector.items()) and key in n.labels]
    domains = {n.labels[key] for n in eligible}
    fewest = min((there.count(d) for d in domains), default=0) if len(domains) >= least_domains else 0
    return key in node.labels and there.count(node.labels[key]) + 1 - fewest <= skew
