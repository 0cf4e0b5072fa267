"""The decision of one reconciliation of the pods of one controller, or of one pod without any, that our scheduler
places and that name no PodGroup (as Volcano's PodGroup controller does)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from vcbatch.api import names
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.resources import PODGROUPS
from vcbatch.api.workload import Workload
from vcbatch.core.machine import Decision, Delete, Ensure, Json, Mark, ObjectRef, ref_of
from vcbatch.core.podgroup import wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """The pods that share a generated PodGroup, and that group. Finished pods and pods that are being deleted aren't in
    it."""

    waiting: Sequence[ObjectRef] = ()
    """The pods that are in no PodGroup yet."""
    members: int = 0
    """The number of pods, including those that are in the PodGroup."""
    succeeded: int = 0
    """The number of pods that succeeded and still exist."""
    workload: Workload | None = None
    """The workload that owns the pods, where its kind is one whose annotations count."""
    pod_group: PodGroup | None = None
    sample: Json | None = None
    """One of the pods in full; required where `needs_sample` says so."""


def generated_name(uid: str) -> str:
    """The name of the PodGroup, from the UID of the pods' controller, or of a pod that has no controller."""
    return names.GENERATED_POD_GROUP_PREFIX + uid


def needs_sample(view: GroupView) -> bool:
    """Whether the decision needs one of the pods: the PodGroup has to be created, or its workload was edited."""
    group = view.pod_group
    if group is None:
        # A deleted PodGroup of a workload is recreated: its pods name it.
        return bool(view.waiting or (view.members and view.workload is not None))
    return bool(view.members and view.workload is not None and _edited(group, view.workload, view.succeeded))


def decide(view: GroupView, *, now: datetime) -> Decision:
    """Create the PodGroup, add the pods to it, update it from the workload, and delete it when the workload is scaled
    to zero.

    The PodGroup is created before a pod names it; a later reconciliation creates it with the same contents.
    """
    del now
    group = view.pod_group
    ensures = (
        [_ensure(view.sample, view.workload, view.succeeded)] if view.sample is not None and needs_sample(view) else []
    )
    if group is None:
        return Decision(ensures=ensures)
    if not view.members and view.workload is not None and view.workload.scaled_to_zero:
        ref = ref_of(PODGROUPS, group)
        return Decision(deletes=[Delete(ref=ref)])
    patch: Json = {"metadata": {"annotations": {names.GROUP_NAME: group.name}}}
    return Decision(marks=[Mark(ref=ref, patch=patch) for ref in view.waiting], ensures=ensures)


def _ensure(sample: Json, workload: Workload | None, succeeded: int) -> Ensure:
    """Create the PodGroup, or update the fields of an existing one that come from the workload. Its queue isn't
    updated, since it may be the namespace's, nor are fields that other clients write."""
    owner = wanted.controller_of(sample) or sample["metadata"]
    update: Json = {"spec": wanted.spec_of_members(sample, workload, succeeded_pods=succeeded)}
    annotations = wanted.annotations_of(sample, workload)
    if annotations:
        update["metadata"] = {"annotations": annotations}
    return Ensure(
        resource=PODGROUPS,
        body=wanted.body(sample, workload, name=generated_name(owner["uid"]), succeeded_pods=succeeded),
        update=update,
    )


def _edited(group: PodGroup, workload: Workload, succeeded: int) -> bool:
    if (group.spec.min_member or 0) != wanted.reachable_members(workload, succeeded_pods=succeeded):
        return True
    stored = group.metadata.annotations or {}
    return any(stored.get(key) != value for key, value in wanted.reported_by_workload(workload).items())
