"""Filters and scores by the actual load of nodes: nodes with high load are rejected, and lower load scores higher.

Measurements are some time old, so pods that were placed since are added by an estimate: otherwise one idle node would
attract all pods until it is measured again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.timestamps import parse_time
from vcbatch.api.usage import NodeUsage
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec, PolicyError, Structure, shown
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Cap, Plugin
from vcbatch.scheduler.framework.structures import mapping
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Columns, Floats, Rows
from vcbatch.scheduler.model.objects import Job, Queue, Task, TaskStatus
from vcbatch.scheduler.model.reading import with_oversubscription
from vcbatch.scheduler.model.resources import CPU, MEMORY, Mask
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.snapshot.snapshot import Snapshot

USABLE = timedelta(minutes=5)
"""The age from which on measurements are ignored."""
DEFAULT_INTERVAL = 30.0
_MEMORY = "usage"
_STARTING = frozenset({TaskStatus.BINDING, TaskStatus.BOUND})
_CORES_AND_BYTES = [CPU, MEMORY]


def _quantity(resource: str, default: str) -> Structure:
    """Reads a quantity of a resource, in the unit of its column."""

    def read(value: object, where: str) -> float:
        given = default if value is None else value
        try:
            if isinstance(given, bool) or not isinstance(given, (str, int, float)):
                raise MalformedQuantity
            exact = parse_quantity(given)
            return float(exact.milli() if resource == "cpu" else exact.value())
        except (MalformedQuantity, OverflowError) as error:
            raise PolicyError(f"{where}: must be a quantity of {resource}, got {shown(given)}") from error

    return read


def _thresholds(value: object, where: str) -> Mapping[str, float]:
    given = mapping(value, where, ("cpu", "mem"))
    return {key: float(Argument(default=0.0).read(given[key], f"{where}.{key}")) for key in given}


_ESTIMATOR: Mapping[str, float] = {"request_ratio": 0.7, "burst_ratio": 0.0, "risk_threshold": 0.6, "risk_factor": 1.2}
_IDLE = {"be_cpu": _quantity("cpu", "250m"), "be_mem": _quantity("memory", "200Mi")}


def _estimator(value: object, where: str) -> Mapping[str, float]:
    given = mapping(value, where, (*_ESTIMATOR, *_IDLE))
    out = {
        k: float(Argument(default=0.0, minimum=0.0).read(given[k], f"{where}.{k}")) for k in _ESTIMATOR if k in given
    }
    for key, read in _IDLE.items():
        if key in given:
            amount = read(given[key], f"{where}.{key}")
            assert isinstance(amount, float)  # noqa: S101 - what these readers return
            out[key] = amount
    return out


class _Measured:
    """The measurements by row: fractions of cpu and memory, [2, N], 0 without one; their time, [N], in seconds since
    the epoch, -inf without one; and the capacity of nodes of both, [2, N]."""

    def __init__(self, state: Snapshot) -> None:
        self.stamp = _stamp(state)
        infos = state.nodes.infos
        self.real: Floats = np.zeros((2, len(infos)))
        self.at: Floats = np.full(len(infos), -np.inf)
        self.capacity: Floats = np.ones((2, len(infos)))
        known = state.facts.of(NodeUsage)
        for row, info in enumerate(infos):
            usage = known.get(info.name)
            if usage is None:
                continue
            self.real[:, row] = usage.cpu, usage.memory
            self.at[row] = usage.observed_at
            capacity = None if info.node is None else info.node.status.capacity
            given = with_oversubscription(info.node, capacity) if info.node and capacity else info.allocatable
            vector = state.dims.vector({k: given[k] for k in ("cpu", "memory") if k in given})
            self.capacity[:, row] = np.maximum(vector[_CORES_AND_BYTES], 1.0)


def _stamp(state: Snapshot) -> tuple[int, ...]:
    return state.facts.stamp(NodeUsage), state.static_stamp, len(state.nodes)


class _Recent:
    """The pods of gangs that no measurement can include yet; updated only for gangs that changed."""

    def __init__(self) -> None:
        self.measured: _Measured | None = None
        self.changed: set[str] | None = None
        """Gangs that changed in the last cycle; None before the first."""
        self.by_job: dict[str, list[Task]] = {}

    def update(self, state: Snapshot) -> None:
        keys = state.jobs.keys() if self.changed is None else self.changed | state.touched.keys()
        for key in keys:
            job = state.jobs.get(key)
            recent = _recent_of(job) if job is not None else []
            if recent:
                self.by_job[key] = recent
            else:
                self.by_job.pop(key, None)
        self.changed = set()

    def since(self, moment: datetime) -> list[Task]:
        """The pods that are being bound, or started after that moment. The others are dropped."""
        for key, tasks in list(self.by_job.items()):
            left = [task for task in tasks if task.status in _STARTING or _began_after(task, moment)]
            if left:
                self.by_job[key] = left
            else:
                del self.by_job[key]
        return [task for tasks in self.by_job.values() for task in tasks]


def _recent_of(job: Job) -> list[Task]:
    if not any(job.counts[status] for status in (*_STARTING, TaskStatus.RUNNING)):
        return []
    return [t for t in job.tasks.values() if t.status in _STARTING or t.status is TaskStatus.RUNNING]


def _began_after(task: Task, moment: datetime) -> bool:
    """Whether the pod started after that moment. A pod without a start time counts as running for long."""
    began = task.pod.status.start_time
    if task.status is not TaskStatus.RUNNING or not began:
        return False
    try:
        return parse_time(began) > moment
    except ValueError:
        return False


class Usage(Plugin):
    """Reads `NodeUsage` objects, which exist if the scheduler configuration has a `metrics` section. Nodes without a
    measurement, or with an old one, are admitted and get a score of 0."""

    NEEDS_METRICS = True
    ARGUMENTS = ArgumentSpec(
        named={
            "usage.weight": Argument(default=5),
            "cpu.weight": Argument(default=1, minimum=0),
            "memory.weight": Argument(default=1, minimum=0),
            "thresholds.cpu": Argument(default=80.0),
            "thresholds.mem": Argument(default=80.0),
            **{f"estimator.{key}": Argument(default=value, minimum=0) for key, value in _ESTIMATOR.items()},
        },
        structured={
            "thresholds": _thresholds,
            "estimator": _estimator,
            **{f"estimator.{key}": read for key, read in _IDLE.items()},
        },
    )

    def open(self, session: Handle) -> None:
        state, arguments = session.state, self.arguments
        self._state = state
        self._nodes = session.nodes
        self._weights: Floats = np.array([[arguments["cpu.weight"]], [arguments["memory.weight"]]], dtype=np.float64)
        self._most = {key: arguments["thresholds"].get(key, arguments[f"thresholds.{key}"]) for key in ("cpu", "mem")}
        self._estimator = {
            key: float(arguments["estimator"].get(key, arguments[f"estimator.{key}"])) for key in (*_ESTIMATOR, *_IDLE)
        }
        recent = state.memory.get(_MEMORY)
        if not isinstance(recent, _Recent):
            recent = state.memory[_MEMORY] = _Recent()
        if recent.measured is None or recent.measured.stamp != _stamp(state):
            recent.measured = _Measured(state)
        self._recent, self._measured = recent, recent.measured
        self._fresh: Mask = self._measured.at >= session.now.timestamp() - USABLE.total_seconds()
        if self._estimator["risk_factor"] < 1.0:
            self._estimator["risk_factor"] = _ESTIMATOR["risk_factor"]
        self._estimates: dict[int, tuple[Floats, Floats]] = {}
        self._sum_up(session)
        self._wake(session)

    def _sum_up(self, session: Handle) -> None:
        """Compute the load that isn't in the measurements yet: milli-cores and bytes by row, [2, N]."""
        self._recent.update(self._state)
        self._shadow: Floats = np.zeros((2, len(self._nodes)))
        self._counted: dict[str, Floats] = {}
        self._evicted: dict[str, Floats] = {}
        metrics = session.metrics
        interval = timedelta(seconds=metrics.interval if metrics is not None else DEFAULT_INTERVAL)
        for task in sorted(self._recent.since(session.now - interval), key=lambda task: task.uid):
            row = self._state.row_of(task)
            if row >= 0:
                self._count(task, row, self._estimate_at(task.cls, row))

    def _wake(self, session: Handle) -> None:
        """Have a cycle run when the measurement of a rejected node becomes too old, because it is admitted then."""
        busy = (self._too_busy("cpu", CPU) | self._too_busy("mem", MEMORY)).nonzero()[0]
        if len(busy) and session.state.waiting:
            first = datetime.fromtimestamp(float(self._measured.at[busy].min()), session.now.tzinfo)
            session.requeue_at(first + USABLE + timedelta(seconds=1))

    def close(self, session: Handle) -> None:
        self._recent.changed = set(session.state.touched)

    # Filter ----------------------------------------------------------------------------------------------------------

    def caps(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        out: list[Cap] = []
        for key, r, word in (("cpu", CPU, "cpu"), ("mem", MEMORY, "memory")):
            busy = self._too_busy(key, r)[rows]
            if busy.any():
                reason = f"node(s) had more than {self._most[key]:g}% of their {word} in use"
                out.append(Cap(reason, np.where(busy, 0.0, np.inf), WaitReason.NODE_USAGE))
        return out

    def _too_busy(self, key: str, r: int) -> npt.NDArray[np.bool_]:
        return self._fresh & (100.0 * self._measured.real[r] > self._most[key])

    def limit_stamp(self, queue: Queue) -> object:
        return self._measured.stamp, int(self._fresh.sum())

    # Score -----------------------------------------------------------------------------------------------------------

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        weights = float(self._weights.sum())
        if not weights or not self.arguments["usage.weight"]:
            return None
        rows = columns.rows
        steps: Floats = np.arange(float(columns.before[-1, 0]) + 1.0)[:, None]
        calm, risky = self._estimate(cls)
        shadow = self._shadow[:, None, rows]
        if columns.promising:
            idle = np.repeat(1.0 - self._load(shadow, rows), len(columns.before), axis=0)
            return idle * (100.0 * self.arguments["usage.weight"] * self._fresh[rows])
        load = self._load(shadow + calm[:, None, None] * steps, rows)
        # Estimates don't change afterwards: only tasks that find the node busy count for more.
        more = np.cumsum(load >= self._estimator["risk_threshold"], axis=0)
        more = np.concatenate([np.zeros((1, len(rows))), more[:-1]])
        shadow = shadow + calm[:, None, None] * (steps - more) + risky[:, None, None] * more
        idle = 1.0 - self._load(shadow[:, int(columns.before[0, 0]) :], rows)
        return idle * (100.0 * self.arguments["usage.weight"] * self._fresh[rows])

    def _load(self, shadow: Floats, rows: Rows) -> Floats:
        """The weighted mean of the measured or estimated utilization of cpu and memory; [..., M] for `shadow`, [2, ...,
        M]."""
        extra = (1,) * (shadow.ndim - 2)
        real, capacity = (of[:, rows].reshape(2, *extra, -1) for of in (self._measured.real, self._measured.capacity))
        weights = self._weights.reshape(2, *extra, 1)
        return (np.clip(real + shadow / capacity, 0.0, 1.0) * weights).sum(axis=0) / float(self._weights.sum())

    def _estimate(self, cls: TaskClass) -> tuple[Floats, Floats]:
        """The estimated usage of one task of the class, [2], on a node below the risk threshold when it is placed, and
        on one above; integers, so that sums of them stay exact."""
        known = self._estimates.get(cls.id)
        if known is None:
            risk = self._estimator["risk_factor"]
            known = np.rint(self._estimated(cls, 1.0)), np.rint(self._estimated(cls, risk))
            self._estimates[cls.id] = known
        return known

    def _estimated(self, cls: TaskClass, risk: float) -> Floats:
        given = self._estimator
        if cls.best_effort:
            return np.array([given["be_cpu"], given["be_mem"]]) * risk
        request = cls.request[_CORES_AND_BYTES]
        most = np.maximum(cls.limits, request)
        base = request * given["request_ratio"] + (most - request) * given["burst_ratio"]
        return np.minimum(base * risk, most)

    def _estimate_at(self, cls: TaskClass, row: int) -> Floats:
        """The estimated usage of one more task of the class on the node at its present load."""
        calm, risky = self._estimate(cls)
        if not self._weights.any():
            return calm
        load = float(self._load(self._shadow[:, [row]], np.array([row]))[0])
        return risky if load >= self._estimator["risk_threshold"] else calm

    def moved(self, task: Task, row: int, step: int) -> None:
        """Placements count except pipelined ones: until the task is placed, another pod uses the resources. An eviction
        subtracts only what was counted here, because the rest is in the measurements."""
        if row < 0:
            return
        if step < 0 and task.uid in self._counted:
            estimate = self._counted.pop(task.uid)
            self._shadow[:, row] -= estimate
            if task.status is TaskStatus.RELEASING:
                self._evicted[task.uid] = estimate
        elif step > 0 and task.uid in self._evicted:
            self._count(task, row, self._evicted.pop(task.uid))
        elif step > 0 and task.status in (TaskStatus.ALLOCATED, TaskStatus.BINDING):
            self._count(task, row, self._estimate_at(task.cls, row))

    def _count(self, task: Task, row: int, estimate: Floats) -> None:
        self._shadow[:, row] += estimate
        self._counted[task.uid] = estimate
