"""Inter-pod affinity and anti-affinity, for filters and scores."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.model import Json, Node, Task
from tests.oracle.near import NearOracle
from tests.oracle.rules import HARD, SOFT

NAME = "kubernetes.io/metadata.name"


class Neighbours:
    def __init__(self, oracle: NearOracle, world: Json) -> None:
        self._oracle = oracle
        self._spaces = {n["metadata"]["name"]: n["metadata"].get("labels") or {} for n in world.get("namespaces") or ()}

    def _others(self) -> list[tuple[Node, Task]]:
        return [(n, t) for n in self._oracle.nodes for t in n.tasks if t.status not in ("Succeeded", "Failed")]

    def passes(self, node: Node, task: Task) -> bool:
        others = self._others()
        for there, other in others:
            if any(self._means(other, term, task) and _same(there, node, term) for term in _terms(other, _FAR)):
                return False
            if any(self._means(task, term, other) and _same(there, node, term) for term in _terms(task, _FAR)):
                return False
        wanted = _terms(task, _NEAR)
        if any(term["topologyKey"] not in node.labels for term in wanted):
            return False
        friends = [(there, other) for there, other in others if all(self._means(task, t, other) for t in wanted)]
        if all(any(_same(there, node, term) for there, _ in friends) for term in wanted):
            return True
        # The first pod of a group with affinity to itself may be on any node.
        known = any(term["topologyKey"] in there.labels for there, _ in friends for term in wanted)
        return not known and all(self._means(task, term, task) for term in wanted)

    def points(self, nodes: Sequence[Node], task: Task) -> list[float]:
        raw = [0] * len(nodes)

        def add(there: Node, term: Json, weight: int) -> None:
            for i, node in enumerate(nodes):
                raw[i] += weight * _same(there, node, term)

        for there, other in self._others():
            for weight, term in _requests(task):
                if self._means(task, term, other):
                    add(there, term, weight)
            for weight, term in [*_requests(other), *((1, term) for term in _terms(other, _NEAR))]:
                if self._means(other, term, task):
                    add(there, term, weight)
        low, high = min(raw), max(raw)
        return [float(100 * (r - low) // (high - low)) if high > low else 0.0 for r in raw]

    def _means(self, owner: Task, term: Json, other: Task) -> bool:
        """Whether a term of the owner matches the other pod."""
        home, space = (task.name.partition("/")[0] for task in (owner, other))
        named, by_label = term.get("namespaces") or [], term.get("namespaceSelector")
        if by_label is None:
            inside = space in (named or [home])
        else:
            inside = space in named or _selects(by_label, {NAME: space, **self._spaces.get(space, {})})
        selector = term.get("labelSelector")
        if not inside or selector is None or not _selects(selector, other.labels):
            return False
        alike = all(
            other.labels.get(k) == owner.labels[k] for k in term.get("matchLabelKeys") or () if k in owner.labels
        )
        return alike and not any(
            other.labels.get(k) == owner.labels[k] for k in term.get("mismatchLabelKeys") or () if k in owner.labels
        )


_NEAR, _FAR = "podAffinity", "podAntiAffinity"


def _terms(task: Task, side: str) -> Sequence[Json]:
    return (task.affinity.get(side) or {}).get(HARD) or ()


def _requests(task: Task) -> list[tuple[int, Json]]:
    return [
        (sign * request["weight"], request["podAffinityTerm"])
        for side, sign in ((_NEAR, 1), (_FAR, -1))
        for request in (task.affinity.get(side) or {}).get(SOFT) or ()
    ]


def _selects(selector: Json, labels: Json) -> bool:
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for one in selector.get("matchExpressions") or ():
        key, values = one["key"], one.get("values") or []
        if not {
            "In": key in labels and labels[key] in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }[one["operator"]]:
            return False
    return True


def _same(one: Node, other: Node, term: Json) -> bool:
    """Whether the two nodes are in the same domain of the term's topology key."""
    key = term["topologyKey"]
    return key in one.labels and one.labels[key] == other.labels.get(key)
