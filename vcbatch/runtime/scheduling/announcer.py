"""Emits the event that pods have been bound: on each pod of a small gang, once on the PodGroup for the rest of a large
one.

Users search for the event `Scheduled` in `kubectl describe pod`, which is worth a write; a thousand of them aren't, and
each pod's `spec.nodeName` and condition `PodScheduled` have the same information, as its gang's phase and conditions
do. So when hundreds of gangs start together, PodGroups have priority, together with single pods, then one pod of each
gang; events beyond the allowance aren't emitted.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from vcbatch.api import messages, names
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import SchedulingEvent
from vcbatch.api.resources import PODGROUPS, PODS
from vcbatch.api.scheduling import PodGroupView
from vcbatch.core.machine import Emit, EventType, ObjectRef, ref_of
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.pacing.allowance import Allowance
from vcbatch.scheduler.model.result import Bind

_BURST = 16  # pods of a gang that get an event each,
_REFILL_SECONDS = 30.0  # and one more in this time
_BURST_OF_ALL = 128  # of all gangs together,
_REFILL_SECONDS_OF_ALL = 1 / 3  # which is 10,800 in the hour that a server keeps events
_KEPT_FOR_GANGS = _BURST_OF_ALL / 2
_KEPT_FOR_FIRST_PODS = 16  # of each gang, in addition to those reserved for the gangs
_REMEMBERED = 4096


class Announcer:
    """Called with binds as they are tried and done; emits events through the recorder."""

    def __init__(self, recorder: Recorder, *, clock: Clock, pods: Cache[Pod], podgroups: Cache[PodGroupView]) -> None:
        self._recorder = recorder
        self._clock = clock
        self._pods = pods
        self._podgroups = podgroups
        self._gangs: dict[str, str] = {}  # pods that are being bound, by UID -> their gang's key
        self._on_their_way: Counter[str] = Counter()
        self._unreported: Counter[str] = Counter()
        self._allowances: OrderedDict[str, Allowance] = OrderedDict()
        self._of_all = Allowance(burst=_BURST_OF_ALL, seconds=_REFILL_SECONDS_OF_ALL, now=clock.monotonic())

    def report(self, event: Emit) -> None:
        """Emit an event of a cycle. None is dropped, except `Scheduled` when gangs start by the hundred."""
        if event.reason != SchedulingEvent.SCHEDULED or self._of_all.take(now=self._clock.monotonic()):
            self._recorder.emit(event)

    def trying(self, binds: Iterable[Bind]) -> None:
        for bind in binds:
            pod = self._pods.get(bind.uid)
            name = (pod.metadata.annotations or {}).get(names.GROUP_NAME) if pod is not None else None
            # A pod without a gang, which the scheduler doesn't place, would be a gang of its own.
            gang = self._gangs[bind.uid] = f"{bind.namespace}/{name}" if name else bind.uid
            self._on_their_way[gang] += 1

    def waits(self, binds: Sequence[Bind], lacks: str) -> None:
        """Report that pods of a gang are placed, and wait for devices before they are bound."""
        group = self._podgroups.by_key(self._gangs.get(binds[0].uid, ""))
        ref = ref_of(PODS, binds[0]) if group is None else ref_of(PODGROUPS, group.metadata)
        message = messages.waits_for_devices(pods=len(binds), lacks=lacks)
        self._recorder.emit(
            Emit(ref=ref, type=EventType.NORMAL, reason=SchedulingEvent.WAITING_FOR_DEVICES, message=message)
        )

    def bound(self, bind: Bind) -> None:
        gang = self._gangs.get(bind.uid, bind.uid)
        if self._allowed(gang):
            message = messages.assigned(namespace=bind.namespace, pod=bind.name, node=bind.node)
            ref = ref_of(PODS, bind)
            self._recorder.emit(_scheduled(ref, message))
        else:
            self._unreported[gang] += 1
        self._arrived(bind.uid)

    def failed(self, uid: str) -> None:
        self._arrived(uid)

    def _arrived(self, uid: str) -> None:
        gang = self._gangs.pop(uid, None)
        if gang is None:
            return
        self._on_their_way[gang] -= 1
        if self._on_their_way[gang] > 0:
            return
        del self._on_their_way[gang]
        unreported = self._unreported.pop(gang, 0)
        group = self._podgroups.by_key(gang)
        if unreported and group is not None and self._beside_gangs(first=False):
            meta = group.metadata
            ref = ref_of(PODGROUPS, meta)
            self._recorder.emit(_scheduled(ref, messages.assigned_more(count=unreported)))

    def _allowed(self, gang: str) -> bool:
        now = self._clock.monotonic()
        allowance = self._allowances.get(gang)
        first = allowance is None
        if allowance is None:
            allowance = self._allowances[gang] = Allowance(burst=_BURST, seconds=_REFILL_SECONDS, now=now)
        self._allowances.move_to_end(gang)
        while len(self._allowances) > _REMEMBERED:
            self._allowances.popitem(last=False)
        if not allowance.take(now=now):
            return False
        return self._of_all.take(now=now) if self._alone(gang) else self._beside_gangs(first=first)

    def _alone(self, gang: str) -> bool:
        """Whether the gang was generated for a single pod without an owner, where users search for the event of the
        pod."""
        group = self._podgroups.by_key(gang)
        owner = None if group is None else group.metadata.controller_owner()
        return owner is not None and owner.kind == PODS.kind

    def _beside_gangs(self, *, first: bool) -> bool:
        kept = _KEPT_FOR_GANGS if first else _KEPT_FOR_GANGS + _KEPT_FOR_FIRST_PODS
        return self._of_all.take(now=self._clock.monotonic(), leave=kept)


def _scheduled(ref: ObjectRef, message: str) -> Emit:
    return Emit(ref=ref, type=EventType.NORMAL, reason=SchedulingEvent.SCHEDULED, message=message)
