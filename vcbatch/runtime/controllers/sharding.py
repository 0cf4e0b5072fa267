"""The sharding controller: maintains one NodeShard for each scheduler of its configuration."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from datetime import datetime

from vcbatch.api.model import MalformedObject
from vcbatch.api.names import MIRROR_POD
from vcbatch.api.node import Node
from vcbatch.api.node_shard import NodeShard
from vcbatch.api.pod import TERMINAL_PHASES, Pod
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.core.machine import Decision, Emit
from vcbatch.core.sharding import NodeLoad, Sharding, decide
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier, NotAppliedError
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.configuration.followed_file import FollowedFile
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.metrics.meter import Meter

log = logging.getLogger(__name__)

_ALL = "the nodes"
_QUIET_SECONDS = 0.2

ShardingFile = FollowedFile[Sharding]


class ShardingController:
    """Assigns all nodes once per period, when the configuration or a NodeShard changes, and, unless the configuration
    says otherwise, when a node is added, deleted or relabelled."""

    def __init__(
        self,
        configuration: ShardingFile,
        node_shards: Cache[Json],
        nodes: Cache[Node],
        pods: Cache[Pod],
        applier: Applier,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
    ) -> None:
        self._configuration = configuration
        self._node_shards = node_shards
        self._nodes = nodes
        self._pods = pods
        # Events of the last reconcile that was applied: repeated ones aren't emitted again.
        self._reported: frozenset[Emit] = frozenset()
        self._reporting: frozenset[Emit] = frozenset()
        self.controller = Controller(
            ControllerConfig(name="sharding-controller", workers=1),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
            carried_out=self._carried_out,
        )
        configuration.listen(self._soon)
        node_shards.listen(self._on_node_shard)
        nodes.listen(self._on_node)
        self.controller.queue.add(_ALL)

    def part(self) -> Part:
        return self.controller.part()

    def _on_node_shard(self, change: Change[Json]) -> None:
        if change.old is None or change.new is None or change.old.get("spec") != change.new.get("spec"):
            self._soon()

    def _on_node(self, change: Change[Node]) -> None:
        if not self._configuration.current.on_node_events:
            return
        if change.old is None or change.new is None or change.old.metadata.labels != change.new.metadata.labels:
            self._soon()

    def _soon(self) -> None:
        self.controller.queue.add_after(_ALL, _QUIET_SECONDS)

    async def decide(self, key: str, now: datetime) -> Decision | None:
        """The decision about all NodeShards."""
        del key
        sharding = self._configuration.current
        stored = [parsed for each in self._node_shards if (parsed := _parsed(each)) is not None]
        decision = decide(sharding, self._loads(), stored)
        self._reporting = frozenset(decision.events)
        news = [event for event in decision.events if event not in self._reported]
        return replace(decision, events=news, requeue_at=now + sharding.period)

    def _carried_out(self, _: str, refused: NotAppliedError | None) -> None:
        if refused is None:
            self._reported = self._reporting

    def _loads(self) -> list[NodeLoad]:
        requested: Counter[str] = Counter()
        for pod in self._pods:
            mirrors = MIRROR_POD in (pod.metadata.annotations or {})
            if pod.spec.node_name and pod.status.phase not in TERMINAL_PHASES and not mirrors:
                requested[pod.spec.node_name] += _requests(pod)
        return [
            NodeLoad(
                name=node.metadata.name,
                labels=node.metadata.labels or {},
                utilisation=requested[node.metadata.name] / capacity if (capacity := _capacity(node)) else 0.0,
            )
            for node in self._nodes
        ]


def _requests(pod: Pod) -> int:
    """The cpu requests, in milli-units."""
    given = (container.resources.requests for container in pod.spec.containers if container.resources is not None)
    return sum(_milli(requests.get("cpu", 0)) for requests in given if requests)


def _capacity(node: Node) -> int:
    return _milli((node.status.capacity or {}).get("cpu", 0))


def _milli(amount: str | float) -> int:
    try:
        return parse_quantity(amount).milli()
    except MalformedQuantity:
        return 0


def _parsed(stored: Json) -> NodeShard | None:
    try:
        return NodeShard.parse(stored)
    except MalformedObject as error:
        log.warning("a NodeShard can't be read: %s", error)
        return None
