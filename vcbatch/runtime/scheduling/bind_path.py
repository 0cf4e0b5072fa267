"""The stages of a bind: its volumes, its device claims, the lock of its node, the bind itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from vcbatch.api.dra import ResourceClaim
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS, RESOURCECLAIMS
from vcbatch.api.storage import Claim, PersistentVolume
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Api
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.runtime.scheduling.binder import Binder
from vcbatch.runtime.scheduling.claim_binder import ClaimBinder
from vcbatch.runtime.scheduling.device_binder import DeviceBinder
from vcbatch.runtime.scheduling.extended_claims import ExtendedClaims
from vcbatch.runtime.scheduling.volume_binder import VolumeBinder
from vcbatch.scheduler.model.result import Bind


class BindPath:
    """Takes binds through all stages. A stage passes a bind on at once if it has nothing to do for it.

    `prepared(binds)` is called with pods for which only the bind itself remains, `bound(bind)` for each that is bound,
    `failed(uid, error)` for each that a stage refused, and `waits(binds, lacks)` with the pods of a gang whose devices
    aren't ready yet. `reaches(uid)` returns why a pod's node can't access its volumes, or "". `places(pod)` returns
    whether our scheduler places the pod.
    """

    def __init__(
        self,
        api: Api,
        informers: Informers,
        *,
        clock: Clock,
        random: Random,
        meter: Meter,
        reaches: Callable[[str], str],
        waits: Callable[[Sequence[Bind], str], None],
        prepared: Callable[[Iterable[Bind]], None],
        bound: Callable[[Bind], None],
        failed: Callable[[str, str], None],
        places: Callable[[Pod], bool],
    ) -> None:
        self._on_prepared = prepared
        self._on_bound = bound
        self._on_failed = failed
        self._binder = Binder(api, clock=clock, random=random, meter=meter, bound=self._bound, failed=self._failed)
        self._devices = DeviceBinder(api, clock=clock, ready=self._bind, failed=self._failed)
        claims = informers.follow(RESOURCECLAIMS, ResourceClaim, optional=True)
        self._extended = ExtendedClaims(
            api,
            claims,
            informers.follow(PODS, Pod),
            clock=clock,
            random=random,
            places=places,
        )
        self._claims = ClaimBinder(
            api,
            claims,
            self._extended,
            clock=clock,
            random=random,
            ready=self._devices.submit,
            failed=self._failed,
            waits=waits,
        )
        self._volumes = VolumeBinder(
            api,
            informers.follow(PERSISTENTVOLUMECLAIMS, Claim),
            informers.follow(PERSISTENTVOLUMES, PersistentVolume),
            clock=clock,
            ready=self._claims.submit,
            failed=self._failed,
            reaches=reaches,
        )

    def submit(self, binds: Iterable[Bind]) -> None:
        """Start binding these pods. Each ends as `bound` or `failed`."""
        self._volumes.submit(binds)

    def parts(self) -> list[Part]:
        """The background tasks of the stages; all have to run."""
        return [
            Part(name="binding pods", run=self._binder.run),
            Part(name="binding claims", run=self._volumes.run),
            Part(name="writing claims for devices", run=self._claims.run),
            Part(name="deleting claims that were left behind", run=self._extended.run),
            Part(name="locking nodes", run=self._devices.run),
        ]

    def _bind(self, binds: Iterable[Bind]) -> None:
        prepared = list(binds)
        self._on_prepared(prepared)
        self._binder.submit(prepared)

    def _bound(self, bind: Bind) -> None:
        self._devices.bound(bind.uid)
        self._claims.bound(bind.uid)
        self._on_bound(bind)

    def _failed(self, uid: str, error: str) -> None:
        self._devices.refused(uid)
        self._claims.refused(uid)
        self._on_failed(uid, error)
