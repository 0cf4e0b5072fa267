"""Objects by what controls them, for the controllers of Kubernetes' own workloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from vcbatch.api.loose import part
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.reasons import shorten
from vcbatch.api.resources import Resource
from vcbatch.api.selectors import matches
from vcbatch.core.machine import Emit, EventType, ObjectRef
from vcbatch.core.workload.ownership import controller_uid
from vcbatch.runtime.apply import NotAppliedError
from vcbatch.runtime.cache import Cache
from vcbatch.runtime.recorder import Recorder
from vcbatch.seams.api import Api, ApiError, Json

T = TypeVar("T")

PODS_SECONDS = 0.05
"""Pods of a large owner start together: one look for all that happened in this time."""
_CONTROLLED = "UID of what controls it"
_ORPHANED = "namespace of what nobody controls"


def metadata_of(obj: Any) -> ObjectMeta:
    """The metadata of a JSON object or of a trimmed struct."""
    return msgspec.convert(obj["metadata"], ObjectMeta) if isinstance(obj, dict) else obj.metadata


def index_owners(cache: Cache[Any]) -> None:
    """Make `controlled` and `candidates` answer for that cache."""
    cache.add_index(_CONTROLLED, lambda obj: [uid] if (uid := controller_uid(metadata_of(obj))) else [])
    cache.add_index(_ORPHANED, lambda obj: [] if controller_uid(metadata := metadata_of(obj)) else [metadata.namespace])


def controlled(cache: Cache[T], uid: str) -> list[T]:
    """What the owner with that UID controls."""
    return cache.indexed(_CONTROLLED, uid)


def orphans(cache: Cache[T], namespace: str) -> list[T]:
    """What nobody controls there."""
    return cache.indexed(_ORPHANED, namespace)


def selecting(owners: Cache[Json], orphan: ObjectMeta) -> list[str]:
    """The UIDs of the owners in the orphan's namespace that may adopt it."""
    return [
        owner["metadata"]["uid"]
        for owner in owners
        if owner["metadata"].get("namespace") == orphan.namespace
        and matches(part(owner, "spec").get("selector"), orphan.labels)
    ]


async def read_again(api: Api, cache: Cache[Json], resource: Resource, stored: Json) -> Json | None:
    """The owner as the server has it now, before it adopts anything; None where it is gone."""
    metadata = stored["metadata"]
    try:
        current = await api.get(resource, metadata["name"], namespace=metadata["namespace"])
    except ApiError as error:
        if not error.not_found:
            raise
        cache.discard(metadata["uid"])
        return None
    cache.put(current)
    return cache.get(metadata["uid"])


class OwnerRefusals:
    """What the server doesn't let us do for an owner: said on it once, and remembered until a try went well.

    `texts`: what is told of each part of a decision (`create Pod`), as a reason and how the message begins."""

    def __init__(
        self, resource: Resource, owners: Cache[Json], recorder: Recorder, texts: Mapping[str, tuple[str, str]]
    ) -> None:
        self._resource = resource
        self._owners = owners
        self._recorder = recorder
        self._texts = texts
        self._held: dict[str, tuple[str, str]] = {}
        self.changed: Callable[[str], None] = lambda _uid: None
        """Called with the owner's UID when a refusal is over."""

    def of(self, uid: str) -> tuple[str, str] | None:
        """The reason and the server's words."""
        return self._held.get(uid)

    def carried_out(self, uid: str, refused: NotAppliedError | None) -> None:
        """Take note of how a decision went. What passes by itself isn't worth a word."""
        if refused is None:
            if self._held.pop(uid, None) is not None:
                self.changed(uid)
            return
        owner, told = self._owners.get(uid), self._texts.get(refused.part)
        error = refused.error
        passing = error.conflict or (error.transient and error.code != 500)  # 500: a webhook that can't be called, too
        if owner is None or told is None or passing or _is_leaving(error):
            return
        reason, begin = told
        if self._held.get(uid) == (reason, error.message):
            return
        self._held[uid] = (reason, error.message)
        metadata = owner["metadata"]
        ref = ObjectRef(resource=self._resource, namespace=metadata["namespace"], name=metadata["name"], uid=uid)
        message = shorten(f"{begin}{error.message}")
        self._recorder.emit(Emit(ref=ref, type=EventType.WARNING, reason=reason, message=message))

    def forget(self, uid: str) -> None:
        self._held.pop(uid, None)


def _is_leaving(error: ApiError) -> bool:
    """Whether the namespace is being deleted, so that nothing can be made in it."""
    causes = error.details.get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
