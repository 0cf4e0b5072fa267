"""The PodGroup controller: pods that are ours to place and come without a gang get one."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime

from vcbatch.api import names
from vcbatch.api.model import MalformedObject
from vcbatch.api.pod import Pod
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.resources import PODS
from vcbatch.core.machine import Decision
from vcbatch.core.podgroup import GroupView, decide, generated_name
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.cache import Cache, Change, identity
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.meter import Meter
from vcbatch.runtime.supervise import Part
from vcbatch.seams.api import Api, ApiError, Json
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

log = logging.getLogger(__name__)

_WAITING = "group that it waits for"


class PodGroupController:
    """Looks at each pod that has no group yet, and again when its group is there.

    The cached pod lacks what its group is made from, so that the few pods without a group are read again.
    """

    def __init__(
        self,
        api: Api,
        pods: Cache[Pod],
        podgroups: Cache[Json],
        applier: Applier,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        scheduler_names: Collection[str] = (names.DEFAULT_SCHEDULER,),
    ) -> None:
        self._api = api
        self._scheduler_names = frozenset(scheduler_names)
        self._pods = pods
        self._podgroups = podgroups
        self.controller = Controller(
            ControllerConfig(name="podgroup-controller", workers=4),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
        )
        pods.add_index(_WAITING, self._group_of)
        pods.listen(self._on_pod)
        podgroups.listen(self._on_podgroup)

    def part(self) -> Part:
        return self.controller.part()

    def _on_pod(self, change: Change[Pod]) -> None:
        if change.new is not None and self._group_of(change.new):
            self.controller.queue.add(change.new.metadata.uid)

    def _on_podgroup(self, change: Change[Json]) -> None:
        for pod in self._pods.indexed(_WAITING, identity(change.current).key):
            self.controller.queue.add(pod.metadata.uid)

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        cached = self._pods.get(uid)
        if cached is None:
            return None
        if not self._group_of(cached):
            return Decision()
        namespace = cached.metadata.namespace
        try:
            pod = await self._api.get(PODS, cached.metadata.name, namespace=namespace)
        except ApiError as error:
            if error.not_found:
                return None
            raise
        if pod["metadata"]["uid"] != uid:
            return None
        try:
            stored = self._podgroups.by_key(f"{namespace}/{generated_name(pod)}")
            group = PodGroup.parse(stored) if stored is not None else None
        except MalformedObject as error:
            log.warning("a PodGroup can't be read: %s", error, extra={"uid": uid})
            return Decision()
        return decide(GroupView(pod=pod, pod_group=group), now=now, scheduler_names=self._scheduler_names)

    def _group_of(self, pod: Pod) -> list[str]:
        """The key of the group that a pod without one is to get; empty for all other pods."""
        metadata = pod.metadata
        grouped = (metadata.annotations or {}).get(names.GROUP_NAME)
        if grouped or pod.spec.scheduler_name not in self._scheduler_names:
            return []
        owner = metadata.controller_owner()
        uid = owner.uid if owner is not None else metadata.uid
        return [f"{metadata.namespace}/{names.GENERATED_POD_GROUP_PREFIX}{uid}"]
