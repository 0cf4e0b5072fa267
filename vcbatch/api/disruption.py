"""PodDisruptionBudgets as the scheduler reads them: which of a set of pods may be evicted now."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire


class DisruptionBudgetSpec(Wire):
    selector: dict[str, Any] | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class DisruptionBudgetStatus(Wire):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] | None = None


class DisruptionBudget(Wire):
    """A policy/v1 PodDisruptionBudget."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DisruptionBudgetSpec = msgspec.field(default_factory=DisruptionBudgetSpec)
    status: DisruptionBudgetStatus = msgspec.field(default_factory=DisruptionBudgetStatus)


def desired_healthy(min_available: int | str | None, max_unavailable: int | str | None, expected: int) -> int:
    """The number of `expected` pods that a budget requires to be ready; percentages are rounded up (kubernetes
    `pkg/controller/disruption`)."""
    if max_unavailable is not None:
        return max(0, expected - _count(max_unavailable, expected))
    return _count(1 if min_available is None else min_available, expected)


def _count(value: int | str, whole: int) -> int:
    if isinstance(value, int):
        return value
    percent = re.fullmatch("([0-9]+)%", value)
    return -(-int(percent[1]) * whole // 100) if percent else 0
