"""What PodDisruptionBudgets allow. Source of the rules: kubernetes `pkg/controller/disruption`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vcbatch.api import selectors
from vcbatch.local.apiserver.registry import Json

_GONE = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """A budget against its pods: how many it selects, how many of them are ready, and how many it wants ready."""

    expected: int
    healthy: int
    desired: int

    @property
    def allowed(self) -> int:
        """How many ready pods may be disrupted now."""
        return max(0, self.healthy - self.desired)


def measure(budget: Json, pods: Iterable[Json]) -> Disruption:
    """Counts the pods of the budget's namespace that it selects, but for those that are over or on their way out."""
    spec = budget.get("spec") or {}
    selected = [pod for pod in pods if _present(pod) and covers(budget, pod)]
    healthy = sum(1 for pod in selected if is_ready(pod))
    return Disruption(expected=len(selected), healthy=healthy, desired=desired_healthy(spec, len(selected)))


def covers(budget: Json, pod: Json) -> bool:
    """Whether a budget speaks of a pod."""
    labels = (pod.get("metadata") or {}).get("labels")
    return selectors.matches((budget.get("spec") or {}).get("selector"), labels)


def is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def is_leaving(pod: Json) -> bool:
    return bool((pod.get("metadata") or {}).get("deletionTimestamp"))


def _present(pod: Json) -> bool:
    return not is_leaving(pod) and (pod.get("status") or {}).get("phase") not in _GONE


def desired_healthy(spec: Json, expected: int) -> int:
    """How many of `expected` pods a budget wants ready; percentages are rounded up."""
    if spec.get("maxUnavailable") is not None:
        return max(0, expected - _count(spec["maxUnavailable"], expected))
    return _count(spec.get("minAvailable", 1), expected)


def _count(value: Any, whole: int) -> int:
    if isinstance(value, int):
        return value
    percent = re.fullmatch("([0-9]+)%", str(value))
    return -(-int(percent[1]) * whole // 100) if percent else 0
