"""NodeShards (`shard.volcano.sh/v1alpha1`, cluster-scoped): the nodes that one of several schedulers uses. Each is
named after its scheduler."""

from __future__ import annotations

import msgspec
from pydantic import Field

from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.model import Model, Object


class NodeShardSpec(Model):
    nodes_desired: list[str] = Field(default_factory=list[str])


class NodeShardStatus(Model):
    """The scheduler's report of its use of the shard."""

    last_update_time: str | None = None
    nodes_in_use: list[str] = Field(default_factory=list[str])
    nodes_to_remove: list[str] = Field(default_factory=list[str])
    nodes_to_add: list[str] = Field(default_factory=list[str])


class NodeShard(Object):
    spec: NodeShardSpec = Field(default_factory=NodeShardSpec)
    status: NodeShardStatus = Field(default_factory=NodeShardStatus)


# As the scheduler reads them ------------------------------------------------------------------------------------------


class NodeShardSpecView(Wire):
    nodes_desired: list[str] | None = None


class NodeShardStatusView(Wire):
    last_update_time: str | None = None
    nodes_in_use: list[str] | None = None
    nodes_to_remove: list[str] | None = None
    nodes_to_add: list[str] | None = None


class NodeShardView(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeShardSpecView = msgspec.field(default_factory=NodeShardSpecView)
    status: NodeShardStatusView = msgspec.field(default_factory=NodeShardStatusView)
