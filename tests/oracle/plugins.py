"""Plugins of the oracle beyond the default policy, each implemented from its section of the rules."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from tests.oracle.cards import Cards
from tests.oracle.load import Load
from tests.oracle.model import ALLOCATED, Amounts, Job, Json, Node, Task, amounts, plus
from tests.oracle.near import HELD, Domain, NearOracle
from tests.oracle.neighbours import Neighbours
from tests.oracle.numa import Numa
from tests.oracle.rules import HARD, SOFT, Rules


class NodeGroups(Rules):
    """nodegroup: the groups of nodes that a queue may use, and its limits on them."""

    def __init__(self, oracle: NearOracle, world: Json, given: Json) -> None:
        super().__init__(oracle, world, given)
        self._queues = {q["metadata"]["name"]: q for q in world["queues"]}

    def _affinity(self, queue: str) -> Json | None:
        """The affinity of the queue; with inheritance that of the nearest ancestor that has one."""
        found = self._queues[queue]["spec"].get("affinity")
        above = self._queues[queue]["spec"].get("parent")
        if found or not above or not self.given.get("enableHierarchy"):
            return found
        return self._affinity(above)

    def passes(self, node: Node, task: Task) -> bool:
        assert task.job is not None
        queue = task.job.queue.name
        group, affinity = node.labels.get("volcano.sh/nodegroup-name"), self._affinity(queue)
        limits = self._limits(queue)
        if limits is None:
            return False
        if group is None:
            return not affinity and not self.given.get("strict", True)
        if not affinity:
            return False
        near, far = affinity.get("nodeGroupAffinity") or {}, affinity.get("nodeGroupAntiAffinity") or {}
        wanted = group in near.get(HARD, []) or group in near.get(SOFT, [])
        if not ((wanted and group not in far.get(HARD, [])) or group in far.get(SOFT, [])):
            return False
        return self._within(amounts(limits.get(group)), queue, group, task)

    def _limits(self, queue: str) -> Json | None:
        """The limits by group; None where the annotation of the queue is invalid."""
        notes = self._queues[queue]["metadata"].get("annotations") or {}
        try:
            return json.loads(notes.get("volcano.sh/nodegroup-resource-limits", "{}"))
        except ValueError:
            return None

    def _within(self, limits: Amounts, queue: str, group: str, task: Task) -> bool:
        held: Amounts = dict(task.request)
        for node in self.oracle.nodes:
            for other in node.tasks:
                mine = other.job is not None and other.job.queue.name == queue
                if node.labels.get("volcano.sh/nodegroup-name") == group and mine:
                    held = plus(held, other.request if other.status in (*ALLOCATED, "Pipelined") else {})
        return all(held.get(name, 0.0) < most + 0.1 for name, most in limits.items())

    def points(self, nodes: Sequence[Node], task: Task) -> list[float]:
        assert task.job is not None
        affinity = self._affinity(task.job.queue.name) or {}
        near, far = affinity.get("nodeGroupAffinity") or {}, affinity.get("nodeGroupAntiAffinity") or {}
        liked: list[str] = near.get(SOFT, [])
        out: list[float] = []
        for node in nodes:
            group, total = node.labels.get("volcano.sh/nodegroup-name", ""), 0.0
            if group in near.get(HARD, []):
                total += 100
            if group in liked:
                place = liked.index(group) if self.given.get("enablePreferredOrder") else 0
                total += 50 * (len(liked) - place) / len(liked)
            out.append(-1.0 if group in far.get(SOFT, []) else total)
        return out


class Network(Rules):
    """network-topology-aware, for gangs without subgroups: full domains before empty ones, and nodes near the pods of
    the gang."""

    def _weights(self, asked: Amounts) -> Amounts:
        found = {name: self.given.get(f"hypernode.binpack.{name}", 1) for name in ("cpu", "memory")}
        for name in filter(None, self.given.get("hypernode.binpack.resources", "").split(",")):
            found[name] = self.given.get(f"hypernode.binpack.resources.{name}", 1)
        return {name: weight for name, weight in found.items() if weight and asked.get(name, 0.0) > 0}

    def full(self, domain: Domain, asked: Amounts) -> float:
        """The utilization of the domain with the requests, 0 where they exceed its capacity."""
        weights, total = self._weights(asked), 0.0
        for name, weight in weights.items():
            nodes = [node for node in self.oracle.nodes if node.name in domain.nodes]
            alloc = sum(node.alloc.get(name, 0.0) for node in nodes)
            filled = sum(node.used().get(name, 0.0) for node in nodes) + asked[name]
            if filled > alloc:
                return 0.0
            total += weight * (filled / alloc)
        return total / sum(weights.values()) if sum(weights.values()) else 0.0

    def fullness(self, job: Job, tasks: Sequence[Task], domain: Domain) -> float:
        asked: Amounts = {}
        for task in tasks:
            asked = plus(asked, task.request)
        return self.full(domain, asked) * 100 * self.given.get("weight", 1)

    def points(self, nodes: Sequence[Node], task: Task) -> list[float]:
        weight = 100 * self.given.get("weight", 1)
        if task.job is not None and task.job.topology:
            return [weight * near for near in self._near(nodes, task.job)]
        if not self.given.get("hypernode.binpack.normal-pod.enable", True):
            return super().points(nodes, task)
        return [weight * self._normal(node, task) for node in nodes]

    def _normal(self, node: Node, task: Task) -> float:
        fading, total, parts = self.given.get("hypernode.binpack.normal-pod.fading", 0.8), 0.0, 0.0
        domains = self.oracle.domains[:-1]
        for tier in sorted({domain.tier for domain in domains}):
            here = next((d for d in domains if d.tier == tier and node.name in d.nodes), None)
            part = fading ** (tier - 1)
            total += part * (1.0 if here is None else self.full(here, task.request))
            parts += part
        return total / parts if parts else 0.0

    def _near(self, nodes: Sequence[Node], job: Job) -> list[float]:
        held = [t.node for t in job.tasks if t.status in HELD]
        if not held:
            return [0.0] * len(nodes)
        domains = self.oracle.domains
        around = next(d for d in domains if all(name in d.nodes for name in held))
        lowest, highest = domains[0].tier, domains[-1].tier
        homes = [next(d for d in domains if node.name in d.nodes) for node in nodes]
        out: list[float] = []
        for home in homes:
            both = next(d for d in home.path if d in around.path)
            far = 1.0 if highest == lowest else (highest - both.tier) / (highest - lowest)
            out.append(1.0 if home == around else far)
        best = max(out)
        for i, home in enumerate(homes):
            if out[i] == best:
                out[i] += sum(name in home.nodes for name in held) / len(job.tasks)
        return out


RULES = {
    "nodegroup": NodeGroups,
    "usage": Load,
    "network-topology-aware": Network,
    "deviceshare": Cards,
    "numa-aware": Numa,
}


class FullOracle(NearOracle):
    """One cycle with inter-pod affinity and the plugins above."""

    def __init__(self, world: Json, actions: Sequence[str], options: Sequence[tuple[str, Json]]) -> None:
        super().__init__(world, actions, options)
        self._neighbours = Neighbours(self, world)
        self._rules = [RULES[name](self, world, given) for name, given in options if name in RULES]

    def _passes(self, node: Node, task: Task) -> bool:
        near = "predicates" not in self.plugins or self._neighbours.passes(node, task)
        return near and super()._passes(node, task) and all(rules.passes(node, task) for rules in self._rules)

    def _fullness(self, job: Job, tasks: Sequence[Task], domain: Domain) -> float:
        return sum(rules.fullness(job, tasks, domain) for rules in self._rules)

    def _place(self, task: Task, node: Node, free: bool, *, cleared: bool = False) -> None:
        for rules in self._rules:
            rules.placed(node, task)
        super()._place(task, node, free, cleared=cleared)

    def _undo(self, task: Task) -> None:
        node = next(n for n in self.nodes if n.name == task.node)
        super()._undo(task)
        for rules in self._rules:
            rules.gone(node, task)

    def _scores(self, nodes: list[Node], task: Task) -> list[float]:
        scores = super()._scores(nodes, task)
        given = [rules.points(nodes, task) for rules in self._rules]
        if "nodeorder" in self.plugins:
            weight = self.plugins["nodeorder"].get("podaffinity.weight", 2)
            given.append([weight * points for points in self._neighbours.points(nodes, task)])
        return [score + math.fsum(points) for score, *points in zip(scores, *given, strict=True)]
