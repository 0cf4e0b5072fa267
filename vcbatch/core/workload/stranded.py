"""Pods whose node doesn't exist: no kubelet reports their state any more (kubernetes `pkg/controller/podgc`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from vcbatch.api.model import Json
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.api.reasons import POD_GC, PodConditionType
from vcbatch.api.resources import PODS
from vcbatch.api.timestamps import format_time
from vcbatch.core.machine import Decision, Delete, Mark, ref_of
from vcbatch.core.workload.pods import is_over

QUARANTINE: Final = timedelta(seconds=40)
"""How long a node may be missing: one that is recreated keeps its pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrandedView:
    """A pod on a node that doesn't exist, as stored."""

    pod: Pod
    conditions: Sequence[Json]
    missing_since: datetime


def decide(view: StrandedView, *, now: datetime) -> Decision:
    """Mark the pod as failed, unless it has finished, and delete it; the reason is written before the deletion."""
    due = view.missing_since + QUARANTINE
    if now < due:
        return Decision(requeue_at=due)
    ref = ref_of(PODS, view.pod.metadata)
    delete = Delete(ref=ref, grace_seconds=0)
    if is_over(view.pod):
        return Decision(deletes=[delete])
    target: dict[str, Any] = {
        "type": PodConditionType.DISRUPTION_TARGET.value,
        "status": "True",
        "reason": POD_GC,
        "message": "PodGC: node no longer exists",
        "lastTransitionTime": format_time(now),
    }
    kept = [each for each in view.conditions if each.get("type") != PodConditionType.DISRUPTION_TARGET]
    status = {"phase": PodPhase.FAILED.value, "conditions": [*kept, target]}
    mark = Mark(ref=ref, patch={"status": status}, version=view.pod.metadata.resource_version, subresource="status")
    return Decision(marks=[mark], deletes=[delete])
