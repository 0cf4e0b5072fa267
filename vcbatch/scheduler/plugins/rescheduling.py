"""Moves pods from nodes with high utilization while others have capacity (the shuffle action)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

import numpy as np

from vcbatch.api.pod import Pod, ResourceRequirements
from vcbatch.api.usage import NodeUsage
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec, PolicyError
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.structures import duration, mapping
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.objects import Task, TaskStatus
from vcbatch.scheduler.model.resources import CPU, MEMORY, PODS, Mask

_MEMORY: Final = "rescheduling"
_STRATEGY: Final = "lowNodeUtilization"
_RESOURCES: Final = ("cpu", "memory", "pods")
_SYSTEM: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_EVERYTHING = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LowNodeUtilization:
    """Percentages of cpu, memory and pods, [3]: a node below all of `low` is underutilized, one above any of `target`
    is overutilized. Pods of the priority class `spared` and above stay; with `fit` only pods are evicted that fit on an
    underutilized node."""

    low: Floats
    target: Floats
    spared: str
    fit: bool


def _percentages(value: object, where: str) -> Floats:
    given = mapping(value, where, _RESOURCES)
    out = [
        float(Argument(default=_EVERYTHING, minimum=0).read(given.get(name, _EVERYTHING), f"{where}.{name}"))
        for name in _RESOURCES
    ]
    for name, percent in zip(_RESOURCES, out, strict=True):
        if percent > _EVERYTHING:
            raise PolicyError(f"{where}.{name}: must be at most 100, got {given[name]!r}")
    return np.array(out)


def _strategies(value: object, where: str) -> tuple[LowNodeUtilization, ...]:
    if value is None:
        value = [{"name": _STRATEGY}]
    if not isinstance(value, list):
        raise PolicyError(f"{where}: must be a list, got {value!r}")
    return tuple(_strategy(entry, f"{where}[{i}]") for i, entry in enumerate(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - checked by the reader


def _strategy(value: object, where: str) -> LowNodeUtilization:
    entry = mapping(value, where, ("name", "params"))
    if entry.get("name") != _STRATEGY:
        raise PolicyError(f"{where}.name: must be {_STRATEGY}, got {entry.get('name')!r}")
    allowed = ("thresholds", "targetThresholds", "thresholdPriorityClassName", "nodeFit")
    at = f"{where}.params"
    given = mapping(entry.get("params"), at, allowed)
    low = _percentages(given.get("thresholds"), f"{at}.thresholds")
    target = _percentages(given.get("targetThresholds"), f"{at}.targetThresholds")
    if (low > target).any():
        raise PolicyError(f"{at}.thresholds: none may be above its targetThreshold, got {given.get('thresholds')!r}")
    spared = Argument(default="system-cluster-critical")
    fit = Argument(default=True)
    return LowNodeUtilization(
        low=low,
        target=target,
        spared=str(spared.read(given.get(allowed[2], spared.default), f"{at}.{allowed[2]}")),
        fit=bool(fit.read(given.get(allowed[3], fit.default), f"{at}.{allowed[3]}")),
    )


class Rescheduling(Plugin):
    """Uses `NodeUsage` objects, which exist if the scheduler configuration has a `metrics` section; a node without one
    no older than `metricsPeriod` is neither underutilized nor overutilized. Pods count with their requests, because
    their actual usage isn't measured."""

    NEEDS_METRICS = True
    ARGUMENTS = ArgumentSpec(
        named={},
        structured={"interval": duration("5m"), "metricsPeriod": duration("5m"), "strategies": _strategies},
    )
    UNWANTED: ClassVar[str] = "its node is busier than the policy wants, and others have room"

    def open(self, session: Handle) -> None:
        self._session = session

    def unwanted(self, running: Sequence[Task]) -> Sequence[Task] | None:
        """At most once per interval: pods of overutilized nodes, until these no longer are or the underutilized ones
        are full."""
        session, interval = self._session, self.arguments["interval"]
        last: datetime | None = session.state.memory.get(_MEMORY)
        if last is not None and last <= session.now < last + interval:
            session.requeue_at(last + interval)
            return None
        session.state.memory[_MEMORY] = session.now
        session.requeue_at(session.now + interval)
        measured = _Measured(session, self.arguments["metricsPeriod"])
        found: dict[str, Task] = {}
        for strategy in self.arguments["strategies"]:
            found.update((task.uid, task) for task in self._moved(strategy, measured))
        return list(found.values())

    def _moved(self, strategy: LowNodeUtilization, measured: _Measured) -> list[Task]:
        session = self._session
        low = measured.known & measured.schedulable & (measured.percent < strategy.low[:, None]).all(axis=0)
        high = measured.known & (measured.percent > strategy.target[:, None]).any(axis=0)
        if not low.any() or not high.any():
            return []
        idle = np.flatnonzero(low)
        left = (strategy.target[:2, None] - measured.percent[:2, idle]) / 100.0 * measured.capacity[:2, idle]
        budget = left.sum(axis=1)
        most = session.state.priorities.get(strategy.spared)
        priority = most.value if most is not None else _SYSTEM.get(strategy.spared, max(_SYSTEM.values()))
        busy = np.flatnonzero(high)
        order = busy[np.argsort(-(measured.percent[0, busy] + measured.percent[1, busy]), kind="stable")]
        moved: list[Task] = []
        for row in map(int, order):
            for task in _by_importance(session.nodes.infos[row].tasks.values(), priority):
                used = measured.percent[:, row]
                asked = task.cls.request[[CPU, MEMORY, PODS]]
                if not (used >= strategy.target).any() or (budget <= 0).any():
                    break
                if strategy.fit and not self._fits(task, idle):
                    continue
                moved.append(task)
                used -= 100.0 * asked / measured.capacity[:, row]
                budget -= asked[:2]
        return moved

    def _fits(self, task: Task, idle: Rows) -> bool:
        return bool((self._session.placer.slots(task.cls, idle, promising=False) >= 1).any())


class _Measured:
    """The utilization of nodes by row: percent of cpu, memory and pods, [3, N], the quantities that are 100 percent,
    [3, N], and for which nodes it is known; [N]."""

    def __init__(self, session: Handle, period: timedelta) -> None:
        nodes, state = session.nodes, session.state
        count = len(nodes)
        self.percent: Floats = np.zeros((3, count))
        self.capacity: Floats = np.ones((3, count))
        self.known: Mask = np.zeros(count, dtype=bool)
        self.schedulable: Mask = np.ones(count, dtype=bool)
        oldest = (session.now - period).timestamp()
        usage = state.facts.of(NodeUsage)
        for row, info in enumerate(nodes.infos):
            seen = usage.get(info.name)
            if seen is None or seen.observed_at < oldest:
                continue
            given = (info.node.status.capacity if info.node is not None else None) or info.allocatable
            amounts = state.dims.vector({name: given[name] for name in _RESOURCES if name in given})
            self.capacity[:, row] = np.maximum(amounts[[CPU, MEMORY, PODS]], 1.0)
            pods = float(nodes.used[PODS, row]) / self.capacity[2, row]
            self.percent[:, row] = 100.0 * seen.cpu, 100.0 * seen.memory, 100.0 * pods
            self.known[row] = True
            self.schedulable[row] = info.node is None or not info.node.spec.unschedulable


def _by_importance(tasks: Iterable[Task], most: int) -> list[Task]:
    """The pods of a node that may be evicted, the least important first: by priority, then by quality of service."""
    movable = [
        task
        for task in tasks
        if task.status is TaskStatus.RUNNING and task.job is not None and task.preemptable and task.priority < most
    ]
    return sorted(movable, key=lambda task: (task.priority, _quality(task.pod), task.uid))


def _quality(pod: Pod) -> int:
    """0 best effort, 1 burstable, 2 guaranteed: by the containers' requests and limits of cpu and memory."""
    asked = [
        container.resources or ResourceRequirements()
        for container in (*pod.spec.containers, *(pod.spec.init_containers or ()))
    ]
    if not any(_named(resources.requests) or _named(resources.limits) for resources in asked):
        return 0
    return 2 if all(map(_guaranteed, asked)) else 1


def _guaranteed(resources: ResourceRequirements) -> bool:
    limits, requests = _named(resources.limits), _named(resources.requests)
    return len(limits) == 2 and all(requests.get(name, limits[name]) == limits[name] for name in limits)


def _named(given: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: (given or {})[name] for name in ("cpu", "memory") if name in (given or {})}
