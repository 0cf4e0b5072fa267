"""The colocation controller: maps events to pods and builds the view for a decision."""

from __future__ import annotations

import logging
from datetime import datetime

from vcbatch.api.colocation import ColocationConfiguration
from vcbatch.api.model import MalformedObject
from vcbatch.api.pod import TERMINAL_PHASES, Pod
from vcbatch.core.colocation import ColocationView, decide
from vcbatch.core.machine import Decision
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.metrics.meter import Meter

log = logging.getLogger(__name__)

_NAMESPACE = "namespace"
_QUIET_SECONDS = 1.0
"""Seconds of delay: several programs write to a new pod."""


class ColocationController:
    """Reconciles a pod when it is created or its labels change, and all pods of a namespace when a
    ColocationConfiguration there changes. Without any configuration it keeps nothing and reconciles nothing."""

    def __init__(
        self,
        configurations: Cache[Json],
        pods: Cache[Pod],
        applier: Applier,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
    ) -> None:
        self._configurations = configurations
        self._pods = pods
        self.controller = Controller(
            ControllerConfig(name="colocation-controller", workers=4),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
        )
        configurations.add_index(_NAMESPACE, lambda each: [each["metadata"].get("namespace", "")])
        configurations.listen(self._on_configuration)
        pods.listen(self._on_pod)

    def part(self) -> Part:
        return self.controller.part()

    def _on_configuration(self, change: Change[Json]) -> None:
        if change.keeps(lambda configuration: configuration.get("spec")):
            return
        namespace = change.current["metadata"].get("namespace", "")
        for pod in self._pods:  # configurations change rarely, while an index of all pods would always use memory
            if pod.metadata.namespace == namespace:
                self.controller.queue.add(pod.metadata.uid)

    def _on_pod(self, change: Change[Pod]) -> None:
        if change.new is None or not self._configurations.count(_NAMESPACE, change.new.metadata.namespace):
            return
        if change.old is None or change.old.metadata.labels != change.new.metadata.labels:
            self.controller.queue.add_after(change.new.metadata.uid, _QUIET_SECONDS)

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        """The decision about the pod of that UID."""
        del now
        pod = self._pods.get(uid)
        if pod is None or pod.status.phase in TERMINAL_PHASES or pod.metadata.deletion_timestamp is not None:
            return None
        stored = self._configurations.indexed(_NAMESPACE, pod.metadata.namespace)
        configurations = [parsed for each in stored if (parsed := _parsed(each)) is not None]
        return decide(ColocationView(pod=pod.metadata, configurations=configurations))


def _parsed(stored: Json) -> ColocationConfiguration | None:
    try:
        return ColocationConfiguration.parse(stored)
    except MalformedObject as error:
        log.warning("a ColocationConfiguration can't be read: %s", error)
        return None
