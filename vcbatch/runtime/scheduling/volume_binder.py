"""Binds claims of placed pods, before the pods themselves are bound.

A claim that waits for its first consumer is bound by the scheduler: an existing volume is assigned to it, or the node
is written to its annotation, for which its driver then provisions a volume. (Source: kube-scheduler's VolumeBinding,
PreBind.) The pods of a gang that wait for claims are bound when all claims are bound; where one can't be, none of the
pods is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from vcbatch.api.names import BOUND_BY_CONTROLLER, SELECTED_NODE
from vcbatch.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES
from vcbatch.api.storage import Claim, ClaimPhase, PersistentVolume
from vcbatch.interfaces.api import Api, ApiError, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.pacing.pause import pause
from vcbatch.scheduler.model.result import Bind, ClaimBinding

log = logging.getLogger(__name__)


class VolumeBinder:
    """`ready(binds)` is called with pods that may be bound now, `failed(uid, error)` for each pod of a gang with a
    claim that can't be bound; `reaches(uid)` returns why a pod's node can't access the provisioned volumes, or ""."""

    def __init__(
        self,
        api: Api,
        claims: Cache[Claim],
        volumes: Cache[PersistentVolume],
        *,
        clock: Clock,
        ready: Callable[[Iterable[Bind]], None],
        failed: Callable[[str, str], None],
        reaches: Callable[[str], str],
    ) -> None:
        self._api = api
        self._claims = claims
        self._volumes = volumes
        self._clock = clock
        self._ready = ready
        self._failed = failed
        self._reaches = reaches
        self._gangs: asyncio.Queue[list[Bind]] = asyncio.Queue()
        self._changed = asyncio.Event()
        claims.listen(self._on_change)
        volumes.listen(self._on_change)

    def submit(self, binds: Iterable[Bind]) -> None:
        """Process these binds. Those without claims to wait for are passed on at once."""
        gangs: dict[str, list[Bind]] = {}
        plain: list[Bind] = []
        for bind in binds:
            (gangs.setdefault(bind.gang, []) if bind.gang else plain).append(bind)
        if plain:
            self._ready(plain)
        for gang in gangs.values():
            self._gangs.put_nowait(gang)

    async def run(self) -> None:
        """Process gangs until cancelled. A gang whose volume is slow doesn't delay others."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._serve(await self._gangs.get()))

    def _on_change(self, change: Change[Claim] | Change[PersistentVolume]) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self, gang: Sequence[Bind]) -> None:
        wanted = {(claim.namespace, claim.name): claim for bind in gang for claim in bind.claims}
        try:
            error = await self._bind_all(list(wanted.values()))
        except ApiError as refused:
            error = refused.message
        except Exception as raised:  # a gang without a result would hold its nodes' resources for ever
            log.exception("binding the claims of a gang failed", extra={"gang": gang[0].gang})
            error = f"{type(raised).__name__}: {raised}"
        error = error or next((why for bind in gang if (why := self._reaches(bind.uid))), "")
        if not error:
            self._ready(gang)
            return
        log.warning("the claims of %s can't be bound: %s", gang[0].gang, error)
        for bind in gang:
            self._failed(bind.uid, error)

    async def _bind_all(self, claims: Sequence[ClaimBinding]) -> str:
        """Why not all of them can be bound; empty once they are."""
        for claim in claims:
            held = self._held(claim)
            if held is None or not held.spec.volume_name:
                await self._assign(claim)
        started = self._clock.monotonic()
        for claim in claims:
            error = await self._wait(claim, started + claim.timeout)
            if error:
                return error
        return ""

    async def _assign(self, claim: ClaimBinding) -> None:
        if not claim.volume:
            patch: Json = {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: claim.node}}}
            await self._api.patch(PERSISTENTVOLUMECLAIMS, claim.name, patch, namespace=claim.namespace)
            return
        volume = await self._api.get(PERSISTENTVOLUMES, claim.volume)
        kept = (volume.get("spec") or {}).get("claimRef") or {}
        if kept.get("uid") not in (None, "", claim.uid):
            raise ApiError(409, "Conflict", f"persistentvolume {claim.volume} was given to another claim")
        reference = {
            "apiVersion": PERSISTENTVOLUMECLAIMS.api_version,
            "kind": PERSISTENTVOLUMECLAIMS.kind,
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }
        metadata: Json = {"uid": volume["metadata"]["uid"], "resourceVersion": volume["metadata"]["resourceVersion"]}
        if not kept:
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        await self._api.patch(PERSISTENTVOLUMES, claim.volume, {"metadata": metadata, "spec": {"claimRef": reference}})

    async def _wait(self, claim: ClaimBinding, deadline: float) -> str:
        """Wait until the claim is bound. Its driver removes the node from the annotation where it can't provision a
        volume there."""
        marked = False
        while True:
            changed = self._changed
            held = self._held(claim)
            if held is None:
                return f"persistentvolumeclaim {claim.name} is gone"
            if self._is_bound(held):
                return ""
            here = (held.metadata.annotations or {}).get(SELECTED_NODE) == claim.node
            if marked and not claim.volume and not here:
                return f"no volume could be made for persistentvolumeclaim {claim.name} on node {claim.node}"
            marked = marked or here
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return f"persistentvolumeclaim {claim.name} wasn't bound within {claim.timeout:.0f} s"
            await pause(self._clock, left, woken=changed)

    def _held(self, claim: ClaimBinding) -> Claim | None:
        return self._claims.get(claim.uid)

    def _is_bound(self, claim: Claim) -> bool:
        """Whether the claim is bound and its volume is in the cache: the node's access to it is checked next."""
        name = claim.spec.volume_name
        return bool(name) and claim.status.phase == ClaimPhase.BOUND and self._volumes.by_key(name) is not None
