"""The evictions that PodDisruptionBudgets allow. Source of the rules: kubernetes `pkg/controller/disruption`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vcbatch.api import selectors
from vcbatch.api.disruption import desired_healthy
from vcbatch.local.apiserver.registry import Json

_GONE = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """The state of a budget: how many pods it selects, how many of them are ready, and how many have to be ready."""

    expected: int
    healthy: int
    desired: int

    @property
    def allowed(self) -> int:
        """The number of ready pods that may be disrupted now."""
        return max(0, self.healthy - self.desired)


def measure(budget: Json, pods: Iterable[Json]) -> Disruption:
    """Count the pods of the budget's namespace that it selects, except for those that have ended or are being
    deleted."""
    spec = budget.get("spec") or {}
    selected = [pod for pod in pods if _present(pod) and covers(budget, pod)]
    healthy = sum(1 for pod in selected if is_ready(pod))
    desired = desired_healthy(spec.get("minAvailable"), spec.get("maxUnavailable"), len(selected))
    return Disruption(expected=len(selected), healthy=healthy, desired=desired)


def covers(budget: Json, pod: Json) -> bool:
    """Whether a budget applies to a pod."""
    labels = (pod.get("metadata") or {}).get("labels")
    return selectors.matches((budget.get("spec") or {}).get("selector"), labels)


def is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def is_leaving(pod: Json) -> bool:
    return bool((pod.get("metadata") or {}).get("deletionTimestamp"))


def _present(pod: Json) -> bool:
    return not is_leaving(pod) and (pod.get("status") or {}).get("phase") not in _GONE
