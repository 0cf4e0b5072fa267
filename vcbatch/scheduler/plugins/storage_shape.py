"""Scores of nodes by their storage utilization: a line through given points (kube-scheduler's VolumeBinding)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from vcbatch.scheduler.framework.arguments import PolicyError
from vcbatch.scheduler.model.columns import Floats

_FULL = 100
_MOST = 10
"""Scores are given from 0 to 10 and scaled to 0 to 100."""


class Point(NamedTuple):
    """The score, 0 to 100, at a utilization in percent."""

    utilisation: int
    score: int


def read_shape(value: object, where: str) -> tuple[Point, ...]:
    """The points of `volumebinding.shape`; empty if it isn't given.

    Raises:
        PolicyError: it isn't a list of points with increasing utilization.
    """
    if value is None:
        return ()
    if not isinstance(value, list) or not value:
        raise PolicyError(f"{where}: must be a list of points with utilization and score, got {value!r}")
    points = [_point(entry, f"{where}[{i}]") for i, entry in enumerate(cast("list[object]", value))]
    for i, (one, next_) in enumerate(pairwise(points)):
        if next_.utilisation <= one.utilisation:
            raise PolicyError(
                f"{where}[{i + 1}].utilization: must be above {one.utilisation} before it, got {next_.utilisation}"
            )
    return tuple(points)


def _point(entry: object, where: str) -> Point:
    if not isinstance(entry, Mapping):
        raise PolicyError(f"{where}: must have utilization and score, got {entry!r}")
    given = {str(key).lower(): value for key, value in cast("Mapping[object, object]", entry).items()}
    unknown = sorted(given.keys() - {"utilization", "score"})
    if unknown:
        raise PolicyError(f"{where}: unknown field {unknown[0]!r}; allowed: score, utilization")
    return Point(
        _whole(given.get("utilization", 0), f"{where}.utilization", _FULL),
        _whole(given.get("score", 0), f"{where}.score", _MOST) * (_FULL // _MOST),
    )


def _whole(value: object, where: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise PolicyError(f"{where}: must be an integer from 0 to {most}, got {value!r}")
    return value


def storage_score(asked_of: Sequence[tuple[Floats, Floats]], shape: Sequence[Point]) -> Floats:
    """The mean score, 0 to 100, over the storage classes with requests. `asked_of` has for each class the requested and
    the total quantity in bytes; both [M]."""
    if not asked_of:
        return np.zeros(())
    total = np.zeros_like(asked_of[0][0])
    count = np.zeros_like(total)
    for asked, held in asked_of:
        there = asked > 0
        short = (held <= 0) | (asked > held)
        used = np.where(short, _FULL, np.floor(asked * _FULL / np.where(held > 0, held, 1.0)))
        total += np.where(there, _on_line(used, shape), 0.0)
        count += there
    return np.floor(total / np.maximum(count, 1) + 0.5)


def _on_line(used: Floats, shape: Sequence[Point]) -> Floats:
    """The score on the line through the points at each utilization, in integers; constant before the first and after
    the last point."""
    out = np.full_like(used, float(shape[-1].score))
    for low, high in reversed(list(pairwise(shape))):
        slope = (high.score - low.score) * (used - low.utilisation) / (high.utilisation - low.utilisation)
        out = np.where(used <= high.utilisation, low.score + np.trunc(slope), out)
    return np.where(used <= shape[0].utilisation, float(shape[0].score), out)
