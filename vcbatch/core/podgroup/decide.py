"""What follows from one look at a pod that our scheduler is to place and that names no PodGroup
(as Volcano's PodGroup controller has it)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.pod import PodPhase
from vcbatch.api.podgroup import PodGroup, PodGroupPhase
from vcbatch.api.resources import PODGROUPS, PODS
from vcbatch.core.machine import Decision, Ensure, Json, Mark, ObjectRef
from vcbatch.core.usage import pod_usage, wire

_COPIED_ANNOTATIONS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_COPIED_LABELS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_FINISHED: Final = (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One pod without a group, as it is stored, and the PodGroup that it would get (`generated_name`)."""

    pod: Json
    pod_group: PodGroup | None = None


def generated_name(pod: Json) -> str:
    """The PodGroup of this pod: one for all pods of a controller, else one of its own."""
    owner = _controller(pod)
    return names.GENERATED_POD_GROUP_PREFIX + (owner or pod["metadata"])["uid"]


def decide(
    view: GroupView, *, now: datetime, scheduler_names: Collection[str] = (names.DEFAULT_SCHEDULER,)
) -> Decision:
    """Make the PodGroup and put the pod into it. A pod that has a group, that a scheduler with none of
    `scheduler_names` places, or that is over, is left alone.

    The group is made before the pod says that it belongs to it; made again by a later look it is the same.
    """
    del now
    pod = view.pod
    metadata: Json = pod["metadata"]
    annotations: Json = metadata.get("annotations") or {}
    status: Json = pod.get("status") or {}
    placed_by_us = pod["spec"].get("schedulerName") in scheduler_names
    over = metadata.get("deletionTimestamp") or status.get("phase") in _FINISHED
    if not placed_by_us or over or annotations.get(names.GROUP_NAME):
        return Decision()
    ref = ObjectRef(resource=PODS, namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])
    mark = Mark(ref=ref, patch={"metadata": {"annotations": {names.GROUP_NAME: generated_name(pod)}}})
    if view.pod_group is None:
        # Marks come before ensures in the fixed order, so the pod is marked by the look that finds its group.
        return Decision(ensures=[Ensure(resource=PODGROUPS, body=_body(pod))])
    return Decision(marks=[mark])


def _controller(pod: Json) -> Json | None:
    owners: list[Json] = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def _body(pod: Json) -> Json:
    metadata: Json = pod["metadata"]
    annotations: Json = metadata.get("annotations") or {}
    labels: Json = metadata.get("labels") or {}
    budget = names.JDB_MIN_AVAILABLE if names.JDB_MIN_AVAILABLE in annotations else names.JDB_MAX_UNAVAILABLE
    kept = {key: annotations[key] for key in (*_COPIED_ANNOTATIONS, budget) if key in annotations}
    group: Json = {
        "name": generated_name(pod),
        "namespace": metadata["namespace"],
        "ownerReferences": _owners(pod),
    }
    if kept:
        group["annotations"] = kept
    marked = {key: labels[key] for key in _COPIED_LABELS if key in labels}
    if marked:
        group["labels"] = marked
    spec: Json = {
        "minMember": 1,
        "minResources": wire(pod_usage(pod["spec"])),
    }
    # Without one, admission picks: the namespace's queue, else `default`.
    if annotations.get(names.SCHEDULING_QUEUE_NAME):
        spec["queue"] = annotations[names.SCHEDULING_QUEUE_NAME]
    if pod["spec"].get("priorityClassName"):
        spec["priorityClassName"] = pod["spec"]["priorityClassName"]
    topology = _topology(annotations)
    if topology:
        spec["networkTopology"] = topology
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": PODGROUPS.kind,
        "metadata": group,
        "spec": spec,
        "status": {"phase": str(PodGroupPhase.PENDING)},
    }


def _owners(pod: Json) -> list[Json]:
    if _controller(pod) is not None:
        return list(pod["metadata"]["ownerReferences"])
    metadata = pod["metadata"]
    owner: dict[str, Any] = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return [owner]


def _topology(annotations: Json) -> Json:
    """The mode (hard unless it says soft) and the highest tier, where a pod asks for either."""
    mode = annotations.get(names.NETWORK_TOPOLOGY_MODE)
    tier = annotations.get(names.NETWORK_TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return {}
    topology: Json = {"mode": "soft" if (mode or "").lower() == "soft" else "hard"}
    if isinstance(tier, str) and tier.isascii() and tier.isdigit() and len(tier) < 10:
        topology["highestTierAllowed"] = int(tier)
    return topology
