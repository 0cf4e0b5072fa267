"""Node scores: those of kube-scheduler (1.36), each 0 to 100 times its weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Eligible, Floats, Normalise, Plugin, Preference, Rejection, Rows
from vcbatch.scheduler.model.classes import Profile, TaskClass
from vcbatch.scheduler.model.columns import Columns
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.resources import CPU, EPS, MEMORY, Mask
from vcbatch.scheduler.model.selectors import tolerates

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
    BY_AMOUNTS = True
    BY_TERMS = True
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

    def open(self, session: Handle) -> None:
        self._nodes = session.nodes
        self._inter_pod = session.state.inter_pod
        self._gpu = session.dims.column(GPU)
        self._weight = {name: int(self.arguments[name]) for name in self.ARGUMENTS.named}

    # By resources on the node ----------------------------------------------------------------------------------------

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        parts: list[Floats] = []
        weight = self._weight
        if weight[_LEAST]:
            parts.append(_weighed(least_allocated(columns), weight[_LEAST]))
        if weight[_MOST]:
            parts.append(_weighed(most_allocated(columns), weight[_MOST]))
        if weight[_BALANCED] and not cls.best_effort:
            parts.append(_weighed(self._balanced(cls, columns), weight[_BALANCED]))
        return sum(parts[1:], parts[0]) if parts else None

    def _balanced(self, cls: TaskClass, columns: Columns) -> Floats:
        """The change of the balance of the node's resource utilization by the pod (NodeResourcesBalancedAllocation)."""
        resources: tuple[int, ...] = (CPU, MEMORY)
        if self._gpu is not None and cls.request[self._gpu] > 0:
            resources = (CPU, MEMORY, self._gpu)
        elif cls.request[CPU] < EPS and cls.request[MEMORY] < EPS:
            return np.zeros(columns.shape)
        fractions = columns.expected_throughout(resources) / columns.divisors(resources)
        np.minimum(fractions, 1.0, out=fractions)
        offered = columns.offered_by_all(resources)
        balance = _balance(fractions, None if offered else columns.allocs(resources) > 0)
        change = balance[1:] - balance[:-1]
        change += 50.0
        change /= 2.0
        np.floor(change, out=change)
        change += 50.0
        return change

    # By properties of the node ---------------------------------------------------------------------------------------

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
        """By the total size of the pod's images on the node, each weighted by the part of nodes that have it
        (ImageLocality)."""
        infos = self._nodes.infos
        size = np.zeros(len(infos))
        for image in profile.images:
            name = _with_tag(image)
            held = np.array([info.images.get(name, 0) for info in infos], dtype=np.float64)
            size += np.floor(held * (np.count_nonzero(held) / max(len(infos), 1)))
        ceiling = float(_IMAGE_CEILING * len(profile.images))
        return np.floor(100.0 * (np.clip(size, _IMAGE_FLOOR, ceiling) - _IMAGE_FLOOR) / (ceiling - _IMAGE_FLOOR))

    # By the pods on nodes -------------------------------------------------------------------------------------------

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


def _weighed(points: Floats, weight: int) -> Floats:
    return points if weight == 1 else weight * points


def least_allocated(columns: Columns) -> Floats:
    """The lower the utilization the higher: the mean of cpu and memory of `(free after) * 100 // allocatable`."""
    free = columns.allocs((CPU, MEMORY)) - columns.nonzero_after()
    return _mean(columns, np.maximum(free, 0.0, out=free))


def most_allocated(columns: Columns) -> Floats:
    """The higher the utilization the higher: the mean of cpu and memory of `(used after) * 100 // allocatable`."""
    return _mean(columns, np.minimum(columns.nonzero_after(), columns.allocs((CPU, MEMORY))))


def _mean(columns: Columns, amounts: Floats) -> Floats:
    """The floored mean of the integer percentages of cpu and memory, over those of them that a node has."""
    points = amounts
    points *= 100.0
    points /= columns.divisors((CPU, MEMORY))
    np.floor(points, out=points)
    if columns.offered_by_all((CPU, MEMORY)):
        total = points[0] + points[1]
        total /= 2.0
        return np.floor(total, out=total)
    there = columns.allocs((CPU, MEMORY)) > 0
    return np.floor(np.where(there, points, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1))


def _balance(fractions: Floats, there: Mask | None) -> Floats:
    """`floor((1 - deviation) * 100)` of the used fractions of K resources, [K, D, M]. `there` says which of them a node
    offers, [K, 1, M], None if all do; only those count."""
    pair = len(fractions) == 2
    if there is None:
        deviation = np.abs(fractions[0] - fractions[1]) / 2.0 if pair else _deviation(fractions, len(fractions))
    else:
        fractions = np.where(there, fractions, 0.0)
        count = np.maximum(there.sum(axis=0), 1)
        if pair:
            deviation = np.where(count == 2, np.abs(fractions[0] - fractions[1]) / 2.0, 0.0)
        else:
            deviation = np.where(count == 2, _half_distance(fractions, there), _deviation(fractions, count, there))
    np.subtract(1.0, deviation, out=deviation)
    deviation *= 100.0
    return np.floor(deviation, out=deviation)


def _deviation(fractions: Floats, count: int | npt.NDArray[np.int64], there: Mask | None = None) -> Floats:
    """The standard deviation over the resources that the node offers, [D, M]."""
    off = fractions - fractions.sum(axis=0) / count
    off *= off
    if there is not None:
        off = np.where(there, off, 0.0)
    return np.sqrt(off.sum(axis=0) / count)


def _half_distance(fractions: Floats, there: Mask) -> Floats:
    """Half the distance of the two fractions of nodes that offer two resources; undefined for other nodes."""
    low = np.where(there, fractions, np.inf).min(axis=0)
    return np.where(np.isfinite(low), fractions.max(axis=0) - low, 0.0) / 2.0


def _stretched(raw: Floats) -> Floats:
    """Scores scaled so that the lowest is 0 and the highest is 100; all 0 if they are equal."""
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
    """The image name with its tag: without tag or digest it means `latest`."""
    return image if ":" in image.rsplit("/", 1)[-1] else f"{image}:latest"
