"""PodDisruptionBudgets as the scheduler reads them: what of a set of pods may be evicted now."""

from __future__ import annotations

from typing import Any

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire


class DisruptionBudgetSpec(Wire):
    selector: dict[str, Any] | None = None


class DisruptionBudgetStatus(Wire):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] | None = None


class DisruptionBudget(Wire):
    """A policy/v1 PodDisruptionBudget."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DisruptionBudgetSpec = msgspec.field(default_factory=DisruptionBudgetSpec)
    status: DisruptionBudgetStatus = msgspec.field(default_factory=DisruptionBudgetStatus)
