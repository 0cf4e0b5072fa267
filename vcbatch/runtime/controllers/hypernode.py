"""The HyperNode controller: counts the nodes below each HyperNode, and creates HyperNodes from the labels of nodes or
from the links that a fabric manager reports."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial

import msgspec

from vcbatch.api.hypernode import HyperNode
from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.model import MalformedObject
from vcbatch.api.topology import Topology
from vcbatch.core.hypernode import Discovery, Fabric, LabelTopology, Link, decide, reconcile, wanted, wanted_of_fabric
from vcbatch.core.hypernode.fabric import SOURCE as FABRIC_MANAGER
from vcbatch.core.machine import Decision
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache, Change, identity
from vcbatch.runtime.configuration.followed_file import FollowedFile
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.metrics.meter import Meter

log = logging.getLogger(__name__)

_TREE = "the tree"
_DISCOVERY = "the labels"
_FABRIC = "the fabric"
_QUIET_SECONDS = 0.2
"""Seconds of delay: a rack that starts adds a hundred nodes, which are counted once."""


class NodeLabels(Wire):
    """A Node with its name and labels only."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class HyperNodeController:
    """Reconciles a HyperNode when it or one of its members changes. With a `discovery`, reconciles the discovered
    HyperNodes when a node's label that it names changes, and when the links of a fabric are reported."""

    def __init__(
        self,
        hyper_nodes: Cache[Json],
        nodes: Cache[NodeLabels],
        applier: Applier,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        discovery: FollowedFile[Discovery] | None = None,
    ) -> None:
        self._hyper_nodes = hyper_nodes
        self._nodes = nodes
        self._discovery = discovery
        self._links: tuple[Fabric, Sequence[Link]] | None = None
        self._topology = Topology()
        self._reported: dict[str, object] = {}  # name -> its position in the tree at its last reconcile
        self.controller = Controller(
            ControllerConfig(name="hypernode-controller", workers=8),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
        )
        hyper_nodes.listen(self._on_hyper_node)
        nodes.listen(self._on_node)
        if discovery is not None:
            for key in (_DISCOVERY, _FABRIC):
                discovery.listen(partial(self.controller.queue.add, key))
                self.controller.queue.add(key)

    def part(self) -> Part:
        return self.controller.part()

    def know_fabric(self, fabric: Fabric, links: Sequence[Link]) -> None:
        """Replace the known links of this fabric."""
        self._links = fabric, links
        self.controller.queue.add(_FABRIC)

    # Events

    def _on_hyper_node(self, change: Change[Json]) -> None:
        name: str = change.current["metadata"]["name"]
        hyper_node = _parsed(change.new) if change.new is not None else None
        if hyper_node is None:
            self._topology.remove_hyper_node(name)
            self._reported.pop(name, None)
        else:
            self._topology.set_hyper_node(name, hyper_node.spec)
            self.controller.queue.add(identity(change.current).uid)
        self._soon(_TREE)
        if self._discovery is not None and (change.new is None or change.old is None):
            self._soon(_DISCOVERY)
            self._soon(_FABRIC)

    def _on_node(self, change: Change[NodeLabels]) -> None:
        metadata = change.current.metadata
        if change.new is None:
            self._topology.remove_node(metadata.name)
        elif change.old is not None and change.old.metadata.labels == metadata.labels:
            return
        else:
            self._topology.set_node(metadata.name, metadata.labels)
        self._soon(_TREE)
        if self._discovery is not None and _names_any(self._discovery.current.topologies, change):
            self._soon(_DISCOVERY)

    def _soon(self, key: str) -> None:
        self.controller.queue.add_after(key, _QUIET_SECONDS)

    # Decisions

    async def decide(self, key: str, now: datetime) -> Decision | None:
        """The decision about the HyperNode of that UID, or, for the keys `_TREE`, `_DISCOVERY` and `_FABRIC`, about
        which HyperNodes to reconcile or create."""
        if key == _TREE:
            return self._reconcile_changed()
        if key == _DISCOVERY:
            return self._discover()
        if key == _FABRIC:
            return self._discover_fabric()
        stored = self._hyper_nodes.get(key)
        hyper_node = _parsed(stored) if stored is not None else None
        if hyper_node is None:
            return None
        place = self._topology.places().get(hyper_node.name)
        if place is None:
            return None
        self._reported[hyper_node.name] = place
        return decide(hyper_node, place, now=now)

    def _reconcile_changed(self) -> Decision:
        for name, place in self._topology.places().items():
            if self._reported.get(name) != place:
                stored = self._hyper_nodes.by_key(name)
                if stored is not None:
                    self.controller.queue.add(identity(stored).uid)
        return Decision()

    def _discover(self) -> Decision:
        if self._discovery is None:
            return Decision()
        labels = {node.metadata.name: node.metadata.labels or {} for node in self._nodes}
        found = [body for topology in self._discovery.current.topologies for body in wanted(topology, labels)]
        return reconcile(found, self._stored())

    def _discover_fabric(self) -> Decision:
        """Until the first answer of a fabric manager, existing HyperNodes are kept as they are."""
        if self._discovery is None:
            return Decision()
        fabric, (asked, links) = self._discovery.current.fabric, self._links or (None, ())
        if fabric is not None and asked != fabric:
            return Decision()
        found = wanted_of_fabric(links) if fabric is not None else []
        return reconcile(found, self._stored(), source=FABRIC_MANAGER)

    def _stored(self) -> list[HyperNode]:
        return [hyper_node for each in self._hyper_nodes if (hyper_node := _parsed(each)) is not None]


def _parsed(stored: Json) -> HyperNode | None:
    try:
        return HyperNode.parse(stored)
    except MalformedObject as error:
        log.warning("a HyperNode can't be read: %s", error, extra={"uid": identity(stored).uid})
        return None


def _names_any(topologies: Sequence[LabelTopology], change: Change[NodeLabels]) -> bool:
    """Whether a label that HyperNodes are discovered from has changed, or the node was added or deleted."""
    if change.old is None or change.new is None:
        return True
    before, after = change.old.metadata.labels or {}, change.new.metadata.labels or {}
    return any(before.get(label) != after.get(label) for topology in topologies for label in topology.labels)
