"""The controller of pods whose node was deleted: which pods to reconcile, and since when their node is missing."""

from __future__ import annotations

from datetime import datetime

import msgspec

from vcbatch.api.loose import listed, part
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import NODES, PODS
from vcbatch.core.machine import Decision
from vcbatch.core.workload.stranded import StrandedView, decide
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Api, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig

_ON_NODE = "name of its node"


class StrandedPodController:
    """Reconciles the pods of a deleted node, and a pod that is bound to a node that doesn't exist."""

    def __init__(
        self,
        api: Api,
        nodes: Cache[Node],
        pods: Cache[Pod],
        applier: Applier,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._api = api
        self._nodes = nodes
        self._pods = pods
        self._missing: dict[str, datetime] = {}  # node -> when it was first found missing
        self.controller = Controller(
            ControllerConfig(name="pod-garbage-collector"), self.decide, applier, clock=clock, random=random
        )
        pods.add_index(_ON_NODE, lambda pod: [pod.spec.node_name] if pod.spec.node_name else [])
        nodes.listen(self._on_node)
        pods.listen(self._on_pod)

    def part(self) -> Part:
        return self.controller.part()

    def _on_node(self, change: Change[Node]) -> None:
        name = change.current.metadata.name
        if change.new is not None:
            self._missing.pop(name, None)
            return
        for pod in self._pods.indexed(_ON_NODE, name):
            self.controller.queue.add(pod.metadata.uid)

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.new
        if pod is not None and pod.spec.node_name and self._nodes.by_key(pod.spec.node_name) is None:
            self.controller.queue.add(pod.metadata.uid)

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        """The decision about the pod of that UID. The pod and its node are read from the server before the pod is
        changed, since the events of one may arrive before those of the other."""
        pod = self._pods.get(uid)
        node = pod.spec.node_name if pod is not None else ""
        if pod is None or not node or self._nodes.by_key(node) is not None:
            return None
        since = self._missing.setdefault(node, now)
        early = decide(StrandedView(pod=pod, conditions=(), missing_since=since), now=now)
        if early.requeue_at is not None:
            return early
        if await get_or_none(self._api, NODES, node) is not None:
            return None
        stored = await get_or_none(self._api, PODS, pod.metadata.name, namespace=pod.metadata.namespace)
        if stored is None or stored["metadata"]["uid"] != uid:
            return None
        view = StrandedView(
            pod=msgspec.convert(stored, Pod),
            conditions=listed(part(stored, "status"), "conditions"),
            missing_since=since,
        )
        return decide(view, now=now)
