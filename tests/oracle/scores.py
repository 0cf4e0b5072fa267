"""A second implementation of each node score: one node after the other, plain numbers.

It is written from the rules and not from the scheduler's code. All nodes are candidates. Objects are mappings in their
JSON form; a `Place` is a node with the pods on it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.oracle import points
from tests.oracle.model import Amounts, Json, amounts, plus
from tests.oracle.places import tolerated

MIB = 1024 * 1024


@dataclass
class Place:
    node: Json
    pods: list[Json] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.node["metadata"]["name"]

    @property
    def labels(self) -> Json:
        return self.node["metadata"].get("labels") or {}

    @property
    def alloc(self) -> Amounts:
        return amounts(self.node["status"]["allocatable"])

    @property
    def used(self) -> Amounts:
        return _sum(request(pod) for pod in self.pods)


def request(pod: Json) -> Amounts:
    """The sum of the containers' requests."""
    return _sum(amounts((c.get("resources") or {}).get("requests")) for c in pod["spec"]["containers"])


def nonzero(pod: Json) -> Amounts:
    """The same, with default requests for containers without any."""
    default = {"cpu": 100.0, "memory": 200.0 * MIB}
    return _sum(default | amounts((c.get("resources") or {}).get("requests")) for c in pod["spec"]["containers"])


def _sum(given: Iterable[Amounts]) -> Amounts:
    return functools.reduce(plus, given, {})


# By resources


def least(place: Place, pod: Json) -> float:
    return points.least(place.alloc, _sum(map(nonzero, [*place.pods, pod])))


def most(place: Place, pod: Json) -> float:
    return points.most(place.alloc, _sum(map(nonzero, [*place.pods, pod])))


def balanced(place: Place, pod: Json) -> float:
    return points.balanced(place.alloc, place.used, request(pod))


def packed(place: Place, pod: Json, weights: Mapping[str, int]) -> float:
    """binpack with a total weight of 1."""
    return points.packed(place.alloc, place.used, request(pod), weights, weight=1)


def fit(place: Place, pod: Json, requests: Mapping[str, tuple[str, int]]) -> float:
    """resource-strategy-fit with a total weight of 1."""
    return points.fit(place.alloc, place.used, request(pod), requests, weight=1)


# By properties of nodes


def tainted(places: Sequence[Place], pod: Json) -> list[float]:
    def untolerated(place: Place) -> int:
        taints = (place.node.get("spec") or {}).get("taints") or []
        bears = pod["spec"].get("tolerations") or ()
        return sum(t["effect"] == "PreferNoSchedule" and not tolerated(bears, t) for t in taints)

    return points.fewest([untolerated(place) for place in places])


def preferred_nodes(places: Sequence[Place], pod: Json) -> list[float]:
    terms = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_SOFT) or ()
    raw = [
        sum(
            term["weight"]
            for term in terms
            if all(place.labels.get(e["key"]) in e["values"] for e in term["preference"]["matchExpressions"])
        )
        for place in places
    ]
    highest = max(raw)
    return [100 * r // highest if highest else 0 for r in raw]


def images(places: Sequence[Place], pod: Json) -> list[float]:
    wanted = [c["image"] for c in pod["spec"]["containers"]]
    held = [
        {name: image["sizeBytes"] for image in place.node["status"].get("images") or () for name in image["names"]}
        for place in places
    ]
    out: list[float] = []
    for here in held:
        size = sum(
            int(here[name] * (sum(name in other for other in held) / len(places))) for name in wanted if name in here
        )
        low, high = 23 * MIB, 1000 * MIB * len(wanted)
        out.append(100 * (min(max(size, low), high) - low) // (high - low))
    return out


# By pods

_SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
_HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def near_pods(places: Sequence[Place], pod: Json) -> list[float]:
    raw = [0] * len(places)
    for place in places:
        for other in place.pods:
            for weight, term in _soft_terms(pod):
                if _means(term, other):
                    _add(raw, places, place, term["topologyKey"], weight)
            for weight, term in [*_soft_terms(other), *((1, t) for t in _side(other, "podAffinity").get(_HARD) or ())]:
                if _means(term, pod):
                    _add(raw, places, place, term["topologyKey"], weight)
    low, high = min(raw), max(raw)
    return [100 * (r - low) // (high - low) if high > low else 0 for r in raw]


def _side(pod: Json, side: str) -> Json:
    return (pod["spec"].get("affinity") or {}).get(side) or {}


def _soft_terms(pod: Json) -> list[tuple[int, Json]]:
    near = [(e["weight"], e["podAffinityTerm"]) for e in _side(pod, "podAffinity").get(_SOFT) or ()]
    return near + [(-e["weight"], e["podAffinityTerm"]) for e in _side(pod, "podAntiAffinity").get(_SOFT) or ()]


def _means(term: Json, pod: Json) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(k) == v for k, v in term["labelSelector"]["matchLabels"].items())


def _add(raw: list[int], places: Sequence[Place], there: Place, key: str, weight: int) -> None:
    for i, place in enumerate(places):
        if key in there.labels and place.labels.get(key) == there.labels[key]:
            raw[i] += weight


def spread(places: Sequence[Place], pod: Json) -> list[float]:
    soft = [c for c in pod["spec"].get("topologySpreadConstraints") or () if c["whenUnsatisfiable"] == "ScheduleAnyway"]
    labelled = [all(c["topologyKey"] in place.labels for c in soft) for place in places]
    raw: list[int] = []
    for place in places:
        total = 0.0
        for constraint in soft:
            key = constraint["topologyKey"]
            domains = {p.labels[key] for p, has in zip(places, labelled, strict=True) if has}
            count = sum(
                _means(constraint, other)
                for p, has in zip(places, labelled, strict=True)
                if has and p.labels[key] == place.labels.get(key)
                for other in p.pods
            )
            total += count * math.log(len(domains) + 2) + (constraint["maxSkew"] - 1)
        raw.append(math.floor(total + 0.5))
    counted = [r for r, has in zip(raw, labelled, strict=True) if has]
    if not counted:
        return [0.0] * len(places)
    low, high = min(counted), max(counted)
    return [
        (100 * (high + low - r) // high if high else 100) if has else 0 for r, has in zip(raw, labelled, strict=True)
    ]
