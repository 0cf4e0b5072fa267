"""The claims for extended resources of pods (KEP-5004): created before a pod is bound, and deleted where it isn't.

The claim is named after its pod, so that one from an earlier attempt is found. Then the pod's status records which
container uses which request of it, which the kubelet reads. A claim whose pod is still pending, and which isn't being
written, was left by a program that ended: it is deleted, since it allocates devices that no pod uses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.dra import ResourceClaim
from vcbatch.api.pod import TERMINAL_PHASES, Pod
from vcbatch.api.resources import PODS, RESOURCECLAIMS
from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.api import Api, ApiError, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.scheduler.index.dra.served import pod_of
from vcbatch.scheduler.model.result import Bind, DeviceBinding, ExtendedClaim

log = logging.getLogger(__name__)

_RETRY: Final = Backoff(initial=0.05, limit=2.0)
_AGAIN: Final = Backoff(initial=1.0, limit=60.0)
_TRIES: Final = 8
_STATUS: Final = "extendedResourceClaimStatus"


class ExtendedClaims:
    """Creates and deletes such claims. `places(pod)` returns whether our scheduler places the pod."""

    def __init__(
        self,
        api: Api,
        claims: Cache[ResourceClaim],
        pods: Cache[Pod],
        *,
        clock: Clock,
        random: Random,
        places: Callable[[Pod], bool],
    ) -> None:
        self._api = api
        self._claims = claims
        self._pods = pods
        self._clock = clock
        self._random = random
        self._places = places
        self._written: set[str] = set()
        self._suspects: set[str] = set()
        self._woken = asyncio.Event()
        claims.listen(self._on_change)

    # For pods to be bound ---------------------------------------------------------------------------------------------

    def begin(self, uid: str) -> None:
        """The claim of the pod with this UID is being written: it doesn't count as left over until `bound` or
        `given_up`."""
        self._written.add(uid)

    def bound(self, uid: str) -> None:
        """The pod is bound and uses its claim."""
        self._written.discard(uid)

    def given_up(self, uid: str) -> None:
        """The writes for the pod were reverted, as far as possible."""
        if uid in self._written:
            self._written.discard(uid)
            for claim in self._claims:
                self._suspect(claim)

    async def make(self, claim: DeviceBinding, extended: ExtendedClaim, bind: Bind) -> DeviceBinding:
        """Create the claim. Returns it with its UID. Raises `ApiError` where that fails."""
        body = _claim(claim, extended, bind)

        async def make() -> Json:
            try:
                return await self._api.create(RESOURCECLAIMS, body, namespace=claim.namespace)
            except ApiError as refused:
                if not refused.already_exists:
                    raise
            there = await self._api.get(RESOURCECLAIMS, claim.name, namespace=claim.namespace)
            if _owner(there) != bind.uid:
                raise ApiError(409, "AlreadyExists", "somebody else has a claim of this name")
            if _is_fresh(there, extended):
                return there
            await self._delete(claim.namespace, there)
            raise ApiError(409, "Conflict", "one of an earlier attempt was deleted first")

        made = await self._patiently(make)
        return claim._replace(uid=made["metadata"]["uid"])

    async def report(self, claim: DeviceBinding, extended: ExtendedClaim, bind: Bind) -> None:
        """Record the claim in the pod's status. Raises `ApiError` where that fails."""
        said = {"requestMappings": [dict(one) for one in extended.mappings], "resourceClaimName": claim.name}
        patch = {"metadata": {"uid": bind.uid}, "status": {_STATUS: said}}

        async def report() -> Json:
            return await self._api.patch(PODS, bind.name, patch, namespace=bind.namespace, subresource="status")

        pod = await self._patiently(report)
        if not (pod.get("status") or {}).get(_STATUS):
            raise ApiError(422, "Invalid", f"the API server keeps no status.{_STATUS} of pods (DRAExtendedResource)")

    async def remove(self, claim: DeviceBinding, pod: str) -> None:
        """Delete the claim of the pod of this name, which isn't bound; it is removed from the pod's status first."""

        async def remove() -> None:
            there = await self._api.get(RESOURCECLAIMS, claim.name, namespace=claim.namespace)
            if there["metadata"].get("uid") == claim.uid:
                await self._forget(claim.namespace, pod, there)
                await self._delete(claim.namespace, there)

        await self._patiently(remove)

    async def _patiently(self, act: Callable[[], Any]) -> Any:
        for attempt in range(1, _TRIES):
            try:
                return await act()
            except ApiError as refused:
                if not (refused.conflict or refused.transient):
                    raise
                await self._clock.sleep(_RETRY.delay(attempt, self._random))
        return await act()

    async def _forget(self, namespace: str, pod: str, claim: Json) -> None:
        """Remove the claim from the pod's status: its kubelet would search for it in vain."""
        try:
            stored = await self._api.get(PODS, pod, namespace=namespace)
            said = (stored.get("status") or {}).get(_STATUS) or {}
            if said.get("resourceClaimName") == claim["metadata"]["name"]:
                meta = {key: stored["metadata"].get(key) for key in ("uid", "resourceVersion")}
                patch = {"metadata": meta, "status": {_STATUS: None}}
                await self._api.patch(PODS, pod, patch, namespace=namespace, subresource="status")
        except ApiError as refused:
            if not refused.not_found:
                raise

    async def _delete(self, namespace: str, claim: Json) -> None:
        """Delete the claim as it was read. The finalizer that protects it while it has devices is removed first."""
        meta = claim["metadata"]
        kept: Sequence[str] = meta.get("finalizers") or ()
        try:
            if names.CLAIM_FINALIZER in kept:
                left = [one for one in kept if one != names.CLAIM_FINALIZER]
                same = {"uid": meta.get("uid"), "resourceVersion": meta.get("resourceVersion")}
                patch = {"metadata": {**same, "finalizers": left or None}}
                await self._api.patch(RESOURCECLAIMS, meta["name"], patch, namespace=namespace)
            await self._api.delete(RESOURCECLAIMS, meta["name"], namespace=namespace, uid=meta.get("uid"))
        except ApiError as refused:
            if not refused.not_found:
                raise

    # Left-over claims -------------------------------------------------------------------------------------------------

    def _on_change(self, change: Change[ResourceClaim]) -> None:
        if change.new is not None:
            self._suspect(change.new)

    def _suspect(self, claim: ResourceClaim) -> None:
        uid = pod_of(claim)
        if uid and uid not in self._written:
            self._suspects.add(claim.metadata.uid)
            self._woken.set()

    async def run(self) -> None:
        """Delete left-over claims, until cancelled."""
        failed = 0
        while True:
            await self._woken.wait()
            self._woken.clear()
            suspects, self._suspects = self._suspects, set()
            left = {uid for uid in suspects if not await self._mended(uid)}
            failed = failed + 1 if left else 0
            if left:
                await self._clock.sleep(_AGAIN.delay(failed, self._random))
                self._suspects |= left
                self._woken.set()

    async def _mended(self, uid: str) -> bool:
        """Whether the claim doesn't exist, or isn't left over."""
        claim = self._claims.get(uid)
        try:
            if claim is not None:
                await self._mend(claim)
        except ApiError as refused:
            if not refused.not_found:
                log.warning("an orphaned resourceclaim can't be deleted: %s", refused.message)
                return False
        return True

    async def _mend(self, claim: ResourceClaim) -> None:
        """Delete the claim if its pod is pending and the claim isn't being written. The claim of a deleted pod is
        deleted by the garbage collector."""
        uid = pod_of(claim)
        owner = next((o.name for o in claim.metadata.owner_references or () if o.uid == uid), "")
        namespace = claim.metadata.namespace
        held = self._pods.get(uid)
        if uid in self._written or claim.metadata.deletion_timestamp or (held is not None and held.spec.node_name):
            return
        # A recent bind may not be in the cache yet.
        pod = await self._api.get(PODS, owner, namespace=namespace, model=Pod)
        waits = not pod.spec.node_name and pod.status.phase not in TERMINAL_PHASES
        if pod.metadata.uid != uid or not waits or not self._places(pod) or uid in self._written:
            return
        there = await self._api.get(RESOURCECLAIMS, claim.metadata.name, namespace=namespace)
        if _owner(there) == uid:
            log.info("resourceclaim %s was orphaned", claim.metadata.key)
            await self._forget(namespace, owner, there)
            await self._delete(namespace, there)


def _claim(claim: DeviceBinding, extended: ExtendedClaim, bind: Bind) -> Json:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": bind.name, "uid": bind.uid, "controller": True}
    return {
        "apiVersion": RESOURCECLAIMS.api_version,
        "kind": RESOURCECLAIMS.kind,
        "metadata": {
            "name": claim.name,
            "namespace": claim.namespace,
            "generateName": names.extended_claim_base(bind.name),
            "annotations": {names.EXTENDED_RESOURCE_CLAIM: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [dict(one) for one in extended.requests]}},
    }


def _owner(claim: Json) -> str:
    """The UID of the pod for whose extended resources the claim was created; empty for any other claim."""
    meta = claim["metadata"]
    if (meta.get("annotations") or {}).get(names.EXTENDED_RESOURCE_CLAIM) != "true":
        return ""
    return next((str(o.get("uid")) for o in meta.get("ownerReferences") or () if o.get("controller")), "")


def _is_fresh(claim: Json, extended: ExtendedClaim) -> bool:
    """Whether the claim has these requests and isn't allocated or reserved yet."""
    status = claim.get("status") or {}
    asked = ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ()
    untouched = not (
        status.get("allocation") or status.get("reservedFor") or claim["metadata"].get("deletionTimestamp")
    )
    return untouched and [_compared(one) for one in asked] == [_compared(one) for one in extended.requests]


def _compared(request: Any) -> tuple[Any, ...]:
    """The fields of a request that are compared; the API server fills in others."""
    exactly = request.get("exactly") or {}
    return request.get("name"), exactly.get("deviceClassName"), exactly.get("count")
