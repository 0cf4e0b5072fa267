"""The objects that a workload controls: those with its owner reference that match its selector. Orphans that match are
adopted, and objects that no longer match are released (kubernetes `pkg/controller`, controller reference manager)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from vcbatch.api.meta import ObjectMeta
from vcbatch.api.resources import Resource
from vcbatch.api.selectors import matches
from vcbatch.core.machine import Json, Mark, ObjectRef, ref_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The workload's data for ownership. A `selector` of None selects nothing."""

    resource: Resource
    metadata: ObjectMeta
    selector: Json | None
    finalizer: str = ""
    """A finalizer that adopted objects get, and that is removed from released ones."""

    @property
    def reference(self) -> Json:
        """The owner reference of its children: they are deleted with it, and foreground deletion waits for them."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "name": self.metadata.name,
            "uid": self.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    @property
    def ref(self) -> ObjectRef:
        return ref_of(self.resource, self.metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(Generic[T]):
    """`mine` includes those that `marks` adopt."""

    mine: Sequence[T]
    marks: Sequence[Mark]


def controller_uid(metadata: ObjectMeta) -> str:
    """The UID of an object's controller; empty for an orphan."""
    owner = metadata.controller_owner()
    return owner.uid if owner is not None else ""


def is_adoptable(owner: Owner, metadata: ObjectMeta, *, fits: Callable[[ObjectMeta], bool] | None = None) -> bool:
    """Whether the object is an orphan that the owner adopts. Before the adoption the owner has to be read from the
    server: an object that was orphaned on purpose would be deleted with an owner that no longer exists."""
    return (
        not controller_uid(metadata)
        and owner.metadata.deletion_timestamp is None
        and metadata.deletion_timestamp is None
        and matches(owner.selector, metadata.labels)
        and (fits is None or fits(metadata))
    )


def claim(
    owner: Owner,
    resource: Resource,
    candidates: Iterable[T],
    metadata_of: Callable[[T], ObjectMeta],
    *,
    fits: Callable[[ObjectMeta], bool] | None = None,
) -> Claimed[T]:
    """Sort the `candidates`, which are all objects that the owner controls and the orphans beside them. `fits`: a
    condition in addition to the selector."""
    mine: list[T] = []
    marks: list[Mark] = []
    for candidate in candidates:
        metadata = metadata_of(candidate)
        controller = controller_uid(metadata)
        if controller == owner.metadata.uid:
            if matches(owner.selector, metadata.labels) and (fits is None or fits(metadata)):
                mine.append(candidate)
            elif owner.metadata.deletion_timestamp is None:
                marks.append(_let_go(owner, resource, metadata))
        elif is_adoptable(owner, metadata, fits=fits):
            mine.append(candidate)
            marks.append(_adopt(owner, resource, metadata))
    return Claimed(mine=mine, marks=marks)


def mark_of(resource: Resource, metadata: ObjectMeta, changed: Json) -> Mark:
    """A patch of an object's metadata for the observed version, since lists are replaced as a whole."""
    return Mark(ref=ref_of(resource, metadata), patch={"metadata": changed}, version=metadata.resource_version)


def with_finalizer(metadata: ObjectMeta, finalizer: str) -> list[str]:
    """Its finalizers with this one added at the end, once."""
    return [*(each for each in metadata.finalizers or () if each != finalizer), finalizer]


def without_finalizer(metadata: ObjectMeta, finalizer: str) -> list[str] | None:
    """Its finalizers without this one; None, which removes the field, where no others are left."""
    return [each for each in metadata.finalizers or () if each != finalizer] or None


def _adopt(owner: Owner, resource: Resource, metadata: ObjectMeta) -> Mark:
    changed: Json = {"ownerReferences": [*_held(metadata), owner.reference]}
    if owner.finalizer:
        changed["finalizers"] = with_finalizer(metadata, owner.finalizer)
    return mark_of(resource, metadata, changed)


def _let_go(owner: Owner, resource: Resource, metadata: ObjectMeta) -> Mark:
    held = [each for each in _held(metadata) if each.get("uid") != owner.metadata.uid]
    changed: Json = {"ownerReferences": held}
    if owner.finalizer in (metadata.finalizers or ()):
        changed["finalizers"] = without_finalizer(metadata, owner.finalizer)
    return mark_of(resource, metadata, changed)


def _held(metadata: ObjectMeta) -> list[Json]:
    return [msgspec.to_builtins(reference) for reference in metadata.owner_references or ()]
