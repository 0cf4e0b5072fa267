"""The nodes of this scheduler's shard, as rows of the node table, and the updates of the shard's status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import numpy as np

from vcbatch.api.node_shard import NodeShardView
from vcbatch.api.timestamps import format_time
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import NodeInfo
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.result import NodeShardUpdate
from vcbatch.scheduler.model.share import WHOLE, ShardingMode, Share

OUTSIDE: Final = "node(s) weren't in the shard of this scheduler"


class Shards:
    """Which nodes are in the shard. `share` is this scheduler's part of the cluster."""

    def __init__(self, facts: Facts) -> None:
        self.share: Share = WHOLE
        self._facts = facts
        self._stamp = -1
        self._mask: Mask | None = None
        self._written: tuple[str, frozenset[str]] | None = None

    def mask(self, infos: Sequence[NodeInfo], stamp: int) -> Mask | None:
        """The nodes of the shard, shape [N]; None if the cluster isn't divided. `stamp` is that of the nodes."""
        if self.share.mode is ShardingMode.NONE:
            return None
        if self._mask is None or stamp != self._stamp or len(self._mask) != len(infos):
            names = self.share.in_use(self._facts)
            self._mask = np.fromiter((info.name in names for info in infos), dtype=bool, count=len(infos))
            self._stamp = stamp
        return self._mask

    def update(self, now: datetime) -> NodeShardUpdate | None:
        """The update of the shard's status; None if the status is correct, or an update was sent."""
        if self.share.mode is ShardingMode.NONE:
            return None
        own = self._facts.of(NodeShardView).get(self.share.shard)
        if own is None:
            return None
        using = self.share.in_use(self._facts)
        desired = frozenset(own.spec.nodes_desired or ())
        if own.status.nodes_in_use is not None and using == frozenset(own.status.nodes_in_use):
            self._written = None
            return None
        if self._written == (own.metadata.uid, using):
            return None
        self._written = (own.metadata.uid, using)
        return NodeShardUpdate(
            name=own.metadata.name,
            uid=own.metadata.uid,
            status={
                "lastUpdateTime": format_time(now),
                "nodesInUse": sorted(using),
                "nodesToAdd": sorted(desired - using),
                "nodesToRemove": [],
            },
        )

    def write_failed(self, uid: str) -> None:
        """Send the update again, because it wasn't stored."""
        if self._written is not None and self._written[0] == uid:
            self._written = None
