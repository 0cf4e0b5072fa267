"""Indexes of objects by their controller, for the controllers of Kubernetes' own workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from vcbatch.api.loose import part
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.model import MalformedObject
from vcbatch.api.resources import Resource
from vcbatch.api.selectors import matches
from vcbatch.core.workload.ownership import Owner, controller_uid, is_adoptable
from vcbatch.interfaces.api import Api, Json, get_or_none
from vcbatch.runtime.caches.cache import Cache, Change, metadata_of

T = TypeVar("T")

PODS_SECONDS = 0.05
"""Seconds of delay: pods of a large owner start together and are handled by one reconcile."""
_CONTROLLED = "UID of what controls it"
_ORPHANED = "namespace of what nobody controls"


def read(stored: Json, model: type[T]) -> T:
    """Parse an object of a built-in kind. Raises `MalformedObject` where a field has another type."""
    try:
        return msgspec.convert(stored, model)
    except msgspec.ValidationError as error:
        raise MalformedObject(f"{model.__name__}: {error}") from error


def index_owners(cache: Cache[Any]) -> None:
    """Add the indexes for `controlled` and `orphans` to that cache."""
    cache.add_index(_CONTROLLED, lambda obj: [uid] if (uid := controller_uid(metadata_of(obj))) else [])
    cache.add_index(_ORPHANED, lambda obj: [] if controller_uid(metadata := metadata_of(obj)) else [metadata.namespace])


def controlled(cache: Cache[T], uid: str) -> list[T]:
    """The objects that the owner with that UID controls."""
    return cache.indexed(_CONTROLLED, uid)


def orphans(cache: Cache[T], namespace: str) -> list[T]:
    """The objects of that namespace without a controller."""
    return cache.indexed(_ORPHANED, namespace)


def owners_of(owners: Cache[Json], change: Change[Any]) -> list[str]:
    """The UIDs of the known owners that control the changed object, or controlled it before the change."""
    uids = dict.fromkeys(controller_uid(metadata_of(held)) for held in (change.old, change.new) if held is not None)
    return [uid for uid in uids if owners.get(uid) is not None]


def adopters(owners: Cache[Json], change: Change[Any]) -> list[str]:
    """The UIDs of the owners that may adopt the changed object; none where it was deleted or has a controller."""
    orphan = metadata_of(change.new) if change.new is not None else None
    if orphan is None or controller_uid(orphan):
        return []
    return [
        owner["metadata"]["uid"]
        for owner in owners
        if owner["metadata"].get("namespace") == orphan.namespace
        and matches(part(owner, "spec").get("selector"), orphan.labels)
    ]


async def view_for_adoption(
    api: Api,
    owners: Cache[Json],
    stored: Json,
    view: Callable[[Json], T],
    claims: Callable[[T], tuple[Owner, Iterable[ObjectMeta]]],
) -> T | None:
    """The result of `view` for an owner. Where the owner would adopt one of the objects that it `claims`, the owner is
    first read from the server. None where it no longer exists. Raises the errors of `view`."""
    seen = view(stored)
    owner, candidates = claims(seen)
    if not any(is_adoptable(owner, metadata) for metadata in candidates):
        return seen
    current = await _read_again(api, owners, owner.resource, stored)
    return view(current) if current is not None else None


async def _read_again(api: Api, cache: Cache[Json], resource: Resource, stored: Json) -> Json | None:
    metadata = stored["metadata"]
    current = await get_or_none(api, resource, metadata["name"], namespace=metadata["namespace"])
    if current is None:
        cache.discard(metadata["uid"])
        return None
    cache.put(current)
    return cache.get(metadata["uid"])
