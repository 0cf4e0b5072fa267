"""Objects by what controls them, for the controllers of Kubernetes' own workloads."""

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
"""Pods of a large owner start together: one look for all that happened in this time."""
_CONTROLLED = "UID of what controls it"
_ORPHANED = "namespace of what nobody controls"


def read(stored: Json, model: type[T]) -> T:
    """An object of a kind of Kubernetes' own. Raises `MalformedObject` where a field has another type."""
    try:
        return msgspec.convert(stored, model)
    except msgspec.ValidationError as error:
        raise MalformedObject(f"{model.__name__}: {error}") from error


def index_owners(cache: Cache[Any]) -> None:
    """Make `controlled` and `orphans` answer for that cache."""
    cache.add_index(_CONTROLLED, lambda obj: [uid] if (uid := controller_uid(metadata_of(obj))) else [])
    cache.add_index(_ORPHANED, lambda obj: [] if controller_uid(metadata := metadata_of(obj)) else [metadata.namespace])


def controlled(cache: Cache[T], uid: str) -> list[T]:
    """What the owner with that UID controls."""
    return cache.indexed(_CONTROLLED, uid)


def orphans(cache: Cache[T], namespace: str) -> list[T]:
    """What nobody controls there."""
    return cache.indexed(_ORPHANED, namespace)


def owners_of(owners: Cache[Json], change: Change[Any]) -> list[str]:
    """The UIDs of the known owners that control what changed, or did before."""
    uids = dict.fromkeys(controller_uid(metadata_of(held)) for held in (change.old, change.new) if held is not None)
    return [uid for uid in uids if owners.get(uid) is not None]


def adopters(owners: Cache[Json], change: Change[Any]) -> list[str]:
    """The UIDs of the owners that may adopt what changed; none where it is gone or somebody controls it."""
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
    """What `view` makes of an owner; where that is to adopt one of what it `claims`, of the owner as the server has it
    now. None where it is gone. Raises what `view` raises."""
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
