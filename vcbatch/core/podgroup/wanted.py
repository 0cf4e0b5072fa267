"""The contents of a generated PodGroup, from one of its pods and from the workload that owns the pods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.pod_usage import pod_usage, wire
from vcbatch.api.podgroup import PodGroupPhase
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.resources import PODGROUPS, PODS
from vcbatch.api.workload import Workload
from vcbatch.core.batchjob.indexes import Indexes
from vcbatch.core.machine import Json

_COPIED_ANNOTATIONS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_COPIED_LABELS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_BUDGETS: Final = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
_OF_THE_POD: Final = frozenset((*_COPIED_ANNOTATIONS, *_BUDGETS))
_INHERITED_PREFIX: Final = "volcano.sh/"
_LARGEST_MEMBERS: Final = 2**31 - 1
_LONGEST_RESOURCES: Final = 4096


def min_member(workload: Workload | None) -> int:
    """The number of pods that the gang needs: the workload's annotation where it is a number above zero, else 1."""
    text = _annotations(workload).get(names.GROUP_MIN_MEMBER, "")
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        return 1
    return max(1, min(int(text), _LARGEST_MEMBERS))


def reachable_members(workload: Workload | None, *, succeeded_pods: int) -> int:
    """`min_member`, but for a Job at most the pods that a scheduler can count for the gang: those that have yet to run
    and those that succeeded and still exist. A member whose pod succeeded and was deleted, or whose index is no longer
    retried, gets no further pod, and a gang that required it would block retries of the others."""
    members = min_member(workload)
    if workload is None or workload.spec.completions is None:
        return members
    completions, succeeded = workload.spec.completions, workload.status.succeeded or 0
    given_up = len(Indexes.parse(workload.status.failed_indexes or "", below=max(completions, 0)))
    parallelism = 1 if workload.spec.parallelism is None else workload.spec.parallelism
    to_run = min(completions - succeeded - given_up, parallelism)
    if to_run <= 0 or not (succeeded > succeeded_pods or given_up):
        return members
    return max(1, min(members, succeeded_pods + to_run))


def inherited(workload: Workload | None) -> dict[str, str]:
    """The annotations that the PodGroup inherits from the workload, unless a pod overrides them."""
    return {key: value for key, value in _annotations(workload).items() if key.startswith(_INHERITED_PREFIX)}


def spec_of_members(pod: Json, workload: Workload | None, *, succeeded_pods: int = 0) -> Json:
    """`minMember` and `minResources`: the resources of the annotation where it is valid, else the requests of
    `minMember` pods like this one."""
    members = reachable_members(workload, succeeded_pods=succeeded_pods)
    usage = pod_usage(pod["spec"])
    return {
        "minMember": members,
        "minResources": _min_resources(workload) or wire({name: amount * members for name, amount in usage.items()}),
    }


def annotations_of(pod: Json, workload: Workload | None) -> dict[str, str]:
    """The workload's annotations, overridden by the pod's own preemption and disruption budget annotations."""
    own: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    budget = names.JDB_MIN_AVAILABLE if names.JDB_MIN_AVAILABLE in own else names.JDB_MAX_UNAVAILABLE
    kept = {key: own[key] for key in (*_COPIED_ANNOTATIONS, budget) if key in own}
    from_workload = inherited(workload)
    if budget in kept:
        from_workload = {key: value for key, value in from_workload.items() if key not in _BUDGETS}
    return from_workload | kept


def reported_by_workload(workload: Workload | None) -> dict[str, str]:
    """The part of `inherited` that no pod can override: a change of it shows that the workload was edited."""
    return {key: value for key, value in inherited(workload).items() if key not in _OF_THE_POD}


def body(pod: Json, workload: Workload | None, *, name: str, succeeded_pods: int = 0) -> Json:
    """The whole PodGroup for its creation."""
    metadata: Json = pod["metadata"]
    own: Json = metadata.get("annotations") or {}
    labels: Json = metadata.get("labels") or {}
    group: Json = {"name": name, "namespace": metadata["namespace"], "ownerReferences": _owners(pod)}
    annotations = annotations_of(pod, workload)
    if annotations:
        group["annotations"] = annotations
    marked = {key: labels[key] for key in _COPIED_LABELS if key in labels}
    if marked:
        group["labels"] = marked
    spec = spec_of_members(pod, workload, succeeded_pods=succeeded_pods)
    # Without one, admission chooses: the namespace's queue, else `default`.
    if own.get(names.SCHEDULING_QUEUE_NAME):
        spec["queue"] = own[names.SCHEDULING_QUEUE_NAME]
    if pod["spec"].get("priorityClassName"):
        spec["priorityClassName"] = pod["spec"]["priorityClassName"]
    topology = _topology(own)
    if topology:
        spec["networkTopology"] = topology
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": PODGROUPS.kind,
        "metadata": group,
        "spec": spec,
        "status": {"phase": str(PodGroupPhase.PENDING)},
    }


def controller_of(pod: Json) -> Json | None:
    """The owner reference of the pod's controller."""
    owners: list[Json] = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def _annotations(workload: Workload | None) -> Mapping[str, str]:
    return (workload.metadata.annotations or {}) if workload is not None else {}


def _min_resources(workload: Workload | None) -> Json:
    """The annotation's JSON object of quantities; empty where it is missing or malformed."""
    text = _annotations(workload).get(names.GROUP_MIN_RESOURCES, "")
    if not text or len(text) > _LONGEST_RESOURCES:
        return {}
    try:
        given: Any = json.loads(text)
        return {str(name): parse_quantity(amount).format() for name, amount in given.items()}
    except (ValueError, AttributeError, MalformedQuantity, RecursionError):
        return {}


def _owners(pod: Json) -> list[Json]:
    if controller_of(pod) is not None:
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
    """The mode (hard unless it is soft) and the highest tier, where a pod has either annotation."""
    mode = annotations.get(names.NETWORK_TOPOLOGY_MODE)
    tier = annotations.get(names.NETWORK_TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return {}
    topology: Json = {"mode": "soft" if (mode or "").lower() == "soft" else "hard"}
    if isinstance(tier, str) and tier.isascii() and tier.isdigit() and len(tier) < 10:
        topology["highestTierAllowed"] = int(tier)
    return topology
