"""The identity of a pod of a StatefulSet: its name, host name and labels, and the claims that outlive it."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import msgspec

from vcbatch.api import names
from vcbatch.api.apps import ClaimRetention, Retention, StatefulSet
from vcbatch.api.loose import listed, part
from vcbatch.api.meta import ObjectMeta, OwnerReference
from vcbatch.api.model import Json
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PERSISTENTVOLUMECLAIMS, PODS
from vcbatch.core.machine import Mark, ref_of
from vcbatch.core.workload.ownership import Owner
from vcbatch.core.workload.pods import pod_body
from vcbatch.core.workload.statefulset.view import ordinal_of, stateful_set_owner


def pod_name(stateful_set: StatefulSet, ordinal: int) -> str:
    return f"{stateful_set.metadata.name}-{ordinal}"


def claim_name(stateful_set: StatefulSet, template: Json, ordinal: int) -> str:
    return f"{part(template, 'metadata').get('name', '')}-{pod_name(stateful_set, ordinal)}"


def stateful_pod(stateful_set: StatefulSet, template: Json, *, ordinal: int, revision: str) -> Json:
    """The pod of that ordinal, from the template of that revision."""
    name = pod_name(stateful_set, ordinal)
    labels = {**_identity_labels(name, ordinal), names.REVISION_HASH: revision}
    owner = stateful_set_owner(stateful_set)
    body = pod_body(owner, template, name=name, generate_name=f"{stateful_set.metadata.name}-", labels=labels)
    spec: Json = body["spec"]
    spec["hostname"] = name
    if stateful_set.spec.service_name:
        spec["subdomain"] = stateful_set.spec.service_name
    claimed = {
        part(each, "metadata").get("name", ""): claim_name(stateful_set, each, ordinal)
        for each in stateful_set.spec.volume_claim_templates or ()
    }
    if claimed:
        volumes: list[Json] = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claimed.items()
        ]
        spec["volumes"] = volumes + [each for each in listed(spec, "volumes") if each.get("name") not in claimed]
    return body


def _identity_labels(name: str, ordinal: int) -> dict[str, str]:
    return {names.STATEFUL_POD_NAME: name, names.STATEFUL_POD_INDEX: str(ordinal)}


def identity_mark(stateful_set: StatefulSet, pod: Pod) -> Mark | None:
    """A patch with the labels that an adopted pod lacks; None where it lacks none."""
    ordinal = ordinal_of(stateful_set, pod.metadata)
    wanted = _identity_labels(pod.metadata.name, ordinal) if ordinal is not None else {}
    held = pod.metadata.labels or {}
    missing = {key: value for key, value in wanted.items() if held.get(key) != value}
    return Mark(ref=ref_of(PODS, pod.metadata), patch={"metadata": {"labels": missing}}) if missing else None


def claim_body(stateful_set: StatefulSet, template: Json, ordinal: int) -> Json:
    """The claim of one pod. It has the labels of the StatefulSet's selector, so that it can be found by it."""
    metadata = copy.deepcopy(part(template, "metadata"))
    metadata["name"] = claim_name(stateful_set, template, ordinal)
    metadata["namespace"] = stateful_set.metadata.namespace
    metadata["labels"] = {**part(metadata, "labels"), **part(stateful_set.spec.selector or {}, "matchLabels")}
    owners = _owners(stateful_set, (), condemned=None)
    if owners:
        metadata["ownerReferences"] = owners
    return {
        "apiVersion": PERSISTENTVOLUMECLAIMS.api_version,
        "kind": PERSISTENTVOLUMECLAIMS.kind,
        "metadata": metadata,
        "spec": copy.deepcopy(part(template, "spec")),
    }


def retention_mark(stateful_set: StatefulSet, claim: ObjectMeta, pod: Pod, *, condemned: bool) -> Mark | None:
    """A patch of the claim's owner: the StatefulSet, its pod where that is condemned, or none."""
    held = claim.owner_references or []
    others = [each for each in held if each.uid not in (stateful_set.metadata.uid, pod.metadata.uid)]
    wanted = _owners(stateful_set, others, condemned=pod if condemned else None)
    if {each.uid for each in held} == {each["uid"] for each in wanted}:
        return None
    return Mark(
        ref=ref_of(PERSISTENTVOLUMECLAIMS, claim),
        patch={"metadata": {"ownerReferences": wanted}},
        version=claim.resource_version,
    )


def _owners(stateful_set: StatefulSet, others: Sequence[OwnerReference], *, condemned: Pod | None) -> list[Json]:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy or ClaimRetention()
    kept = [msgspec.to_builtins(each) for each in others]
    if any(each.controller for each in others):
        return kept  # another client manages it
    if policy.when_scaled == Retention.DELETE and condemned is not None:
        return [*kept, Owner(resource=PODS, metadata=condemned.metadata, selector=None).reference]
    if policy.when_deleted == Retention.DELETE:
        return [*kept, stateful_set_owner(stateful_set).reference]
    return kept
