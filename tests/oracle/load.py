"""usage: nodes by their measured usage, and by the pods placed since the measurement."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.model import Amounts, Json, Node, Task, amounts
from tests.oracle.near import NearOracle
from tests.oracle.rules import Rules

CPU_AND_MEMORY = ("cpu", "memory")


class Load(Rules):
    """Pods that were placed after the measurement count by an estimate, which is computed when they are placed.
    Pipelined pods don't count."""

    def __init__(self, oracle: NearOracle, world: Json, given: Json) -> None:
        super().__init__(oracle, world, given)
        now = world["moment"]
        self._real = {u["metadata"]["name"]: u for u in world["nodeUsages"]}
        self._fresh = {name for name, u in self._real.items() if now - u["observedAt"] <= 300}
        self._pods = {p["metadata"]["uid"]: p for p in world["pods"]}
        self._estimates: dict[str, dict[str, tuple[Task, Amounts]]] = {node.name: {} for node in oracle.nodes}
        recent = [
            (task.uid, task, node)
            for node in oracle.nodes
            for task in node.tasks
            if task.status == "Bound" or (task.status == "Running" and task.uid in world["young"])
        ]
        for _, task, node in sorted(recent, key=lambda one: one[0]):
            self.placed(node, task)

    def passes(self, node: Node, task: Task) -> bool:
        real = self._real.get(node.name)
        if real is None or node.name not in self._fresh:
            return True
        return (
            100 * real["cpu"] <= self.given.get("thresholds.cpu", 80)
            and 100 * real["memory"] <= self.given.get("thresholds.mem", 80)
        )  # fmt: skip

    def points(self, nodes: Sequence[Node], task: Task) -> list[float]:
        weight = 100 * self.given.get("usage.weight", 5)
        return [weight * (1 - self._load(node)) if node.name in self._fresh else 0.0 for node in nodes]

    def _load(self, node: Node) -> float:
        """The weighted mean of the utilization of CPU and memory, measured or estimated."""
        weights = {"cpu": self.given.get("cpu.weight", 1), "memory": self.given.get("memory.weight", 1)}
        total = 0.0
        for name, weight in weights.items():
            known = self._estimates[node.name].values()
            shadow = sum(estimate[name] for task, estimate in known if task.status != "Pipelined")
            real = self._real.get(node.name, {}).get(name, 0.0)
            total += min(real + shadow / node.alloc[name], 1.0) * weight
        return total / sum(weights.values())

    def placed(self, node: Node, task: Task) -> None:
        risk = self.given.get("estimator.risk_factor", 1.2)
        if risk < 1:
            risk = 1.2
        if self._load(node) < self.given.get("estimator.risk_threshold", 0.6):
            risk = 1.0
        estimate = {name: self._estimate(task, name, risk) for name in CPU_AND_MEMORY}
        self._estimates[node.name][task.uid] = (task, estimate)

    def gone(self, node: Node, task: Task) -> None:
        self._estimates[node.name].pop(task.uid, None)

    def _estimate(self, task: Task, name: str, risk: float) -> float:
        if task.best_effort:
            idle = {"cpu": self.given.get("estimator.be_cpu", "250m"), "memory": "200Mi"}
            return amounts(idle)[name] * risk
        asked, limit = task.request.get(name, 0.0), 0.0
        for container in self._pods[task.uid]["spec"]["containers"]:
            limit += amounts((container.get("resources") or {}).get("limits")).get(name, 0.0)
        ratio, burst = self.given.get("estimator.request_ratio", 0.7), self.given.get("estimator.burst_ratio", 0)
        return max(0.0, min((asked * ratio + (max(limit - asked, 0.0)) * burst) * risk, limit or asked))
