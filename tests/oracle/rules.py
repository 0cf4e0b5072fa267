"""What a plugin of the oracle can say: whether a node takes a task, and what points nodes get that are candidates
together."""

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
        """The task goes to the node."""

    def gone(self, node: Node, task: Task) -> None:
        """It is taken back."""
