"""What each score of a node should be, said a second time: one node after the other, plain numbers.

Written from the rules and from nothing of the scheduler's code. All nodes are candidates. Objects are mappings as they
are on the wire; a `Place` is a node with the pods that are on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.oracle import amounts

Json = Mapping[str, Any]
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
    def alloc(self) -> dict[str, float]:
        return amounts(self.node["status"]["allocatable"])

    def used(self, resource: str) -> float:
        return sum(request(pod, resource) for pod in self.pods)


def request(pod: Json, resource: str) -> float:
    """What the pod's containers ask for together."""
    asked = [amounts((c.get("resources") or {}).get("requests")) for c in pod["spec"]["containers"]]
    return sum(a.get(resource, 0.0) for a in asked)


def nonzero(pod: Json, resource: str) -> float:
    """The same with what a container counts as that asks for none."""
    default = {"cpu": 100.0, "memory": 200.0 * MIB}[resource]
    asked = [amounts((c.get("resources") or {}).get("requests")) for c in pod["spec"]["containers"]]
    return sum(a.get(resource, default) for a in asked)


# By amounts


def least(place: Place, pod: Json) -> float:
    return _mean(place, pod, lambda alloc, asked: 0 if asked > alloc else (alloc - asked) * 100 // alloc)


def most(place: Place, pod: Json) -> float:
    return _mean(place, pod, lambda alloc, asked: min(asked, alloc) * 100 // alloc)


def _mean(place: Place, pod: Json, points: Any) -> float:
    total = count = 0
    for resource in ("cpu", "memory"):
        alloc = int(place.alloc.get(resource, 0))
        if alloc:
            asked = int(sum(nonzero(p, resource) for p in [*place.pods, pod]))
            total, count = total + points(alloc, asked), count + 1
    return total // count if count else 0


def balanced(place: Place, pod: Json) -> float:
    resources = ["cpu", "memory"]
    if request(pod, "nvidia.com/gpu") and place.alloc.get("nvidia.com/gpu", 0):
        resources.append("nvidia.com/gpu")
    if not any(request(pod, r) for r in ("cpu", "memory", "nvidia.com/gpu")):
        return 0
    after, before = (_evenness(place, resources, extra) for extra in ([pod], []))
    return 50 + (50 + after - before) // 2


def _evenness(place: Place, resources: Sequence[str], extra: Sequence[Json]) -> int:
    fractions = [
        min((place.used(r) + sum(request(p, r) for p in extra)) / place.alloc[r], 1.0)
        for r in resources
        if place.alloc.get(r, 0)
    ]
    if len(fractions) < 2:
        return 100
    if len(fractions) == 2:
        deviation = abs(fractions[0] - fractions[1]) / 2
    else:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((f - mean) ** 2 for f in fractions) / len(fractions))
    return math.floor((1 - deviation) * 100)


def packed(place: Place, pod: Json, weights: Mapping[str, int]) -> float:
    """binpack, with a weight of 1 as a whole."""
    return fit(place, pod, {name: ("MostAllocated", weight) for name, weight in weights.items()})


def fit(place: Place, pod: Json, wishes: Mapping[str, tuple[str, int]]) -> float:
    """resource-strategy-fit, with a weight of 1 as a whole."""
    asked = {name: wish for name, wish in wishes.items() if request(pod, name) > 0 and wish[1] > 0}
    if not asked:
        return 0.0
    total = 0.0
    for name, (strategy, weight) in asked.items():
        alloc, filled = place.alloc.get(name, 0.0), place.used(name) + request(pod, name)
        if alloc and filled > alloc:
            return 0.0
        if alloc:
            total += weight * (filled if strategy == "MostAllocated" else alloc - filled) / alloc
    return 100 * total / sum(weight for _, weight in asked.values())


# By what nodes are


def tainted(places: Sequence[Place], pod: Json) -> list[float]:
    def untolerated(place: Place) -> int:
        taints = (place.node.get("spec") or {}).get("taints") or []
        return sum(t["effect"] == "PreferNoSchedule" and not _tolerated(pod, t) for t in taints)

    return _reversed([untolerated(place) for place in places])


def _tolerated(pod: Json, taint: Json) -> bool:
    return any(
        t["key"] == taint["key"] and (t.get("operator") == "Exists" or t.get("value", "") == taint.get("value", ""))
        for t in pod["spec"].get("tolerations") or ()
    )


def _reversed(raw: Sequence[int]) -> list[float]:
    highest = max(raw)
    return [100 - 100 * r // highest if highest else 100 for r in raw]


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
