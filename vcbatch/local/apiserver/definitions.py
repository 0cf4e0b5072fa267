"""The life cycle of a CustomResourceDefinition: it is served as soon as it is stored, and deleted after its last
object.

Source of the conditions: k8s.io/apiextensions-apiserver `pkg/registry/customresourcedefinition` and
`pkg/controller/finalizer`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from vcbatch.api.reasons import DefinitionReason
from vcbatch.local.apiserver.metadata import timestamp

Json = dict[str, Any]

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def set_condition(status: Json, condition: Json) -> None:
    """Replace the condition of the same type, or add it; its transition time stays while its status does."""
    conditions: list[Json] = status.setdefault("conditions", [])
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            if old.get("status") == condition["status"]:
                condition = {**condition, "lastTransitionTime": old.get("lastTransitionTime")}
            conditions[index] = condition
            return
    conditions.append(condition)


def begin_delete(crd: Json, now: datetime) -> None:
    """Mark the definition as being deleted: its finalizer waits until its objects are deleted."""
    metadata = crd["metadata"]
    metadata.setdefault("deletionTimestamp", timestamp(now))
    finalizers = metadata.setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    set_condition(
        crd.setdefault("status", {}),
        {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": timestamp(now),
            "reason": DefinitionReason.DELETION_PENDING,
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        },
    )
