"""NodeShards: which nodes which of several schedulers is to use."""

from __future__ import annotations

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire


class NodeShardSpec(Wire):
    nodes_desired: list[str] | None = None


class NodeShardStatus(Wire):
    last_update_time: str | None = None
    nodes_in_use: list[str] | None = None
    nodes_to_remove: list[str] | None = None
    nodes_to_add: list[str] | None = None


class NodeShard(Wire):
    """One scheduler's share of the nodes; it is named after the scheduler."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeShardSpec = msgspec.field(default_factory=NodeShardSpec)
    status: NodeShardStatus = msgspec.field(default_factory=NodeShardStatus)
