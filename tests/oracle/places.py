"""Filters and scores of nodes. The plugins predicates, nodeorder and binpack."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle import points
from tests.oracle.model import Amounts, Json, Node, Task, at_most, plus
from tests.oracle.queues import Queues


class Places(Queues):
    def _passes(self, node: Node, task: Task) -> bool:
        if "predicates" not in self.plugins:
            return True
        if any(t["effect"] in ("NoSchedule", "NoExecute") and not tolerated(task.tolerations, t) for t in node.taints):
            return False
        if any(node.labels.get(k) != v for k, v in task.selector.items()):
            return False
        here = [t for t in node.tasks if t.status not in ("Succeeded", "Failed")]
        if len(here) >= node.alloc.get("pods", 0.0):
            return False
        if any(t.ports & task.ports for t in here):
            return False
        return self.claims.volumes(task, node.name, self._users()) is not None

    def _users(self) -> dict[str, list[Task]]:
        return {n.name: [t for t in n.tasks if t.status not in ("Succeeded", "Failed")] for n in self.nodes}

    def _fits(self, free: Amounts, task: Task) -> bool:
        asked = {"cpu": 0.0, "memory": 0.0, **task.request}
        return all(at_most(v, free.get(n, 0.0)) for n, v in asked.items())

    def _open(self) -> list[Node]:
        """The candidate nodes."""
        return self.nodes

    def _choose(self, task: Task) -> tuple[Node, bool] | None:
        """The chosen node, and whether its capacity is idle now."""
        passing = [n for n in self._open() if self._passes(n, task)]
        if task.best_effort:
            groups = [(passing, True)]
        else:
            coming = [n for n in passing if self._fits(n.future(), task)]
            groups = [([n for n in coming if self._fits(n.idle(), task)], True), (coming, False)]
        for nodes, free in groups:
            if nodes:
                scores = self._scores(nodes, task)
                return nodes[scores.index(max(scores))], free
        return None

    def _scores(self, nodes: list[Node], task: Task) -> list[float]:
        scores = [0.0] * len(nodes)
        for i, node in enumerate(nodes):
            for plugin, arguments in self.plugins.items():
                if plugin == "nodeorder":
                    scores[i] += self._nodeorder(node, task, arguments)
                elif plugin == "binpack":
                    scores[i] += _binpack(node, task, arguments)
        if "nodeorder" in self.plugins:
            weight = self.plugins["nodeorder"].get("tainttoleration.weight", 3)
            raw = [
                sum(t["effect"] == "PreferNoSchedule" and not tolerated(task.tolerations, t) for t in n.taints)
                for n in nodes
            ]
            if len({*raw}) > 1:
                scores = [score + weight * more for score, more in zip(scores, points.fewest(raw), strict=True)]
        return scores

    def _nodeorder(self, node: Node, task: Task, arguments: Json) -> float:
        expected: Amounts = {}
        counted = task.nonzero
        for other in node.tasks:
            expected = plus(expected, other.request)
            counted = plus(counted, other.nonzero)
        return (
            arguments.get("leastrequested.weight", 1) * points.least(node.alloc, counted)
            + arguments.get("mostrequested.weight", 0) * points.most(node.alloc, counted)
            + arguments.get("balancedresource.weight", 1) * points.balanced(node.alloc, expected, task.request)
        )


def tolerated(tolerations: Sequence[Json], taint: Json) -> bool:
    for toleration in tolerations:
        same_key = toleration.get("key") in (None, "", taint["key"])
        exists = toleration.get("operator") == "Exists"
        same_value = bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
        if toleration.get("effect") in (None, "", taint["effect"]) and same_key and (exists or same_value):
            return True
    return False


def _binpack(node: Node, task: Task, arguments: Json) -> float:
    weights = {"cpu": arguments.get("binpack.cpu", 1), "memory": arguments.get("binpack.memory", 1)}
    for name in filter(None, (n.strip() for n in arguments.get("binpack.resources", "").split(","))):
        weights[name] = arguments.get(f"binpack.resources.{name}", 1)
    return points.packed(node.alloc, node.used(), task.request, weights, weight=arguments.get("binpack.weight", 1))
