"""What claims were given by decisions that the cluster hasn't seen yet, and what is to be written for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vcbatch.api import names
from vcbatch.api.dra import ResourceClaim
from vcbatch.scheduler.dra.extended import Mapped, requests_of
from vcbatch.scheduler.dra.search import Picked
from vcbatch.scheduler.result import DeviceBinding, ExtendedClaim

if TYPE_CHECKING:
    from vcbatch.scheduler.picture.model import Task


@dataclass(slots=True)
class Given:
    """What one claim was given; `users` are UIDs of pods. `unmade` is the claim itself where the cluster doesn't have
    it, as it is for the extended resources of a pod, and `mapped` says which container gets what of it."""

    uid: str
    picks: Sequence[Picked] = ()
    allocation: Mapping[str, Any] = field(default_factory=dict[str, Any])
    users: set[str] = field(default_factory=set[str])
    unmade: ResourceClaim | None = None
    mapped: Sequence[Mapped] = ()


def binding_of(task: Task, claim: ResourceClaim, given: Given | None, patience: float) -> DeviceBinding:
    """What is to be written to a claim of a pod before the pod is bound; `given` is None where the cluster knows what
    the claim has."""
    allocation = given.allocation if given is not None else None
    namespace, name, uid = claim.metadata.namespace, claim.metadata.name, claim.metadata.uid
    made = None
    if given is not None and given.unmade is not None:
        name, uid = names.extended_claim_name(task.name, task.uid), ""
        made = ExtendedClaim(requests_of(claim), [use.wire() for use in given.mapped])
    return DeviceBinding(namespace, name, uid, allocation, float(patience), made)
