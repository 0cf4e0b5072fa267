"""NUMA-aware placement: pods with exclusive cpus are placed on nodes that can allocate them near each other."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vcbatch.api import names
from vcbatch.api.numatopology import CPU_MANAGER_POLICY, TOPOLOGY_MANAGER_POLICY, NumatopologyView
from vcbatch.api.pod import Container, Pod
from vcbatch.api.quantity import MalformedQuantity, Quantity, parse_quantity
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Plugin, Rejection
from vcbatch.scheduler.index.numa import Cpus, Layout, Place, TopologyPolicy, assign, parse_cpus
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import HOLDING, Task, TaskStatus
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.snapshot.snapshot import Snapshot

UNKNOWN = "node(s) had no NUMA information"
SHARED = "node(s) didn't run the static cpu manager"
OTHER_POLICY = "node(s) had another topology manager policy than the pod"
NONE_FREE = "node(s) had no cpus left to give away"
MISALIGNED = "node(s) couldn't align the cpus of the pod"

_STATIC = "static"
_MEMORY = "numa-aware"
_NONE: Cpus = frozenset()


class _Node(NamedTuple):
    """The properties of a node that matter; results are the same for nodes that are equal in them."""

    layout: Layout
    free: Cpus
    static: bool
    policy: str


class _Demand(NamedTuple):
    """The properties of a pod that matter: the policy that it requests, and the number of exclusive cpus of each
    container."""

    policy: str
    counts: tuple[int, ...]


class _Answer(NamedTuple):
    """The cpus that a pod would get on a node, or why the node is rejected."""

    cpus: Cpus = _NONE
    refusal: str = ""


class _Decision(NamedTuple):
    """Cpus of a bound pod that the node's report doesn't show yet, and the report at the time of the decision."""

    node: str
    cpus: Cpus
    reported: str


class _Nodes:
    """The reports of nodes: the number of each node's kind, by row ([N]), equal for equal nodes, 0 without a valid
    report; and the results for pods on each kind, as far as computed."""

    MOST_KINDS = 1 << 16

    def __init__(self, state: Snapshot) -> None:
        self.stamp = _stamp(state)
        self.kinds: list[_Node | None] = [None]
        self.kind_of: npt.NDArray[np.intp] = np.zeros(len(state.nodes), dtype=np.intp)
        self.reported: dict[int, str] = {}
        self.answers: dict[tuple[int, _Demand], _Answer] = {}
        self._numbers: dict[_Node, int] = {}
        known = state.facts.of(NumatopologyView)
        for row, info in enumerate(state.nodes.infos):
            reported = known.get(info.name)
            node = _understood(reported) if reported is not None else None
            if reported is not None and node is not None:
                self.kind_of[row] = self.number(node)
                self.reported[row] = _allocatable(reported)

    def number(self, node: _Node) -> int:
        """The number of the kind of such a node."""
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self.kinds)
            self.kinds.append(node)
        return number

    def answer(self, kind: int, demand: _Demand) -> _Answer:
        known = self.answers.get((kind, demand))
        if known is None:
            known = self.answers[kind, demand] = _answered(self.kinds[kind], demand)
        return known


class _Kept:
    """The state kept between cycles."""

    def __init__(self) -> None:
        self.nodes: _Nodes | None = None
        self.decisions: dict[str, _Decision] = {}


def _stamp(state: Snapshot) -> tuple[int, ...]:
    return state.facts.stamp(NumatopologyView), state.static_stamp, len(state.nodes)


def _allocatable(reported: NumatopologyView) -> str:
    resource = (reported.spec.numares or {}).get("cpu")
    return "" if resource is None else resource.allocatable


def _understood(reported: NumatopologyView) -> _Node | None:
    spec = reported.spec
    policies = spec.policies or {}
    try:
        places = {int(cpu): Place(at.numa, at.socket, at.core) for cpu, at in (spec.cpu_detail or {}).items()}
        reserved = math.ceil(_cpu((spec.res_reserved or {}).get("cpu", 0)).milli() / 1000)
        return _Node(
            layout=Layout.of(places, reserved),
            free=parse_cpus(_allocatable(reported)),
            static=policies.get(CPU_MANAGER_POLICY) == _STATIC,
            policy=policies.get(TOPOLOGY_MANAGER_POLICY, ""),
        )
    except ValueError:
        return None


def _cpu(given: str | float) -> Quantity:
    return parse_quantity(given)


class NumaAware(Plugin):
    """Uses Numatopology objects. Affects only Guaranteed pods that request whole cpus."""

    ARGUMENTS = ArgumentSpec(named={"weight": Argument(default=1)})

    def open(self, session: Handle) -> None:
        state = session.state
        self._state = state
        kept = state.memory.get(_MEMORY)
        if not isinstance(kept, _Kept):
            kept = state.memory[_MEMORY] = _Kept()
        nodes = kept.nodes
        if nodes is None or nodes.stamp != _stamp(state) or len(nodes.kinds) + len(nodes.answers) > nodes.MOST_KINDS:
            nodes = kept.nodes = _Nodes(state)
        self._kept, self._nodes = kept, nodes
        self._kind_of = nodes.kind_of.copy()
        self._demands: dict[int, _Demand | None] = {}
        self._given: dict[str, tuple[int, Cpus]] = {}
        self._carry_over()

    def _carry_over(self) -> None:
        """Count the cpus that were assigned before and aren't reported yet as used, as long as their pod is there."""
        for uid, decision in list(self._kept.decisions.items()):
            task = self._state.tasks.get(uid)
            row = self._state.row_of(task) if task is not None and task.node == decision.node else -1
            gone = task is None or task.status not in HOLDING or row < 0
            running = task is not None and task.status is TaskStatus.RUNNING
            if gone or (running and self._nodes.reported.get(row) != decision.reported):
                del self._kept.decisions[uid]
            else:
                self._shift(row, decision.cpus, given=True)

    def _shift(self, row: int, cpus: Cpus, *, given: bool) -> None:
        """Assign these cpus of the node, or release them."""
        node = self._nodes.kinds[int(self._kind_of[row])]
        if node is not None:
            free = node.free - cpus if given else node.free | cpus
            self._kind_of[row] = self._nodes.number(node._replace(free=free))

    def close(self, session: Handle) -> None:
        for uid, (row, cpus) in self._given.items():
            task = self._state.tasks.get(uid)
            if task is not None and task.status is TaskStatus.BINDING:
                self._kept.decisions[uid] = _Decision(task.node, cpus, self._nodes.reported.get(row, ""))

    # Filter and scores ----------------------------------------------------------------------------------------------

    def couples(self, task: Task) -> bool:
        """The cpus that one pod gets on a node aren't available to the next."""
        demand = self._demand(task)
        return demand is not None and (bool(self._nodes.reported) or _asks(demand))

    def task_rejections(self, task: Task, static: Sequence[Rejection]) -> Sequence[Rejection]:
        demand = self._demand(task)
        if demand is None:
            return ()
        refused: dict[str, npt.NDArray[np.bool_]] = {}
        for kind in np.unique(self._kind_of):
            reason = self._nodes.answer(int(kind), demand).refusal
            if reason:
                nodes = self._kind_of == kind
                refused[reason] = refused[reason] | nodes if reason in refused else nodes
        return [Rejection(reason, refused[reason], word=WaitReason.NUMA) for reason in sorted(refused)]

    def caps_empty(self, task: Task) -> Floats | None:
        demand = self._demand(task)
        if demand is None:
            return None
        most = np.array([_taken_by_empty(node, demand) for node in self._nodes.kinds])
        return most[self._nodes.kind_of]

    def task_scores(self, task: Task, candidates: Rows, static: Sequence[Rejection]) -> Floats | None:
        demand = self._demand(task)
        if demand is None or not _asks(demand) or not len(candidates):
            return None
        kinds = self._kind_of[candidates]
        used = {int(kind): self._spread(int(kind), demand) for kind in np.unique(kinds)}
        most = max(used.values())
        points = {kind: 100 - 100 * count // most if most else 100 for kind, count in used.items()}
        return np.array([points[int(kind)] for kind in kinds], dtype=np.float64) * self.arguments["weight"]

    def _spread(self, kind: int, demand: _Demand) -> int:
        """How many NUMA nodes the pod's cpus would be on; all of them if it would get no exclusive cpus."""
        node = self._nodes.kinds[kind]
        if node is None or not any(demand.counts):
            return 0
        cpus = self._nodes.answer(kind, demand).cpus
        return len(_per_numa(node.layout, cpus)) or len(node.layout.numa_nodes())

    def _demand(self, task: Task) -> _Demand | None:
        """The pod's demand; None for pods that the plugin doesn't affect."""
        if task.cls.id not in self._demands:
            self._demands[task.cls.id] = _demand_of(task.pod)
        return self._demands[task.cls.id]

    # Accounting -----------------------------------------------------------------------------------------------------

    def moved(self, task: Task, row: int, step: int) -> None:
        if row < 0:
            return
        if step < 0:
            _, cpus = self._given.pop(task.uid, (row, _NONE))
            if cpus:
                self._shift(row, cpus, given=False)
            return
        demand = self._demand(task) if task.status in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED) else None
        cpus = self._nodes.answer(int(self._kind_of[row]), demand).cpus if demand is not None else _NONE
        if cpus:
            self._given[task.uid] = row, cpus
            self._shift(row, cpus, given=True)

    def binding_annotations(self, task: Task, row: int) -> Mapping[str, str]:
        given = self._given.get(task.uid)
        node = self._nodes.kinds[int(self._kind_of[row])]
        if given is None or node is None:
            return {}
        counts = _per_numa(node.layout, given[1])
        decision = {"numa": {str(numa): {"cpu": str(count)} for numa, count in sorted(counts.items())}}
        return {names.TOPOLOGY_DECISION: json.dumps(decision, separators=(",", ":"))}


def _asks(demand: _Demand) -> bool:
    """Whether the pod requests a policy itself."""
    return demand.policy not in ("", TopologyPolicy.NONE)


def _answered(node: _Node | None, demand: _Demand) -> _Answer:
    if _asks(demand):
        if node is None:
            return _Answer(refusal=UNKNOWN)
        if not node.static:
            return _Answer(refusal=SHARED)
        if node.policy != demand.policy:
            return _Answer(refusal=OTHER_POLICY)
        if not node.free:
            return _Answer(refusal=NONE_FREE)
    elif node is None or not node.static or node.policy in ("", TopologyPolicy.NONE):
        return _Answer()
    if node.policy not in tuple(TopologyPolicy):
        return _Answer(refusal=OTHER_POLICY)
    cpus = assign(node.layout, node.free, demand.counts, TopologyPolicy(node.policy))
    return _Answer(refusal=MISALIGNED) if cpus is None else _Answer(cpus=cpus)


def _taken_by_empty(node: _Node | None, demand: _Demand) -> float:
    """How many such pods the node takes one after the other, with all its cpus free; infinite for a node without a
    report."""
    if node is None:
        return math.inf
    free = frozenset(cpu for cpu, _ in node.layout.places)
    count = 0
    while True:
        answer = _answered(node._replace(free=free), demand)
        if answer.refusal:
            return float(count)
        if not answer.cpus:
            return math.inf
        count += 1
        free -= answer.cpus


def _per_numa(layout: Layout, cpus: Cpus) -> Counter[int]:
    places = dict(layout.places)
    return Counter(places[cpu].numa for cpu in cpus)


def _demand_of(pod: Pod) -> _Demand | None:
    containers = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    try:
        if not containers or not all(map(_guaranteed, containers)):
            return None
        counts = tuple(map(_whole_cpus, pod.spec.side_by_side))
    except MalformedQuantity:
        return None
    return _Demand((pod.metadata.annotations or {}).get(names.NUMA_TOPOLOGY_POLICY, ""), counts)


def _guaranteed(container: Container) -> bool:
    """Whether the container has limits of cpu and memory and requests equal to them."""
    resources = container.resources
    limits = (resources.limits if resources is not None else None) or {}
    requests = {**limits, **((resources.requests if resources is not None else None) or {})}
    return all(
        name in limits and parse_quantity(limits[name]) == parse_quantity(requests[name]) != Quantity(0)
        for name in ("cpu", "memory")
    )


def _whole_cpus(container: Container) -> int:
    """How many exclusive cpus the container gets: the number that it requests, if that is a whole number."""
    resources = container.resources
    asked = {**((resources.limits if resources else None) or {}), **((resources.requests if resources else None) or {})}
    milli = parse_quantity(asked.get("cpu", 0)).milli()
    return milli // 1000 if milli % 1000 == 0 else 0
