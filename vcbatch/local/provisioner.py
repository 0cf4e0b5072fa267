"""Volumes of local mode: a claim gets a directory of this machine, and volumes that a user created are bound to claims.

Does the work of the PersistentVolume controller and a provisioner, for one machine. A claim of the default class is
bound at once to a directory below the state directory, which is deleted with the claim. Its capacity is limited by the
disk: the requested size is recorded and not enforced. (Source: kubernetes `pkg/controller/volume/persistentvolume`.)
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path
from typing import Any, Final

import msgspec

from vcbatch.api.names import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from vcbatch.api.pod import TERMINAL_PHASES, Pod
from vcbatch.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS, STORAGECLASSES
from vcbatch.api.storage import BindingMode, Claim, PersistentVolume, StorageClass
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Background
from vcbatch.interfaces.api import Api, ApiError, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.local.kubelet.informer import Informer
from vcbatch.scheduler.model.storage_objects import by_size, suits

Json = dict[str, Any]
log = logging.getLogger(__name__)

CLASS: Final = "local"
"""The default class of local mode."""
PROVISIONER: Final = "vcbatch.dev/directory"

_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_OPEN_TO_ALL: Final = 0o777
_RETRY_SECONDS: Final = 1.0


class Provisioner:
    """Binds claims. `root` is where directories are created; None where no pod runs here."""

    def __init__(
        self, api: Api, *, clock: Clock, random: Random, root: Path | None, health: Health | None = None
    ) -> None:
        self._background = Background(clock=clock, random=random, health=health)
        self._api = api
        self._clock = clock
        self._root = root
        self._changed = asyncio.Event()
        resources = (PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, STORAGECLASSES)
        self._claims, self._volumes, self._classes = (
            Informer(api=api, clock=clock, random=random, resource=resource, changed=self._on_change)
            for resource in resources
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, or cancelled."""
        background = self._background
        try:
            background.finish("volumes: default storage class", self._ensure_class)
            for informer in (self._claims, self._volumes, self._classes):
                background.keep(f"volumes: {informer.resource.plural}", informer.run)
            background.keep("volumes: binding claims", self._serve)
            await stop.wait()
        finally:
            await background.close()

    def _on_change(self, old: Json | None, new: Json | None) -> None:
        self._changed.set()

    async def _ensure_class(self) -> None:
        """Create the default class, once: a user may change or replace it."""
        body: Json = {
            "apiVersion": STORAGECLASSES.api_version,
            "kind": STORAGECLASSES.kind,
            "metadata": {"name": CLASS, "annotations": {_DEFAULT_CLASS: "true"}},
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": BindingMode.IMMEDIATE.value,
        }
        while True:
            try:
                if not (await self._api.list(STORAGECLASSES)).items:
                    await self._api.create(STORAGECLASSES, body)
            except ApiError as error:
                log.warning("the default StorageClass can't be created yet: %s", error)
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                return

    async def _serve(self) -> None:
        for informer in (self._claims, self._volumes, self._classes):
            await informer.synced.wait()
        while True:
            self._changed.clear()
            again = await self._check()
            if again:
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                await self._changed.wait()

    async def _check(self) -> bool:
        """Bind and reclaim volumes. Returns whether to retry soon."""
        again = False
        for stored in list(self._claims.objects.values()):
            try:
                await self._settle(msgspec.convert(stored, Claim), stored)
            except (ApiError, OSError, msgspec.ValidationError) as error:
                again = True
                log.warning("a claim can't be bound: %s", error, extra={"claim": stored["metadata"]["name"]})
        for stored in list(self._volumes.objects.values()):
            try:
                again = not await self._reclaim(stored) or again
            except (ApiError, OSError) as error:
                again = True
                log.warning("a volume can't be removed: %s", error, extra={"volume": stored["metadata"]["name"]})
        return again

    # Binding

    async def _settle(self, claim: Claim, stored: Json) -> None:
        if claim.metadata.deletion_timestamp:
            return
        if claim.spec.volume_name and claim.status.phase == "Bound":
            return
        if claim.spec.storage_class_name is None:
            await self._give_class(claim)
            return
        found = self._given(claim)
        of_class = self._class(claim.spec.storage_class_name)
        immediate = of_class is None or of_class.volume_binding_mode == BindingMode.IMMEDIATE
        if found is None and immediate:
            found = self._best(claim)
        wanted = immediate or SELECTED_NODE in (claim.metadata.annotations or {})
        if found is None and of_class is not None and of_class.provisioner == PROVISIONER and wanted:
            found = await self._provision(claim, stored)
        if found is not None:
            await self._bind(claim, found)

    async def _give_class(self, claim: Claim) -> None:
        """Set the default class on a claim without one (Kubernetes' DefaultStorageClass)."""
        marked = [
            one["metadata"]
            for one in self._classes.objects.values()
            if (one["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
        ]
        if marked:
            newest = max(marked, key=lambda meta: (meta.get("creationTimestamp", ""), meta["name"]))
            patch: Json = {"metadata": {"uid": claim.metadata.uid}, "spec": {"storageClassName": newest["name"]}}
            meta = claim.metadata
            await self._api.patch(PERSISTENTVOLUMECLAIMS, meta.name, patch, namespace=meta.namespace)

    def _class(self, name: str) -> StorageClass | None:
        stored = self._classes.find("", name) if name else None
        return msgspec.convert(stored, StorageClass) if stored is not None else None

    def _all_volumes(self) -> list[PersistentVolume]:
        return [msgspec.convert(stored, PersistentVolume) for stored in self._volumes.objects.values()]

    def _given(self, claim: Claim) -> PersistentVolume | None:
        """The volume that is reserved for this claim, by the claim or by the volume."""
        for volume in self._all_volumes():
            kept = volume.spec.claim_ref
            named = claim.spec.volume_name == volume.metadata.name and (kept is None or suits(volume, claim))
            if named or (kept is not None and kept.uid == claim.metadata.uid):
                return volume
        return None

    def _best(self, claim: Claim) -> PersistentVolume | None:
        fitting = [volume for volume in self._all_volumes() if suits(volume, claim)]
        return min(fitting, key=by_size, default=None)

    async def _provision(self, claim: Claim, stored: Json) -> PersistentVolume:
        name = f"pvc-{claim.metadata.uid}"
        path = (self._root or Path("/nowhere")) / name
        if self._root is not None:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(_OPEN_TO_ALL)
        size = ((stored["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0")
        body: Json = {
            "apiVersion": PERSISTENTVOLUMES.api_version,
            "kind": PERSISTENTVOLUMES.kind,
            "metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "accessModes": claim.spec.access_modes,
                "capacity": {"storage": size},
                "claimRef": _reference(claim),
                "hostPath": {"path": str(path)},
                "persistentVolumeReclaimPolicy": self._policy(claim),
                "storageClassName": claim.spec.storage_class_name,
                "volumeMode": claim.spec.volume_mode,
            },
        }
        try:
            made = await self._api.create(PERSISTENTVOLUMES, body)
        except ApiError as error:
            if not error.already_exists:
                raise
            made = await self._api.get(PERSISTENTVOLUMES, name)
        return msgspec.convert(made, PersistentVolume)

    def _policy(self, claim: Claim) -> str:
        stored = self._classes.find("", claim.spec.storage_class_name or "") or {}
        return stored.get("reclaimPolicy") or "Delete"

    async def _bind(self, claim: Claim, volume: PersistentVolume) -> None:
        """Write the volume first, then the claim: after a crash in between, the volume's reference is found."""
        name, meta = volume.metadata.name, claim.metadata
        if volume.spec.claim_ref is None or volume.spec.claim_ref.uid != meta.uid:
            spec = {"claimRef": _reference(claim)}
            await self._api.patch(PERSISTENTVOLUMES, name, {"metadata": {"uid": volume.metadata.uid}, "spec": spec})
        await self._api.patch(PERSISTENTVOLUMES, name, {"status": {"phase": "Bound"}}, subresource="status")
        marks = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
        patch: Json = {"metadata": {"uid": meta.uid, "annotations": marks}, "spec": {"volumeName": name}}
        await self._api.patch(PERSISTENTVOLUMECLAIMS, meta.name, patch, namespace=meta.namespace)
        status = {
            "phase": "Bound",
            "accessModes": volume.spec.access_modes,
            "capacity": dict(volume.spec.capacity or {}),
        }
        await self._api.patch(
            PERSISTENTVOLUMECLAIMS, meta.name, {"status": status}, namespace=meta.namespace, subresource="status"
        )

    # Reclaiming

    async def _reclaim(self, stored: Json) -> bool:
        """Reclaim a volume whose claim was deleted. False where pods still use it."""
        kept = stored["spec"].get("claimRef") or {}
        phase = (stored.get("status") or {}).get("phase")
        if not kept.get("uid"):
            if phase == "Pending":
                await self._report(stored, "Available")
            return True
        if kept["uid"] in self._claims.objects:
            return True
        if phase != "Bound" and not await self._gone(kept):
            return True  # it was created for a claim that isn't in the cache yet
        metadata = stored["metadata"]
        if (metadata.get("annotations") or {}).get(_PROVISIONED_BY) != PROVISIONER or (
            stored["spec"].get("persistentVolumeReclaimPolicy") != "Delete"
        ):
            if phase != "Released":
                await self._report(stored, "Released")
            return True
        if await self._in_use(kept["namespace"], kept["name"]):
            return False
        if self._root is not None:
            await asyncio.to_thread(shutil.rmtree, self._root / metadata["name"], ignore_errors=True)
        try:
            await self._api.delete(PERSISTENTVOLUMES, metadata["name"], uid=metadata["uid"])
        except ApiError as error:
            if not error.not_found:
                raise
        return True

    async def _report(self, stored: Json, phase: str) -> None:
        await self._api.patch(
            PERSISTENTVOLUMES, stored["metadata"]["name"], {"status": {"phase": phase}}, subresource="status"
        )

    async def _gone(self, kept: Json) -> bool:
        claim = await get_or_none(self._api, PERSISTENTVOLUMECLAIMS, kept["name"], namespace=kept["namespace"])
        return claim is None or claim["metadata"]["uid"] != kept["uid"]

    async def _in_use(self, namespace: str, claim: str) -> bool:
        """Whether a pod that hasn't ended mounts it: its volume must not be deleted while it writes."""
        pods = await self._api.list(PODS, namespace=namespace, model=Pod)
        return any(
            volume.persistent_volume_claim is not None and volume.persistent_volume_claim.get("claimName") == claim
            for pod in pods.items
            if pod.status.phase not in TERMINAL_PHASES
            for volume in pod.spec.volumes or ()
        )


def _reference(claim: Claim) -> Json:
    return {
        "apiVersion": PERSISTENTVOLUMECLAIMS.api_version,
        "kind": PERSISTENTVOLUMECLAIMS.kind,
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
    }
