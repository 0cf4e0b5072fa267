"""The revision of a ReplicaSet's template, its annotations, and the old ReplicaSets that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vcbatch.api import names
from vcbatch.api.apps import ReplicaSet
from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.resources import REPLICASETS
from vcbatch.core.machine import Delete, ref_of
from vcbatch.core.workload.allowance import allowance
from vcbatch.core.workload.deployment.view import UNLIMITED, Family, revision_of

_DEFAULT_LIMIT: Final = 10
_OWN: Final = frozenset(
    {
        names.LAST_APPLIED,
        names.REVISION,
        names.REVISION_HISTORY,
        names.DESIRED_REPLICAS,
        names.MAX_REPLICAS,
        "deprecated.deployment.rollback.to",
    }
)
_LONGEST_HISTORY: Final = 200
"""The maximum of numbers, so that a ReplicaSet that is reused repeatedly doesn't exceed the size of annotations."""


def next_revision(family: Family) -> int:
    """The number of the next revision; the first is 1."""
    return max((revision_of(each.metadata.annotations) for each in family.olds), default=0) + 1


def copied(family: Family) -> dict[str, str]:
    """The Deployment's annotations that its newest ReplicaSet gets as well, and through it a gang's PodGroup."""
    given = family.deployment.metadata.annotations or {}
    return {key: value for key, value in given.items() if key not in _OWN}


def share_annotations(family: Family) -> dict[str, str]:
    """The values from which the size of a ReplicaSet was computed."""
    surge = allowance(family.deployment.spec.strategy, family.replicas).surge
    return {names.DESIRED_REPLICAS: str(family.replicas), names.MAX_REPLICAS: str(family.replicas + surge)}


def new_annotations(family: Family, new: ReplicaSet) -> dict[str, str]:
    """The annotations of the ReplicaSet with the present template. One that is reused gets the next number, and
    remembers its earlier ones."""
    found = copied(family)
    revision, following = revision_of(new.metadata.annotations), next_revision(family)
    if revision >= following:
        return found
    held = new.metadata.annotations or {}
    if names.REVISION in held:
        former = [number for number in held.get(names.REVISION_HISTORY, "").split(",") if number]
        found[names.REVISION_HISTORY] = ",".join([*former, held[names.REVISION]][-_LONGEST_HISTORY:])
    found[names.REVISION] = str(following)
    return found


def pending_annotations(family: Family, new: ReplicaSet) -> dict[str, str]:
    """All annotations of the ReplicaSet after `new_annotations` is written."""
    return {**(new.metadata.annotations or {}), **new_annotations(family, new)}


def outdated(family: Family) -> Sequence[Delete]:
    """The oldest empty ReplicaSets above `revisionHistoryLimit`."""
    limit = family.deployment.spec.revision_history_limit
    limit = _DEFAULT_LIMIT if limit is None else limit
    kept = [each for each in family.olds if each.metadata.deletion_timestamp is None]
    if limit == UNLIMITED or len(kept) <= limit:
        return []
    by_revision = sorted(kept, key=lambda each: revision_of(each.metadata.annotations))
    return [Delete(ref=ref_of(REPLICASETS, each.metadata)) for each in by_revision[: len(kept) - limit] if _empty(each)]


def _empty(each: ReplicaSet) -> bool:
    status = each.status
    settled = each.metadata.generation <= status.observed_generation
    return settled and not (status.replicas or each.size)


def body(family: Family, *, name: str, digest: str, reference: Json, size: int) -> Json:
    """The ReplicaSet for the present template."""
    deployment = family.deployment
    template = deployment.spec.template
    metadata = part(template, "metadata")
    marked = {names.POD_TEMPLATE_HASH: digest}
    labels = {**part(metadata, "labels"), **marked}
    selector = deployment.spec.selector or {}
    return {
        "apiVersion": REPLICASETS.api_version,
        "kind": REPLICASETS.kind,
        "metadata": {
            "name": name,
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": copied(family) | share_annotations(family) | {names.REVISION: str(next_revision(family))},
            "ownerReferences": [reference],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": deployment.spec.min_ready_seconds,
            "selector": {**selector, "matchLabels": {**part(selector, "matchLabels"), **marked}},
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        },
    }
