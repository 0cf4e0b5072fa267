"""The interface of the oracle's plugins: whether a node passes for a task, and the points of candidate nodes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.model import Job, Json, Node, Task
from tests.oracle.near import Domain, NearOracle

HARD = "requiredDuringSchedulingIgnoredDuringExecution"
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"


class Rules:
    """A plugin without an opinion."""

    def __init__(self, oracle: NearOracle, world: Json, given: Json) -> None:
        self.oracle = oracle
        self.given = given

    def passes(self, node: Node, task: Task) -> bool:
        return True

    def points(self, nodes: Sequence[Node], task: Task) -> list[float]:
        return [0.0] * len(nodes)

    def fullness(self, job: Job, tasks: Sequence[Task], domain: Domain) -> float:
        return 0.0

    def placed(self, node: Node, task: Task) -> None:
        """The task was placed on the node."""

    def gone(self, node: Node, task: Task) -> None:
        """The placement was undone."""
