"""Allocations of claims that are decided and not observed yet, and what is to be written for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcbatch.api import names
from vcbatch.api.dra import AllocatedDevice, ResourceClaim
from vcbatch.scheduler.index.dra.capacity import read_share
from vcbatch.scheduler.index.dra.extended import Mapped, requests_of
from vcbatch.scheduler.index.dra.inventory import DeviceId
from vcbatch.scheduler.index.dra.ledger import DeviceLedger
from vcbatch.scheduler.index.dra.search import Picked
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.result import DeviceBinding, ExtendedClaim


@dataclass(slots=True)
class Given:
    """The allocation of one claim; `users` are UIDs of pods. `unmade` is the claim itself if it doesn't exist yet, as
    for the extended resources of a pod, and `mapped` assigns its devices to containers."""

    uid: str
    picks: Sequence[Picked] = ()
    allocation: Mapping[str, Any] = field(default_factory=dict[str, Any])
    users: set[str] = field(default_factory=set[str])
    unmade: ResourceClaim | None = None
    mapped: Sequence[Mapped] = ()


def binding_of(task: Task, claim: ResourceClaim, given: Given | None, patience: float) -> DeviceBinding:
    """What is to be written to a claim of a pod before the pod is bound; `given` is None if the claim's allocation is
    observed."""
    allocation = given.allocation if given is not None else None
    namespace, name, uid = claim.metadata.namespace, claim.metadata.name, claim.metadata.uid
    made = None
    if given is not None and given.unmade is not None:
        name, uid = names.extended_claim_name(task.name, task.uid), ""
        made = ExtendedClaim(requests_of(claim), [use.wire() for use in given.mapped])
    return DeviceBinding(namespace, name, uid, allocation, float(patience), made)


def count(ledger: DeviceLedger, picks: Sequence[Picked]) -> None:
    """Count these devices as allocated."""
    for pick in picks:
        if not pick.admin:
            ledger.take(pick.device.id, pick.share)


def uncount(ledger: DeviceLedger, picks: Sequence[Picked]) -> None:
    """Count these devices, which were allocated, as free."""
    for pick in picks:
        if not pick.admin:
            ledger.give_back(pick.device.id, pick.share)


def count_theirs(ledger: DeviceLedger, result: AllocatedDevice) -> None:
    """Count an allocation result in a claim's status."""
    device = DeviceId(result.driver, result.pool, result.device)
    share = read_share(result.driver, result.consumed_capacity) if result.share_id else None
    if not result.admin_access and (share is not None or not ledger.is_whole(device)):
        ledger.take(device, share)
