"""What follows from one look at the pods of one controller, or at one pod without any, that our scheduler is to place
and that name no PodGroup (as Volcano's PodGroup controller has it)."""

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
    """The pods that share a generated PodGroup, and that group. Pods that are over or being deleted aren't in it."""

    waiting: Sequence[ObjectRef] = ()
    """The pods that are in no group yet."""
    members: int = 0
    """How many there are, with those that are in the group."""
    succeeded: int = 0
    """How many of its pods succeeded and are still there."""
    workload: Workload | None = None
    """What they belong to, where that is a kind whose annotations count."""
    pod_group: PodGroup | None = None
    sample: Json | None = None
    """One of the pods, whole; to be there where `needs_sample` says so."""


def generated_name(uid: str) -> str:
    """The PodGroup of the pods whose controller has that UID, or of the pod that has it and no controller."""
    return names.GENERATED_POD_GROUP_PREFIX + uid


def needs_sample(view: GroupView) -> bool:
    """Whether the decision is made from one of the pods: the group has to be made, or its workload was edited."""
    group = view.pod_group
    if group is None:
        # A workload's group that somebody deleted is made anew: its pods say that they are in it.
        return bool(view.waiting or (view.members and view.workload is not None))
    return bool(view.members and view.workload is not None and _edited(group, view.workload, view.succeeded))


def decide(view: GroupView, *, now: datetime) -> Decision:
    """Make the PodGroup, put the pods into it, keep it as the workload says, and remove it when the workload is scaled
    to nothing.

    The group is made before a pod says that it belongs to it; made again by a later look it is the same.
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
    """Of an existing group only what comes from the workload is brought up to date: its queue may be the namespace's,
    and others write on it as well."""
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
