"""The oracle's model of the objects, and its arithmetic on quantities: plain numbers, no arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcbatch.api.quantity import parse_quantity

Json = Mapping[str, Any]
Amounts = dict[str, float]
EPS = 0.1
ALLOCATED = ("Allocated", "Binding", "Bound", "Running")
READY = (*ALLOCATED, "Succeeded")
Part = tuple[int, tuple[str, ...]]
"""A subgroup of a gang: the index of its rule, and the values of the labels that define it."""


def amounts(given: Json | None) -> Amounts:
    out: Amounts = {}
    for name, quantity in (given or {}).items():
        exact = parse_quantity(quantity)
        whole = name in ("memory", "pods", "ephemeral-storage")
        out[name] = float(exact.value() if whole else exact.milli())
    return out


def plus(a: Amounts, b: Amounts, sign: float = 1.0) -> Amounts:
    return {k: a.get(k, 0.0) + sign * b.get(k, 0.0) for k in {**a, **b}}


def at_most(left: float, right: float) -> bool:
    return left < right or abs(left - right) < EPS


@dataclass(eq=False)
class Task:
    uid: str
    name: str
    job: Job | None
    status: str
    node: str
    role: str
    priority: int
    index: int | None
    creation: str
    request: Amounts
    nonzero: Amounts
    selector: dict[str, str]
    tolerations: Sequence[Json]
    ports: frozenset[int]
    labels: Mapping[str, str]
    affinity: Json = field(default_factory=dict)
    claims: Sequence[str] = ()
    cleared: bool = False
    """Whether pods were evicted for the node that it is pipelined on."""

    @property
    def best_effort(self) -> bool:
        return all(v < EPS for k, v in self.request.items() if k != "pods")


@dataclass(eq=False)
class Job:
    key: str
    uid: str
    creation: str
    queue: Queue
    minimum: int
    role_minimums: dict[str, int]
    priority: int
    min_resources: Amounts | None
    phase: str
    rules: Sequence[Json] = ()
    topology: Json | None = None
    tasks: list[Task] = field(default_factory=list)

    def part_of(self, task: Task) -> Part | None:
        """The subgroup of the task, or None."""
        for i, rule in enumerate(self.rules):
            wanted, keys = rule["labelSelector"]["matchLabels"], rule["matchLabelKeys"]
            if all(task.labels.get(k) == v for k, v in wanted.items()) and all(k in task.labels for k in keys):
                return i, tuple(task.labels[k] for k in keys)
        return None

    def in_part(self, part: Part, *statuses: str) -> int:
        """The number of its tasks in these states, or pending and best-effort."""
        return sum(
            1
            for t in self.tasks
            if self.part_of(t) == part and (t.status in statuses or (t.status == "Pending" and t.best_effort))
        )

    def whole_parts(self, i: int, *statuses: str) -> int:
        parts = {p for p in map(self.part_of, self.tasks) if p is not None and p[0] == i}
        return sum(1 for p in parts if self.in_part(p, *statuses) >= self.rules[i]["subGroupSize"])

    def enough_parts(self, *statuses: str) -> bool:
        return all(self.whole_parts(i, *statuses) >= r["minSubGroups"] for i, r in enumerate(self.rules))

    def count(self, *statuses: str, role: str | None = None) -> int:
        return sum(1 for t in self.tasks if t.status in statuses and (role is None or t.role == role))

    def allocated(self) -> Amounts:
        total: Amounts = {}
        for task in self.tasks:
            if task.status in ALLOCATED:
                total = plus(total, task.request)
        return total


@dataclass(eq=False)
class Queue:
    name: str
    uid: str
    creation: str
    weight: int
    priority: int
    capability: Amounts | None
    guarantee: Amounts
    open: bool
    allocated: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    most: Amounts = field(default_factory=dict)
    inqueue: Amounts = field(default_factory=dict)
    elastic: Amounts = field(default_factory=dict)


@dataclass(eq=False)
class Node:
    name: str
    labels: dict[str, str]
    taints: Sequence[Json]
    alloc: Amounts
    tasks: list[Task] = field(default_factory=list)

    def sum(self, *statuses: str) -> Amounts:
        total: Amounts = {}
        for task in self.tasks:
            if task.status in statuses:
                total = plus(total, task.request)
        return total

    def used(self) -> Amounts:
        return self.sum(*ALLOCATED, "Releasing", "Unknown")

    def idle(self) -> Amounts:
        return plus(self.alloc, self.used(), -1)

    def future(self) -> Amounts:
        return plus(plus(self.idle(), self.sum("Releasing")), self.sum("Pipelined"), -1)


def kind(task: Task) -> tuple[Any, ...]:
    """Tasks of one kind are placed together."""
    tolerations = tuple(tuple(sorted(t.items())) for t in task.tolerations)
    request = tuple(sorted(task.request.items()))
    nodes = (tuple(sorted(task.selector.items())), tolerations, repr(task.affinity))
    return (task.role, request, nodes, task.ports, tuple(task.claims))
