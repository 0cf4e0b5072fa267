"""The earlier templates of a StatefulSet or DaemonSet, kept as ControllerRevisions: `kubectl rollout history` lists
them and `kubectl rollout undo` restores one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api import names
from vcbatch.api.apps import ControllerRevision
from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.resources import CONTROLLERREVISIONS
from vcbatch.core.machine import Create, Delete, Mark, ref_of
from vcbatch.core.workload.ownership import Owner
from vcbatch.core.workload.templates import same_template, template_hash

_DEFAULT_LIMIT: Final = 10
_DIRECTIVE: Final = "$patch"
_LONGEST_STEM: Final = 223


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The revision of the present template. `collisions`: the next count of name collisions."""

    name: str
    digest: str
    collisions: int
    creates: Sequence[Create] = ()
    marks: Sequence[Mark] = ()


def template_of(revision: ControllerRevision) -> Json:
    """The pod template of the revision."""
    template = part(part(revision.data, "spec"), "template")
    return {key: value for key, value in template.items() if key != _DIRECTIVE}


def digest_of(revision: ControllerRevision) -> str:
    """The hash of its template."""
    return (revision.metadata.labels or {}).get(names.CONTROLLER_HASH, "")


def choose(
    owner: Owner,
    template: Json,
    annotations: Mapping[str, str] | None,
    held: Sequence[ControllerRevision],
    taken: Callable[[str], bool],
    *,
    collisions: int,
) -> Chosen:
    """The revision for the template: one of those that are `held`, renumbered as the latest where it is an older one,
    or a new one. Where another object has its name, nothing is created before the next reconciliation."""
    in_order = by_number(held)
    number = in_order[-1].revision + 1 if in_order else 1
    equal = next((each for each in reversed(in_order) if same_template(template_of(each), template)), None)
    if equal is not None:
        marks: list[Mark] = []
        if equal is not in_order[-1]:
            marks = [Mark(ref=ref_of(CONTROLLERREVISIONS, equal.metadata), patch={"revision": number})]
        return Chosen(name=equal.metadata.name, digest=digest_of(equal), collisions=collisions, marks=marks)
    digest = template_hash(template, collisions)
    name = f"{owner.metadata.name[:_LONGEST_STEM]}-{digest}"
    if taken(name):
        return Chosen(name=name, digest=digest, collisions=collisions + 1)
    body: Json = {
        "apiVersion": CONTROLLERREVISIONS.api_version,
        "kind": CONTROLLERREVISIONS.kind,
        "metadata": {
            "name": name,
            "namespace": owner.metadata.namespace,
            "labels": {**part(part(template, "metadata"), "labels"), names.CONTROLLER_HASH: digest},
            "ownerReferences": [owner.reference],
        },
        "data": {"spec": {"template": {**template, _DIRECTIVE: "replace"}}},
        "revision": number,
    }
    if annotations:
        body["metadata"]["annotations"] = dict(annotations)
    create = Create(resource=CONTROLLERREVISIONS, body=body)
    return Chosen(name=name, digest=digest, collisions=collisions, creates=[create])


def by_number(held: Sequence[ControllerRevision]) -> Sequence[ControllerRevision]:
    """Oldest first."""
    return sorted(held, key=lambda each: (each.revision, each.metadata.creation_timestamp or "", each.metadata.name))


def outdated(held: Sequence[ControllerRevision], used: Collection[str], limit: int | None) -> Sequence[Delete]:
    """The oldest revisions above the limit that neither the owner nor one of its pods uses. `used`: names."""
    unused = [each for each in by_number(held) if each.metadata.name not in used]
    surplus = max(len(unused) - (_DEFAULT_LIMIT if limit is None else limit), 0)
    return [Delete(ref=ref_of(CONTROLLERREVISIONS, each.metadata)) for each in unused[:surplus]]
