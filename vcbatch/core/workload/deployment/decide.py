"""The decision of one reconciliation of a Deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.reasons import WorkloadReason
from vcbatch.api.resources import REPLICASETS
from vcbatch.core.machine import Create, Decision, Emit, EventType, Mark, WriteStatus, ref_of
from vcbatch.core.workload.deployment.history import (
    body,
    new_annotations,
    outdated,
    pending_annotations,
    share_annotations,
)
from vcbatch.core.workload.deployment.sizes import next_sizes
from vcbatch.core.workload.deployment.status import counts_of, is_complete, next_status, progress_due
from vcbatch.core.workload.deployment.view import (
    DeploymentView,
    Family,
    deployment_owner,
    family_of,
    revision_of,
)
from vcbatch.core.workload.ownership import Owner, claim
from vcbatch.core.workload.templates import template_hash

_LONGEST_STEM: Final = 253 - 11
"""The part of a name for the Deployment's own name; the hash follows it."""


def decide(view: DeploymentView, *, now: datetime) -> Decision:
    """The next status, the sizes of its ReplicaSets, one for a new template, and the deletion of old ones beyond the
    history limit. For a Deployment that is being deleted only the status is updated."""
    deployment, owner = view.deployment, deployment_owner(view.deployment)
    claimed = claim(owner, REPLICASETS, view.replica_sets, lambda each: each.metadata)
    family = family_of(deployment, claimed.mine)
    collisions = deployment.status.collision_count
    if deployment.metadata.deletion_timestamp is not None:
        return Decision(status=_write(view, family, collisions, now))
    sizes = next_sizes(family, view.pods)
    creates: Sequence[Create] = ()
    if sizes.create is not None:
        made = _create(view, family, owner, sizes.create)
        creates = [made] if made is not None else []
        collisions += made is None
    status = next_status(family, collisions=collisions, refusal=view.refusal, now=now)
    adopted = {mark.ref.uid for mark in claimed.marks}
    marks = [mark for mark in _marks(family, sizes.by_uid) if mark.ref.uid not in adopted]
    done = is_complete(family, counts_of(family)) or deployment.spec.paused
    return Decision(
        status=_write(view, family, collisions, now, status),
        marks=[*claimed.marks, *_revision(family, owner), *marks],
        deletes=outdated(family) if done else (),
        creates=creates,
        events=list(_events(owner, family, marks, creates)),
        requeue_at=progress_due(family, status),
    )


def _write(
    view: DeploymentView, family: Family, collisions: int, now: datetime, status: Json | None = None
) -> WriteStatus | None:
    decided = status or next_status(family, collisions=collisions, refusal="", now=now)
    if decided == view.status:
        return None
    metadata = view.deployment.metadata
    ref = deployment_owner(view.deployment).ref
    return WriteStatus(ref=ref, resource_version=metadata.resource_version, status=decided)


def _create(view: DeploymentView, family: Family, owner: Owner, size: int) -> Create | None:
    """The ReplicaSet for the present template; None where its name belongs to another template, so that the next
    reconciliation tries another name."""
    deployment = view.deployment
    digest = template_hash(deployment.spec.template, deployment.status.collision_count)
    name = f"{deployment.metadata.name[:_LONGEST_STEM]}-{digest}"
    if view.taken(name):
        return None
    made = body(family, name=name, digest=digest, reference=owner.reference, size=size)
    return Create(resource=REPLICASETS, body=made)


def _revision(family: Family, owner: Owner) -> Sequence[Mark]:
    """Set the Deployment's revision to that of its newest ReplicaSet."""
    if family.new is None:
        return ()
    revision = revision_of(pending_annotations(family, family.new))
    if revision == revision_of(family.deployment.metadata.annotations):
        return ()
    patch: Json = {"metadata": {"annotations": {names.REVISION: str(revision)}}}
    return [Mark(ref=owner.ref, patch=patch, subresource="status")]


def _marks(family: Family, sizes: Mapping[str, int]) -> Iterator[Mark]:
    for each in family.all:
        if each.metadata.deletion_timestamp is not None:
            continue
        annotations: dict[str, str] = {}
        spec: Json = {}
        if each is family.new:
            annotations |= new_annotations(family, each)
            if each.spec.min_ready_seconds != family.deployment.spec.min_ready_seconds:
                spec["minReadySeconds"] = family.deployment.spec.min_ready_seconds
        if each.metadata.uid in sizes:
            annotations |= share_annotations(family)
            if sizes[each.metadata.uid] != each.size:
                spec["replicas"] = sizes[each.metadata.uid]
        held = each.metadata.annotations or {}
        changed = {key: value for key, value in annotations.items() if held.get(key) != value}
        patch: Json = {"metadata": {"annotations": changed}} if changed else {}
        if spec:
            patch["spec"] = spec
        if patch:
            yield Mark(ref=ref_of(REPLICASETS, each.metadata), patch=patch, version=each.metadata.resource_version)


def _events(owner: Owner, family: Family, marks: Sequence[Mark], creates: Sequence[Create]) -> Iterator[Emit]:
    by_uid = {each.metadata.uid: each for each in family.all}
    for mark in marks:
        spec = part(mark.patch, "spec")
        if "replicas" in spec:
            yield _scaled(owner, mark.ref.name, by_uid[mark.ref.uid].size, spec["replicas"])
    for create in creates:
        if create.body["spec"]["replicas"]:
            yield _scaled(owner, create.body["metadata"]["name"], 0, create.body["spec"]["replicas"])


def _scaled(owner: Owner, name: str, before: int, after: int) -> Emit:
    way = "up" if after > before else "down"
    text = f"Scaled {way} replica set {name} from {before} to {after}"
    return Emit(ref=owner.ref, type=EventType.NORMAL, reason=WorkloadReason.SCALING_REPLICA_SET, message=text)
