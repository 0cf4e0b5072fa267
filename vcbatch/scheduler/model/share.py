"""The part of a cluster that this scheduler works on, if several schedulers share it.

Three ways to divide it, as in Volcano: by labels of nodes, by hashing names over a fixed number of instances, and by
NodeShards that another controller writes.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vcbatch.api.meta import ObjectMeta
from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.node import Node
from vcbatch.api.node_shard import NodeShardView
from vcbatch.scheduler.model.facts import Facts

_POINTS: Final = 20
"""The number of points of each instance on the ring (as in the consistent-hash library that Volcano uses)."""


class ShardingMode(StrEnum):
    """The meaning of a NodeShard for its scheduler."""

    NONE = "none"
    HARD = "hard"
    """Only its nodes are used."""
    SOFT = "soft"
    """Its nodes are used before others."""


class Ring:
    """Consistent hashing of names over members: each name belongs to the member with the next point on the ring. Points
    and names are hashed as by Volcano, so that instances of both divide a cluster the same way."""

    def __init__(self, members: Iterable[str]) -> None:
        points = {_hash(f"{point}{member}"): member for member in sorted(members) for point in range(_POINTS)}
        self._hashes = sorted(points)
        self._owners = [points[at] for at in self._hashes]

    def owner(self, name: str) -> str:
        """The member that the name belongs to."""
        return self._owners[bisect_right(self._hashes, _hash(name)) % len(self._owners)]


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A scheduler's part of a cluster.

    Attributes:
        node_labels: pairs of which a node must have one; empty for all nodes.
        ring: divides nodes, and pods and PodGroups by their owner, between instances; None for one instance.
        instance: this one's name on the ring.
        mode: the meaning of the NodeShard named `shard`.
    """

    node_labels: frozenset[tuple[str, str]] = frozenset()
    ring: Ring | None = None
    instance: str = ""
    mode: ShardingMode = ShardingMode.NONE
    shard: str = DEFAULT_SCHEDULER

    def node(self, node: Node) -> bool:
        """Whether this scheduler uses the node."""
        if self.node_labels and self.node_labels.isdisjoint((node.metadata.labels or {}).items()):
            return False
        return self.ring is None or self.ring.owner(node.metadata.name) == self.instance

    def owns(self, meta: ObjectMeta) -> bool:
        """Whether a pod or a PodGroup belongs to this scheduler. Objects with the same owner belong together."""
        if self.ring is None:
            return True
        owners = meta.owner_references
        return self.ring.owner(owners[0].name if owners else meta.name) == self.instance

    def in_use(self, facts: Facts) -> frozenset[str]:
        """The nodes of the shard: the desired ones, except those that another shard still uses. Empty if the shard
        doesn't exist."""
        shards = facts.of(NodeShardView)
        own = shards.get(self.shard)
        if own is None:
            return frozenset()
        taken = {name for key, other in shards.items() if key != self.shard for name in other.status.nodes_in_use or ()}
        return frozenset(own.spec.nodes_desired or ()) - taken


WHOLE: Final = Share()
"""The whole cluster."""
