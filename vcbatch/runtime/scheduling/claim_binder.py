"""Writes which devices claims get and which pods use them, before the pods are bound.

The kubelet starts a pod only if its claims are reserved for it. (Source: kube-scheduler's DynamicResources, PreBind.)
The pods of a gang are bound when all of their claims are written, and all of their devices ready; where one can't be,
the writes for the gang are reverted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vcbatch.api.dra import ResourceClaim
from vcbatch.api.names import CLAIM_FINALIZER
from vcbatch.api.resources import RESOURCECLAIMS
from vcbatch.api.timestamps import format_time
from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.api import Api, ApiError, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.pacing.pause import pause
from vcbatch.runtime.scheduling.extended_claims import ExtendedClaims
from vcbatch.scheduler.index.dra.readiness import due, readiness_of
from vcbatch.scheduler.model.result import Bind, DeviceBinding

log = logging.getLogger(__name__)

_RETRY: Final = Backoff(initial=0.05, limit=2.0)
_TRIES: Final = 8


class _Written(NamedTuple):
    """A claim that was written for these pods (UIDs); `gave` where this write allocated its devices, `waits` where the
    devices have to be prepared first."""

    claim: DeviceBinding
    pods: frozenset[str]
    gave: bool
    waits: bool = False
    pod: str = ""
    """The name of the single pod for whose extended resources the claim was created."""


class ClaimBinder:
    """`ready(binds)` is called with pods that may be bound now, `failed(uid, error)` for each pod of a gang with a
    claim that can't be written or devices that don't become ready, and `waits(binds, lacks)` once with the pods of a
    gang whose devices aren't ready yet."""

    def __init__(
        self,
        api: Api,
        claims: Cache[ResourceClaim],
        extended: ExtendedClaims,
        *,
        clock: Clock,
        random: Random,
        ready: Callable[[Iterable[Bind]], None],
        failed: Callable[[str, str], None],
        waits: Callable[[Sequence[Bind], str], None],
    ) -> None:
        self._api = api
        self._claims = claims
        self._extended = extended
        self._clock = clock
        self._random = random
        self._ready = ready
        self._failed = failed
        self._waits = waits
        self._gangs: asyncio.Queue[list[Bind]] = asyncio.Queue()
        self._undo: asyncio.Queue[_Written] = asyncio.Queue()
        self._written: dict[str, list[_Written]] = {}
        self._changed = asyncio.Event()
        claims.listen(self._on_change)

    def submit(self, binds: Iterable[Bind]) -> None:
        """Process these binds. Those without device claims are passed on at once."""
        gangs: dict[str, list[Bind]] = {}
        for bind in binds:
            gangs.setdefault(bind.gang or bind.uid, []).append(bind)
            if any(claim.extended is not None for claim in bind.devices):
                self._extended.begin(bind.uid)
        plain: list[Bind] = []
        for gang in gangs.values():
            if any(bind.devices for bind in gang):
                self._gangs.put_nowait(gang)
            else:
                plain += gang
        if plain:
            self._ready(plain)

    def _on_change(self, change: Change[ResourceClaim]) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def bound(self, uid: str) -> None:
        """The pod is bound: from now on the cluster's controllers release its claims."""
        self._written.pop(uid, None)
        self._extended.bound(uid)

    def refused(self, uid: str) -> None:
        """The pod wasn't bound: revert the writes of its claims."""
        for written in self._written.pop(uid, ()):
            self._undo.put_nowait(written)

    async def run(self) -> None:
        """Process gangs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._undo_all())
            while True:
                group.create_task(self._serve(await self._gangs.get()))

    async def _serve(self, gang: Sequence[Bind]) -> None:
        users: dict[DeviceBindingKey, list[Bind]] = {}
        claims: dict[DeviceBindingKey, DeviceBinding] = {}
        for bind in gang:
            for claim in bind.devices:
                key = (claim.namespace, claim.name, claim.uid)
                users.setdefault(key, []).append(bind)
                if key not in claims or claim.allocation is not None:
                    claims[key] = claim
        # An allocation that is being reverted for an earlier attempt would seem to be valid.
        await self._undo.join()
        done: list[_Written] = []
        try:
            error = await self._write_all(claims, users, done) or await self._until_ready(gang, done)
        except Exception as raised:  # a gang without a result would hold its nodes' resources for ever
            log.exception("writing the claims of a gang failed")
            error = f"{type(raised).__name__}: {raised}"
        if not error:
            for written in done:
                for uid in written.pods:
                    self._written.setdefault(uid, []).append(written._replace(pods=frozenset({uid})))
            self._ready(gang)
            return
        log.warning("the devices of %s can't be written: %s", gang[0].gang or gang[0].name, error)
        for written in done:
            self._undo.put_nowait(written)
        for bind in gang:
            if not any(written.pod and bind.uid in written.pods for written in done):
                self._extended.given_up(bind.uid)
            self._failed(bind.uid, error)

    async def _write_all(
        self,
        claims: Mapping[DeviceBindingKey, DeviceBinding],
        users: Mapping[DeviceBindingKey, Sequence[Bind]],
        done: list[_Written],
    ) -> str:
        """Why not all of them can be written; empty once they are. Those that were are added to `done`."""
        for key, claim in claims.items():
            try:
                await self._write(claim, users[key], done)
            except ApiError as refused:
                return f"resourceclaim {claim.name}: {refused.message}"
        return ""

    async def _until_ready(self, gang: Sequence[Bind], done: list[_Written]) -> str:
        """Wait until the devices of all of these are ready. Returns why one isn't, or ""; the claim of that one is
        marked in `done` to release its devices, even if another program allocated them."""
        started = self._clock.monotonic()
        reported = False

        def report(claim: DeviceBinding, lacks: str) -> None:
            nonlocal reported
            if not reported:
                self._waits(gang, f"resourceclaim {claim.name}: {lacks}")
            reported = True

        for at, written in enumerate(done):
            claim = written.claim
            error = await self._wait(claim, started + claim.timeout, report) if written.waits else ""
            if error:
                done[at] = written._replace(gave=True)
                return f"resourceclaim {claim.name}: {error}"
        return ""

    async def _wait(self, claim: DeviceBinding, deadline: float, report: Callable[[DeviceBinding, str], None]) -> str:
        given = False
        while True:
            changed = self._changed
            held = self._claims.get(claim.uid)
            if held is None:
                return "it is gone"
            if given and held.status.allocation is None:
                return "it lost its devices meanwhile"
            given = held.status.allocation is not None
            readiness = readiness_of(held)
            if readiness.failed or (given and not readiness.lacks):
                return readiness.failed
            left = deadline - self._clock.monotonic()
            end = due(held, claim.timeout)
            if end is not None:
                left = min(left, (end - self._clock.now()).total_seconds())
            if left <= 0:
                lacks = readiness.lacks or "they were never seen"
                return f"its devices weren't ready within {claim.timeout:.0f} s: {lacks}"
            if readiness.lacks:
                report(claim, readiness.lacks)
            await pause(self._clock, left, woken=changed)

    async def _write(self, claim: DeviceBinding, binds: Sequence[Bind], done: list[_Written]) -> None:
        if claim.extended is None:
            done.append(await self._reserve(claim, binds))
            return
        (bind,) = binds
        made = await self._extended.make(claim, claim.extended, bind)
        done.append(_Written(made, frozenset({bind.uid}), gave=True, pod=bind.name))
        reserved = await self._reserve(made, binds)
        done[-1] = done[-1]._replace(waits=reserved.waits)
        await self._extended.report(made, claim.extended, bind)

    async def _reserve(self, claim: DeviceBinding, binds: Sequence[Bind]) -> _Written:
        """Allocate the claim's devices, where it has none, and reserve it for these pods."""
        wanted = [{"resource": "pods", "name": bind.name, "uid": bind.uid} for bind in binds]
        gave = waits = False

        def change(held: Json) -> Json | None:
            nonlocal gave, waits
            status: dict[str, Any] = held.get("status") or {}
            out: Json = {}
            gave = False
            waits = _waits(status.get("allocation") or claim.allocation or {})
            if not status.get("allocation"):
                if claim.allocation is None:
                    raise ApiError(409, "Conflict", "it lost its devices meanwhile")
                stamp = {"allocationTimestamp": format_time(self._clock.now())} if waits else {}
                out["allocation"] = {**claim.allocation, **stamp}
                gave = True
            elif claim.allocation is not None and _devices(status["allocation"]) != _devices(claim.allocation):
                raise ApiError(409, "Conflict", "it was given other devices meanwhile")
            reserved: list[Json] = list(status.get("reservedFor") or ())
            known = {consumer.get("uid") for consumer in reserved}
            missing = [consumer for consumer in wanted if consumer["uid"] not in known]
            if missing:
                out["reservedFor"] = [*reserved, *missing]
            return out or None

        await self._change(claim, change, keep=True)
        return _Written(claim, frozenset(bind.uid for bind in binds), gave, waits)

    async def _take_back(self, written: _Written) -> None:
        """Remove the reservation of the claim for these pods; where its devices were allocated for them and no other
        pod uses it, also the allocation. A claim that was created for a pod is deleted."""
        if written.pod:
            await self._extended.remove(written.claim, written.pod)
            return

        def change(held: Json) -> Json | None:
            status: dict[str, Any] = held.get("status") or {}
            reserved: list[Json] = list(status.get("reservedFor") or ())
            left = [consumer for consumer in reserved if consumer.get("uid") not in written.pods]
            out: Json = {"reservedFor": left or None} if len(left) != len(reserved) else {}
            if written.gave and not left and status.get("allocation"):
                out["allocation"] = None
            return out or None

        await self._change(written.claim, change, keep=False)

    async def _change(self, claim: DeviceBinding, change: Callable[[Json], Json | None], *, keep: bool) -> None:
        """Change the claim's current status, retrying on conflicts. `keep` adds the finalizer that prevents its
        deletion first. Raises `ApiError` where it can't be changed."""
        error: ApiError | None = None
        for attempt in range(1, _TRIES + 1):
            try:
                held = await self._api.get(RESOURCECLAIMS, claim.name, namespace=claim.namespace)
                if held["metadata"].get("uid") != claim.uid:
                    raise ApiError(404, "NotFound", "it is gone")
                status = change(held)
                if status is None:
                    return
                if keep:
                    held = await self._protected(claim, held)
                await self._patch(claim, held, {"status": status}, subresource="status")
            except ApiError as refused:
                error = refused
                stale = refused.conflict and "meanwhile" not in refused.message
                if not (stale or refused.transient):
                    raise
                await self._clock.sleep(_RETRY.delay(attempt, self._random))
            else:
                return
        if error is not None:
            raise error

    async def _protected(self, claim: DeviceBinding, held: Json) -> Json:
        finalizers: list[str] = list(held["metadata"].get("finalizers") or ())
        if CLAIM_FINALIZER in finalizers:
            return held
        return await self._patch(claim, held, {"metadata": {"finalizers": [*finalizers, CLAIM_FINALIZER]}})

    async def _patch(self, claim: DeviceBinding, held: Json, patch: Json, *, subresource: str = "") -> Json:
        meta = {"uid": claim.uid, "resourceVersion": held["metadata"].get("resourceVersion")}
        whole = {**patch, "metadata": {**meta, **patch.get("metadata", {})}}
        return await self._api.patch(
            RESOURCECLAIMS, claim.name, whole, namespace=claim.namespace, subresource=subresource
        )

    async def _undo_all(self) -> None:
        while True:
            written = await self._undo.get()
            try:
                await self._take_back(written)
            except ApiError as error:
                if not error.not_found:
                    log.warning("resourceclaim %s can't be released: %s", written.claim.name, error.message)
            finally:
                if written.pod:
                    self._extended.given_up(*written.pods)
                self._undo.task_done()


def _results(allocation: Mapping[str, Any]) -> Sequence[Json]:
    return (allocation.get("devices") or {}).get("results") or ()


def _devices(allocation: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Which devices were allocated for which request. The API server may change how the rest is written."""
    keys = ("request", "driver", "pool", "device", "shareID")
    return [tuple(one.get(key) for key in keys) for one in _results(allocation)]


def _waits(allocation: Mapping[str, Any]) -> bool:
    """Whether a device of the allocation has to be prepared first."""
    return any(one.get("bindingConditions") for one in _results(allocation))


DeviceBindingKey = tuple[str, str, str]
"""Namespace, name and UID of a claim."""
