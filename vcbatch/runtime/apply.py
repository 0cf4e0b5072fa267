"""Applies a decision: status, marks, ensures, deletes, creates, events, in this order. An event about the status, or
about a single deletion or creation, is sent with that write.

The order makes a crash between any two writes harmless: what later decisions depend on is stored before the writes that
it leads to, and every write names the UID of its object, so that the same or the next decision can be applied again.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeVar

import msgspec

from vcbatch.api.resources import Resource
from vcbatch.api.timestamps import format_time
from vcbatch.core.machine import Create, Decision, Delete, Emit, Ensure, Mark, ObjectRef, WriteStatus, strip_unchanged
from vcbatch.interfaces.api import Api, ApiError, Json, PatchKind, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import Cache, deleting
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.pacing.at_once import CREATES

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(eq=False)
class StaleError(Exception):
    """The decision was based on outdated objects; the cache has been refreshed."""

    what: str

    def __str__(self) -> str:
        return self.what


@dataclass(eq=False)
class NotAppliedError(Exception):
    """A part of the decision was refused; the parts that follow it in the order were not tried."""

    part: str
    """The verb and kind that failed, such as `create Pod`."""
    error: ApiError
    failed: int = 1
    done: int = 0

    def __str__(self) -> str:
        counts = f" ({self.failed} failed, {self.done} done)" if self.failed + self.done > 1 else ""
        return f"{self.part}: {self.error}{counts}"

    @property
    def passing(self) -> bool:
        """Whether another attempt may succeed without a change by a user. An answer with code 500 isn't transient in
        this sense: an admission webhook can't be called, for example."""
        return self.error.conflict or (self.error.transient and self.error.code != 500)


def merge_diff(stored: Any, wanted: Mapping[str, Any]) -> Json:
    """The JSON merge patch (RFC 7386) that turns `stored` into exactly `wanted`; empty where they are equal."""
    before: Mapping[str, Any] = stored if isinstance(stored, Mapping) else {}
    patch: Json = {key: None for key in before if key not in wanted}
    for key, value in wanted.items():
        if key not in before:
            patch[key] = value
        elif isinstance(value, Mapping) and isinstance(before[key], Mapping):
            inner = merge_diff(before[key], value)
            if inner:
                patch[key] = inner
        elif before[key] != value:
            patch[key] = value
    return patch


class Applier:
    """Applies decisions through the API, and puts every response into the cache of its resource at once.

    `without_status` lists the kinds whose status is part of the object (PodGroup), not a subresource; `unfollowed`
    those whose caches no watch updates, so that objects that we delete are removed from them at once.

    At most `concurrency` creates and deletes run at a time. `judges` return why an object may not be created, "" where
    it may; a reason counts as a refusal by the server.
    """

    def __init__(
        self,
        api: Api,
        caches: Mapping[Resource, Cache[Any]],
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
        without_status: Iterable[Resource] = (),
        unfollowed: Iterable[Resource] = (),
        concurrency: int = CREATES,
        judges: Mapping[Resource, Callable[[Json], str]] | None = None,
    ) -> None:
        self._api = api
        self._caches = caches
        self._recorder = recorder
        self._clock = clock
        self._random = random
        self._without_status = frozenset(without_status)
        self._unfollowed = frozenset(unfollowed)
        self._slots = asyncio.Semaphore(concurrency)
        self._judges = judges or {}

    async def carry_out(self, decision: Decision) -> None:
        """Apply all parts of the decision. Raises `StaleError` where the object has to be reconciled again now,
        `NotAppliedError` where later."""
        versions: dict[str, str] = {}
        if decision.status is not None:
            versions[decision.status.ref.uid] = await self._write_status(decision.status)
        for event in decision.events:
            if isinstance(event.after, WriteStatus):
                self._report(event)
        await self._mark_all(decision.marks, versions)
        for ensure in decision.ensures:
            await self._ensure(ensure)
        events_after = {id(event.after): event for event in decision.events if isinstance(event.after, Create | Delete)}

        async def delete_one(delete: Delete) -> None:
            await self._delete(delete)
            self._report(events_after.get(id(delete)))

        async def create_one(create: Create) -> None:
            await self._create(create)
            self._report(events_after.get(id(create)))

        await self._all("delete", decision.deletes, delete_one, lambda delete: delete.ref.resource)
        await self._create_slowly(decision.creates, create_one)
        for event in decision.events:
            if event.after is None:
                self._report(event)

    # Parts

    async def _write_status(self, write: WriteStatus) -> str:
        """Returns the resourceVersion of the object after the write."""
        ref = write.ref
        stored = self._stored(ref)
        if stored is None:
            raise StaleError(f"{ref.resource.kind} {ref.namespace}/{ref.name} is gone")
        if stored["metadata"].get("resourceVersion") != write.resource_version:
            raise StaleError(f"{ref.resource.kind} {ref.namespace}/{ref.name} has changed")
        patch = merge_diff(stored.get("status"), write.status)
        if not patch:
            return write.resource_version
        subresource = "" if ref.resource in self._without_status else "status"
        try:
            answer = await self._send_status(write, patch, subresource)
        except ApiError as error:
            if error.conflict or error.not_found:
                await self._refresh(ref)
                raise StaleError(str(error)) from error
            raise NotAppliedError(f"write status of {ref.resource.kind}", error) from error
        self._remember(ref.resource, answer)
        return answer["metadata"]["resourceVersion"]

    async def _send_status(self, write: WriteStatus, patch: Json, subresource: str) -> Json:
        """Write the status and return the last response. Fields that are applied are written first: other programs act
        on them."""
        ref, version = write.ref, write.resource_version
        namespace = ref.namespace or None
        answer: Json = {}
        if any(field in patch for field in write.applied):
            status = {field: write.status[field] for field in write.applied if field in write.status}
            body: Json = {
                "apiVersion": ref.resource.api_version,
                "kind": ref.resource.kind,
                "metadata": {"name": ref.name, "uid": ref.uid, "resourceVersion": version},
                "status": status,
            }
            answer = await self._api.patch(
                ref.resource,
                ref.name,
                body,
                namespace=namespace,
                subresource=subresource,
                kind=PatchKind.APPLY,
                manager=write.manager,
            )
            version = answer["metadata"]["resourceVersion"]
            patch = {field: value for field, value in patch.items() if field not in write.applied}
        if patch:
            body = {"metadata": {"uid": ref.uid, "resourceVersion": version}, "status": patch}
            answer = await self._api.patch(ref.resource, ref.name, body, namespace=namespace, subresource=subresource)
        return answer

    async def _mark_all(self, marks: Sequence[Mark], versions: Mapping[str, str]) -> None:
        """`versions` by UID: the resourceVersions after this decision's own status write."""

        async def mark_one(mark: Mark) -> None:
            await self._mark(mark, versions.get(mark.ref.uid) or mark.version)

        await self._all("mark", marks, mark_one, lambda mark: mark.ref.resource)

    async def _mark(self, mark: Mark, version: str) -> None:
        ref = mark.ref
        metadata: Json = {**mark.patch.get("metadata", {}), "uid": ref.uid}
        if mark.version:
            metadata["resourceVersion"] = version
        patch = {**mark.patch, "metadata": metadata}
        try:
            answer = await self._api.patch(
                ref.resource, ref.name, patch, namespace=ref.namespace or None, subresource=mark.subresource
            )
        except ApiError as error:
            if error.not_found or error.conflict:
                await self._refresh(ref)
                raise StaleError(str(error)) from error
            raise
        self._remember(ref.resource, answer)

    async def _ensure(self, ensure: Ensure) -> None:
        cache = self._caches.get(ensure.resource)
        stored = cache.by_key(_key_of(ensure.body)) if cache is not None and cache.model is dict else None
        try:
            if stored is None:
                stored = await self._create_or_get(ensure.resource, await self._with_keys(ensure))
            await self._bring_up_to_date(ensure, stored)
        except ApiError as error:
            if error.not_found and cache is not None and stored is not None:
                cache.discard(stored["metadata"]["uid"])  # another client deleted it; the next reconcile recreates it
                raise StaleError(str(error)) from error
            if ensure.resource in self._unfollowed and error.code == 409 and stored is not None:
                # No watch reports which object has the name now: read it, so that the next decision is based on it.
                await self._refresh_name(ensure)
                raise StaleError(str(error)) from error
            raise NotAppliedError(f"ensure {ensure.resource.kind}", error) from error

    async def _with_keys(self, ensure: Ensure) -> Json:
        """The body with newly generated keys, where the object is to have some."""
        if ensure.keys is None:
            return ensure.body
        pair = await self._random.key_pair()
        made = {ensure.keys.private: pair.private, **dict.fromkeys(ensure.keys.public, pair.public)}
        encoded = {name: base64.b64encode(value.encode()).decode() for name, value in made.items()}
        return {**ensure.body, "data": {**ensure.body.get("data", {}), **encoded}}

    async def _bring_up_to_date(self, ensure: Ensure, stored: Json) -> None:
        metadata = ensure.body["metadata"]
        _refuse_foreign(ensure.resource, stored, ensure.body)
        if stored["metadata"].get("deletionTimestamp"):
            raise ApiError(
                409,
                "Conflict",
                f"{ensure.resource.kind} {metadata['name']} is being deleted; it is recreated after that",
            )
        patch = strip_unchanged(stored=stored, decided=ensure.update)
        if not patch:
            return
        patch["metadata"] = {**patch.get("metadata", {}), "uid": stored["metadata"]["uid"]}
        answer = await self._api.patch(
            ensure.resource, metadata["name"], patch, namespace=metadata.get("namespace") or None
        )
        self._remember(ensure.resource, answer)

    async def _delete(self, delete: Delete) -> None:
        ref = delete.ref
        cache = self._caches.get(ref.resource)
        try:
            await self._api.delete(
                ref.resource,
                ref.name,
                namespace=ref.namespace or None,
                uid=ref.uid,
                propagation=delete.propagation,
                grace_seconds=delete.grace_seconds,
            )
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise
            if cache is not None and error.not_found:
                cache.discard(ref.uid)
            elif cache is not None:
                # Another object has the name now, or the conflict has another cause: only a read can distinguish them.
                await self._refresh(ref)
                if cache.get(ref.uid) is not None:
                    raise StaleError(str(error)) from error
            return
        if cache is None:
            return
        held = cache.get(ref.uid)
        if ref.resource in self._unfollowed:
            cache.drop(ref.uid)  # a finalizer may delay the deletion
        elif held is not None:
            cache.amend(deleting(held, at=format_time(self._clock.now())))

    def _report(self, event: Emit | None) -> None:
        if event is not None:
            self._recorder.emit(event)

    async def _create_slowly(self, creates: Sequence[Create], create_one: Callable[[Create], Awaitable[None]]) -> None:
        """Create 1, then 2, 4, 8 … objects, never of two turns concurrently: a cause that refuses one (a quota, an
        admission rule) refuses the rest, which then aren't tried. As the Kubernetes Job controller does
        (`slowStartBatch`)."""
        done, size = 0, 1
        while done < len(creates):
            batch = _of_one_turn(creates[done : done + size])
            await self._all("create", batch, create_one, lambda create: create.resource, already=done)
            done += len(batch)
            size *= 2

    async def _create(self, create: Create) -> None:
        stored = await self._create_or_get(create.resource, create.body)
        _refuse_foreign(create.resource, stored, create.body)

    # Shared by the parts

    async def _create_or_get(self, resource: Resource, body: Json) -> Json:
        namespace, name = body["metadata"].get("namespace") or None, body["metadata"]["name"]
        judge = self._judges.get(resource)
        if judge is not None and (why := judge(body)):
            raise ApiError(403, "Forbidden", why)
        try:
            stored = await self._api.create(resource, body, namespace=namespace)
        except ApiError as error:
            if not error.already_exists:
                raise
            stored = await self._api.get(resource, name, namespace=namespace)
        self._remember(resource, stored)
        return stored

    async def _all(
        self,
        verb: str,
        intents: Sequence[T],
        act: Callable[[T], Awaitable[None]],
        resource: Callable[[T], Resource],
        *,
        already: int = 0,
    ) -> None:
        """Act on all of them, at most `concurrency` at a time, even if some fail; then raise for the first refusal."""
        if not intents:
            return

        async def one(intent: T) -> ApiError | StaleError | None:
            async with self._slots:
                try:
                    await act(intent)
                except (ApiError, StaleError) as error:
                    return error
            return None

        refusals = [error for error in await asyncio.gather(*map(one, intents)) if error is not None]
        for error in refusals:
            if isinstance(error, ApiError):
                done = already + len(intents) - len(refusals)
                raise NotAppliedError(f"{verb} {resource(intents[0]).kind}", error, failed=len(refusals), done=done)
        if refusals:
            raise refusals[0]

    def _stored(self, ref: ObjectRef) -> Json | None:
        cache = self._caches.get(ref.resource)
        if cache is None or cache.model is not dict:
            raise TypeError(f"the status of a {ref.resource.kind} is written from a cache of whole objects")
        return cache.get(ref.uid)

    def _remember(self, resource: Resource, answer: Json) -> None:
        cache = self._caches.get(resource)
        if cache is None:
            return
        cache.put(answer if cache.model is dict else msgspec.convert(answer, cache.model))

    async def _refresh_name(self, ensure: Ensure) -> None:
        """Refresh the cache for the object that has the name of an object that isn't watched."""
        cache, metadata = self._caches[ensure.resource], ensure.body["metadata"]
        found = await get_or_none(
            self._api, ensure.resource, metadata["name"], namespace=metadata.get("namespace") or None
        )
        if found is not None:
            cache.put(found)
        elif (held := cache.by_key(_key_of(ensure.body))) is not None:
            cache.drop(held["metadata"]["uid"])

    async def _refresh(self, ref: ObjectRef) -> None:
        """Refresh the cache by a read: the watch may be far behind."""
        cache = self._caches.get(ref.resource)
        if cache is None:
            return
        try:
            current = await self._api.get(ref.resource, ref.name, namespace=ref.namespace or None, model=cache.model)
        except ApiError as error:
            if error.not_found:
                cache.discard(ref.uid)
            return  # the next reconcile handles it
        cache.put(current)


def _of_one_turn(creates: Sequence[Create]) -> list[Create]:
    """The creates at the start of the list that have the same turn as the first."""
    return list(takewhile(lambda create: create.turn == creates[0].turn, creates))


def _refuse_foreign(resource: Resource, stored: Json, body: Json) -> None:
    """Raise an error that no retry resolves where the name is used by an object with another controller."""
    wanted, found = _controller_uid(body), _controller_uid(stored)
    if wanted == found:
        return
    metadata = body["metadata"]
    where = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
    owner = f"an object with controller {found}" if found else "an object without a controller"
    raise ApiError(409, "AlreadyExists", f"{resource.kind} {where} can't be made: the name is taken by {owner}")


def _controller_uid(obj: Json) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return owner.get("uid", "")
    return ""


def _key_of(body: Json) -> str:
    metadata = body["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
