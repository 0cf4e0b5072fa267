"""Where a pod is best put: the scores of kube-scheduler (1.36), each 0 to 100 times its weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vcbatch.scheduler.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.classes import Profile, TaskClass
from vcbatch.scheduler.model import Task
from vcbatch.scheduler.plugins.base import Eligible, Floats, Normalise, Plugin, Preference, Rejection, Rows
from vcbatch.scheduler.resources import CPU, EPS, MEMORY, Mask
from vcbatch.scheduler.selectors import tolerates

if TYPE_CHECKING:
    from vcbatch.scheduler.placement import Columns
    from vcbatch.scheduler.session import Session

_LEAST = "leastrequested.weight"
_MOST = "mostrequested.weight"
_BALANCED = "balancedresource.weight"
_NODE_AFFINITY = "nodeaffinity.weight"
_POD_AFFINITY = "podaffinity.weight"
_TAINTS = "tainttoleration.weight"
_IMAGES = "imagelocality.weight"
_SPREAD = "podtopologyspread.weight"

_MIB = 1024 * 1024
_IMAGE_FLOOR = 23 * _MIB
_IMAGE_CEILING = 1000 * _MIB
GPU = "nvidia.com/gpu"


class NodeOrder(Plugin):
    ARGUMENTS = ArgumentSpec(
        named={
            _LEAST: Argument(default=1),
            _MOST: Argument(default=0),
            _NODE_AFFINITY: Argument(default=2),
            _POD_AFFINITY: Argument(default=2),
            _BALANCED: Argument(default=1),
            _TAINTS: Argument(default=3),
            _IMAGES: Argument(default=1),
            _SPREAD: Argument(default=2),
        },
        prefixed={},
    )

    def open(self, session: Session) -> None:
        self._nodes = session.nodes
        self._inter_pod = session.state.inter_pod
        self._gpu = session.dims.column(GPU)
        self._weight = {name: int(self.arguments[name]) for name in self.ARGUMENTS.named}

    # By what is on the node ------------------------------------------------------------------------------------------

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        weight = self._weight
        total: Floats | None = None
        if weight[_LEAST]:
            total = weight[_LEAST] * least_allocated(cls, columns)
        if weight[_MOST]:
            points = weight[_MOST] * most_allocated(cls, columns)
            total = points if total is None else total + points
        if weight[_BALANCED] and not cls.best_effort:
            points = weight[_BALANCED] * self._balanced(cls, columns)
            total = points if total is None else total + points
        return total

    def _balanced(self, cls: TaskClass, columns: Columns) -> Floats:
        """How much more evenly the node's resources are used with the pod than without."""
        resources = [CPU, MEMORY]
        if self._gpu is not None and cls.request[self._gpu] > 0:
            resources.append(self._gpu)
        elif cls.request[CPU] < EPS and cls.request[MEMORY] < EPS:
            return np.zeros(columns.shape)
        before: list[Floats] = []
        after: list[Floats] = []
        for r in resources:
            alloc, expected = columns.divisor(r), columns.expected(r)
            before.append(np.minimum(expected / alloc, 1.0))
            after.append(np.minimum((expected + cls.request[r]) / alloc, 1.0))
        there = None
        if not all(columns.offered_by_all(r) for r in resources):
            there = np.stack([columns.alloc(r) > 0 for r in resources])
        change = _balance(after, there) - _balance(before, there)
        return 50.0 + np.floor((50.0 + change) / 2.0)

    # By what the node is ---------------------------------------------------------------------------------------------

    def preferences(self, profile: Profile) -> Sequence[Preference]:
        out: list[Preference] = []
        infos = self._nodes.infos
        affinity = profile.node_affinity
        if affinity.preferred and self._weight[_NODE_AFFINITY]:
            raw = np.array([affinity.preference(i.name, i.labels) for i in infos], dtype=np.float64)
            out.append(Preference(raw, self._weight[_NODE_AFFINITY], Normalise.MAX))
        if self._weight[_TAINTS]:
            raw = np.zeros(len(infos))
            for row, info in enumerate(infos):
                for taint in info.taints:
                    if taint.effect == "PreferNoSchedule" and not tolerates(profile.tolerations, taint):
                        raw[row] += 1
            if raw.any():
                out.append(Preference(raw, self._weight[_TAINTS], Normalise.REVERSED))
        if profile.images and self._weight[_IMAGES] and any(info.images for info in infos):
            out.append(Preference(self._image_locality(profile), self._weight[_IMAGES], Normalise.NONE))
        return out

    def _image_locality(self, profile: Profile) -> Floats:
        """By how much of the pod's images a node has, images that are everywhere counting in full."""
        infos = self._nodes.infos
        size = np.zeros(len(infos))
        for image in profile.images:
            name = _with_tag(image)
            held = np.array([info.images.get(name, 0) for info in infos], dtype=np.float64)
            size += np.floor(held * (np.count_nonzero(held) / max(len(infos), 1)))
        ceiling = float(_IMAGE_CEILING * len(profile.images))
        return np.floor(100.0 * (np.clip(size, _IMAGE_FLOOR, ceiling) - _IMAGE_FLOOR) / (ceiling - _IMAGE_FLOOR))

    # By which pods are where -----------------------------------------------------------------------------------------

    def couples(self, task: Task) -> bool:
        if not task.cls.inter_pod.any and not self._inter_pod.active:
            return False
        return self._inter_pod.couples(task)

    def task_scores(self, task: Task, candidates: Rows, static: Sequence[Rejection]) -> Floats | None:
        total: Floats | None = None
        if self._weight[_POD_AFFINITY]:
            raw = self._inter_pod.affinity_score(task)
            if raw is not None:
                total = self._weight[_POD_AFFINITY] * _stretched(raw[candidates])
        if self._weight[_SPREAD]:
            spread = self._inter_pod.spread_score(task, candidates, Eligible(static, len(self._nodes)).nodes)
            if spread is not None:
                points = self._weight[_SPREAD] * _spread_points(*spread)
                total = points if total is None else total + points
        return total


def least_allocated(cls: TaskClass, columns: Columns) -> Floats:
    """The emptier the better: the mean of cpu and memory of `(free after) * 100 // allocatable`."""
    return _mean(columns, [_free_points(cls, columns, i) for i in (CPU, MEMORY)])


def most_allocated(cls: TaskClass, columns: Columns) -> Floats:
    """The fuller the better: the mean of cpu and memory of `(used after) * 100 // allocatable`."""
    return _mean(columns, [_used_points(cls, columns, i) for i in (CPU, MEMORY)])


def _free_points(cls: TaskClass, columns: Columns, i: int) -> Floats:
    free = columns.alloc(i) - columns.nonzero(i) - cls.nonzero[i]
    return np.floor(np.maximum(free, 0.0) * 100.0 / columns.divisor(i))


def _used_points(cls: TaskClass, columns: Columns, i: int) -> Floats:
    used = np.minimum(columns.nonzero(i) + cls.nonzero[i], columns.alloc(i))
    return np.floor(used * 100.0 / columns.divisor(i))


def _mean(columns: Columns, points: Sequence[Floats]) -> Floats:
    """The floored mean over the resources that a node has."""
    if columns.offered_by_all(CPU) and columns.offered_by_all(MEMORY):
        return np.floor((points[0] + points[1]) / 2.0)
    cpu, memory = columns.alloc(CPU) > 0, columns.alloc(MEMORY) > 0
    total = np.where(cpu, points[0], 0.0) + np.where(memory, points[1], 0.0)
    return np.floor(total / np.maximum(cpu.astype(np.float64) + memory, 1.0))


def _balance(fractions: Sequence[Floats], there: Mask | None) -> Floats:
    """`floor((1 - deviation) * 100)` of the used fractions of K resources. `there` says which of them a node offers,
    [K, M], None where all do; only those count."""
    if there is None:
        if len(fractions) == 2:
            return np.floor((1.0 - np.abs(fractions[0] - fractions[1]) / 2.0) * 100.0)
        mean = sum(fractions[1:], fractions[0]) / len(fractions)
        squares = [(f - mean) ** 2 for f in fractions]
        return np.floor((1.0 - np.sqrt(sum(squares[1:], squares[0]) / len(fractions))) * 100.0)
    count = np.maximum(there.sum(axis=0), 1)
    parts = [np.where(here, f, 0.0) for f, here in zip(fractions, there, strict=True)]
    mean = sum(parts[1:], parts[0]) / count
    if len(fractions) == 2:
        deviation = np.where(count == 2, np.abs(parts[0] - parts[1]) / 2.0, 0.0)
        return np.floor((1.0 - deviation) * 100.0)
    squares = [np.where(here, (f - mean) ** 2, 0.0) for f, here in zip(parts, there, strict=True)]
    deviation = np.sqrt(sum(squares[1:], squares[0]) / count)
    pairs = count == 2
    if pairs.any():
        deviation = np.where(pairs, _half_distance(parts, there), deviation)
    return np.floor((1.0 - deviation) * 100.0)


def _half_distance(parts: Sequence[Floats], there: Mask) -> Floats:
    """Half the distance of the two fractions of nodes that offer two resources; without meaning for others."""
    low = np.min([np.where(here, f, np.inf) for f, here in zip(parts, there, strict=True)], axis=0)
    high = np.max(parts, axis=0)
    return np.where(np.isfinite(low), high - low, 0.0) / 2.0


def _stretched(raw: Floats) -> Floats:
    """0 for the least, 100 for the most; all 0 where all are alike."""
    low, high = float(raw.min()), float(raw.max())
    if high == low:
        return np.zeros(len(raw))
    return np.floor(100.0 * (raw - low) / (high - low))


def _spread_points(penalty: Floats, unlabelled: Mask) -> Floats:
    labelled = penalty[~unlabelled]
    if not len(labelled):
        return np.zeros(len(penalty))
    low, high = float(labelled.min()), float(labelled.max())
    points = np.floor(100.0 * (high + low - penalty) / high) if high else np.full(len(penalty), 100.0)
    return np.where(unlabelled, 0.0, points)


def _with_tag(image: str) -> str:
    """An image without tag or digest means `latest`."""
    return image if ":" in image.rsplit("/", 1)[-1] else f"{image}:latest"
