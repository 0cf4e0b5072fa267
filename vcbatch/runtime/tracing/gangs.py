"""Progress of the gangs whose PodGroups carry a trace context: admitted to the cluster, placed."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime

from vcbatch.api.podgroup import PodGroupPhase
from vcbatch.api.scheduling import PodGroupView
from vcbatch.api.timestamps import parse_time
from vcbatch.api.traceparent import traceparent_of
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.tracing.tracer import Tracer
from vcbatch.scheduler.model.figures import Figures

_MOST_UNDERWAY = 10_000
_WAITS = ("", PodGroupPhase.PENDING)


class GangSpans:
    """The spans `gang.enqueued` and `gang.scheduled` of each gang."""

    def __init__(self, tracer: Tracer, podgroups: Cache[PodGroupView], *, clock: Clock) -> None:
        self._tracer = tracer
        self._podgroups = podgroups
        self._clock = clock
        self._enqueued: OrderedDict[str, datetime] = OrderedDict()  # PodGroup UID -> time of its admission

    def watch(self) -> None:
        """Record changes from now on: earlier progress isn't recorded."""
        self._podgroups.listen(self._seen)

    def of(self, figures: Figures) -> None:
        """Record one cycle."""
        for uid in figures.gangs_gone:
            self._enqueued.pop(uid, None)
        for gang in figures.gangs:
            if gang.ready and gang.binding and gang.uid in self._enqueued:
                self._record("gang.scheduled", gang.uid, begin=self._enqueued.pop(gang.uid), pods=gang.placed)

    def _seen(self, change: Change[PodGroupView]) -> None:
        old, new = change.old, change.new
        if old is None or new is None or old.status.phase not in _WAITS or new.status.phase in _WAITS:
            return
        if traceparent_of(new.metadata.annotations):
            now = self._clock.now()
            self._enqueued[new.metadata.uid] = now
            if len(self._enqueued) > _MOST_UNDERWAY:
                self._enqueued.popitem(last=False)
            begin = min(_time(new.metadata.creation_timestamp) or now, now)
            self._record("gang.enqueued", new.metadata.uid, begin=begin, pods=new.spec.min_member)

    def _record(self, name: str, uid: str, *, begin: datetime, pods: int) -> None:
        group = self._podgroups.get(uid)
        if group is None:
            return
        owner = group.metadata.controller_owner()
        attributes = {
            "k8s.namespace.name": group.metadata.namespace,
            "vcbatch.podgroup.name": group.metadata.name,
            "vcbatch.job.name": owner.name if owner is not None else "",
            "vcbatch.queue": group.spec.queue,
            "vcbatch.pods": pods,
        }
        parent = traceparent_of(group.metadata.annotations)
        self._tracer.record(name, begin=begin, end=self._clock.now(), parent=parent, attributes=attributes)


def _time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
